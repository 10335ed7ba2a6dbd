"""2 and 3: our rollouts, and our whole training iterations."""

import shutil
import tempfile
from pathlib import Path

from ars.executors import make_executor
from ars.sessions import Session, resume_session
from ars.stopping import Stop
from ars.tasks import factory
from benchmarks.workload import Work


class Rollouts:
    """The batches in an executor: sampling directions, resets, episodes and moments, in order."""

    def __init__(self, work: Work) -> None:
        self._batches = work.batches
        self._executor = make_executor(factory(work.task), work.threads)

    def ready(self) -> None: ...

    def run(self) -> int:
        return sum(int(self._executor.run(batch).steps.sum()) for batch in self._batches)

    def close(self) -> None:
        self._executor.close()


class Iterations:
    """Training itself, continued in a copy of the run folder: sampling, rollouts, update, statistics, records,
    checkpoints, and closing the folder."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._scratch = tempfile.TemporaryDirectory()
        self._session: Session | None = None
        self._runs = 0

    def ready(self) -> None:
        self._runs += 1
        copy = shutil.copytree(self._work.folder, Path(self._scratch.name) / str(self._runs))
        stop = Stop(iterations=self._work.first + len(self._work.batches))
        self._session = resume_session(copy, workers=self._work.threads, stop=stop, task=self._work.task)

    def run(self) -> int:
        assert self._session is not None
        before, after = self._session.state.timesteps, 0
        for record in self._session.records():
            after = record.timesteps
        return after - before

    def close(self) -> None:
        self._scratch.cleanup()
