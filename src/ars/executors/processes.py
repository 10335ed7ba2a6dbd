"""Processes with one environment each, for environments in Python. A worker that dies is replaced and its rollouts are
repeated; because results depend on keys only, the bits do not change."""

from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ars.errors import WorkerError
from ars.executors.batch import Batch, Finished, Rollouts, assemble, nothing, run_one
from ars.noise import SharedTable, attach_table, forget_tables
from ars.tasks import Rollout, Task, TaskFactory
from ars.workers import CONTEXT, MOST_DEATHS, main_guard_hint, start_worker

_task: Task | None = None  # of this worker process


class ProcessExecutor:
    """Gives up after MOST_DEATHS deaths in a row without a finished rollout."""

    def __init__(self, factory: TaskFactory, workers: int) -> None:
        self._factory, self._workers = factory, workers
        self._table: SharedTable | None = None
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers, mp_context=CONTEXT, initializer=_start_worker, initargs=(self._factory,)
        )

    def run(self, batch: Batch, finished: Finished = nothing) -> Rollouts:
        units, table = batch.units(), self._path_of_table(batch)
        done: dict[int, Rollout] = {}
        deaths = 0
        while len(done) < len(units):
            before = len(done)
            try:
                futures = {
                    i: self._pool.submit(_run, batch, *unit, table) for i, unit in enumerate(units) if i not in done
                }
                self._collect(futures, done, finished)
            except BrokenProcessPool as error:
                deaths = 0 if len(done) > before else deaths + 1
                if deaths >= MOST_DEATHS:
                    raise WorkerError(self._explain(batch, units[min(set(range(len(units))) - done.keys())])) from error
                self._pool.shutdown(wait=True)
                self._pool = self._start()
        return assemble(batch, [done[i] for i in range(len(units))])

    def _collect(self, futures: dict[int, Future[Rollout]], done: dict[int, Rollout], finished: Finished) -> None:
        """Add finished rollouts to `done`, including those that finished before a worker died."""
        broken: BrokenProcessPool | None = None
        try:
            for i, future in futures.items():
                try:
                    done[i] = future.result()
                    finished()
                except BrokenProcessPool as error:
                    broken = error
        except BaseException:
            for future in futures.values():
                future.cancel()
            raise
        if broken:
            raise broken

    def _path_of_table(self, batch: Batch) -> str | None:
        """The path of the noise table that all workers share, if this batch needs one."""
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
        """The environment and the rollout: nothing more is known about a process that died."""
        where, hint = batch.describe(unit[0]), main_guard_hint("training with workers > 1")
        return f"The worker processes of {self._factory.name} died {MOST_DEATHS} times in a row {where}.{hint}"

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._close_table()


def _start_worker(factory: TaskFactory) -> None:
    """One environment per process."""
    global _task
    start_worker()
    _task = factory()


def _run(batch: Batch, k: int, sign: int, table: str | None) -> Rollout:
    assert _task is not None
    if batch.table_size:
        attach_table(batch.seed, batch.table_size, table)
    return run_one(_task, batch, k, sign)
