"""The camera position and the feet: of the paper's six robots as data, of any other from the geoms of its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.presets import robot_of
from ars.settings import shown
from ars.tasks.axis_names import body_name
from ars.tasks.robots.terms import Model

NEAR_GROUND = 0.1  # of a robot's height: geoms that begin higher than this at the start are not feet

Feet = Sequence[tuple[str, Sequence[int]]]  # a foot's name and its geoms


@dataclass(frozen=True)
class Shot:
    """A camera that follows the robot, in metres and degrees; it looks at a point at `height`."""

    distance: float
    height: float
    azimuth: float = 90.0  # 90: from the side, the robot runs to the right
    elevation: float = -10.0
    extent: float | None = None  # of the scene, by which MuJoCo scales what it draws; None: the model's

    @property
    def slack(self) -> float:
        """How far the robot may rise or fall before the camera follows: less than half of what it sees above it."""
        return self.distance / 8


@dataclass(frozen=True)
class Framing:
    """feet: pairs of a foot's common name and its geoms in the model."""

    shot: Shot
    feet: tuple[tuple[str, tuple[str, ...]], ...] = ()


ROBOTS = {
    "Swimmer": Framing(Shot(distance=4.6, height=0.0, elevation=-48.0)),
    "Hopper": Framing(Shot(distance=3.0, height=0.72), feet=(("foot", ("foot_geom",)),)),
    "HalfCheetah": Framing(
        Shot(distance=3.1, height=0.45), feet=(("back foot", ("bfoot",)), ("front foot", ("ffoot",)))
    ),
    "Walker2d": Framing(
        Shot(distance=3.4, height=0.78), feet=(("right foot", ("foot_geom",)), ("left foot", ("foot_left_geom",)))
    ),
    "Ant": Framing(
        Shot(distance=3.9, height=0.3, azimuth=105.0, elevation=-22.0),
        feet=(
            ("front left", ("left_ankle_geom",)),
            ("back left", ("right_ankle_geom",)),  # the model's names assume another heading: it runs along +x
            ("back right", ("third_ankle_geom",)),
            ("front right", ("fourth_ankle_geom",)),
        ),
    ),
    "Humanoid": Framing(
        Shot(distance=3.6, height=0.85, azimuth=105.0),
        feet=(("right foot", ("right_foot",)), ("left foot", ("left_foot",))),
    ),
}


def find_framing(task: str) -> Framing | None:
    """None for a task that is not one of the six robots."""
    robot = robot_of(task)
    return ROBOTS[robot] if robot else None


def root(model: Any) -> int:
    """The body that is followed, and pushed."""
    return Model(model, None, 0.0).root


def find_shot(model: Any, data: Any) -> Shot | None:
    """The camera for any other robot, from the box around its geoms in this state; None if it has none."""
    robot, low, high = _geoms(model, data)
    if not robot.any():
        return None
    lowest, highest = low[robot].min(axis=0), high[robot].max(axis=0)
    radius = float(np.linalg.norm(highest - lowest)) / 2
    height = float(lowest[2] + highest[2]) / 2
    return Shot(3.0 * radius, height, azimuth=105.0, elevation=-12.0, extent=2.0 * radius)


def named_feet(task: str, model: Any, names: Any) -> Feet:
    """The feet that a robot declares, by the names of their geoms."""
    there, listed = Model(model, None, 0.0).names("geom"), names if isinstance(names, list | tuple) else [names]
    for name in listed:
        if name not in there:
            raise TaskError(f"{task}: its foot {shown(name)} is not a geom of the model: {', '.join(there[:20])}.")
    return [(name, [there.index(name)]) for name in listed]


def find_feet(model: Any, data: Any) -> Feet:
    """The feet of a robot that declares none: each last body of a limb whose geoms can touch the world and begin, in
    this state, at most NEAR_GROUND of the robot's height above its lowest point."""
    robot, low, high = _geoms(model, data)
    if not robot.any():
        return []
    bottom, top = low[robot, 2].min(), high[robot, 2].max()
    touches = np.flatnonzero(robot & _can_touch_world(model))
    limbs = {int(model.geom_bodyid[geom]) for geom in touches}
    inner = {parent for body in limbs for parent in _ancestors(model, body)}
    near = [int(geom) for geom in touches if low[geom, 2] - bottom <= NEAR_GROUND * (top - bottom)]
    feet = [(body, [geom for geom in near if model.geom_bodyid[geom] == body]) for body in sorted(limbs - inner)]
    return [(_foot_name(model, body, geoms), geoms) for body, geoms in feet if geoms]


def _foot_name(model: Any, body: int, geoms: list[int]) -> str:
    """That of its only geom, or of the body."""
    return str((model.geom(geoms[0]).name if len(geoms) == 1 else "") or body_name(model, body))


def _geoms(model: Any, data: Any) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """(which geoms are the robot's: those of the tree that is followed; lowest and highest corner of each)."""
    turn = data.geom_xmat.reshape(-1, 3, 3)
    middle = data.geom_xpos + np.einsum("gij,gj->gi", turn, model.geom_aabb[:, :3])
    half = np.einsum("gij,gj->gi", np.abs(turn), model.geom_aabb[:, 3:])
    half = np.minimum(half, model.geom_rbound[:, None])  # boxes around turned spheres are too large
    tree = model.body_rootid[model.geom_bodyid] == model.body_rootid[root(model)]
    return tree & (model.geom_rbound > 0) & (model.geom_bodyid > 0), middle - half, middle + half  # 0: planes


def _can_touch_world(model: Any) -> NDArray[np.bool_]:
    world = model.body_weldid[model.geom_bodyid] == 0
    types = np.bitwise_or.reduce(model.geom_contype[world], initial=0)
    affinities = np.bitwise_or.reduce(model.geom_conaffinity[world], initial=0)
    can: NDArray[np.bool_] = ~world & (((model.geom_contype & affinities) | (model.geom_conaffinity & types)) != 0)
    return can


def _ancestors(model: Any, body: int) -> list[int]:
    found = []
    while body := int(model.body_parentid[body]):
        found.append(body)
    return found
