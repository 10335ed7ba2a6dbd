"""Many calls side by side: one failure ends one call, and nothing outlives its parent, its iterator or its time."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ars import workers
from ars.errors import SettingError, TaskError, WorkerError
from ars.workers import run_many
from linux_processes import alive, descendants

WAIT = 60.0  # seconds; nothing here takes as long unless it is broken


def wait_until(condition: Any) -> None:
    until = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


# -- what workers are asked to do: by name, so that they can be sent -------------------------------------------------


def behave(item: Any) -> Any:
    if item == "mistake":
        raise TaskError("This one is broken.")
    if item == "bug":
        raise ZeroDivisionError
    if item == "leave":
        os._exit(0)
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "large":
        return bytes(10**7)
    return item, os.getpid()


def environment(item: Any) -> dict[str, Any]:
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))  # there is a BLAS to be asked

    return {
        "threads": max(pool["num_threads"] for pool in threadpool_info()),
        "interrupt": signal.getsignal(signal.SIGINT),
        "variable": os.environ["OMP_NUM_THREADS"],
    }


def last_words(folder: Path) -> None:
    """Writes that it runs, and that it was interrupted, but not how it ends."""
    (folder / "begun").touch()
    try:
        time.sleep(WAIT)
    except KeyboardInterrupt:
        (folder / "saved").touch()
        raise


def hang(folder: Path) -> None:
    """Cannot be asked to end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    (folder / "begun").touch()
    time.sleep(WAIT)


def begin(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(WAIT)


# -- results ---------------------------------------------------------------------------------------------------------


def test_each_call_has_a_process_of_its_own() -> None:
    results = dict(run_many(behave, ["a", "b", "c"], workers=2))
    assert [results[i][0] for i in range(3)] == ["a", "b", "c"]
    assert len({os.getpid(), *(results[i][1] for i in range(3))}) == 4


def test_nothing_to_do() -> None:
    assert list(run_many(behave, [], workers=2)) == []


def test_one_failure_ends_one_call_only(capfd: pytest.CaptureFixture[str]) -> None:
    """A mistake is a result; whatever else ends a process is a WorkerError; a bug leaves its traceback."""
    results = dict(run_many(behave, ["mistake", "bug", "leave", "die", "fine", "large"], workers=2))
    assert isinstance(results[0], TaskError)
    assert str(results[0]) == "This one is broken."
    for i, code in ((1, 1), (2, 0), (3, -signal.SIGKILL)):
        assert isinstance(results[i], WorkerError)
        assert str(results[i]).startswith(f"The worker of call {i} died: its process ended with code {code}.")
    assert results[4][0] == "fine"
    assert len(results[5]) == 10**7
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_worker_has_one_thread_and_leaves_interruptions_to_its_parent() -> None:
    [(_, found)] = run_many(environment, [None])
    assert found == {"threads": 1, "interrupt": signal.SIG_IGN, "variable": "1"}


def test_poll_gets_the_calls_under_way() -> None:
    seen: list[list[int]] = []
    list(run_many(behave, ["a", "b", "c"], workers=1, poll=seen.append))
    assert {tuple(indices) for indices in seen} == {(0,), (1,), (2,)}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "rya"}, "executor = 'rya' is unknown: choose local or ray"),
        ({"address": "auto"}, "address = 'auto' needs the executor ray"),
    ],
)
def test_mistakes_are_sentences(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        run_many(behave, ["a"], **settings)


# -- ends ------------------------------------------------------------------------------------------------------------


def test_closing_lets_calls_save_and_ends_them(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def poll(running: list[int]) -> None:
        if (tmp_path / "begun").exists():
            raise Enough

    with pytest.raises(Enough), closing(run_many(last_words, [tmp_path], poll=poll)) as results:
        next(results)
    assert (tmp_path / "saved").exists()


def test_after_its_seconds_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even what cannot be asked to end, nor what has not begun."""
    monkeypatch.setattr(workers, "GRACE", 0.5)
    started = time.monotonic()
    assert list(run_many(hang, [tmp_path, tmp_path], workers=1, seconds=5)) == []
    assert time.monotonic() - started < 30
    assert (tmp_path / "begun").exists()


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_workers import begin
from ars.workers import run_many
if __name__ == "__main__":
    list(run_many(begin, [Path({folder!r})] * 2, workers=2))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    """A parent that is killed or interrupted leaves no processes behind that eat the machine."""
    tests, folder = str(Path(__file__).parent), tmp_path / "begun"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=tests, folder=str(folder)))
    parent = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list(folder.iterdir())) == 2)
    pids = [int(path.name) for path in folder.iterdir()]
    assert {*pids} <= {*descendants(parent.pid)}
    parent.send_signal(number)
    _, errors = parent.communicate(timeout=WAIT)  # the pipe ends only when no worker holds it any more
    assert errors.count("Traceback") == (number == signal.SIGINT)  # the parent's own
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    """Its workers would start workers while they import it."""
    script = tmp_path / "script.py"
    script.write_text("from ars.workers import run_many\nprint(next(run_many(abs, [-1], workers=1))[1])")
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=WAIT)
    assert result.stdout.endswith("must be inside `if __name__ == '__main__':`.\n")
