"""What a robot does with an action: its limits, and the controls of the actuators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.settings import shown
from ars.tasks.robots.state import State
from ars.tasks.robots.terms import Bound, Model, brief, numbers, own_term, positive

FloatArray = NDArray[np.float64]


def controls(s: State, k: FloatArray, m: FloatArray, a: FloatArray, ctrl: FloatArray) -> None:
    """ctrl = a."""
    for i in range(len(a)):
        ctrl[i] = a[i]


def scaled(s: State, k: FloatArray, m: FloatArray, a: FloatArray, ctrl: FloatArray) -> None:
    """a ← clip(a, ±limit); ctrl = clip(offset + scale a, low, high), at most `rate` from the last one.

    k: limit, rate, then offset, scale, low, high of each actuator; m: the last ctrl."""
    size, limit, rate = len(a), k[0], k[1]
    for i in range(size):
        a[i] = min(max(a[i], -limit), limit)
        target = min(max(k[2 + i] + k[2 + size + i] * a[i], k[2 + 2 * size + i]), k[2 + 3 * size + i])
        last = k[2 + i] if s.step == 0 else m[i]
        target = min(max(target, last - rate), last + rate)
        m[i] = target
        ctrl[i] = target


@dataclass(frozen=True)
class Controls:
    """The actuators' controls themselves, without limits of ours: what Gymnasium's robots take. MuJoCo clamps them
    where a control range is limited."""

    def bind(self, model: Model) -> Bound:
        return Bound(controls)


@dataclass(frozen=True)
class PositionTargets:
    """Targets of position actuators: those of a keyframe's joints plus scale times the action, which is clipped to
    ±limit. `rate` limits how fast targets move, in rad/s. The model's control ranges apply too."""

    around: str
    scale: float | tuple[float, ...] = 0.5
    limit: float = 1.0
    rate: float | None = None

    def bind(self, model: Model) -> Bound:
        home = model.keyframe(self, self.around, "qpos")
        offset = [float(home[model.mj.jnt_qposadr[joint]]) for joint in model.actuated(self)]
        return _scaled(self, model, offset, self.scale, self.limit, self.rate)


@dataclass(frozen=True)
class Torques:
    """Scale times the action, which is clipped to ±limit, for actuators that take torques."""

    scale: float | tuple[float, ...] = 1.0
    limit: float = 1.0
    rate: float | None = None

    def bind(self, model: Model) -> Bound:
        return _scaled(self, model, [0.0] * model.mj.nu, self.scale, self.limit, self.rate)


@dataclass(frozen=True)
class Act:
    """A user's own: function(s, k, m, a, ctrl)."""

    function: Callable[..., None]
    constants: Sequence[Any] = ()
    memory: int = 0

    def bind(self, model: Model) -> Bound:
        return own_term(self, model)


def action_limit(action: Bound) -> float:
    """Where the action is clipped, infinite if it is not by us."""
    return action.constants[0] if action.function is scaled else np.inf


def scaled_columns(action: Bound) -> dict[str, Any]:
    """The constants of `scaled` by name, empty for any other action: limit, rate, and lists over the actuators."""
    if action.function is not scaled:
        return {}
    limit, rate, *rest = action.constants
    columns = np.array(rest).reshape(4, -1).tolist()
    return {"limit": limit, "rate": rate, **dict(zip(("offset", "scale", "low", "high"), columns, strict=True))}


def _scaled(
    term: Any, model: Model, offset: list[float], scale: float | tuple[float, ...], limit: float, rate: float | None
) -> Bound:
    nu = int(model.mj.nu)
    positive(term, limit=limit, rate=rate)
    if isinstance(scale, tuple | list):
        if len(scale) != nu:
            raise TaskError(f"{brief(term)}: scale has {len(scale)} numbers, and this model has {nu} actuators.")
        scales = [float(value) for value in scale]
    else:
        numbers(term, scale=scale)
        scales = [float(scale)] * nu
    if not all(np.isfinite(scales)) or not any(scales):
        raise TaskError(f"{brief(term)}: scale = {shown(scale)} must be finite and not zero.")
    limited = model.mj.actuator_ctrllimited.astype(bool)
    low = np.where(limited, model.mj.actuator_ctrlrange[:, 0], -np.inf)
    high = np.where(limited, model.mj.actuator_ctrlrange[:, 1], np.inf)
    step = np.inf if rate is None else rate * model.dt
    return Bound(scaled, (float(limit), float(step), *offset, *scales, *low.tolist(), *high.tolist()), memory=nu)
