"""The results of a comparison and their statistics: pure functions of relative costs, infinite where unstable."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """The result of one method. timesteps: spent at each checkpoint; costs: (trials, checkpoints)."""

    name: str
    label: str
    extension: bool
    timesteps: list[int]
    costs: FloatArray


def stabilising(costs: FloatArray) -> FloatArray:
    """The share of trials with a stabilising controller, at each checkpoint."""
    share: FloatArray = np.isfinite(costs).mean(axis=0)
    return share


def index_at(timesteps: Sequence[int], t: int) -> int | None:
    """The last checkpoint that had spent at most t timesteps."""
    reached = [i for i, spent in enumerate(timesteps) if spent <= t]
    return reached[-1] if reached else None


def first(timesteps: Sequence[int], holds: NDArray[np.bool_]) -> int | None:
    """The timesteps of the first checkpoint where it holds."""
    return next((t for t, yes in zip(timesteps, holds, strict=True) if yes), None)
