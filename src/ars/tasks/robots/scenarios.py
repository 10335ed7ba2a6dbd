"""Scenarios: how the world may differ from the model while a policy is trained or tested.

`Scenarios` are ranges, a `Scenario` is one draw from them, and a `World` puts it into an MjModel of its own. A
direction is tried in `each` scenarios, the same ones for + and −, drawn from keys of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.settings import is_finite, shown
from ars.tasks.robots.terms import Model

FloatArray = NDArray[np.float64]
Range = tuple[float, float]
NONE = np.zeros((0, 0))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One world. Its defaults are the model as it is."""

    friction: float = 1.0  # factor of all sliding frictions
    mass: float = 0.0  # kg more on the robot's first body, its inertia in proportion
    gains: float = 1.0  # factor of the actuators' gains
    delay: int = 0  # control steps from an action to the actuators
    slope: float = 0.0  # rad, uphill along x
    pushes: tuple[tuple[float, float, float, float], ...] = ()  # start and length in s, force along x and y in N
    noise: FloatArray = field(default_factory=lambda: NONE)  # (steps, whole observation), added to what is observed
    bias: FloatArray | None = None  # (whole observation,), the same at all steps
    terrain: tuple[str, FloatArray] | None = None  # a height field, and its heights in m


@dataclass(frozen=True, kw_only=True)
class Scenarios:
    """Ranges, each (lowest, highest), drawn uniformly; what is left out stays as it is."""

    each: int = 4  # scenarios per direction
    friction: Range | None = None  # factor
    mass: Range | None = None  # kg more on the first body
    gains: Range | None = None  # factor
    delay: tuple[int, int] | None = None  # control steps
    slope: Range | None = None  # rad
    push: Range | None = None  # N, for push_seconds, once an episode at any time, in any direction
    push_seconds: float = 0.2
    noise: Mapping[str, float] = field(default_factory=dict)  # term → ± of its numbers, new at every step
    bias: Mapping[str, float] = field(default_factory=dict)  # term → ± of its numbers, the same for an episode
    terrain: tuple[str, float] | None = None  # the height field's name, and its largest height in m

    def check(self, model: Model, terms: Mapping[str, Any]) -> None:
        """TaskError with a sentence if a range has no meaning."""
        if isinstance(self.each, bool) or not isinstance(self.each, int) or not 1 <= self.each <= 1000:
            raise TaskError(f"Scenarios: each = {shown(self.each)} is not a whole number from 1 to 1000.")
        least = {"friction": 0.0, "gains": 0.0, "delay": 0, "push": 0.0, "slope": -1.0, "mass": -math.inf}
        for name, low in least.items():
            value = getattr(self, name)
            if value is None:
                continue
            pair = isinstance(value, tuple | list) and len(value) == 2 and all(map(is_finite, value))
            if not pair or not low <= value[0] <= value[1]:
                raise TaskError(f"Scenarios: {name} = {shown(value)} is not a range (lowest, highest) from {low:g} up.")
            if name == "delay" and not all(isinstance(part, int) for part in value):
                raise TaskError(f"Scenarios: delay = {shown(value)} are not whole numbers of control steps.")
        if self.mass is not None and self.mass[0] <= -float(model.mj.body_mass[model.root]):
            body = model.names("body")[model.root]
            raise TaskError(
                f"Scenarios: mass = {shown(self.mass)} takes more than {model.mj.body_mass[model.root]:.3g} kg, the "
                f"mass of the body {body!r}."
            )
        if not is_finite(self.push_seconds) or self.push_seconds <= 0:
            raise TaskError(f"Scenarios: push_seconds = {shown(self.push_seconds)} is not above 0.")
        for name in ("noise", "bias"):
            for term, value in getattr(self, name).items():
                if term not in terms:
                    raise TaskError(f"Scenarios: {name} of {shown(term)}: this robot observes {', '.join(terms)}.")
                if not is_finite(value) or value < 0:
                    raise TaskError(f"Scenarios: {name} of {term} = {shown(value)} is not at least 0.")
        if self.terrain is not None:
            model.find(self, "height field", self.terrain[0])

    def draw(self, random: np.random.Generator, model: Model, sizes: list[tuple[str, int]], H: int) -> Scenario:
        """A scenario for episodes of H steps; sizes: the terms of the observation with their numbers. All numbers are
        drawn whatever the ranges are, so that one range does not change what another gives."""
        unit = dict(zip(("friction", "mass", "gains", "delay", "slope", "push"), random.random(6), strict=True))

        def between(name: str, default: float) -> float:
            value = getattr(self, name)
            return default if value is None else float(value[0] + (value[1] - value[0]) * unit[name])

        delay = 0 if self.delay is None else int(self.delay[0] + (self.delay[1] - self.delay[0] + 1) * unit["delay"])
        when, direction = random.random(2)
        force, angle = between("push", 0.0), 2.0 * math.pi * direction
        start = float(when) * H * model.dt
        pushes = ((start, self.push_seconds, force * math.cos(angle), force * math.sin(angle)),) if force else ()
        whole = sum(size for _, size in sizes)
        bias = _each(self.bias, sizes) * random.uniform(-1.0, 1.0, whole)
        noise = (
            _each(self.noise, sizes) * random.uniform(-1.0, 1.0, (H + 1, whole)) if any(self.noise.values()) else NONE
        )
        return Scenario(
            friction=between("friction", 1.0), mass=between("mass", 0.0), gains=between("gains", 1.0), delay=delay,
            slope=between("slope", 0.0), pushes=pushes, noise=noise, bias=bias, terrain=self._heights(random, model),
        )  # fmt: skip

    def _heights(self, random: np.random.Generator, model: Model) -> tuple[str, FloatArray] | None:
        if self.terrain is None:
            return None
        name, highest = self.terrain
        index = model.find(self, "height field", name)
        return name, highest * random.random(int(model.mj.hfield_nrow[index] * model.mj.hfield_ncol[index]))

    def describe(self) -> dict[str, Any]:
        """As JSON, for runs and policies."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {name: dict(v) if isinstance(v, Mapping) else v for name, v in plain.items() if v is not None}


def _each(values: Mapping[str, float], sizes: list[tuple[str, int]]) -> FloatArray:
    """The value of each entry of the observation."""
    return np.array([values.get(term, 0.0) for term, size in sizes for _ in range(size)])


class World:
    """An MjModel of one thread, which scenarios change; the next one begins from the model as it was."""

    def __init__(self, model: Model) -> None:
        import mujoco

        self.model, self.mj = model, model.mj
        mj = model.mj
        self._set_const, self._data = mujoco.mj_setConst, mujoco.MjData(mj)
        names = ("geom_friction", "body_mass", "body_inertia", "actuator_gainprm", "actuator_biasprm", "hfield_data")
        self._base = {name: getattr(mj, name).copy() for name in names}
        self._gravity = mj.opt.gravity.copy()
        self._mass = 0.0  # now on the first body

    def apply(self, scenario: Scenario) -> None:
        """Change the model; what depends on masses is computed again by MuJoCo."""
        mj, base, root = self.mj, self._base, self.model.root
        mj.geom_friction[:, 0] = base["geom_friction"][:, 0] * scenario.friction
        mj.actuator_gainprm[:] = base["actuator_gainprm"] * scenario.gains
        mj.actuator_biasprm[:] = base["actuator_biasprm"] * scenario.gains
        g = math.sqrt(float(self._gravity @ self._gravity))
        mj.opt.gravity[:] = self._gravity
        if scenario.slope:
            mj.opt.gravity[:] = -g * math.sin(scenario.slope), 0.0, -g * math.cos(scenario.slope)
        mj.hfield_data[:] = base["hfield_data"]
        if scenario.terrain is not None:
            name, heights = scenario.terrain
            field = self.model.find("Scenario", "height field", name)
            first, top = int(mj.hfield_adr[field]), float(mj.hfield_size[field, 2])
            mj.hfield_data[first : first + len(heights)] = np.clip(heights / top, 0.0, 1.0)
        if scenario.mass != self._mass:
            whole = float(base["body_mass"][root])
            mj.body_mass[root] = whole + scenario.mass
            mj.body_inertia[root] = base["body_inertia"][root] * ((whole + scenario.mass) / whole)
            self._mass = scenario.mass
            self._set_const(mj, self._data)


def check_over(over: str, scenarios: Scenarios | None, name: str) -> None:
    """How the rewards of scenarios become one needs scenarios."""
    if over != "mean" and scenarios is None:
        raise TaskError(f"over = {over} is for robots with scenarios, and {name} has none.")


def combined(rewards: list[float], over: str) -> float:
    """The reward of a direction: the mean over its scenarios, the worst, or the mean of the worse half (CVaR)."""
    if over == "worst":
        return min(rewards)
    chosen = sorted(rewards)[: (len(rewards) + 1) // 2] if over == "cvar" else rewards
    return sum(chosen) / len(chosen)
