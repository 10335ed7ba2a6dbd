"""Processes with one environment each, for environments in Python. A worker that dies, or hangs longer than a limit, is
replaced and its rollouts are repeated; because results depend on keys only, the bits do not change."""

import pickle
import signal
import time
import traceback
from collections import Counter, deque
from contextlib import closing, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ars.errors import ArsError, SettingError, WorkerError
from ars.executors.batch import Batch, Finished, Rollouts, assemble, nothing, run_one
from ars.files import one_line
from ars.noise import SharedTable, attach_table, forget_tables
from ars.tasks import Rollout, Task, TaskFactory
from ars.workers import CONTEXT, MOST_DEATHS, POLL, end_workers, main_guard_hint, share_compiled_code, start_worker

GRACE = 1.0  # seconds that an environment has to close itself


class ProcessExecutor:
    """Hands out one rollout at a time, which balances short and long episodes. Gives up after MOST_DEATHS deaths of
    workers with the same rollout. With `step_timeout`, a worker whose environment takes longer than so many seconds for
    one step or reset is killed, which counts as a death."""

    def __init__(self, factory: TaskFactory, workers: int, step_timeout: float | None = None) -> None:
        self._factory, self._count, self._step_timeout = factory, workers, step_timeout
        self._table: SharedTable | None = None
        self._workers: list[_Worker] = []
        if step_timeout is not None:
            _beats()  # or an error now, before a run folder is made
        share_compiled_code()

    def run(self, batch: Batch, finished: Finished = nothing) -> Rollouts:
        try:
            return self._run(batch, finished)
        except BaseException:  # workers may be in the middle of rollouts that nobody needs, or hang
            workers, self._workers = self._workers, []
            self._end(workers)
            raise

    def _run(self, batch: Batch, finished: Finished) -> Rollouts:
        units, payload = batch.units(), pickle.dumps((batch, self._path_of_table(batch)))
        waiting, done, deaths = deque(range(len(units))), dict[int, Rollout](), Counter[int]()
        while len(self._workers) < min(self._count, len(units)):
            self._workers.append(_Worker(self._factory, self._step_timeout))
        for worker in self._workers:
            worker.has_batch = False
        while len(done) < len(units):
            for worker in self._workers:
                if worker.unit is None and waiting:
                    worker.start(waiting.popleft(), units, payload)
            busy = [worker for worker in self._workers if worker.unit is not None]
            answered = wait([worker.pipe for worker in busy], timeout=POLL)
            for worker in busy:
                i, answer = worker.unit, worker.answer() if worker.pipe in answered else None
                assert i is not None
                if answer is not None:
                    done[i], worker.unit = answer, None
                    finished()
                elif worker.pipe in answered or worker.hangs() or not worker.process.is_alive():
                    deaths[i] += 1
                    if deaths[i] == MOST_DEATHS:
                        raise WorkerError(self._explain(batch, units[i], worker))
                    waiting.appendleft(i)
                    self._end([worker])
                    self._workers[self._workers.index(worker)] = _Worker(self._factory, self._step_timeout)
        return assemble(batch, [done[i] for i in range(len(units))])

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

    def _explain(self, batch: Batch, unit: tuple[int, int], worker: "_Worker") -> str:
        """The environment and the rollout: nothing more is known about a process that died."""
        name, often = self._factory.name, f"{MOST_DEATHS} times in a row {batch.describe(unit[0])}"
        if worker.hung:
            return f"{name} hung {often}: a step or reset took longer than step_timeout = {self._step_timeout:g} s."
        worker.process.join(GRACE)
        hint = main_guard_hint("training with worker processes") if worker.process.exitcode == 1 else ""
        return f"The worker processes of {name} died {often}.{hint}"

    def _end(self, workers: "list[_Worker]") -> None:
        for worker in workers:
            worker.pipe.close()  # which ends a worker without a rollout
        deadline = time.monotonic() + GRACE
        for worker in workers:
            if worker.unit is None:
                worker.process.join(max(0.0, deadline - time.monotonic()))
        end_workers([worker.process for worker in workers], GRACE)

    def close(self) -> None:
        workers, self._workers = self._workers, []
        self._end(workers)
        self._close_table()


class _Worker:
    """A worker process, the pipe to it, and the rollout that it runs."""

    def __init__(self, factory: TaskFactory, limit: float | None) -> None:
        self.unit: int | None = None  # index of its rollout
        self.has_batch = self.hung = False
        self._limit, self._beats = limit, None if limit is None else _beats()  # [0] counts steps
        self._seen, self._checked, self._quiet = 0, 0.0, 0.0  # the last count, when it was read, and seconds since
        self.pipe, there = CONTEXT.Pipe()
        arguments = factory, there, self._beats
        self.process: BaseProcess = CONTEXT.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        there.close()  # so that the pipe closes when the process ends

    def start(self, unit: int, units: list[tuple[int, int]], payload: bytes) -> None:
        self.unit, self._quiet, self._checked = unit, 0.0, time.monotonic()
        with suppress(OSError):  # it died: its pipe has no answer then
            self.pipe.send((None if self.has_batch else payload, *units[unit]))
        self.has_batch = True

    def answer(self) -> Rollout | None:
        """The result of a rollout, or None if the process is dead."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Rollout)
        return answer

    def hangs(self) -> bool:
        """Whether one step or reset has lasted for longer than the limit; being made does not count."""
        if self._limit is None or self._beats is None or not (count := self._beats[0]):
            return False
        now = time.monotonic()
        # Between two looks at most 2 POLL count: if all of us were stopped for a while, nobody hung.
        self._quiet = self._quiet + min(now - self._checked, 2 * POLL) if count == self._seen else 0.0
        self._seen, self._checked = count, now
        self.hung = self._quiet > self._limit
        return self.hung


def _beats() -> Any:
    try:
        return CONTEXT.RawArray("q", 1)
    except OSError as error:  # a read-only /dev/shm
        raise SettingError(f"step_timeout needs shared memory, and there is none: {one_line(error)}.") from error


# -- in a worker -----------------------------------------------------------------------------------------------------


def _work(factory: TaskFactory, pipe: Connection, beats: Any) -> None:
    """The worker process: one environment."""
    with suppress(KeyboardInterrupt):  # the parent does not need us any more
        start_worker()
        try:
            with closing(factory()) as task:
                if beats is not None:
                    from ars.tasks.gymnasium import watch_steps

                    watch_steps(task, beats)
                _serve(task, pipe)
        except Exception as error:
            with suppress(OSError):
                pipe.send(_sendable(error))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _serve(task: Task, pipe: Connection) -> None:
    """Run rollouts until the parent closes the pipe."""
    batch: Batch | None = None
    table: str | None = None
    while True:
        try:
            payload, k, sign = pipe.recv()
        except (EOFError, OSError):
            return
        if payload is not None:
            batch, table = pickle.loads(payload)
        assert batch is not None
        if batch.table_size:
            attach_table(batch.seed, batch.table_size, table)
        pipe.send(run_one(task, batch, k, sign))


def _sendable(error: Exception) -> Exception:
    """An exception that the parent can raise: with our traceback, unless its message explains it."""
    if not isinstance(error, ArsError):
        error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a class with a constructor of its own
        return WorkerError(f"A worker failed: {type(error).__name__}: {one_line(error)}")
    return error
