"""Long runs: memory and file handles stay flat, and the records can be read while they are written."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torture_runs import FIGURES, flags, size, start

from linux_processes import descendants

SWIMMER = {"N": 1, "H": 5, "protocol": "paper", "eval_every": 100, "eval_episodes": 1, "seed": 1}
DRIFT = {"search": "ars", "N": 1, "protocol": "paper", "eval_every": 20, "eval_episodes": 1, "seed": 1}
SOAKS: dict[str, tuple[str, dict[str, Any], int]] = {
    "threads": ("Swimmer-v5", SWIMMER, size(800, 20_000)),
    # Long enough that its workers load the compiled step, once, well before the second half.
    "processes": ("small_envs:Drift", DRIFT, size(1000, 8000)),
}
if FIGURES is not None:  # too short a run would show nothing: Ray's own processes need a while to settle
    SOAKS["ray"] = "small_envs:Drift", DRIFT, 2500


class Reader:
    """Someone who reads along: every complete line, as soon as it is there, is a whole record."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self.iterations, self.looks = path, 0, 0, 0

    def look(self) -> None:
        self.looks += 1
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.splitlines():
            record = json.loads(line)
            assert record["iteration"] == self.iterations + 1
            self.iterations += 1
        self._at += len(whole)


def memory(pid: int) -> float:
    """MB that a process and its children hold."""
    pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in (pid, *descendants(pid))]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def handles(pid: int) -> int:
    return sum(len(list(Path(f"/proc/{one}/fd").iterdir())) for one in (pid, *descendants(pid)))


@pytest.mark.parametrize("kind", SOAKS)
def test_a_long_run_stays_small(kind: str, tmp_path: Path, figure: Callable[..., None]) -> None:
    """Measured from outside, with all processes, once the run has settled, while somebody reads the records."""
    name, settings, iterations = SOAKS[kind]
    out = tmp_path / "run"
    words = ("train", name, "--out", str(out), *flags(settings), "--iterations", str(iterations), "--workers", "2")
    words += ("--executor", "ray") if kind == "ray" else ()
    reader, samples = Reader(out / "records.jsonl"), []
    with start(*words, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            reader.look()
            with contextlib.suppress(OSError):  # a process may end between two looks
                samples.append((reader.iterations, memory(process.pid), handles(process.pid)))
            time.sleep(0.05)
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (0, "")
    reader.look()
    assert reader.iterations == iterations
    done, held, opened = (np.array(column, dtype=float) for column in zip(*samples, strict=True))
    # A worker may still be importing while the other does the first hundred iterations: the second half is settled.
    late = (done >= 0.5 * iterations) & (done <= 0.98 * iterations)
    assert late.sum() >= 5
    slope = float(np.polyfit(done[late], held[late], 1)[0]) * iterations  # MB over the whole run
    assert slope < (8.0 if kind == "ray" else 3.0)
    half = late.sum() // 2
    assert np.median(opened[late][half:]) <= np.median(opened[late][:half])  # some are open for a moment only
    figure(
        f"soak_{kind}", iterations=iterations, peak_MB=float(held.max()), growth_MB=slope,
        handles=int(np.median(opened[late])), looks=reader.looks,
    )  # fmt: skip
