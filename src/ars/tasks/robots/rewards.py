"""Terms of a robot's reward: the reward of a step is the sum of weight · value; costs have negative weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.tasks.robots.state import State
from ars.tasks.robots.terms import Bound, Model, numbers, own_term, positive

FloatArray = NDArray[np.float64]


def forward(s: State, k: FloatArray, m: FloatArray) -> float:
    """v, the speed of a body along x, in m/s, over the control step; k: body; m: its last x."""
    x = s.xpos[int(k[0]), 0]
    v: float = (x - m[0]) / s.dt
    m[0] = x
    return v


def towards(s: State, k: FloatArray, m: FloatArray) -> float:
    """1 − |v − target| / target: 0 at rest, 1 at the target; k: body, target."""
    value: float = 1.0 - abs(forward(s, k, m) - k[1]) / k[1]
    return value


def sideways(s: State, k: FloatArray, m: FloatArray) -> float:
    """|v| along y, in m/s; k: body; m: its last y."""
    y = s.xpos[int(k[0]), 1]
    v: float = (y - m[0]) / s.dt
    m[0] = y
    return abs(v)


def drift(s: State, k: FloatArray, m: FloatArray) -> float:
    """|y − y at the start|, in m; k: body; m: that y."""
    y = s.xpos[int(k[0]), 1]
    if s.step == 0:
        m[0] = y
    away: float = abs(y - m[0])
    return away


def vertical(s: State, k: FloatArray, m: FloatArray) -> float:
    """v² along z; k: body; m: its last z."""
    z = s.xpos[int(k[0]), 2]
    v: float = (z - m[0]) / s.dt
    m[0] = z
    return v * v


def alive(s: State, k: FloatArray, m: FloatArray) -> float:
    """1."""
    return 1.0


def torque(s: State, k: FloatArray, m: FloatArray) -> float:
    """Σ τ² of the actuators, in N²m², of the last physics step."""
    total = 0.0
    for i in range(len(s.actuator_force)):
        total += s.actuator_force[i] * s.actuator_force[i]
    return total


def power(s: State, k: FloatArray, m: FloatArray) -> float:
    """Σ |τ · q′| of the actuated joints, in W; k: their indices in qvel."""
    total = 0.0
    for i in range(len(k)):
        total += abs(s.actuator_force[i] * s.qvel[int(k[i])])
    return total


def action_rate(s: State, k: FloatArray, m: FloatArray) -> float:
    """Σ (a − last a)²."""
    total = 0.0
    for i in range(len(s.action)):
        d = s.action[i] - s.last_action[i]
        total += d * d
    return total


def pose(s: State, k: FloatArray, m: FloatArray) -> float:
    """Σ (q − home)² of the actuated joints; k: their indices in qpos, then home."""
    size = len(k) // 2
    total = 0.0
    for i in range(size):
        d = s.qpos[int(k[i])] - k[size + i]
        total += d * d
    return total


def tilt(s: State, k: FloatArray, m: FloatArray) -> float:
    """sin² of the angle between the body's z axis and the vertical; k: body."""
    body = int(k[0])
    value: float = s.xmat[body, 2] * s.xmat[body, 2] + s.xmat[body, 5] * s.xmat[body, 5]
    return value


def yaw(s: State, k: FloatArray, m: FloatArray) -> float:
    """sin² of the body's yaw against the x axis of the world; k: body."""
    y: float = s.xmat[int(k[0]), 3]
    return y * y


def saturated(s: State, k: FloatArray, m: FloatArray) -> float:
    """The share of actuators at the limit of their force; k: these limits."""
    count = 0.0
    for i in range(len(k)):
        if abs(s.actuator_force[i]) >= k[i]:
            count += 1.0
    return count / len(k)


def force_limits(mj: Any) -> FloatArray:
    """The largest force of each actuator, infinite where the model does not limit it."""
    return np.where(mj.actuator_forcelimited, np.abs(mj.actuator_forcerange).max(axis=1), np.inf)


@dataclass(frozen=True)
class _Weighted:
    weight: float

    def _bound(self, function: Callable[..., float], constants: Sequence[float] = (), memory: int = 0) -> Bound:
        numbers(self, weight=self.weight)
        return Bound(function, constants, memory)

    def _of_root(self, model: Model, function: Callable[..., float], memory: int = 0, *more: float) -> Bound:
        return self._bound(function, (float(model.root), *more), memory)


@dataclass(frozen=True)
class Forward(_Weighted):
    """The speed along x; with a target, 1 there and falling off on both sides."""

    target: float | None = None

    def bind(self, model: Model) -> Bound:
        positive(self, target=self.target)
        if self.target is None:
            return self._of_root(model, forward, 1)
        return self._of_root(model, towards, 1, float(self.target))


@dataclass(frozen=True)
class Sideways(_Weighted):
    """The speed along y, either way."""

    def bind(self, model: Model) -> Bound:
        return self._of_root(model, sideways, 1)


@dataclass(frozen=True)
class Drift(_Weighted):
    """How far it is from the line along x on which it began."""

    def bind(self, model: Model) -> Bound:
        return self._of_root(model, drift, 1)


@dataclass(frozen=True)
class Bounce(_Weighted):
    """The square of the speed along z."""

    def bind(self, model: Model) -> Bound:
        return self._of_root(model, vertical, 1)


@dataclass(frozen=True)
class Alive(_Weighted):
    """1 for every step. Training subtracts it, as the paper does with survival bonuses, if `--shift` is not given."""

    def bind(self, model: Model) -> Bound:
        return self._bound(alive)


@dataclass(frozen=True)
class Torque(_Weighted):
    """The sum of squared forces of the actuators."""

    def bind(self, model: Model) -> Bound:
        return self._bound(torque)


@dataclass(frozen=True)
class Power(_Weighted):
    """The mechanical power of the actuators, in W, what they give and what they take."""

    def bind(self, model: Model) -> Bound:
        return self._bound(power, [float(model.mj.jnt_dofadr[joint]) for joint in model.actuated(self)])


@dataclass(frozen=True)
class ActionRate(_Weighted):
    """The sum of squared changes of the action."""

    def bind(self, model: Model) -> Bound:
        return self._bound(action_rate)


@dataclass(frozen=True)
class Pose(_Weighted):
    """The sum of squared distances of the actuated joints from a keyframe."""

    keyframe: str = "home"

    def bind(self, model: Model) -> Bound:
        home = model.keyframe(self, self.keyframe, "qpos")
        index = [int(model.mj.jnt_qposadr[joint]) for joint in model.actuated(self)]
        return self._bound(pose, (*index, *(float(home[i]) for i in index)))


@dataclass(frozen=True)
class Yaw(_Weighted):
    """How far the robot has turned from the x axis."""

    def bind(self, model: Model) -> Bound:
        return self._of_root(model, yaw)


@dataclass(frozen=True)
class Saturated(_Weighted):
    """The share of actuators at the limit of their force."""

    def bind(self, model: Model) -> Bound:
        return self._bound(saturated, force_limits(model.mj).tolist())


@dataclass(frozen=True)
class Reward:
    """A user's own: function(s, k, m) -> float."""

    function: Callable[..., float]
    weight: float = 1.0
    constants: Sequence[Any] = ()
    memory: int = 0

    def bind(self, model: Model) -> Bound:
        numbers(self, weight=self.weight)
        return own_term(self, model)
