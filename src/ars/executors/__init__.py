"""Executors: run(batch) → rollouts, ordered by k whatever the order of arrival.

A batch is all a worker needs to produce any of its rollouts; blocks of it may run anywhere, and `join` puts them
together with the same bits for every way of cutting into blocks of `block` = 2**q directions.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ars.errors import SettingError
from ars.moments import Moments, merge_tree, stack
from ars.noise import Key, Stream, direction
from ars.policy import LinearPolicy
from ars.tasks import Task, make

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """`size` directions with a rollout for each of `signs`: (+1, −1) with nu in training, (0,) in an evaluation."""

    M: FloatArray
    mu: FloatArray
    sigma: FloatArray
    nu: float
    size: int
    signs: tuple[int, ...]
    stream: Stream
    seed: int
    j: int
    H: int
    shift: float
    gather: bool

    def policies(self, k: int) -> Iterator[tuple[LinearPolicy, Key]]:
        """The policies π_{j,k,±} and the keys of their rollouts.  # Alg. 2, line 5"""
        perturbation = self.nu * direction(self.seed, self.j, k, *self.M.shape) if self.nu else 0.0
        for sign in self.signs:
            M = self.M + sign * perturbation
            yield LinearPolicy(M, self.mu, self.sigma), Key(self.seed, self.stream, self.j, k, sign)


@dataclass(frozen=True)
class Rollouts:
    """rewards (NaN where not finite) and steps: (size, signs); moments of all finite directions, merged."""

    rewards: FloatArray
    steps: NDArray[np.int64]
    moments: Moments


def run_block(task: Task, batch: Batch, start: int, stop: int) -> Rollouts:
    """The rollouts of directions start … stop − 1."""
    shape = (stop - start, len(batch.signs))
    rewards, steps = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    leaves = []
    for row, k in enumerate(range(start, stop)):
        parts = []
        for column, (policy, key) in enumerate(batch.policies(k)):
            rollout = task.rollout(policy, key, H=batch.H, shift=batch.shift, gather=batch.gather)
            steps[row, column] = rollout.steps
            if rollout.finite:
                rewards[row, column] = rollout.reward
                if rollout.moments is not None:
                    parts.append(rollout.moments)
        whole = bool(np.isfinite(rewards[row]).all())  # D3: a direction with a non-finite rollout counts nowhere
        leaves.append(merge_tree(stack(parts)) if whole and parts else Moments.empty(task.n))
    return Rollouts(rewards, steps, merge_tree(stack(leaves)))


def blocks_of(size: int, block: int) -> list[tuple[int, int]]:
    """[0, size) cut into aligned blocks."""
    return [(start, min(start + block, size)) for start in range(0, size, block)]


def join(parts: list[Rollouts]) -> Rollouts:
    """Blocks in the order of k as one."""
    return Rollouts(
        np.concatenate([part.rewards for part in parts]),
        np.concatenate([part.steps for part in parts]),
        merge_tree(stack([part.moments for part in parts])),
    )


class Executor(Protocol):
    """Runs batches of one task."""

    def run(self, batch: Batch) -> Rollouts: ...

    def close(self) -> None: ...


class SerialExecutor:
    """One worker: the caller."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def run(self, batch: Batch) -> Rollouts:
        return run_block(self._task, batch, 0, batch.size)

    def close(self) -> None:
        self._task.close()


def cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_executor(task: Task, workers: int) -> Executor:
    """Threads where the task runs without the GIL, processes elsewhere; workers = 1 is this thread alone.
    The executor closes the task."""
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 4096:
        raise SettingError(f"workers = {workers!r} must be a whole number from 1 to 4096.")
    if workers == 1:
        return SerialExecutor(task)
    if task.releases_gil:
        from ars.executors.threads import ThreadExecutor

        return ThreadExecutor(task, [make(task.name) for _ in range(workers - 1)])
    from ars.executors.processes import ProcessExecutor

    return ProcessExecutor(task, workers)
