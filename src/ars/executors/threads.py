"""Threads with a task object each: for tasks whose rollouts run without the GIL."""

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from ars.executors import Batch, Rollouts, assemble, run_one
from ars.noise import forget_tables
from ars.tasks import Rollout, Task


class ThreadExecutor:
    """Rollouts are handed out one by one, so that short and long episodes balance."""

    def __init__(self, task: Task, more: list[Task]) -> None:
        self._tasks = [task, *more]
        self._idle: SimpleQueue[Task] = SimpleQueue()
        for one in self._tasks:
            self._idle.put(one)
        self._pool = ThreadPoolExecutor(len(self._tasks), thread_name_prefix="ars")

    def run(self, batch: Batch) -> Rollouts:
        return self.run_block(batch, 0, batch.size)

    def run_block(self, batch: Batch, start: int, stop: int) -> Rollouts:
        """Directions start … stop − 1."""
        units = batch.units(start, stop)
        futures = [self._pool.submit(self._run, batch, k, sign) for k, sign in units]
        try:
            return assemble(batch, [future.result() for future in futures])
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
        for task in self._tasks:
            task.close()
        forget_tables()
