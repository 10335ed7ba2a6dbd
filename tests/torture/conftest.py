"""Sizes of the torture tests: a short form for `make test`; with ARS_TORTURE naming a folder, the long form of
`make torture`, which leaves its figures there (torture_report.py puts them into docs/reliability.md)."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from torture_runs import DRIFT, SETTINGS, keep_figure

import ars


@pytest.fixture
def figure() -> Callable[..., None]:
    """figure(name, **numbers) keeps what a test measured, in the long form."""
    return keep_figure


@pytest.fixture(scope="session", autouse=True)
def signals_have_their_meaning() -> None:
    """In a job that runs in the background SIGINT or SIGHUP may be ignored, and what tests start would inherit it."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 8 iterations with evaluations, for tests that only read or copy it."""
    out = tmp_path_factory.mktemp("finished") / "run"
    assert len(list(ars.train(DRIFT, **SETTINGS, iterations=8, out=out))) == 8
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run", ignore=shutil.ignore_patterns(".lock")))
