"""A batch of rollouts, and how the results of its parts are joined.

A batch is all that a worker needs to run any of its rollouts. Blocks of it may run anywhere, and `join` gives the same
bits for every division into aligned blocks of 2**q directions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ars.mirror import Mirror
from ars.moments import Moments, merge_tree, stack
from ars.network import AnyPolicy
from ars.noise import Key, Stream, direction
from ars.searches import Params, Search
from ars.tasks import Rollout, Task

FloatArray = NDArray[np.float64]
Finished = Callable[[], None]  # called after each rollout, for a progress bar


@dataclass(frozen=True, kw_only=True)
class Batch:
    """`size` directions with one rollout per sign; in an evaluation, `size` episodes of the policy itself."""

    policy: AnyPolicy  # M, mu and sigma, the statistics frozen for this batch
    search: Search | None = None  # makes the candidates; None in an evaluation
    params: Params = field(default_factory=dict)  # of the search
    size: int
    signs: tuple[int, ...] = (0,)
    stream: Stream
    seed: int
    j: int
    H: int
    shift: float = 0.0
    gather: bool = False  # whether to gather the states' moments
    table_size: int = 0  # of the shared noise table; 0: directions from counters
    mirror: Mirror | None = None  # that all candidates keep

    @property
    def n(self) -> int:
        return self.policy.n

    def units(self, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
        """(k, sign) of every rollout, or of directions start … stop − 1, in order."""
        return [(k, sign) for k in range(start, self.size if stop is None else stop) for sign in self.signs]

    def candidate(self, k: int, sign: int) -> AnyPolicy:
        """π_{j,k,±}.  # Alg. 2, line 5"""
        if self.search is None:
            return self.policy
        rows, columns = self.policy.M.shape
        delta = direction(self.seed, self.j, k, rows, columns, table_size=self.table_size, mirror=self.mirror)
        return replace(self.policy, M=self.search.candidate(self.params, delta, sign), task={})

    def describe(self, k: int) -> str:
        """The place of a rollout in the run, for messages."""
        if self.search is None:
            return f"in iteration {self.j}, evaluation episode {k}"
        return f"in iteration {self.j + 1}, direction {k}"


@dataclass(frozen=True)
class Rollouts:
    """rewards (NaN where not finite) and steps: (size, signs); the merged moments of all finite directions; the bytes
    sent and received, if a network was used."""

    rewards: FloatArray
    steps: NDArray[np.int64]
    moments: Moments
    wire: tuple[int, int] | None = None

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Which directions count: those whose rollouts were all finite.  # D3"""
        return np.asarray(np.isfinite(self.rewards).all(axis=1))


def run_one(task: Task, batch: Batch, k: int, sign: int) -> Rollout:
    """One rollout of a batch; its result does not depend on where and when it runs."""
    key = Key(batch.seed, batch.stream, batch.j, k, sign)
    return task.rollout(batch.candidate(k, sign), key, H=batch.H, shift=batch.shift, gather=batch.gather)


def assemble(batch: Batch, rollouts: list[Rollout]) -> Rollouts:
    """The rollouts of some directions, in the order of (k, sign), as one result."""
    shape = (-1, len(batch.signs))
    rewards = np.array([r.reward if r.finite else np.nan for r in rollouts]).reshape(shape)
    steps = np.array([r.steps for r in rollouts], dtype=np.int64).reshape(shape)
    n = batch.n
    if not batch.gather:
        return Rollouts(rewards, steps, Moments.empty(n))
    whole = np.isfinite(rewards).all(axis=1)  # D3: a direction with a non-finite rollout is ignored
    leaves = [
        rollout.moments if rollout.moments is not None and whole[i // len(batch.signs)] else Moments.empty(n)
        for i, rollout in enumerate(rollouts)
    ]
    return Rollouts(rewards, steps, merge_tree(stack(leaves)))


def nothing() -> None:
    """For callers without a progress bar."""


def run_block(task: Task, batch: Batch, start: int, stop: int, finished: Finished = nothing) -> Rollouts:
    """Directions start … stop − 1."""
    rollouts = []
    for k, sign in batch.units(start, stop):
        rollouts.append(run_one(task, batch, k, sign))
        finished()
    return assemble(batch, rollouts)


def join(parts: list[Rollouts]) -> Rollouts:
    """Join blocks in the order of k. A block has 2**q directions, for any q, and starts at a multiple of 2**q; the last
    may be shorter. The merges are those of `merge_tree`, in whose tree blocks of equal length are siblings."""
    merged: list[tuple[int, Moments]] = []  # (length, moments), lengths descending
    for part in parts:
        length, moments = len(part.rewards), part.moments
        while merged and merged[-1][0] == length:
            moments = merged.pop()[1].merge(moments)
            length *= 2
        merged.append((length, moments))
    total = merged.pop()[1]
    while merged:
        total = merged.pop()[1].merge(total)
    return Rollouts(
        np.concatenate([part.rewards for part in parts]), np.concatenate([part.steps for part in parts]), total
    )
