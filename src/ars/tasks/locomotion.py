"""The six MuJoCo robots of the paper as data, in two definitions (section 4.2).

`-v5` is Gymnasium's own. `-v1` is the paper's, of Gym 0.9.3 on MuJoCo 1.31, rebuilt on the current MuJoCo;
docs/tasks.md lists the differences. Any MJCF model with such a description runs at the same speed.
"""

import math
import warnings
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.files import one_line
from ars.settings import is_finite, is_number, shown

INFINITY = float("inf")
PROGRESS = ("qpos", "xpos", "subtree_com", "mass_center")  # whose x a robot moves along


@dataclass(frozen=True)
class Slice:
    """Part of an observation: a flattened field of MjData, entries start … stop − 1, clipped to ±clip."""

    field: str
    start: int = 0
    stop: int | None = None
    _: KW_ONLY
    clip: float = INFINITY


@dataclass(frozen=True, kw_only=True)
class Locomotion:
    """A robot that is rewarded for moving along x. Observation and reward are those of Gymnasium's environments."""

    name: str
    xml: str  # a path, or the name of one of Gymnasium's models
    frame_skip: int
    observation: tuple[Slice, ...]
    H: int = 1000
    # reward = forward_weight · velocity + survival bonus − control cost − contact cost
    progress: str = "qpos"  # whose x: "qpos" (the first), "xpos" or "subtree_com" of the first body, "mass_center"
    forward_weight: float = 1.0
    survival_bonus: float = 0.0
    bonus_on_fall: bool = False  # whether the step that falls still gets the bonus
    ctrl_weight: float = 0.0
    ctrl_clamped: bool = False  # whether the control cost is of the controls clamped to their range
    contact_weight: float = 0.0
    contact_clip: float = INFINITY  # each contact force is clipped to ±this, in observation and cost
    contact_most: float = INFINITY  # upper limit of the contact cost
    # an episode ends when qpos[z_index], the angle qpos[2] or any of (qpos, qvel)[2:] leaves its range
    z_index: int = 1
    z_range: tuple[float, float] = (-INFINITY, INFINITY)
    z_inclusive: bool = False  # whether the bounds themselves are still healthy
    angle_range: tuple[float, float] = (-INFINITY, INFINITY)
    state_most: float = INFINITY
    # initial state: qpos uniform in ±qpos_noise, qvel the same or normal
    qpos_noise: float = 0.1
    qvel_noise: float = 0.1
    qvel_normal: bool = False
    # how the model differs from its file
    capsules_as_cylinders: bool = False  # mass and inertia by the rule of MuJoCo before 2.1.1
    joint_ranges: tuple[tuple[str, float, float], ...] = ()  # name, lowest and highest angle in degrees
    # pairs of limbs, by the names of their first bodies, that a reflection at y = 0 swaps: tasks/mirrors.py
    mirror: tuple[tuple[str, str], ...] = ()

    @property
    def needs_contact_forces(self) -> bool:
        return self.contact_weight != 0.0 or any(part.field == "cfrc_ext" for part in self.observation)


_SWIMMER = Locomotion(
    name="Swimmer-v5",
    xml="swimmer.xml",
    frame_skip=4,
    observation=(Slice("qpos", 2), Slice("qvel")),
    ctrl_weight=1e-4,
)
_HOPPER = Locomotion(
    name="Hopper-v5",
    xml="hopper.xml",
    frame_skip=4,
    observation=(Slice("qpos", 1), Slice("qvel", clip=10.0)),
    survival_bonus=1.0,
    ctrl_weight=1e-3,
    z_range=(0.7, INFINITY),
    angle_range=(-0.2, 0.2),
    state_most=100.0,
    qpos_noise=5e-3,
    qvel_noise=5e-3,
)
_HALF_CHEETAH = Locomotion(
    name="HalfCheetah-v5",
    xml="half_cheetah.xml",
    frame_skip=5,
    observation=(Slice("qpos", 1), Slice("qvel")),
    ctrl_weight=0.1,
    qvel_normal=True,
)
_WALKER2D = Locomotion(
    name="Walker2d-v5",
    xml="walker2d_v5.xml",
    frame_skip=4,
    observation=(Slice("qpos", 1), Slice("qvel", clip=10.0)),
    survival_bonus=1.0,
    ctrl_weight=1e-3,
    z_range=(0.8, 2.0),
    angle_range=(-1.0, 1.0),
    qpos_noise=5e-3,
    qvel_noise=5e-3,
    mirror=(("thigh", "thigh_left"),),
)
_ANT = Locomotion(
    name="Ant-v5",
    xml="ant.xml",
    frame_skip=5,
    observation=(Slice("qpos", 2), Slice("qvel"), Slice("cfrc_ext", 6, clip=1.0)),
    progress="xpos",
    survival_bonus=1.0,
    ctrl_weight=0.5,
    contact_weight=5e-4,
    contact_clip=1.0,
    z_index=2,
    z_range=(0.2, 1.0),
    z_inclusive=True,
    qvel_normal=True,
    mirror=(("front_left_leg", "right_back_leg"), ("front_right_leg", "back_leg")),  # at ±y, whatever their names
)
_HUMANOID = Locomotion(
    name="Humanoid-v5",
    xml="humanoid.xml",
    frame_skip=5,
    observation=(
        Slice("qpos", 2),
        Slice("qvel"),
        Slice("cinert", 10),
        Slice("cvel", 6),
        Slice("qfrc_actuator", 6),
        Slice("cfrc_ext", 6),
    ),
    progress="mass_center",
    forward_weight=1.25,
    survival_bonus=5.0,
    ctrl_weight=0.1,
    contact_weight=5e-7,
    contact_most=10.0,
    z_index=2,
    z_range=(1.0, 2.0),
    qpos_noise=1e-2,
    qvel_noise=1e-2,
    mirror=(("right_thigh", "left_thigh"), ("right_upper_arm", "left_upper_arm")),
)

