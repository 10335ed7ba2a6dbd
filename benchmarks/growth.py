"""How cost grows: steps/s against threads, against N, and against n · p."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ars.tasks import make
from benchmarks import chain
from benchmarks.contest import hold
from benchmarks.contestants import ENTRIES
from benchmarks.workload import Size, prepare

Tell = Callable[[str], None]

THREADS = (1, 2, 4)
DIRECTIONS = (1, 2, 4, 8, 16, 32, 64)
LINKS = (2, 4, 8, 16, 32)
WIDTHS = (0, 1, 2, 4)  # of a chain of 16
TASK = "HalfCheetah-v5"  # its episodes never end early: the work per direction is the same for every N


def measure(repetitions: int, threads: int, cache: Path, tell: Tell, *, quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Three series, each measured in turns."""
    few = 4 if quick else None
    return {
        "threads": by_threads(repetitions, cache, tell),
        "N": by_directions(DIRECTIONS[:few], repetitions, threads, cache, tell),
        "n_p": by_size(LINKS[:few], WIDTHS[:few], repetitions, threads, cache, tell),
    }


def by_threads(repetitions: int, cache: Path, tell: Tell) -> list[dict[str, Any]]:
    rows = []
    for task, size in ((TASK, Size(8, 8, 0, 32_000)), ("Humanoid-v5", Size(32, 32, 0, 4_000))):
        work = prepare(task, "start", 1, size=size, cache=cache)
        entries = {str(threads): (ENTRIES["ours"], work.on(threads)) for threads in THREADS}
        for threads, runs in hold(entries, repetitions, tell).items():
            rows.append({"task": task, "threads": int(threads), "ours": runs.best})
    return rows


def by_directions(
    directions: Sequence[int], repetitions: int, threads: int, cache: Path, tell: Tell
) -> list[dict[str, Any]]:
    """Whole iterations: what does not depend on N matters more if N is small."""
    entries = {}
    for N in directions:
        work = prepare(TASK, "start", threads, size=Size(N, N, 0, 16_000), cache=cache)
        entries[str(N)] = ENTRIES["iteration"], work
    runs = hold(entries, repetitions, tell)
    return [{"task": TASK, "N": int(N), "iteration": one.best} for N, one in runs.items()]


def by_size(
    links: Sequence[int], widths: Sequence[int], repetitions: int, threads: int, cache: Path, tell: Tell
) -> list[dict[str, Any]]:
    """The cost of physics grows with the links of a chain; a wider observation adds only to our own cost."""
    rows = []
    for name in [*(chain.name_of(k) for k in links), *(chain.name_of(16, wide) for wide in widths if wide)]:
        task = make(name)
        work = prepare(name, "start", threads, size=Size(8, 8, 0, 8_000), cache=cache, H=500)
        runs = hold({one: (ENTRIES[one], work) for one in ("limit", "ours")}, repetitions, tell)
        row = {"task": name.partition(":")[2], "n": task.n, "p": task.p, "n_p": task.n * task.p}
        rows.append({**row, **{one: run.best for one, run in runs.items()}})
        task.close()
    return rows
