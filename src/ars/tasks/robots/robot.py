"""A robot as data: its model, and the terms of its observation, action, reward and end. docs/robots.md is its page."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.files import one_line
from ars.settings import is_finite, shown
from ars.tasks.axis_names import actuator_name
from ars.tasks.robots.actions import Controls, scaled_columns
from ars.tasks.robots.observations import JointPositions
from ars.tasks.robots.scenarios import Scenarios
from ars.tasks.robots.terms import Bound, Model, Term, brief

FloatArray = NDArray[np.float64]
MODELS = Path(__file__).parent / "models"  # that come with ars


@dataclass(frozen=True, kw_only=True, eq=False)
class Robot:
    """Terms are checked when the robot is bound to its model, with one sentence each."""

    model: Any  # the path of an MJCF file, its text, an mujoco.MjSpec, or a function that returns an MjSpec or MjModel
    control_hz: float
    start: Any  # Keyframe or Start
    action: Any = Controls()  # noqa: RUF009 (frozen)
    observe: Sequence[Any]
    reward: Sequence[Any]
    stop: Sequence[Any] = ()
    seconds: float = 10.0  # of an episode
    name: str = "robot"
    feet: Sequence[str] = ()  # geoms whose contacts with the ground films show
    scenarios: Scenarios | None = None
    shift: float | None = None  # what training subtracts from the reward of every step; None: the weight of Alive

    def __post_init__(self) -> None:
        for name in ("observe", "reward", "stop"):
            value = getattr(self, name)
            if not isinstance(value, list | tuple):
                raise TaskError(f"{self.name}: {name} = {shown(value)} is not a list of terms.")
            object.__setattr__(self, name, tuple(value))
        if not self.observe or not self.reward:
            raise TaskError(f"{self.name}: observe and reward need at least one term each.")
        if self.shift is not None and not is_finite(self.shift):
            raise TaskError(f"{self.name}: shift = {shown(self.shift)} is not a finite number.")
        for name in ("control_hz", "seconds"):
            value = getattr(self, name)
            if not is_finite(value) or value <= 0:
                raise TaskError(f"{self.name}: {name} = {shown(value)} is not a number above 0.")

    @property
    def dt(self) -> float:
        return 1.0 / self.control_hz

    @property
    def H(self) -> int:
        return max(1, round(self.seconds * self.control_hz))

    @property
    def survival_bonus(self) -> float:
        """The default of `--shift`."""
        from ars.tasks.robots.rewards import Alive

        if self.shift is not None:
            return float(self.shift)
        return float(sum(term.weight for term in self.reward if isinstance(term, Alive)))

    def frame_skip(self, mj: Any) -> int:
        """Physics steps per control step."""
        exact = 1.0 / (self.control_hz * mj.opt.timestep)
        skip = round(exact)
        if skip < 1 or abs(exact - skip) > 1e-6 * exact:
            raise TaskError(
                f"{self.name}: control_hz = {self.control_hz:g} is {exact:.4g} physics steps of {mj.opt.timestep:g} s, "
                "which is not a whole number: change one of them."
            )
        return int(skip)

    def load(self) -> Any:
        """A new MjModel."""
        import mujoco

        model = self.model
        try:
            if callable(model):
                model = model()
            if isinstance(model, mujoco.MjModel):
                return model
            if isinstance(model, mujoco.MjSpec):
                return model.copy().compile()
            if isinstance(model, Path) or (isinstance(model, str) and "<" not in model):
                path = _found(Path(model))
                return mujoco.MjModel.from_xml_path(str(path))
            if isinstance(model, str):
                return mujoco.MjModel.from_xml_string(model)
        except TaskError:
            raise
        except Exception as error:  # MuJoCo raises ValueError and others, and the user's function anything
            raise TaskError(f"{self.name}: its model cannot be loaded: {one_line(error)}") from error
        raise TaskError(f"{self.name}: model = {shown(model)} is not a path, MJCF, an MjSpec or a function.")


def _found(path: Path) -> Path:
    """A file of the user's, or one that comes with ars."""
    for candidate in (path, MODELS / path.name if path.name == str(path) else path):
        if candidate.is_file():
            return candidate
    raise TaskError(f"There is no model {path}: give the path of an MJCF file.")


