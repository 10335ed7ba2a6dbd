"""Robots by name: the paper's twelve, those that come with ars, and the user's own."""

from importlib import import_module
from typing import Any, TypeAlias

from ars.tasks import locomotion, user_code
from ars.tasks.locomotion import Locomotion
from ars.tasks.robots.robot import Robot

AnyRobot: TypeAlias = Locomotion | Robot

# Name → module and attribute: each is loaded when it is asked for.
OURS = {"Quadruped-v1": ("ars.tasks.robots.quadruped", "QUADRUPED")}


def built_in(name: str) -> AnyRobot | None:
    """One that comes with ars; files may name these, because no code of others is imported for them."""
    if name in OURS:
        module, attribute = OURS[name]
        found: Robot = getattr(import_module(module), attribute)
        return found
    return locomotion.TASKS.get(name)


def names() -> list[str]:
    return [*locomotion.TASKS, *OURS]


def find_robot(name: str) -> AnyRobot | None:
    """A built-in robot, or the user's own as `module:attribute`; None for any other task."""
    if ":" not in name:
        return built_in(name)
    own: Any = user_code.load(name)
    return own if isinstance(own, Locomotion | Robot) else None


def name_of(robot: AnyRobot) -> str:
    """Its name if it is built in, else one that says that the object is needed."""
    same = built_in(robot.name)
    known = same == robot if isinstance(robot, Locomotion) else same is robot
    return robot.name if known else f"{type(robot).__name__}:<{robot.name}>"
