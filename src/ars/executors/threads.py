"""Threads with one task object each, for tasks whose rollouts release the GIL."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from ars.executors.batch import Batch, Finished, Rollouts, assemble, nothing, run_one
from ars.noise import forget_tables
from ars.tasks import Rollout, Task


class ThreadExecutor:
    """Threads take rollouts one by one, which balances short and long episodes."""

    def __init__(self, factory: Callable[[], Task], workers: int) -> None:
        self._idle: SimpleQueue[Task] = SimpleQueue()
        with ExitStack() as on_failure:
            for _ in range(workers):
                self._idle.put(task := factory())
                on_failure.callback(task.close)
            self._tasks = on_failure.pop_all()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ars")

    def run(self, batch: Batch, finished: Finished = nothing) -> Rollouts:
        return self.run_block(batch, 0, batch.size, finished)

    def run_block(self, batch: Batch, start: int, stop: int, finished: Finished = nothing) -> Rollouts:
        """Directions start … stop − 1."""
        units = batch.units(start, stop)
        futures = [self._pool.submit(self._run, batch, k, sign) for k, sign in units]
        rollouts = []
        try:
            for future in futures:
                rollouts.append(future.result())
                finished()
            return assemble(batch, rollouts)
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _run(self, batch: Batch, k: int, sign: int) -> Rollout:
        task = self._idle.get()
        try:
            return run_one(task, batch, k, sign)
        finally:
            self._idle.put(task)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._tasks.close()
        forget_tables()
