"""One worker: the calling thread."""

from collections.abc import Callable

from ars.executors.batch import Batch, Rollouts, run_block
from ars.noise import forget_tables
from ars.tasks import Task


class SerialExecutor:
    """Runs every rollout in the calling thread."""

    def __init__(self, factory: Callable[[], Task]) -> None:
        self._task = factory()

    def run(self, batch: Batch) -> Rollouts:
        return self.run_block(batch, 0, batch.size)

    def run_block(self, batch: Batch, start: int, stop: int) -> Rollouts:
        """Directions start … stop − 1."""
        return run_block(self._task, batch, start, stop)

    def close(self) -> None:
        self._task.close()
        forget_tables()
