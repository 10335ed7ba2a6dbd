"""What all tests share: hypothesis without clocks or files, and the environments of small_envs.py by name."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

HERE = str(Path(__file__).parent)
if HERE not in sys.path:  # so that worker processes find small_envs too: they inherit the path
    sys.path.insert(0, HERE)

os.environ.update(RAY_worker_niceness="0")  # otherwise Ray's workers wait for all other tests

pytest_plugins = ["looking_fixtures"]  # small runs, a browser, OpenGL: for the tests that look

settings.register_profile("ars", deadline=None, database=None, derandomize=True, max_examples=60)
settings.load_profile("ars")


@pytest.fixture
def calls() -> Iterator[list[object]]:
    """What the environments of small_envs were asked to do in this process, in order."""
    import small_envs

    small_envs.calls.clear()
    yield small_envs.calls
    small_envs.calls.clear()


@pytest.fixture(autouse=True, scope="session")
def _signals() -> None:
    """In a job that runs in the background SIGINT or SIGHUP may be ignored, and what tests start would inherit it."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(autouse=True, scope="session")
def default_workers() -> Iterator[Callable[..., int]]:
    """The library's default, which is one worker in the tests, because processes take a second to start. Neither the
    command line nor scripts are affected."""
    from ars import executors

    real = executors.default_workers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "default_workers", lambda factory: 1)
        yield real


@pytest.fixture(autouse=True)
def _numpy_global_state() -> Iterator[None]:
    """A test that disturbs np.random's global generator does not disturb the next one."""
    state = np.random.get_state()  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002
