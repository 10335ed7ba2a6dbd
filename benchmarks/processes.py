"""Memory and start-up time, in processes started as a user would start them."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# The preset's N; the folder is given because writing it is part of training.
_TRAIN = """
import resource, sys
from ars import train
for record in train("Humanoid-v5", workers=int(sys.argv[1]), iterations=int(sys.argv[2]), out=sys.argv[3]):
    pass
scale = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6)
"""


def peak_memory(threads: int, iterations: int) -> dict[str, Any]:
    """Peak resident set of Humanoid training, in MB."""
    with tempfile.TemporaryDirectory() as scratch:
        arguments = [str(threads), str(iterations), str(Path(scratch) / "run")]
        done = subprocess.run(
            [sys.executable, "-c", _TRAIN, *arguments], check=True, capture_output=True, text=True, cwd=scratch
        )
    return {"task": "Humanoid-v5", "threads": threads, "iterations": iterations, "peak_MB": float(done.stdout)}


def start_up(repetitions: int) -> dict[str, float]:
    """Seconds, best of several: all of `ars --help`, and `ars train` until its first iteration is on disk. The compiled
    code is already cached, as it is for a user's second run."""
    return {
        "help": min(_seconds(["--help"]) for _ in range(repetitions)),
        "first_iteration": min(_until_first_record() for _ in range(repetitions + 1)),  # the first may compile
    }


def first_start(repetitions: int) -> dict[str, float]:
    """Processor seconds, best of several: `ars train Hopper-v5 --iterations 1` where nothing is compiled yet, and once
    more after it. A start hardly waits, so on an idle machine they pass as elapsed seconds."""
    first, second = [], []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:
            first.append(_processor_seconds_of_training(cache))
            second.append(_processor_seconds_of_training(cache))
    return {"first": min(first), "second": min(second)}


def _processor_seconds_of_training(cache: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as scratch:
        command = [_ars(), "train", "Hopper-v5", "--iterations", "1", "--quiet", "--out", str(Path(scratch) / "run")]
        variables = os.environ | {"NUMBA_CACHE_DIR": cache}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=variables, cwd=scratch)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _ars() -> str:
    return str(Path(sys.executable).with_name("ars"))


def _seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([_ars(), *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _until_first_record() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        records = Path(scratch) / "run" / "records.jsonl"
        command = [_ars(), "train", "HalfCheetah-v5", "--iterations", "1", "--eval-every", "0", "--quiet"]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--out", str(records.parent)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=scratch
        )
        while not (records.exists() and os.path.getsize(records)):  # noqa: PTH202 (cheap, and called often)
            if process.poll() not in (None, 0):
                raise RuntimeError("`ars train` failed.")
            time.sleep(0.005)
        seconds = time.perf_counter() - start
        process.wait()
    return seconds
