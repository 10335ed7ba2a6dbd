"""Threads with one task object each, for tasks whose rollouts release the GIL."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Concatenate, Generic, ParamSpec, TypeVar

from ars.executors.batch import Batch, Finished, Rollouts, assemble, nothing, run_one
from ars.noise import forget_tables
from ars.tasks import Task

T = TypeVar("T", bound=Task)
P = ParamSpec("P")
Result = TypeVar("Result")


class TaskThreads(Generic[T]):
    """Threads that each call a function with a task that no other thread uses meanwhile."""

    def __init__(self, factory: Callable[[], T], workers: int) -> None:
        self._idle: SimpleQueue[T] = SimpleQueue()
        with ExitStack() as on_failure:
            for _ in range(workers):
                self._idle.put(task := factory())
                on_failure.callback(task.close)
            self._tasks = on_failure.pop_all()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ars")

    def submit(self, function: Callable[Concatenate[T, P], Result], *more: P.args, **named: P.kwargs) -> Future[Result]:
        return self._pool.submit(self._call, lambda task: function(task, *more, **named))

    def _call(self, function: Callable[[T], Result]) -> Result:
        task = self._idle.get()
        try:
            return function(task)
        finally:
            self._idle.put(task)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._tasks.close()


class ThreadExecutor:
    """Threads take rollouts one by one, which balances short and long episodes."""

    def __init__(self, factory: Callable[[], Task], workers: int) -> None:
        self._threads = TaskThreads(factory, workers)

    def run(self, batch: Batch, finished: Finished = nothing) -> Rollouts:
        return self.run_block(batch, 0, batch.size, finished)

    def run_block(self, batch: Batch, start: int, stop: int, finished: Finished = nothing) -> Rollouts:
        """Directions start … stop − 1."""
        units = batch.units(start, stop)
        futures = [self._threads.submit(run_one, batch, k, sign) for k, sign in units]
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

    def close(self) -> None:
        self._threads.close()
        forget_tables()
