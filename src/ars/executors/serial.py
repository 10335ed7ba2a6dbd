"""One worker: the calling thread."""

from collections.abc import Callable

from ars.executors.batch import Batch, Finished, Rollouts, nothing, run_block
from ars.noise import forget_tables
from ars.tasks import Task


class SerialExecutor:
    """Runs every rollout in the calling thread."""

    def __init__(self, factory: Callable[[], Task]) -> None:
        self._task = factory()

    def run(self, batch: Batch, finished: Finished = nothing) -> Rollouts:
        return self.run_block(batch, 0, batch.size, finished)

    def run_block(self, batch: Batch, start: int, stop: int, finished: Finished = nothing) -> Rollouts:
        """Directions start … stop − 1."""
        return run_block(self._task, batch, start, stop, finished)

    def close(self) -> None:
        self._task.close()
        forget_tables()
