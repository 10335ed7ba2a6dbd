"""Processes with an environment each: for environments in Python. A worker that dies is replaced, and what it was
running is run again; since results depend on keys alone, the bits stay the same."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from ars.errors import WorkerError
from ars.executors import Batch, Rollouts, assemble, run_one
from ars.noise import SharedTable, attach_table, forget_tables
from ars.tasks import Rollout, Task, make

MOST_DEATHS = 3  # in a row, without a single rollout finished, before we give up

_task: Task | None = None  # of this worker process


class ProcessExecutor:
    """Started by `spawn`: the workers inherit no locks, threads or random state."""

    def __init__(self, task: Task, workers: int) -> None:
        self._name, self._workers = task.name, workers
        task.close()  # each worker makes its own
        self._table: SharedTable | None = None
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self._name,),
        )

    def run(self, batch: Batch) -> Rollouts:
        units, table = batch.units(), self._path_of_table(batch)
        done: dict[int, Rollout] = {}
        deaths = 0
        while len(done) < len(units):
            before = len(done)
            try:
                futures = {
                    i: self._pool.submit(_run, batch, *unit, table) for i, unit in enumerate(units) if i not in done
                }
                self._collect(futures, done)
            except BrokenProcessPool as error:
                deaths = 0 if len(done) > before else deaths + 1
                if deaths >= MOST_DEATHS:
                    raise WorkerError(self._explain(batch, units[min(set(range(len(units))) - done.keys())])) from error
                self._pool.shutdown(wait=True)
                self._pool = self._start()
        return assemble(batch, [done[i] for i in range(len(units))])

    def _collect(self, futures: dict[int, Future[Rollout]], done: dict[int, Rollout]) -> None:
        """Move what finishes into done; what finished before a death is kept."""
        broken: BrokenProcessPool | None = None
        try:
            for i, future in futures.items():
                try:
                    done[i] = future.result()
                except BrokenProcessPool as error:
                    broken = error
        except BaseException:
            for future in futures.values():
                future.cancel()
            raise
        if broken:
            raise broken

    def _path_of_table(self, batch: Batch) -> str | None:
        """Where the workers find the noise table, if this batch needs one: a single one for all of them."""
        if not batch.table_size:
            return None
        if self._table is None or self._table.key != (batch.seed, batch.table_size):
            self._close_table()
            self._table = SharedTable(batch.seed, batch.table_size)
        return self._table.path

    def _close_table(self) -> None:
        if self._table is not None:
            self._table.close()
        self._table = None
        forget_tables()

    def _explain(self, batch: Batch, unit: tuple[int, int]) -> str:
        """Which environment, and how far it came: more is not known of a process that died."""
        hint = ""
        if getattr(sys.modules["__main__"], "__file__", None) and not hasattr(sys, "ps1"):
            hint = " In a script, training with workers > 1 must stand below `if __name__ == '__main__':`."
        return (
            f"The worker processes of {self._name} died {MOST_DEATHS} times in a row {batch.describe(unit[0])}.{hint}"
        )

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._close_table()


def _start_worker(name: str) -> None:
    """One environment and one thread; Ctrl-C is the parent's business, and without a parent there is no work."""
    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    use_one_thread()
    _task = make(name)


def use_one_thread() -> None:
    """BLAS with a thread for every core in every worker would bring a machine to its knees."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = "1"  # for what is loaded from now on
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # for what is loaded already


def end_with_parent() -> None:
    """Without it, the workers of a parent that was killed would wait for work for ever."""

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


def _run(batch: Batch, k: int, sign: int, table: str | None) -> Rollout:
    assert _task is not None
    if batch.table_size:
        attach_table(batch.seed, batch.table_size, table)
    return run_one(_task, batch, k, sign)