_V1: dict[str, Any] = {"capsules_as_cylinders": True, "bonus_on_fall": True}

TASKS: dict[str, Locomotion] = {
    task.name: task
    for task in (
        *(_SWIMMER, _HOPPER, _HALF_CHEETAH, _WALKER2D, _ANT, _HUMANOID),
        replace(_SWIMMER, name="Swimmer-v1"),  # D7: today's masses
        replace(_HOPPER, name="Hopper-v1", **_V1),
        replace(_HALF_CHEETAH, name="HalfCheetah-v1", **_V1),
        replace(_WALKER2D, name="Walker2d-v1", xml="walker2d.xml", **_V1),
        replace(
            _ANT,
            name="Ant-v1",
            progress="subtree_com",
            observation=(Slice("qpos", 2), Slice("qvel"), Slice("cfrc_ext", clip=1.0)),
            **_V1,
        ),
        replace(
            _HUMANOID,
            name="Humanoid-v1",
            ctrl_clamped=True,
            joint_ranges=(("left_hip_y", -120.0, 20.0),),
            observation=(
                Slice("qpos", 2),
                Slice("qvel"),
                Slice("cinert"),
                Slice("cvel"),
                Slice("qfrc_actuator"),
                Slice("cfrc_ext"),
            ),
            **_V1,
        ),
    )
}


def describe(task: Locomotion) -> dict[str, Any]:
    """The description as JSON, saved with runs and policies; infinity, which JSON lacks, is written as text. The pairs
    of limbs are left out: the definition of a run that keeps the mirror has its signed permutations."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return str(value) if isinstance(value, float) and math.isinf(value) else value

    described = {name: plain(value) for name, value in asdict(task).items() if name != "mirror"}
    for part in described["observation"]:
        if part["stop"] is None:  # as it was before there was a stop
            del part["stop"]
    return described


def model_path(xml: str) -> Path:
    """The model file: the user's own, or one that comes with Gymnasium."""
    import gymnasium

    bundled = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / xml
    return bundled if bundled.is_file() and Path(xml).name == xml else Path(xml)


def load_model(task: Locomotion) -> Any:
    """The MjModel of a task, with its differences from the file applied."""
    silence_mujoco()
    if not isinstance(task.xml, str) or not model_path(task.xml).is_file():
        raise TaskError(f"{task.name}: there is no model {shown(task.xml)}: give the path of an MJCF file.")
    path = str(model_path(task.xml))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*settotalmass.*")  # from HalfCheetah's file; the user cannot fix it
        try:
            return _load(task, path)
        except (ValueError, KeyError, AttributeError) as error:  # MuJoCo's parser, and a joint that is not there
            raise TaskError(f"{task.name}: its model {path} cannot be loaded: {one_line(error)}") from error


def _load(task: Locomotion, path: str) -> Any:
    import mujoco

    if not task.capsules_as_cylinders and not task.joint_ranges:
        return mujoco.MjModel.from_xml_path(path)
    spec = mujoco.MjSpec.from_file(path)
    for joint, *degrees in task.joint_ranges:
        spec.joint(joint).range = degrees if spec.compiler.degree else [math.radians(d) for d in degrees]
    model = spec.compile()
    if task.capsules_as_cylinders:
        _take_inertia_of_cylinders(spec, model)
    return model


