"""Worker processes: how they are started, what protects them and the machine, and how many calls run side by side.

A worker ends with its parent, however that ends; it leaves Ctrl-C to its parent and computes in one thread.
"""

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ars.errors import ArsError, SettingError, WorkerError

CONTEXT = multiprocessing.get_context("spawn")  # workers inherit no locks, threads or random state
MOST_DEATHS = 3  # of the workers that run one thing, before we give it up
POLL = 0.2  # seconds
GRACE = 10.0  # seconds that a worker has to save and end once it was asked to


def cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- in a worker -----------------------------------------------------------------------------------------------------


def start_worker() -> None:
    """What every worker process does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    end_with_parent()
    use_one_thread()


def use_one_thread() -> None:
    """BLAS with a thread for every core in every worker would bring a machine to its knees."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = "1"  # for what is loaded from now on
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # for what is loaded already


def end_with_parent() -> None:
    """Without it, the workers of a parent that was killed would live on."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            with contextlib.suppress(OSError):
                wait([parent.sentinel])
            with contextlib.suppress(ImportError):
                if "glfw" in sys.modules:  # MuJoCo imports it, and its import asks a process of its own, which would
                    import glfw  # noqa: F401  # complain if we were gone: wait until it is through
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main_guard_hint(what: str) -> str:
    """What a script must do whose worker processes cannot start; empty where there is no script."""
    if getattr(sys.modules["__main__"], "__file__", None) and not hasattr(sys, "ps1"):
        return f" In a script, {what} must stand below `if __name__ == '__main__':`."
    return ""


# -- many calls ------------------------------------------------------------------------------------------------------


def run_many(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    poll: Callable[[list[int]], None] | None = None,
    seconds: float = math.inf,
) -> Generator[tuple[int, Any], None, None]:
    """function(item) for each item, `workers` at a time (default: all cores), each call in one thread of a process:
    (index, result) as they finish.

    An ArsError is a result: it ends one call and not the others. So is the death of a worker, as a WorkerError.
    `poll` gets the indices of the calls under way, at least once a second. After `seconds`, or when the iterator is
    closed, the calls under way are interrupted by a KeyboardInterrupt and have a moment to save.

    backend="ray" runs the calls on the CPUs of the cluster at `address`, or of a Ray of our own with `workers` CPUs. It
    repeats the call of a worker that died, so a call that trains should continue the run folder that it finds; and it
    interrupts calls by killing their workers.
    """
    count, deadline = cores() if workers is None else workers, time.monotonic() + seconds
    if backend == "ray":
        from ars import cluster

        calls = [(sys.path, pickle.dumps((function, item))) for item in items]
        return cluster.run_many(
            _call_on_node, calls, cpus=count, address=address, retries=MOST_DEATHS, poll=poll, deadline=deadline
        )
    if backend != "local":
        raise SettingError(f"executor = {backend!r} is unknown: choose local or ray.")
    if address is not None:
        raise SettingError(f"address = {address!r} is for the executor ray.")
    return _run_here(function, items, count, poll, deadline)


def _run_here(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    workers: int,
    poll: Callable[[list[int]], None] | None,
    deadline: float,
) -> Generator[tuple[int, Any], None, None]:
    """A process of its own for each call: whatever a call leaves behind cannot reach the next."""
    waiting, running = deque(enumerate(items)), dict[Connection, tuple[int, BaseProcess]]()
    try:
        while (waiting or running) and time.monotonic() < deadline:
            while waiting and len(running) < workers:
                i, item = waiting.popleft()
                here, there = CONTEXT.Pipe(duplex=False)
                process: BaseProcess = CONTEXT.Process(target=_work, args=(function, item, there), daemon=True)
                process.start()
                there.close()  # else the end of the process would not be the end of the pipe
                running[here] = i, process
            answered = wait(list(running), timeout=POLL)
            if poll:
                poll([i for i, _ in running.values()])
            for pipe in [pipe for pipe in running if pipe in answered]:
                i, process = running[pipe]
                result = _result(i, pipe, process)
                del running[pipe]
                yield i, result
    finally:
        for _, process in running.values():
            process.terminate()  # a KeyboardInterrupt there
        for pipe, (_, process) in running.items():
            _end(process)
            pipe.close()


def _result(i: int, pipe: Connection, process: BaseProcess) -> Any:
    try:
        result = pipe.recv()
    except (EOFError, OSError):
        process.join()
        hint = main_guard_hint("what starts worker processes") if process.exitcode == 1 else ""
        result = WorkerError(f"The worker of call {i} died: its process ended with code {process.exitcode}.{hint}")
    _end(process)
    pipe.close()
    return result


def _end(process: BaseProcess) -> None:
    process.join(GRACE)
    process.kill()  # if it did not end by itself
    process.join()


def _work(function: Callable[[Any], Any], item: Any, answer: Connection) -> None:
    """The worker process."""
    start_worker()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        answer.send(_call(function, item))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGTERM)


def _interrupt(*_: object) -> None:
    """Not an exit: tasks take that for a failure of their environment."""
    raise KeyboardInterrupt


def _call_on_node(path: list[str], call: bytes) -> Any:
    prepare_node(path)
    return _call(*pickle.loads(call))


def prepare_node(path: list[str]) -> None:
    """In a worker of Ray's: one thread, and the driver's modules, as far as they lie in the same place there."""
    use_one_thread()
    sys.path.extend(entry for entry in path if entry not in sys.path)


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    try:
        return function(item)
    except ArsError as error:
        return error
