"""Executors: run(batch) → rollouts, ordered by k whatever the order of arrival."""

import os
from typing import Protocol

from ars.errors import SettingError
from ars.executors.batch import Batch, Rollouts, assemble, join, run_block, run_one
from ars.executors.serial import SerialExecutor
from ars.settings import whole_number
from ars.tasks import Task, make

__all__ = [
    "Batch", "Executor", "Rollouts", "SerialExecutor", "assemble", "cores", "join", "make_executor", "run_block",
    "run_one",
]  # fmt: skip


class Executor(Protocol):
    """Runs batches of one task."""

    def run(self, batch: Batch) -> Rollouts: ...

    def close(self) -> None: ...


def cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_executor(task: Task, workers: int, *, kind: str = "local", address: str | None = None) -> Executor:
    """local: threads where the task runs without the GIL, processes elsewhere; workers = 1 is this thread alone.
    ray: the CPUs of the cluster at `address`, or of a Ray of our own with `workers` CPUs. It closes the task."""
    workers = whole_number("workers", workers, 1, 4096)
    if kind == "ray":
        from ars.executors.ray import RayExecutor

        return RayExecutor(task, workers, address)
    if kind != "local":
        raise SettingError(f"executor = {kind!r} is unknown: choose local or ray.")
    if address is not None:
        raise SettingError(f"address = {address!r} is for the executor ray.")
    if workers == 1:
        return SerialExecutor(task)
    if task.releases_gil:
        from ars.executors.threads import ThreadExecutor

        return ThreadExecutor(task, [make(task.name) for _ in range(workers - 1)])
    from ars.executors.processes import ProcessExecutor

    return ProcessExecutor(task, workers)
