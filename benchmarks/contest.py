"""Contestants in separate processes, measured in turns.

Each process is idle while the others run, and times its own work: start-up, sending arrays and creating environments
are never timed. Turns are interleaved, so that a slow minute of the machine affects all contestants; the best of
several measurements counts, because noise only makes them slower.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from benchmarks.workload import Work

# One thread per worker, so that no contestant competes with itself for cores.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Contestant(Protocol):
    """One way to run a workload."""

    def ready(self) -> None:
        """Untimed preparation before every run."""

    def run(self) -> int:
        """The timed part; returns the number of environment steps."""

    def close(self) -> None: ...


@dataclass
class Runs:
    """The measurements of one contestant: steps, wall-clock seconds, and processor seconds of its process."""

    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """Steps per second."""
        return max(steps / seconds for steps, seconds in zip(self.steps, self.seconds, strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {
            "steps_per_second": round(self.best, 1),
            "steps": self.steps,
            "seconds": [round(s, 5) for s in self.seconds],
            "processor_seconds": [round(s, 5) for s in self.processor_seconds],
        }


class Entrant:
    """The parent's side of a contestant's process."""

    def __init__(self, make: Callable[[Work], Contestant], work: Work) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, work))
        self._process.start()
        theirs.close()

    def wait_until_made(self) -> None:
        self._receive()

    def measure(self) -> tuple[int, float, float]:
        self._pipe.send("run")
        steps, seconds, processor = self._receive()
        return steps, seconds, processor

    def close(self) -> None:
        self._pipe.close()
        self._process.join()

    def _receive(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError("A contestant's process ended: see its traceback above.") from None
        return answer


def _serve(pipe: Connection, make: Callable[[Work], Contestant], work: Work) -> None:
    contestant = make(work)
    try:
        pipe.send(None)
        while pipe.recv() == "run":
            contestant.ready()
            processor, clock = time.process_time(), time.perf_counter()
            steps = contestant.run()
            seconds = time.perf_counter() - clock
            pipe.send((int(steps), seconds, time.process_time() - processor))
    except EOFError:
        pass
    finally:
        contestant.close()


def hold(
    entries: Mapping[str, tuple[Callable[[Work], Contestant], Work]],
    repetitions: int,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Runs]:
    """Measure all entries in turns; one that cannot start is reported and left out."""
    runs: dict[str, Runs] = {}
    entrants: dict[str, Entrant] = {}
    with one_thread_each():
        try:
            for name, (make, work) in entries.items():
                entrants[name] = Entrant(make, work)
                try:
                    entrants[name].wait_until_made()
                    entrants[name].measure()  # compiles, fills caches
                except RuntimeError as error:
                    tell(f"{name} is left out: {error}")
                    entrants.pop(name).close()
            for repetition in range(repetitions):
                for name, entrant in entrants.items():
                    tell(f"{name}, {repetition + 1} of {repetitions}")
                    steps, seconds, processor = entrant.measure()
                    one = runs.setdefault(name, Runs())
                    one.steps.append(steps)
                    one.seconds.append(seconds)
                    one.processor_seconds.append(processor)
        finally:
            for entrant in entrants.values():
                entrant.close()
    return runs


@contextmanager
def one_thread_each() -> Iterator[None]:
    """For the processes started within the context."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