def _take_inertia_of_cylinders(spec: Any, model: Any) -> None:
    """Mass and inertia as MuJoCo computed them before 2.1.1: a capsule of radius r and half-length h counts as a
    cylinder of radius r and length 2h + r. A copy of the model with such cylinders is compiled, so that MuJoCo itself
    computes them (with the file's density and total mass)."""
    import mujoco

    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_CAPSULE:
            compiled = model.geom(geom.id)
            r, h = compiled.size[:2]
            geom.type = mujoco.mjtGeom.mjGEOM_CYLINDER
            geom.fromto = [float("nan")] * 6
            geom.size = [r, h + r / 2, 0.0]
            geom.pos, geom.quat = compiled.pos, compiled.quat
    cylinders = spec.compile()
    for name in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
        getattr(model, name)[:] = getattr(cylinders, name)
    mujoco.mj_setConst(model, mujoco.MjData(model))


def observed(task: Locomotion, data: Any) -> list[NDArray[np.float64]]:
    """The numbers in MjData of each part of the observation: views, not copies."""
    parts = []
    for part in task.observation:
        source = getattr(data, part.field, None) if isinstance(part.field, str) else None
        if not isinstance(source, np.ndarray) or source.dtype != np.float64:
            raise TaskError(f"{task.name} observes {shown(part.field)}, which is not an array of numbers in MjData.")
        size = source.size
        stop = size if part.stop is None else part.stop
        if not (_is_whole(part.start) and _is_whole(stop) and 0 <= part.start < stop <= size):
            raise TaskError(
                f"{task.name} observes {part.field} from {shown(part.start)} to {shown(part.stop)}: its indices are "
                f"0 to {size - 1}, and the stop comes after the start."
            )
        parts.append(source.reshape(-1)[part.start : stop])
    return parts


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check(task: Locomotion, model: Any) -> None:
    """TaskError with a sentence if a field of the description has no meaning for its model."""

    def refuse(name: str, wanted: str) -> NoReturn:
        raise TaskError(f"{task.name}: {name} = {shown(getattr(task, name))} is not {wanted}.")

    for name in ("frame_skip", "H"):
        if not _is_whole(getattr(task, name)) or getattr(task, name) < 1:
            refuse(name, "a whole number above 0")
    for name in ("forward_weight", "survival_bonus", "ctrl_weight", "contact_weight"):
        if not is_finite(getattr(task, name)):
            refuse(name, "a finite number")
    for name in ("contact_clip", "contact_most", "state_most"):
        if not is_number(getattr(task, name)) or getattr(task, name) <= 0:
            refuse(name, "a number above 0")
    for name in ("qpos_noise", "qvel_noise"):
        if not is_number(getattr(task, name)) or not 0 <= getattr(task, name) < math.inf:
            refuse(name, "a number of at least 0")
    for name in ("z_range", "angle_range"):
        value = getattr(task, name)
        if not (isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value))):
            refuse(name, "a pair of numbers")
        if not value[0] < value[1]:
            refuse(name, "a range: its first number must be below its second")
    if task.progress not in PROGRESS:
        raise TaskError(f"{task.name} measures progress by {shown(task.progress)}: choose {', '.join(PROGRESS)}.")
    if not _is_whole(task.z_index) or not 0 <= task.z_index < model.nq:
        refuse("z_index", f"an index of qpos, 0 to {model.nq - 1}")
    if model.nq < 3 and (tuple(task.angle_range) != (-INFINITY, INFINITY)):
        refuse("angle_range", f"possible: the angle is qpos[2], and this model has {model.nq} positions")
    if task.progress in ("xpos", "subtree_com") and model.nbody < 2:
        refuse("progress", "possible: this model has no body")
    if not model.nu:
        raise TaskError(f"{task.name}: its model has no actuators.")
    for part in task.observation:
        if not isinstance(part, Slice):
            raise TaskError(f"{task.name}: {shown(part)} in its observation is not a Slice.")
        if not is_number(part.clip) or part.clip <= 0:
            raise TaskError(f"{task.name}: clip = {shown(part.clip)} of {part.field} is not a number above 0.")


def diverged(data: Any) -> bool:
    """Whether MuJoCo found a bad state and reset it: the state then looks finite, and only these counters show it."""
    return bool(data.warning.number[divergence_warnings()].any())


@cache
def divergence_warnings() -> list[int]:
    """The indices of the warnings that MuJoCo counts when a simulation diverges."""
    import mujoco

    names = ("mjWARN_BADQPOS", "mjWARN_BADQVEL", "mjWARN_BADQACC", "mjWARN_BADCTRL")
    return [int(getattr(mujoco.mjtWarning, name)) for name in names]


def silence_mujoco() -> None:
    """Keep MuJoCo from printing and from writing MUJOCO_LOG.TXT; we read its counters instead. A handler that the user
    has set is kept."""
    import mujoco

    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_drop_warning)


def _drop_warning(message: str) -> None:
    """Diverging simulations are counted in the records (`dropped`)."""
