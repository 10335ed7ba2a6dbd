"""Executors: run(batch) → rollouts, ordered by k whatever the order in which they finish."""

from typing import Protocol

from ars.errors import SettingError
from ars.executors.batch import Batch, Finished, Rollouts, assemble, join, nothing, run_block, run_one
from ars.executors.serial import SerialExecutor
from ars.settings import finite_number, whole_number
from ars.tasks import TaskFactory
from ars.tasks.user_code import needs_object
from ars.workers import cores, in_unguarded_script, is_child

__all__ = [
    "Batch", "Executor", "Rollouts", "SerialExecutor", "assemble", "cores", "join", "local_executor",
    "make_executor", "run_block", "run_one",
]  # fmt: skip


class Executor(Protocol):
    """Runs batches of one task."""

    def run(self, batch: Batch) -> Rollouts: ...

    def close(self) -> None: ...


class LocalExecutor(Executor, Protocol):
    """One on this machine, which also tells of each finished rollout."""

    def run(self, batch: Batch, finished: Finished = nothing) -> Rollouts: ...


def default_workers(factory: TaskFactory) -> int:
    """All cores. One, if this process is one of several already or if the task needs processes that could not import
    it or would run the script again; the bits are the same."""
    no_processes = needs_object(factory.name) or in_unguarded_script()
    return 1 if is_child() or (no_processes and not factory.releases_gil) else cores()


def make_executor(
    factory: TaskFactory,
    workers: int | None,
    *,
    kind: str | Executor = "local",
    address: str | None = None,
    step_timeout: float | None = None,
) -> Executor:
    """local: threads if the task releases the GIL, otherwise processes; workers = 1 uses only this thread. ray: the
    CPUs of the cluster at `address`, or of a private Ray with `workers` CPUs. An executor object is returned unchanged,
    and its creator closes it. With `step_timeout`, even one worker is a process, which is replaced if its environment
    takes longer than so many seconds for one step or reset."""
    if workers is not None:
        workers = whole_number("workers", workers, 1, 4096)
    if step_timeout is not None:
        _check_timeout(factory, kind, step_timeout)
    if kind == "ray":
        from ars.executors.ray import RayExecutor

        return RayExecutor(factory, workers or cores(), address)
    if address is not None:
        raise SettingError(f"address = {address!r} needs the executor ray.")
    if not isinstance(kind, str | type) and all(callable(getattr(kind, name, None)) for name in ("run", "close")):
        return kind
    if kind != "local":
        raise SettingError(
            f"executor = {kind!r} is unknown: choose local or ray, or give an object with run and close."
        )
    return local_executor(factory, workers, step_timeout)


def local_executor(factory: TaskFactory, workers: int | None, step_timeout: float | None = None) -> LocalExecutor:
    """Threads if the task releases the GIL, otherwise processes; workers = 1 uses only this thread."""
    workers = default_workers(factory) if workers is None else whole_number("workers", workers, 1, 4096)
    if workers == 1 and step_timeout is None:
        return SerialExecutor(factory)
    if factory.releases_gil:
        from ars.executors.threads import ThreadExecutor

        return ThreadExecutor(factory, workers)
    if needs_object(factory.name):
        raise SettingError(
            f"{'step_timeout' if workers == 1 else f'workers = {workers}'} needs a task that processes can import, and "
            f"{factory.name} cannot be: make it a function or class at the top level of a module"
            f"{', or omit step_timeout' if workers == 1 else ', or give workers = 1'}."
        )
    from ars.executors.processes import ProcessExecutor

    return ProcessExecutor(factory, workers, step_timeout)


def _check_timeout(factory: TaskFactory, kind: str | Executor, step_timeout: float) -> None:
    if not finite_number("step_timeout", step_timeout) > 0:
        raise SettingError(f"step_timeout = {step_timeout:g} must be larger than 0.")
    if kind != "local":
        raise SettingError(f"step_timeout = {step_timeout:g} is only for local workers: omit it, or the executor.")
    if factory.releases_gil:
        raise SettingError(
            f"step_timeout = {step_timeout:g} is only for environments in Python: {factory.name} is compiled and "
            "cannot hang."
        )
