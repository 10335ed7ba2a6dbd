"""Two processes on one folder, locks of the dead, clocks that jump, and names with spaces, quotes and Unicode."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torture_runs import ARS, DRIFT, SETTINGS, TESTS, call, flags, refused, same, size, start

import ars

SLOW = "small_envs:Slow"
WORDS = (*flags(SETTINGS), "--workers", "1", "--quiet")


def wait_for_lines(out: Path, count: int) -> None:
    until = time.monotonic() + 60
    while not (out / "records.jsonl").exists() or (out / "records.jsonl").read_bytes().count(b"\n") < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_second_process_is_refused_and_a_dead_ones_lock_is_none(tmp_path: Path) -> None:
    """The first is not disturbed; killed, it leaves a lock file that locks nothing; a reader needs no lock."""
    out = tmp_path / "run"
    words = ("train", SLOW, "--out", str(out), *WORDS)
    with start(*words, "--iterations", "100000", cwd=tmp_path) as first:
        wait_for_lines(out, 3)
        for second in (("resume", str(out), "--task", SLOW), words):
            said = refused(*second, cwd=tmp_path)
            assert said == f"ars: {out} is in use by another process: wait for it, or choose another folder.\n"
        policy = ars.LinearPolicy.load(out / "policy.npz")
        assert policy.n == 3
        wait_for_lines(out, (out / "records.jsonl").read_bytes().count(b"\n") + 2)
        assert first.poll() is None
        first.kill()
    assert (out / ".lock").exists()
    done = len((out / "records.jsonl").read_bytes().splitlines()) + 2
    call("resume", str(out), "--task", SLOW, "--iterations", str(done), "--workers", "1", "--quiet", cwd=tmp_path)
    call("train", SLOW, "--out", str(tmp_path / "whole"), *WORDS, "--iterations", str(done), cwd=tmp_path)
    same(out, tmp_path / "whole")


def test_of_many_that_begin_at_once_one_wins(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("train", DRIFT, "--out", str(out), *WORDS, "--iterations", "30")
    several = [start(*words, cwd=tmp_path) for _ in range(4)]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in several]
    assert sorted(code for _, code in ends) == [0, 2, 2, 2]
    for said, code in ends:
        assert code == 0 or "in use by another process" in said or "already holds" in said
    call("train", DRIFT, "--out", str(tmp_path / "alone"), *WORDS, "--iterations", "30", cwd=tmp_path)
    same(out, tmp_path / "alone")


JUMPING = """
import itertools, time
jumps = itertools.cycle([0.0, 4e9, -1e9, 1e300, -0.0, float("nan"), 17.0])
time.time = lambda: next(jumps)
time.time_ns = lambda: int(1e18) if next(jumps) else -5
from ars import cli
cli.main()
"""


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path) -> None:
    """Only the steady clock is read: the wall clock may jump to 1938 and to the end of time. Files of the future are
    resumed as any other."""
    words = ("train", DRIFT, *flags(SETTINGS), "--workers", "1", "--iterations", "30")
    environment = os.environ | {"PYTHONPATH": TESTS}
    command = [sys.executable, "-c", JUMPING, *words, "--minutes", "10", "--out", "jumping"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Stopped: 30 iterations are done" in result.stdout
    seconds = [
        json.loads(line)["seconds"] for line in (tmp_path / "jumping" / "records.jsonl").read_text().splitlines()
    ]
    assert seconds == sorted(seconds)
    assert 0 < seconds[-1] < 120
    for file in (tmp_path / "jumping").iterdir():
        os.utime(file, (4e9, 4e9))
    again = ("--task", DRIFT, "--workers", "1", "--iterations", "32")
    call("resume", "jumping", *again, cwd=tmp_path)
    call(*words[:-1], "32", "--out", "steady", cwd=tmp_path)
    same(tmp_path / "jumping", tmp_path / "steady")


NAMES = [
    '-[/b] :snake: ünïcödé 雪, it\'s "quoted" $(touch x) `touch x`; touch x & | > < *',
    "~",
    "a name with spaces",
    "#%?\\",
]


@pytest.mark.parametrize("name", NAMES[: size(1, len(NAMES))])
def test_odd_names(name: str, tmp_path: Path) -> None:
    """As the folder where we are and as the run folder; and what we say to type next works as it is, in a shell."""
    here = tmp_path / name
    here.mkdir(parents=True)  # "[/b]" has a slash
    out = f"{name}/run"
    environment = os.environ | {"PATH": f"{Path(ARS).parent}:{os.environ['PATH']}"}
    printed, _ = call("train", "lqr", f"--out={out}", "--N=2", "--eval-every=2", "--eval-episodes=2", "--iterations=2",
                      "--workers=1", cwd=here, env=environment)  # fmt: skip
    assert len((here / name / "run" / "records.jsonl").read_text().splitlines()) == 2
    commands = [line.strip() for line in printed.partition("What to type next:")[2].splitlines()]
    wanted = [line for line in commands if line.startswith(("ars evaluate", "ars resume"))]
    assert len(wanted) == 2, printed
    for line in wanted:
        command = ["bash", "-c", line.replace("--iterations 1002", "--iterations 3")]
        result = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
    assert len((here / name / "run" / "records.jsonl").read_text().splitlines()) == 3
    assert not list(tmp_path.rglob("x"))


def test_processes_and_code_of_ones_own_in_an_odd_place(tmp_path: Path) -> None:
    """Workers find the user's module where the user is, whatever its name."""
    here = tmp_path / "mes environnements — 環境"
    here.mkdir()
    (here / "möin.py").write_text("from small_envs import Drift\n")
    words = ("train", "möin:Drift", "--N", "2", "--eval-every", "0", "--iterations", "2", "--out", "lauf ä", "--quiet")
    call(*words, "--workers", "2", cwd=here)
    call("resume", "lauf ä", "--task", "möin:Drift", "--iterations", "3", "--workers", "2", "--quiet", cwd=here)
    assert json.loads((here / "lauf ä" / "config.json").read_text())["config"]["task"] == "möin:Drift"
