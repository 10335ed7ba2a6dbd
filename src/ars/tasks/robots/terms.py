"""What a term is: a function that is compiled into the loop, and the numbers that it needs of a model.

    observation   f(s, k, m, x)            fills x
    action        f(s, k, m, a, ctrl)      limits a, and fills ctrl
    reward        f(s, k, m) -> float
    stop          f(s, k, m) -> bool

`s` is a State, `k` the term's constants, `m` numbers that it may keep from step to step. m is zero at the start of an
episode, and rewards are also called once before the first step (s.step is 0), so that they can fill m; that value does
not count. The functions are plain Python within Numba's subset. With `math` instead of NumPy's functions of scalars
they have the same bits when they are not compiled, which is how they are tested.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.settings import is_finite, is_number, shown

FloatArray = NDArray[np.float64]


class Bound(NamedTuple):
    """A term for one model: its function, constants, size of its memory, and of an observation the names of its numbers
    with their unit and the value beyond which they are clipped."""

    function: Callable[..., Any]
    constants: Sequence[float] = ()
    memory: int = 0
    names: Sequence[str] = ()
    unit: str = ""
    clip: float = np.inf


class Term(Protocol):
    """One entry of a robot's lists."""

    def bind(self, model: "Model") -> Bound: ...


class Model:
    """An MjModel as terms look things up in it, with errors that name the term and what there is."""

    def __init__(self, mj: Any, data: Any, dt: float) -> None:
        import mujoco

        self.mj, self.data, self.dt = mj, data, dt  # dt: seconds per control step
        kind = mujoco.mjtObj
        self._kinds = {
            "site": (kind.mjOBJ_SITE, mj.nsite), "body": (kind.mjOBJ_BODY, mj.nbody),
            "joint": (kind.mjOBJ_JOINT, mj.njnt), "sensor": (kind.mjOBJ_SENSOR, mj.nsensor),
            "keyframe": (kind.mjOBJ_KEY, mj.nkey), "geom": (kind.mjOBJ_GEOM, mj.ngeom),
            "actuator": (kind.mjOBJ_ACTUATOR, mj.nu), "height field": (kind.mjOBJ_HFIELD, mj.nhfield),
        }  # fmt: skip

    def names(self, kind: str) -> list[str]:
        """All names of a kind; unnamed ones are numbered."""
        import mujoco

        code, count = self._kinds[kind]
        return [mujoco.mj_id2name(self.mj, code, i) or f"{kind} {i}" for i in range(count)]

    def find(self, term: Any, kind: str, name: Any) -> int:
        """The index of a name."""
        names = self.names(kind)
        if name not in names:
            there = f"it has: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}" if names else "it has none"
            raise TaskError(f"{brief(term)}: this model has no {kind} {shown(name)}; {there}.")
        return names.index(name)

    @property
    def root(self) -> int:
        """The body whose movement counts: the first one that a joint moves, or the first."""
        moved = np.flatnonzero(self.mj.body_jntnum[1:])
        return int(moved[0]) + 1 if len(moved) else min(1, self.mj.nbody - 1)

    def actuated(self, term: Any) -> list[int]:
        """The joints of the actuators, in the order of actuators: that of the action."""
        import mujoco

        joints = []
        for i in range(self.mj.nu):
            if int(self.mj.actuator_trntype[i]) not in map(
                int, (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
            ):
                raise TaskError(f"{brief(term)}: actuator {self.names('actuator')[i]!r} does not move a joint.")
            joint = int(self.mj.actuator_trnid[i, 0])
            if int(self.mj.jnt_type[joint]) not in map(int, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)):
                raise TaskError(f"{brief(term)}: actuator {self.names('actuator')[i]!r} moves no hinge and no slide.")
            joints.append(joint)
        return joints

    def joints(self, term: Any, wanted: Iterable[str] | None) -> list[int]:
        """The joints of these names, or the actuated ones."""
        return self.actuated(term) if wanted is None else [self.find(term, "joint", name) for name in wanted]

    def keyframe(self, term: Any, name: str, field: str) -> FloatArray:
        """qpos, qvel or ctrl of a keyframe."""
        return np.array(getattr(self.mj, f"key_{field}")[self.find(term, "keyframe", name)])


def brief(term: Any) -> str:
    """The term as the user wrote it, without what has its default: Gyro('imu')."""
    if not is_dataclass(term):
        return term if isinstance(term, str) else type(term).__name__
    parts: list[str] = []
    for place, f in enumerate(fields(term)):
        value = getattr(term, f.name)
        if f.default is MISSING or value != f.default:
            parts.append(shown(value) if place == len(parts) else f"{f.name}={shown(value)}")
    return f"{type(term).__name__}({', '.join(parts)})"


def numbers(term: Any, **wanted: Any) -> None:
    """TaskError unless each value is a finite number; None is left out."""
    for name, value in wanted.items():
        if value is not None and not is_finite(value):
            raise TaskError(f"{brief(term)}: {name} = {shown(value)} is not a finite number.")


def positive(term: Any, **wanted: Any) -> None:
    """TaskError unless each value is a number above 0, or infinite; None is left out."""
    for name, value in wanted.items():
        if value is not None and not (is_number(value) and value > 0):
            raise TaskError(f"{brief(term)}: {name} = {shown(value)} is not above 0.")


@dataclass(frozen=True)
class Name:
    """A thing of the model among the constants of a user's term; its index is what the function gets."""

    kind: str
    name: str


def body(name: str) -> Name:
    return Name("body", name)


def site(name: str) -> Name:
    return Name("site", name)


def joint_position(name: str) -> Name:
    """The index of a joint in qpos."""
    return Name("qpos", name)


def joint_velocity(name: str) -> Name:
    """The index of a joint in qvel."""
    return Name("qvel", name)


def sensor(name: str) -> Name:
    """The index of a sensor's first number in sensordata."""
    return Name("sensordata", name)


def constant(model: Model, term: Any, value: Any) -> float:
    """One constant of a user's term as a number."""
    if not isinstance(value, Name):
        numbers(term, constant=value)
        return float(value)
    if value.kind == "qpos":
        return float(model.mj.jnt_qposadr[model.find(term, "joint", value.name)])
    if value.kind == "qvel":
        return float(model.mj.jnt_dofadr[model.find(term, "joint", value.name)])
    if value.kind == "sensordata":
        return float(model.mj.sensor_adr[model.find(term, "sensor", value.name)])
    return float(model.find(term, value.kind, value.name))


def own_term(term: Any, model: Model) -> Bound:
    """A user's own term: its function, with constants that may name things of the model."""
    return Bound(term.function, [constant(model, term, value) for value in term.constants], term.memory)
