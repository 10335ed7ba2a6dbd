"""Executors: run(batch) → rollouts, ordered by k whatever the order in which they finish."""

from typing import Protocol

from ars.errors import SettingError
from ars.executors.batch import Batch, Rollouts, assemble, join, run_block, run_one
from ars.executors.serial import SerialExecutor
from ars.settings import finite_number, whole_number
from ars.tasks import TaskFactory
from ars.workers import cores

__all__ = [
    "Batch", "Executor", "Rollouts", "SerialExecutor", "assemble", "cores", "join", "make_executor", "run_block",
    "run_one",
]  # fmt: skip


class Executor(Protocol):
    """Runs batches of one task."""

    def run(self, batch: Batch) -> Rollouts: ...

    def close(self) -> None: ...


def make_executor(
    factory: TaskFactory,
    workers: int,
    *,
    kind: str | Executor = "local",
    address: str | None = None,
    step_timeout: float | None = None,
) -> Executor:
    """local: threads if the task releases the GIL, otherwise processes; workers = 1 uses only this thread. ray: the
    CPUs of the cluster at `address`, or of a private Ray with `workers` CPUs. An executor object is returned unchanged,
    and its creator closes it. With `step_timeout`, even one worker is a process, which is replaced if its environment
    takes longer than so many seconds for one step or reset."""
    workers = whole_number("workers", workers, 1, 4096)
    if step_timeout is not None:
        _check_timeout(factory, kind, step_timeout)
    if kind == "ray":
        from ars.executors.ray import RayExecutor

        return RayExecutor(factory, workers, address)
    if address is not None:
        raise SettingError(f"address = {address!r} needs the executor ray.")
    if not isinstance(kind, str | type) and all(callable(getattr(kind, name, None)) for name in ("run", "close")):
        return kind
    if kind != "local":
        raise SettingError(
            f"executor = {kind!r} is unknown: choose local or ray, or give an object with run and close."
        )
    if workers == 1 and step_timeout is None:
        return SerialExecutor(factory)
    if factory.releases_gil:
        from ars.executors.threads import ThreadExecutor

        return ThreadExecutor(factory, workers)
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
