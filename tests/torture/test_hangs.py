"""Environments that hang, and signals: the program ends at once and leaves no process behind; with a time limit for a
step, the run goes on to the same bits."""

import errno
import itertools
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from torture_runs import SETTINGS, flags, start

import ars
from ars.errors import SettingError, WorkerError
from ars.executors import make_executor
from ars.tasks import factory
from linux_processes import alive, descendants

SOON = 8.0  # seconds: two for workers that must be killed, and a slow machine


@pytest.fixture
def misbehave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that changes everything; beside it, processes that hang leave their ids."""
    monkeypatch.setenv("MISBEHAVE", str(tmp_path / "now"))
    return tmp_path / "now"


def begin(name: str, **more: Any) -> Any:
    return ars.train(f"torture_envs:{name}", **{**SETTINGS, "iterations": 6, **more})


def hang(name: str, workers: int, misbehave: Path) -> Any:
    """`ars train` in an environment that hangs by now, and all processes of it."""
    words = (f"torture_envs:{name}", *flags(SETTINGS), "--workers", str(workers), "--iterations", "100000")
    process = start("train", *words, "--out", "run", cwd=misbehave.parent)
    records, until = misbehave.parent / "run" / "records.jsonl", time.monotonic() + 60
    while not (records.exists() and records.read_bytes().count(b"\n") >= 3):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    misbehave.touch()
    while not any(misbehave.parent.glob("now.*")):
        assert time.monotonic() < until
        time.sleep(0.02)
    return process, descendants(process.pid)


@pytest.mark.parametrize(
    ("name", "workers", "number"),
    [("Sleeps", 2, signal.SIGINT), ("SleepsInC", 2, signal.SIGTERM), ("Sleeps", 1, signal.SIGHUP)],
)
def test_a_signal_ends_a_run_that_hangs(name: str, workers: int, number: signal.Signals, misbehave: Path) -> None:
    """And saves it. Two signals in a row, which some programs send, are one."""
    process, family = hang(name, workers, misbehave)
    began = time.monotonic()
    process.send_signal(number)
    process.send_signal(number)
    printed, said = process.communicate(timeout=60)
    assert time.monotonic() - began < SOON
    assert process.returncode == 128 + number, said
    assert said == ""
    assert "Interrupted: everything is saved. Continue with: " in printed
    while any(map(alive, family)):  # Python's own resource tracker takes a moment
        assert time.monotonic() - began < SOON
    misbehave.unlink()
    done = len((misbehave.parent / "run" / "records.jsonl").read_bytes().splitlines())
    *_, last = ars.resume(misbehave.parent / "run", task=f"torture_envs:{name}", iterations=done + 1)
    *_, whole = begin(name, iterations=done + 1)
    assert last.policy.M.tobytes() == whole.policy.M.tobytes()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_ends_an_evaluation_that_hangs(workers: str, misbehave: Path) -> None:
    """With the signal's exit code, as for a training."""
    *_, record = begin("Sleeps", iterations=1)
    record.policy.save(misbehave.parent / "policy.npz")
    misbehave.touch()
    words = ("evaluate", "policy.npz", "--task", "torture_envs:Sleeps", "--workers", workers)
    process, until = start(*words, cwd=misbehave.parent), time.monotonic() + 60
    while not any(misbehave.parent.glob("now.*")):
        assert time.monotonic() < until
        time.sleep(0.02)
    family = descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=SOON)
    assert (process.returncode, said) == (128 + signal.SIGTERM, "")
    until = time.monotonic() + SOON
    while any(map(alive, family)):
        assert time.monotonic() < until


def test_a_second_signal_ends_what_python_cannot_interrupt(misbehave: Path) -> None:
    """The environment hangs in C, in the only process."""
    process, _ = hang("ComputesInC", 1, misbehave)
    process.send_signal(signal.SIGTERM)
    time.sleep(1.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(SOON) == 128 + signal.SIGTERM
    process.communicate()


# -- a time limit for a step -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_hangs_is_replaced(workers: int, tmp_path: Path, misbehave: Path) -> None:
    """To the same bits; with one worker it is a process too."""
    records = begin("SleepsOnce", workers=workers, step_timeout=0.5)
    assert len(list(itertools.islice(records, 3))) == 3
    misbehave.touch()
    *_, last = records
    assert not misbehave.exists()  # it did hang
    *_, whole = begin("SleepsOnce")
    assert last.policy.M.tobytes() == whole.policy.M.tobytes()


def test_what_always_hangs_is_a_sentence(misbehave: Path) -> None:
    """Even where nothing but SIGKILL ends it."""
    misbehave.touch()
    with pytest.raises(
        WorkerError, match=r"^torture_envs:SleepsInC hung 3 times in a row in iteration 1, direction \d: .* = 0.2 s\.$"
    ):
        list(begin("SleepsInC", workers=1, step_timeout=0.2))
    assert [int(path.suffix[1:]) for path in misbehave.parent.glob("now.*") if alive(int(path.suffix[1:]))] == []


def test_a_long_episode_of_quick_steps_does_not_hang() -> None:
    """12 steps of 0.1 s: the limit is for one step."""
    [record] = begin("Patient", N=1, b=1, H=12, eval_every=0, iterations=1, workers=2, step_timeout=0.8)
    assert record.timesteps == 24


@pytest.mark.parametrize(
    ("task", "limit", "kind", "words"),
    [
        ("CartPole-v1", 0, "local", r"step_timeout = 0 must be larger than 0"),
        ("CartPole-v1", float("nan"), "local", r"step_timeout = nan"),
        ("CartPole-v1", "1", "local", r"step_timeout = '1'"),
        ("CartPole-v1", 1, "ray", r"step_timeout = 1 is only for local workers"),
        ("Hopper-v5", 1, "local", r"step_timeout = 1 is only for environments in Python: Hopper-v5 is compiled"),
    ],
)
def test_limits_that_cannot_be(task: str, limit: Any, kind: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        make_executor(factory(task), 2, kind=kind, step_timeout=limit)


def test_a_read_only_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes need none; a time limit for a step does, and says so."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse)
    monkeypatch.setattr("multiprocessing.heap.BufferWrapper.__init__", refuse)
    few = {"N": 1, "b": 1, "H": 5, "iterations": 1, "eval_every": 0}
    assert len(list(begin("NeverEnds", workers=2, **few))) == 1
    with pytest.raises(SettingError, match=r"step_timeout needs shared memory.*Read-only"):
        begin("NeverEnds", step_timeout=1.0, out=tmp_path / "run", **few)
    assert not (tmp_path / "run").exists()
