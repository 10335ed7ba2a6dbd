"""Observations of a robot. Each is a function over the state, and a class that finds its constants in the model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.settings import shown
from ars.tasks.robots.sine import turn
from ars.tasks.robots.state import State
from ars.tasks.robots.terms import Bound, Model, brief, numbers, own_term, positive

FloatArray = NDArray[np.float64]
INFINITY = float("inf")


def gyro(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """Rᵀ ω: the angular velocity of the site's body in the axes of the site; k: site, body."""
    site, body = int(k[0]), int(k[1])
    for i in range(3):
        x[i] = (
            s.site_xmat[site, i] * s.cvel[body, 0]
            + s.site_xmat[site, 3 + i] * s.cvel[body, 1]
            + s.site_xmat[site, 6 + i] * s.cvel[body, 2]
        )


def gravity(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """Rᵀ g / |g|: the direction of gravity in the axes of the site; (0, 0, −1) if it is level; k: site."""
    site = int(k[0])
    length = math.sqrt(s.gravity[0] * s.gravity[0] + s.gravity[1] * s.gravity[1] + s.gravity[2] * s.gravity[2])
    for i in range(3):
        x[i] = (
            s.site_xmat[site, i] * s.gravity[0]
            + s.site_xmat[site, 3 + i] * s.gravity[1]
            + s.site_xmat[site, 6 + i] * s.gravity[2]
        ) / length


def heading(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """The y of the site's x axis in the world: the sine of its yaw if it is level; k: site."""
    x[0] = s.site_xmat[int(k[0]), 3]


def joint_positions(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """q − offset; k: the joints' indices in qpos, then their offsets."""
    size = len(x)
    for i in range(size):
        x[i] = s.qpos[int(k[i])] - k[size + i]


def joint_velocities(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """The joints' velocities; k: their indices in qvel."""
    for i in range(len(x)):
        x[i] = s.qvel[int(k[i])]


def last_action(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """The action of the step that led here, after its limits."""
    for i in range(len(x)):
        x[i] = s.action[i]


def clock(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """sin and cos of 2π f t; k: f in Hz."""
    turns = k[0] * (s.step * s.dt)
    x[0] = turn(turns)
    x[1] = turn(turns + 0.25)


def sensor_values(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """A sensor of the model; k: its first index in sensordata."""
    start = int(k[0])
    for i in range(len(x)):
        x[i] = s.sensordata[start + i]


@dataclass(frozen=True)
class Gyro:
    """The angular velocity at a site, in its axes, as an IMU measures it, in rad/s."""

    site: str
    clip: float = INFINITY

    def bind(self, model: Model) -> Bound:
        positive(self, clip=self.clip)
        site = model.find(self, "site", self.site)
        names = [f"{self.site} ω{axis}" for axis in "xyz"]
        return Bound(gyro, (site, int(model.mj.site_bodyid[site])), names=names, unit="rad/s", clip=self.clip)


@dataclass(frozen=True)
class Gravity:
    """The direction of gravity in the axes of a site: (0, 0, −1) if it is level."""

    site: str

    def bind(self, model: Model) -> Bound:
        site = model.find(self, "site", self.site)
        if not np.any(model.mj.opt.gravity):
            raise TaskError(f"{brief(self)}: this model has no gravity.")
        return Bound(gravity, (site,), names=[f"{self.site} gravity {axis}" for axis in "xyz"], unit="1")


@dataclass(frozen=True)
class Heading:
    """Where a site points: the sine of its yaw against the x axis of the world. Without it a policy cannot hold a
    course."""

    site: str

    def bind(self, model: Model) -> Bound:
        return Bound(heading, (model.find(self, "site", self.site),), names=[f"{self.site} heading"], unit="1")


@dataclass(frozen=True)
class JointPositions:
    """Positions of joints, of the actuated ones in the order of actuators if none are named, minus those of a keyframe,
    in rad or m."""

    minus: str | None = None
    joints: tuple[str, ...] | None = None

    def bind(self, model: Model) -> Bound:
        joints = model.joints(self, self.joints)
        index = [int(model.mj.jnt_qposadr[joint]) for joint in joints]
        home = np.zeros(model.mj.nq) if self.minus is None else model.keyframe(self, self.minus, "qpos")
        names = model.names("joint")
        return Bound(
            joint_positions, (*index, *(float(home[i]) for i in index)), names=[names[joint] for joint in joints],
            unit="rad",
        )  # fmt: skip


@dataclass(frozen=True)
class JointVelocities:
    """Velocities of the same joints, in rad/s or m/s."""

    joints: tuple[str, ...] | None = None
    clip: float = INFINITY

    def bind(self, model: Model) -> Bound:
        positive(self, clip=self.clip)
        joints = model.joints(self, self.joints)
        names = model.names("joint")
        index = [float(model.mj.jnt_dofadr[joint]) for joint in joints]
        return Bound(
            joint_velocities, index, names=[f"{names[joint]} velocity" for joint in joints], unit="rad/s",
            clip=self.clip,
        )  # fmt: skip


@dataclass(frozen=True)
class LastAction:
    """The action of the step before, after its limits; zeros at first."""

    def bind(self, model: Model) -> Bound:
        return Bound(last_action, names=[f"last {name}" for name in model.names("actuator")], unit="1")


@dataclass(frozen=True)
class Clock:
    """Sine and cosine of a clock of so many Hz, which begins at 0: the beat of a gait."""

    hz: float

    def bind(self, model: Model) -> Bound:
        positive(self, hz=self.hz)
        numbers(self, hz=self.hz)
        return Bound(clock, (float(self.hz),), names=["clock sin", "clock cos"], unit="1")


@dataclass(frozen=True)
class Sensor:
    """A sensor of the model by its name; of forces and accelerations, its value is one physics step old (state.py)."""

    name: str
    clip: float = INFINITY

    def bind(self, model: Model) -> Bound:
        positive(self, clip=self.clip)
        index = model.find(self, "sensor", self.name)
        size = int(model.mj.sensor_dim[index])
        names = [self.name] if size == 1 else [f"{self.name} {i}" for i in range(size)]
        return Bound(sensor_values, (float(model.mj.sensor_adr[index]),), names=names, clip=self.clip)


@dataclass(frozen=True)
class Observe:
    """A user's own observation of so many numbers: function(s, k, m, x)."""

    function: Callable[..., None]
    size: int
    constants: Sequence[Any] = ()
    memory: int = 0
    names: tuple[str, ...] = ()
    clip: float = INFINITY

    def bind(self, model: Model) -> Bound:
        positive(self, clip=self.clip, size=self.size)
        own = getattr(self.function, "__name__", "own")
        names = self.names or ((own,) if self.size == 1 else tuple(f"{own} {i}" for i in range(self.size)))
        if len(names) != self.size:
            raise TaskError(f"{brief(self)}: names = {shown(names)} are {len(names)}, and its size is {self.size}.")
        return own_term(self, model)._replace(names=names, clip=self.clip)