class Parts(NamedTuple):
    """A robot's terms, bound to a model."""

    action: Bound
    observe: tuple[Bound, ...]
    reward: tuple[Bound, ...]
    stop: tuple[Bound, ...]

    @property
    def all(self) -> tuple[Bound, ...]:
        return (self.action, *self.observe, *self.reward, *self.stop)


def bind(robot: Robot, mj: Any, data: Any) -> Parts:
    """The terms for this model; TaskError with a sentence if one does not fit."""
    model = Model(mj, data, robot.frame_skip(mj) * float(mj.opt.timestep))
    robot.start.check(model)

    def each(kind: str, terms: Sequence[Term]) -> tuple[Bound, ...]:
        bound = []
        for term in terms:
            if not hasattr(term, "bind"):
                raise TaskError(f"{robot.name}: {shown(term)} among `{kind}` is not a term: docs/robots.md lists them.")
            bound.append(term.bind(model))
        return tuple(bound)

    for foot in robot.feet:
        model.find(f"{robot.name}, feet", "geom", foot)
    if mj.nu == 0:
        raise TaskError(f"{robot.name}: this model has no actuators.")
    return Parts(
        each("action", [robot.action])[0], each("observe", robot.observe), each("reward", robot.reward),
        each("stop", robot.stop),
    )  # fmt: skip


def describe_robot(robot: Robot, mj: Any, parts: Parts) -> dict[str, Any]:
    """The robot as JSON for runs and policies: its terms, with the names and offsets that a controller needs, and a
    digest of the compiled model."""
    observe = [
        {**describe_term(term), "names": list(bound.names), "unit": bound.unit}
        for term, bound in zip(robot.observe, parts.observe, strict=True)
    ]
    for described, term, bound in zip(observe, robot.observe, parts.observe, strict=True):
        if isinstance(term, JointPositions):
            described["offsets"] = list(bound.constants[len(bound.names) :])
    action = describe_term(robot.action)
    for name, value in scaled_columns(parts.action).items():
        action[name] = [_plain(v) for v in value] if isinstance(value, list) else _plain(value)
    return {
        "control_hz": float(robot.control_hz),
        "dt": robot.frame_skip(mj) * float(mj.opt.timestep),  # of the loop, which may differ in the last bits
        "seconds": float(robot.seconds),
        "model": digest(mj),
        "actuators": [actuator_name(mj, i) for i in range(mj.nu)],
        "start": describe_term(robot.start),
        "action": action,
        "observe": observe,
        "reward": [describe_term(term) for term in robot.reward],
        "stop": [describe_term(term) for term in robot.stop],
        **({} if robot.scenarios is None else {"scenarios": robot.scenarios.describe()}),
    }


def _plain(value: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return value if math.isfinite(value) else str(value)


def digest(mj: Any) -> str:
    """SHA-256 of the compiled model."""
    import mujoco

    buffer = np.empty(mujoco.mj_sizeModel(mj), dtype=np.uint8)
    mujoco.mj_saveModel(mj, None, buffer)
    return hashlib.sha256(buffer.tobytes()).hexdigest()


def describe_term(term: Any) -> Any:
    """A term as a list: its class, and those of its fields that are not None; functions by their names."""
    if callable(term) and not is_dataclass(term):
        return f"{getattr(term, '__module__', '')}:{getattr(term, '__qualname__', '')}"
    if is_dataclass(term):
        values = {f.name: describe_term(getattr(term, f.name)) for f in fields(term)}
        return {"term": type(term).__name__, **{name: value for name, value in values.items() if value is not None}}
    if isinstance(term, list | tuple):
        return [describe_term(part) for part in term]
    if isinstance(term, float) and not math.isfinite(term):
        return str(term)
    return term if isinstance(term, str | int | float | bool | None) else brief(term)
