"""Worker processes: how they start, and how many calls run in parallel.

A worker ends when its parent ends, for whatever reason; it leaves Ctrl-C to its parent, is interrupted by SIGTERM, and
computes in one thread.
"""

import ast
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
from collections.abc import Callable, Collection, Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ars.errors import ArsError, Interrupt, SettingError, WorkerError


class _Spawn(SpawnContext):
    """Workers inherit no locks, threads or random state; their names tell them from processes of the user's."""

    class Process(SpawnProcess):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.name = f"{OURS} {self.name}"


OURS = "ars"
CONTEXT = _Spawn()
MOST_DEATHS = 3  # of workers with the same work, before we give up
POLL = 0.2  # seconds
GRACE = 5.0  # seconds that a worker has to save and exit after it is asked to


def cores() -> int:
    """The number of cores that this process may use, possibly fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- in a worker -----------------------------------------------------------------------------------------------------


def start_worker() -> None:
    """What every worker process does first."""
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes: the parent decides
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    end_with_parent()
    use_one_thread()


def _interrupt(number: int, _: object) -> None:
    """Not SystemExit, which tasks treat as a failure of their environment."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise Interrupt(number)


def use_one_thread() -> None:
    """Limit BLAS to one thread: one thread per core in every worker would overload the machine."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = "1"  # for what is loaded from now on
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # for what is loaded already


def end_with_parent() -> None:
    """Exit when the parent ends; otherwise workers would outlive a parent that was killed."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            with contextlib.suppress(OSError):
                wait([parent.sentinel])
            with contextlib.suppress(ImportError):
                if "glfw" in sys.modules:  # MuJoCo imports it, and its import starts a subprocess that reports an
                    import glfw  # noqa: F401  # error if we exit meanwhile: wait for the import to finish
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_if_importing_main() -> None:
    """End a worker of ours whose import of the main script trains again; its parent gives the hint below."""
    if multiprocessing.current_process().name.startswith(OURS) and _is_importing_main():
        sys.exit(1)


def is_child() -> bool:
    """Whether multiprocessing started this process, which is then one of several."""
    return multiprocessing.parent_process() is not None or _is_importing_main()


def _is_importing_main() -> bool:
    """Whether this is a new process that does not know its parent yet; multiprocessing itself checks it like this."""
    return getattr(multiprocessing.current_process(), "_inheriting", False)


def in_unguarded_script() -> bool:
    """Whether worker processes, which import the main script, would meet the current call again."""
    main = vars(sys.modules["__main__"])
    frame = sys._getframe()
    while frame.f_back and not (frame.f_globals is main and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    if main.get("__file__") is None or frame.f_globals is not main:  # a notebook; a thread of which nothing is known
        return False
    return not is_guarded(frame.f_lineno)


def is_guarded(line: int) -> bool:
    """Whether a line of the main script is inside `if __name__ == "__main__":`."""
    try:
        parts = ast.walk(ast.parse(Path(getattr(sys.modules["__main__"], "__file__", None) or "").read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return False
    bodies = (part.body for part in parts if isinstance(part, ast.If) and "__name__" in ast.unparse(part.test))
    return any(body[0].lineno <= line <= (body[-1].end_lineno or 0) for body in bodies)


def main_guard_hint(what: str) -> str:
    """A hint for scripts whose worker processes cannot start; empty for the command line and where no script runs."""
    main = sys.modules["__main__"]
    ours = getattr(main, "__package__", None) == "ars" or not str(getattr(main, "__file__", None)).endswith(".py")
    if not ours and not hasattr(sys, "ps1"):
        return f" In a script, {what} must be inside `if __name__ == '__main__':`."
    return ""


def share_compiled_code() -> None:
    """Before workers start: if compiled code cannot be kept beside ours, all workers should keep it in one place."""
    if not os.access(Path(__file__).parent, os.W_OK):
        from ars import compiled  # which loads Numba

        compiled.share_cache()


def end_workers(processes: Collection[BaseProcess], grace: float) -> None:
    """Interrupt worker processes, and kill those that have not ended after `grace` seconds, together."""
    for process in processes:
        process.terminate()  # raises KeyboardInterrupt in the worker
    deadline = time.monotonic() + grace
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        process.kill()  # if it has not ended by itself
    for process in processes:
        process.join()


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
    """Call function(item) for each item, `workers` at a time (default: all cores), each in one thread of a process;
    yield (index, result) as calls finish.

    An ArsError is a result and does not end the other calls; the death of a worker is a result too, a WorkerError.
    `poll` gets the indices of the running calls at least once per second. After `seconds`, or when the iterator is
    closed, running calls are interrupted by a KeyboardInterrupt and have a moment to save.

    backend="ray" runs the calls on the CPUs of the cluster at `address`, or of a private Ray with `workers` CPUs. Ray
    repeats the call of a worker that died, so a call that trains should continue an existing run folder; and it
    interrupts calls by killing their workers.
    """
    share_compiled_code()
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
        raise SettingError(f"address = {address!r} needs the executor ray.")
    return _run_here(function, items, count, poll, deadline)


def _run_here(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    workers: int,
    poll: Callable[[list[int]], None] | None,
    deadline: float,
) -> Generator[tuple[int, Any], None, None]:
    """A separate process for each call, so that no call can affect the next."""
    waiting, running = deque(enumerate(items)), dict[Connection, tuple[int, BaseProcess]]()
    try:
        while (waiting or running) and time.monotonic() < deadline:
            while waiting and len(running) < workers:
                i, item = waiting.popleft()
                here, there = CONTEXT.Pipe(duplex=False)
                process: BaseProcess = CONTEXT.Process(target=_work, args=(function, item, there), daemon=True)
                process.start()
                there.close()  # so that the pipe closes when the process ends
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
        end_workers([process for _, process in running.values()], GRACE)
        for pipe in running:
            pipe.close()


def _result(i: int, pipe: Connection, process: BaseProcess) -> Any:
    try:
        result = pipe.recv()
    except (EOFError, OSError):
        process.join()
        hint = main_guard_hint("what starts worker processes") if process.exitcode == 1 else ""
        result = WorkerError(f"The worker of call {i} died: its process ended with code {process.exitcode}.{hint}")
    process.join(GRACE)  # it ends by itself, unless an environment has left threads
    end_workers([process], 0.0)
    pipe.close()
    return result


def _work(function: Callable[[Any], Any], item: Any, answer: Connection) -> None:
    """The worker process."""
    try:
        start_worker()
        answer.send(_call(function, item))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _call_on_node(path: list[str], call: bytes) -> Any:
    prepare_node(path)
    return _call(*pickle.loads(call))


def prepare_node(path: list[str]) -> None:
    """In a Ray worker: use one thread, and find the driver's modules if they are at the same paths there."""
    use_one_thread()
    sys.path.extend(entry for entry in path if entry not in sys.path)


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    try:
        return function(item)
    except ArsError as error:
        return error
