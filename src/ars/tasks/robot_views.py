"""What a policy sees of a robot: entries by the names of its model, and its mirror."""

from typing import Any

from ars.errors import TaskError
from ars.tasks.axis_names import robot_groups
from ars.tasks.locomotion import Locomotion, observed
from ars.tasks.mirrors import mirror_of
from ars.tasks.observations import Group, View, make_view


def robot_view(task: Locomotion, name: str, model: Any, data: Any, *, observe: str, mirror: bool) -> View:
    """The view of a Locomotion, whichever task runs it."""
    sizes = [len(part) for part in observed(task, data)]
    return make_view(
        name, observe, sum(sizes), lambda: robot_groups(task, model, sizes),
        (lambda: mirror_of(task, model, data)) if mirror else None,
    )  # fmt: skip


def terms_view(robot: Any, name: str, parts: Any, *, observe: str, mirror: bool) -> View:
    """The view of a Robot: its groups are its terms."""
    if mirror:
        raise TaskError(f"{name} is described by terms, which have no mirror of left and right: leave out mirror.")
    groups = [
        Group(type(term).__name__, type(term).__name__, bound.names)
        for term, bound in zip(robot.observe, parts.observe, strict=True)
    ]
    return make_view(name, observe, sum(len(group.names) for group in groups), lambda: groups)
