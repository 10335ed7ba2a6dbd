"""Tasks: what a policy is rolled out on. One protocol; `make` turns a name into a task.

A task object belongs to one worker, which makes it with a TaskFactory and closes it. Heavy packages load only when a
task of their kind is made.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ars.errors import TaskError
from ars.moments import Moments
from ars.noise import Key
from ars.policy import LinearPolicy


class Rollout(NamedTuple):
    """One episode: the sum of (reward − shift), its steps, the states acted on, and whether all was finite."""

    reward: float
    steps: int
    moments: Moments | None
    finite: bool


class Task(Protocol):
    """n observations, p actions, horizon H, the survival bonus (what `shift` takes off in training)."""

    name: str
    n: int
    p: int
    H: int
    survival_bonus: float

    @property
    def time_limit(self) -> int | None:
        """H where the task ends by itself then; None where H is only a default."""

    @property
    def releases_gil(self) -> bool:
        """Whether threads can run rollouts of this task side by side, each with a task object of its own."""

    def definition(self) -> dict[str, Any]:
        """What the name stands for, as JSON: saved with runs and policies."""

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        """One episode of at most H steps; gather says whether the states' moments are wanted."""

    def close(self) -> None: ...


def define(task: Task, **more: Any) -> dict[str, Any]:
    """What every task's definition begins with, and what else one's own has."""
    names = ("name", "n", "p", "H", "survival_bonus")
    return {name: getattr(task, name) for name in names} | more


def measure_of(task: Task) -> Callable[[LinearPolicy], dict[str, float]] | None:
    """What some tasks know of a policy without rollouts (LQR its exact cost), to be written into the records."""
    return getattr(task, "measure", None)


@dataclass(frozen=True)
class TaskFactory:
    """Makes tasks of one name, wherever it is sent."""

    name: str
    releases_gil: bool

    def __call__(self) -> Task:
        return make(self.name)


def factory(name: str) -> TaskFactory:
    """What executors get; nothing is made yet, but an unknown name is a TaskError now."""
    from ars.tasks import locomotion

    releases_gil = name == "lqr" or locomotion.find(name) is not None
    if not releases_gil:
        _check_known(name)
    return TaskFactory(name, releases_gil)


def make(name: str, *, compiled: bool = True) -> Task:
    """The task of that name; compiled=False takes the plain-Python path where there are two."""
    from ars.tasks import locomotion

    if name == "lqr":
        from ars.tasks.lqr import LqrTask

        return LqrTask()
    if compiled and (robot := locomotion.find(name)):
        from ars.tasks.mujoco_loop import MujocoTask

        return MujocoTask(robot, name)
    from ars.tasks.gymnasium import GymnasiumTask

    _check_known(name)
    return GymnasiumTask(name)


def _check_known(name: str) -> None:
    """TaskError with the nearest names, unless the name is one of Gymnasium's or ours or the user's own."""
    from ars.tasks import locomotion
    from ars.tasks.gymnasium import is_registered, registered

    if name in locomotion.TASKS or ":" in name or is_registered(name):
        return
    known = sorted({"lqr", *locomotion.TASKS, *registered()})
    by_lower = {task.lower(): task for task in known}
    near = [by_lower[hit] for hit in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    hint = f"the nearest names are {', '.join(near)}" if near else "`ars tasks` lists them"
    shown = repr(name) if len(name) < 100 else f"of {len(name)} letters"
    raise TaskError(f"There is no task {shown}: {hint}; module:factory names one of your own.")
