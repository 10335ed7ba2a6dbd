"""What ends an episode before its time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.settings import shown
from ars.tasks.robots.rewards import tilt
from ars.tasks.robots.state import State
from ars.tasks.robots.terms import Bound, Model, brief, numbers, own_term

FloatArray = NDArray[np.float64]


def height_outside(s: State, k: FloatArray, m: FloatArray) -> bool:
    """z of a body is outside of [low, high]; k: body, low, high."""
    z = s.xpos[int(k[0]), 2]
    return not k[1] <= z <= k[2]


def tilted(s: State, k: FloatArray, m: FloatArray) -> bool:
    """The angle between the body's z axis and the vertical exceeds a limit; k: body, its cosine."""
    return not s.xmat[int(k[0]), 8] >= k[1]


@dataclass(frozen=True)
class Height:
    """The robot's first body is below or above these heights, in m."""

    low: float
    high: float = float("inf")

    def bind(self, model: Model) -> Bound:
        for value in (self.low, self.high):
            if not isinstance(value, int | float) or np.isnan(value):
                raise TaskError(f"{brief(self)}: {shown(value)} is not a number.")
        if not self.low < self.high:
            raise TaskError(f"{brief(self)}: low = {self.low:g} is not below high = {self.high:g}.")
        return Bound(height_outside, (float(model.root), float(self.low), float(self.high)))


@dataclass(frozen=True)
class Tilt:
    """Among rewards, Tilt(weight): sin² of the angle between the body's z axis and the vertical. Among stops,
    Tilt(over=angle): that angle, in rad, is larger."""

    weight: float | None = None
    over: float | None = None

    def bind(self, model: Model) -> Bound:
        if (self.weight is None) == (self.over is None):
            raise TaskError(f"{brief(self)}: give a weight (among rewards) or `over` (among stops).")
        numbers(self, weight=self.weight, over=self.over)
        if self.over is None:
            return Bound(tilt, (float(model.root),))
        if not 0 < self.over < np.pi:
            raise TaskError(f"{brief(self)}: over = {self.over:g} is not an angle between 0 and π.")
        return Bound(tilted, (float(model.root), float(np.cos(self.over))))


@dataclass(frozen=True)
class Stop:
    """A user's own: function(s, k, m) -> bool."""

    function: Callable[..., bool]
    constants: Sequence[Any] = ()
    memory: int = 0

    def bind(self, model: Model) -> Bound:
        return own_term(self, model)
