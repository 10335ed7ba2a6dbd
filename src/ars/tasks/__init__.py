"""Tasks: the environments in which policies are run, with one protocol; `make` creates a task from its name, and
`factory` also takes the user's objects.

A task object belongs to one worker, which creates it with a TaskFactory and closes it. Heavy packages are imported only
when a task needs them.
"""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ars.errors import TaskError
from ars.moments import Moments
from ars.noise import Key
from ars.subset import ALL

if TYPE_CHECKING:
    import gymnasium
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from ars.tasks.robots.find import AnyRobot

# What the library takes as a task: its name, something that makes a Gymnasium environment (its class will do), or the
# description of a robot.
TaskLike: TypeAlias = "str | Callable[[], gymnasium.Env[Any, Any]] | AnyRobot"


class Policy(Protocol):
    """What tasks run: LinearPolicy, MLPPolicy, or any other of n observations and p actions."""

    @property
    def n(self) -> int: ...

    @property
    def p(self) -> int: ...

    def act(self, obs: "ArrayLike") -> "NDArray[np.float64]":
        """π(x): (n,) → (p,)."""


class LoopPolicy(Policy, Protocol):
    """One that the compiled loop of robots can run, besides the linear: `function(parameters, x, a)` fills a, written
    within Numba's subset like a term, and has the bits of `act`."""

    @property
    def function(self) -> Callable[..., None]: ...

    @property
    def parameters(self) -> "tuple[NDArray[np.float64], ...]": ...


class Rollout(NamedTuple):
    """One episode: Σ (reward − shift), its steps, the moments of the states acted on, and whether all was finite."""

    reward: float
    steps: int
    moments: Moments | None
    finite: bool


class Task(Protocol):
    """n observations, p actions, horizon H, and the survival bonus, the default of `shift` in training."""

    name: str
    n: int
    p: int
    H: int
    survival_bonus: float

    @property
    def time_limit(self) -> int | None:
        """H if the task itself ends there; None if H is only a default."""

    @property
    def releases_gil(self) -> bool:
        """Whether threads can run rollouts in parallel, each with its own task object."""

    def definition(self) -> dict[str, Any]:
        """The definition of the task as JSON, saved with runs and policies."""

    def rollout(self, policy: Policy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        """One episode of at most H steps; `gather`: whether to compute the states' moments."""

    def close(self) -> None: ...


def define(task: Task, **more: Any) -> dict[str, Any]:
    """The definition of a task: what all definitions have, and `more`."""
    names = ("name", "n", "p", "H", "survival_bonus")
    return {name: getattr(task, name) for name in names} | more


class Measure(NamedTuple):
    """What some tasks compute of a policy for the records; only with evaluations if it is dear."""

    call: Callable[[Any], dict[str, float]]  # of a policy
    dear: bool


def measure_of(task: Task) -> Measure | None:
    """The exact cost of a policy on LQR, or the parts of a robot's reward; None for other tasks."""
    if call := getattr(task, "measure", None):
        return Measure(call, dear=False)
    call = getattr(task, "measure_episode", None)
    return Measure(call, dear=True) if call else None


@dataclass(frozen=True)
class TaskFactory:
    """Creates tasks of one name, in any process, or of an object that cannot be imported under its name."""

    name: str
    releases_gil: bool
    own: Any = None  # that object
    observe: str = ALL  # the entries of the observation that policies see
    mirror: bool = False  # whether policies keep the mirror of left and right
    over: str = "mean"  # how the rewards of a direction's scenarios become one

    def __call__(self) -> Task:
        return make(self.name, own=self.own, observe=self.observe, mirror=self.mirror, over=self.over)


def factory(
    task: TaskLike, *, observe: str | None = None, mirror: bool | None = None, over: str | None = None
) -> TaskFactory:
    """The factory for executors; it creates no task yet, but an unknown name is a TaskError."""
    made = _factory(task)
    return replace(made, observe=ALL if observe is None else observe, mirror=mirror is True, over=over or "mean")


def _factory(task: TaskLike) -> TaskFactory:
    from ars.tasks import user_code
    from ars.tasks.robots.find import AnyRobot, find_robot

    name = user_code.name_of(task)
    if user_code.needs_object(name) and not isinstance(task, str):
        return TaskFactory(name, isinstance(task, AnyRobot), task)
    releases_gil = name == "lqr" or find_robot(name) is not None
    if not releases_gil:
        _check_known(name)
    return TaskFactory(name, releases_gil)


def make(
    name: str, *, compiled: bool = True, own: Any = None, observe: str = ALL, mirror: bool = False, over: str = "mean"
) -> Task:
    """The task of a name, or of the user's `own` object; compiled=False chooses plain Python if there is a choice.
    `observe` is a subset of the observation, and with `mirror` the definition has the task's mirror."""
    if name == "lqr":
        from ars.tasks.lqr import LqrTask

        if observe != ALL or mirror:
            raise TaskError("lqr has neither a subset of its state nor a mirror: leave out observe and mirror.")
        return LqrTask()
    from ars.tasks.robots.find import AnyRobot, find_robot
    from ars.tasks.robots.robot import Robot

    robot = find_robot(name) if own is None else own
    if isinstance(robot, Robot) or (compiled and isinstance(robot, AnyRobot)):
        from ars.tasks.mujoco_loop import MujocoTask

        return MujocoTask(robot, name, observe=observe, mirror=mirror, over=over, compiled=compiled)
    from ars.tasks.gymnasium import GymnasiumTask
    from ars.tasks.robots.scenarios import check_over

    check_over(over, None, name)
    _check_known(name)
    plain = {} if compiled else {"plain_steps": math.inf}
    return GymnasiumTask(name, own, observe=observe, mirror=mirror, **plain)


def _check_known(name: str) -> None:
    """TaskError with the nearest names, unless the name is built in, registered with Gymnasium, or has a module."""
    from ars.tasks.gymnasium import is_registered, registered
    from ars.tasks.robots.find import names

    if name in names() or ":" in name or is_registered(name):
        return
    known = sorted({"lqr", *names(), *registered()})
    by_lower = {task.lower(): task for task in known}
    near = [by_lower[hit] for hit in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    hint = f"the nearest names are {', '.join(near)}" if near else "`ars tasks` lists them"
    shown = repr(name) if len(name) < 100 else f"with a name of {len(name)} characters"
    raise TaskError(f"There is no task {shown}: {hint}; use module:factory for your own.")
