"""Killed anywhere: SIGKILL in iterations, evaluations, starts and writes; the end is that of an uninterrupted run."""

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torture_runs import call, flags, kill, same, size, start, words_of

import ars
from ars.cli import main
from ars.runs import Run
from linux_processes import LOOPBACK, descendants, listening
from small_runs import SMALL_SEARCHES

RUNS: dict[str, tuple[str, dict[str, Any], int]] = {  # task, settings, workers
    "threads": ("Swimmer-v5", {"N": 2, "H": 50, "eval_every": 20, "eval_episodes": 2, "seed": 1}, 2),
    "processes": ("small_envs:Drift", {"search": "ars", "N": 4, "eval_every": 3, "eval_episodes": 4, "seed": 2}, 2),
    "ray": ("small_envs:Drift", {"search": "ars", "N": 4, "eval_every": 3, "eval_episodes": 4, "seed": 3}, 2),
}


def test_killed_at_every_step_on_disk(tmp_path: Path, figure: Callable[..., None]) -> None:
    """Before each step that changes a file, and with half of each write done, in a life that begins and in lives that
    resume."""
    killer = Path(__file__).with_name("torture_killer.py")
    words = [sys.executable, str(killer), str(tmp_path), str(size(20, 1))]
    result = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr
    done = json.loads(result.stdout)
    assert done["first"] >= 24 + 2 * ((done["steps"] - 12) // size(20, 1))
    assert done["in a resume"] > 0
    figure("kills_at_steps", kills=done["kills"], steps=done["steps"])


def iterations(out: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return (out / "records.jsonl").read_bytes().count(b"\n")
    return 0


def wait_for_progress(process: "subprocess.Popen[str]", out: Path, before: int) -> None:
    """Until it has written records of its own, or has ended."""
    until = time.monotonic() + 120
    while iterations(out) <= before and process.poll() is None:
        assert time.monotonic() < until, "no progress in two minutes"
        time.sleep(0.005)


def half_done(out: Path) -> bool:
    """Whether a write was under way: its temporary file is there, or half a line."""
    content = (out / "records.jsonl").read_bytes() if (out / "records.jsonl").exists() else b""
    return any(out.glob(".*.tmp")) or not (content.endswith(b"\n") or not content)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_killed_at_random_moments(kind: str, tmp_path: Path, figure: Callable[..., None]) -> None:
    """Also right at the start; half of the lives save every iteration, so that many kills meet a write. Of processes,
    workers are killed as well, which the run survives. Some lives are ended by SIGTERM instead."""
    name, settings, workers = RUNS[kind]
    out, moments = tmp_path / "run", random.Random(f"kills of {kind}")
    kills = deaths = in_writes = ended = 0
    begin = ("train", name, "--out", str(out), *flags(settings), "--iterations", "1000000")
    again = ("resume", str(out), "--task", name)
    how = ("--quiet", "--workers", str(workers))
    while kills < size(2, 45):
        words = again if (out / "config.json").exists() else begin
        before = iterations(out)
        with start(*words, *how, cwd=tmp_path, eager=moments.random() < 0.5) as process:
            if moments.random() < 0.15:
                time.sleep(moments.uniform(0.0, 1.5))
            else:
                wait_for_progress(process, out, before)
                time.sleep(moments.uniform(0.0, 0.7))
                if kind == "processes" and moments.random() < 0.4:
                    deaths += kill_one(moments, process.pid, "spawn_main")
                    wait_for_progress(process, out, iterations(out))
            number = signal.SIGTERM if moments.random() < 0.15 else signal.SIGKILL
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        if number == signal.SIGTERM:  # as Ctrl-C: saved, and at once
            assert process.returncode in (128 + number, -number), errors
            ended += 1
        else:
            assert process.returncode == -number, errors
            kills += 1
            in_writes += half_done(out)
        if (out / "config.json").exists():
            Run.open(out, mend=False).release()
    finish_and_compare(out, name, settings, how)
    figure(f"kills_{kind}", kills=kills, workers=deaths, in_writes=in_writes, ended=ended, iterations=iterations(out))


@pytest.mark.parametrize("search", [name for name in SMALL_SEARCHES if name != "ars"])  # tested above
def test_every_search_is_killed_and_resumed(search: str, tmp_path: Path) -> None:
    settings = {"search": search, **SMALL_SEARCHES[search], "seed": 4}
    kill_and_compare("small_envs:Drift", settings, tmp_path, random.Random(search).randint(3, 20))


def test_a_robot_in_scenarios_is_killed_and_resumed(tmp_path: Path) -> None:
    settings = {"N": 4, "least_timesteps": 0, "over": "worst", "eval_episodes": 2, "seed": 4}
    kill_and_compare("own_robots:ROUGH", settings, tmp_path, 5)


def kill_and_compare(name: str, settings: dict[str, Any], tmp_path: Path, iterations: int) -> None:
    """SIGKILL after some iterations, resume, and compare with a run that nobody interrupts."""
    out = tmp_path / "run"
    words = ("train", name, "--out", str(out), *flags(settings), "--iterations", "1000000", "--quiet", "--workers", "1")
    with start(*words, cwd=tmp_path, eager=True) as process:
        wait_for_progress(process, out, iterations)
        process.kill()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    with Run.open(out, mend=False) as run:
        total = run.state.j + 5
    with pytest.raises(SystemExit) as end:
        main(["resume", str(out), "--task", name, "--iterations", str(total), "--quiet", "--workers", "1"])
    assert not end.value.code
    list(ars.train(name, **settings, iterations=total, out=tmp_path / "uninterrupted", workers=1))
    same(out, tmp_path / "uninterrupted")


def kill_one(moments: random.Random, pid: int, word: str) -> int:
    """SIGKILL to one of the worker processes, if there are any."""
    workers = [worker for worker in descendants(pid) if word in words_of(worker)]
    if workers:
        kill(moments.choice(workers))
    return bool(workers)


def finish_and_compare(out: Path, name: str, settings: dict[str, Any], how: tuple[str, ...]) -> None:
    """A last `ars resume`, and one run that nobody interrupts, in one thread."""
    with Run.open(out, mend=False) as run:
        total = str(run.state.j + 7)
    call("resume", str(out), "--task", name, "--iterations", total, *how, cwd=out.parent)
    whole = out.with_name("uninterrupted")
    words = ("train", name, "--out", str(whole), *flags(settings), "--iterations", total, "--quiet", "--workers", "1")
    call(*words, cwd=out.parent)
    same(out, whole)


def test_ray_killed_at_random_moments(tmp_path: Path, figure: Callable[..., None]) -> None:
    """The driver, and workers of Ray's while it runs. What it starts listens on loopback alone."""
    name, settings, workers = RUNS["ray"]
    out, moments = tmp_path / "run", random.Random("kills of ray")
    how = ("--quiet", "--workers", str(workers), "--executor", "ray")
    begin = ("train", name, "--out", str(out), *flags(settings), "--iterations", "1000000")
    again = ("resume", str(out), "--task", name)
    kills = deaths = listened = 0
    while kills < size(1, 12):
        words = again if (out / "config.json").exists() else begin
        with start(*words, *how, cwd=tmp_path, eager=moments.random() < 0.5) as process:
            wait_for_progress(process, out, iterations(out))
            for _ in range(moments.randint(1, 2)):
                time.sleep(moments.uniform(0.0, 0.5))
                deaths += kill_one(moments, process.pid, "ray::Worker")
                wait_for_progress(process, out, iterations(out))
            family = [process.pid, *descendants(process.pid)]
            addresses = listening(family)
            assert addresses <= LOOPBACK
            listened += bool(addresses)
            time.sleep(moments.uniform(0.0, 1.0))
            process.kill()
            _, errors = process.communicate()
        for pid in family:  # Ray's idle helpers would stay for a minute
            kill(pid)
        assert process.returncode == -signal.SIGKILL, errors
        kills += 1
        Run.open(out, mend=False).release()
    assert deaths >= kills
    assert listened == kills
    finish_and_compare(out, name, settings, ("--quiet", "--workers", "1"))
    figure("kills_ray", kills=kills, workers=deaths, iterations=iterations(out))
