"""The camera position and the feet for each of the paper's six robots, as data."""

from dataclasses import dataclass

from ars.presets import robot_of


@dataclass(frozen=True)
class Shot:
    """A camera that follows the robot, in metres and degrees; it looks at a point at `height`."""

    distance: float
    height: float
    azimuth: float = 90.0  # 90: from the side, the robot runs to the right
    elevation: float = -10.0


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
