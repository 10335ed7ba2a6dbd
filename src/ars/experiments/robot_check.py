"""What can be said of a robot before it is trained: sizes, names, what its terms pay, what will not learn."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.tasks.robots.actions import action_limit
from ars.tasks.robots.find import AnyRobot
from ars.tasks.robots.rewards import force_limits

if TYPE_CHECKING:
    from ars.tasks.mujoco_loop import MujocoTask

EPISODES = 20  # of random policies
NOISE = 0.3  # nu sqrt(n), as presets.suggested has it for the first iteration
DWARFS = 30.0  # times the rest of the reward
SATURATED = 0.5  # of the actuators' forces


@dataclass(frozen=True)
class Play:
    """Episodes of one kind of policy: mean steps, reward terms per second, and what is at its limit."""

    steps: float
    terms: dict[str, float]
    limited: float  # share of actions at the limit
    forces: float  # share of forces at their limit


@dataclass(frozen=True)
class Checked:
    """What `ars robot check` prints."""

    observation: list[tuple[str, list[str], str]]  # term, names, unit
    actions: list[str]
    H: int
    dt: float
    zero: Play
    random: Play
    steps_per_second: float
    warnings: list[str]


def check_robot(robot: AnyRobot, name: str) -> Checked:
    """TaskError if a term does not fit."""
    from ars.tasks.mujoco_loop import MujocoTask

    task = MujocoTask(robot, name)
    parts = task.parts
    n, p = task.n, task.p
    zero = _play(task, [LinearPolicy(np.zeros((p, n)), np.zeros(n), np.ones(n))])
    random = np.random.default_rng(0)
    policies = [
        LinearPolicy(NOISE / np.sqrt(n) * random.standard_normal((p, n)), np.zeros(n), np.ones(n))
        for _ in range(EPISODES)
    ]
    noisy = _play(task, policies)
    observation = [
        (type(term).__name__, list(bound.names), bound.unit)
        for term, bound in zip(task.robot.observe, parts.observe, strict=True)
    ]
    return Checked(
        observation, task.named.names("actuator"), task.H, task.arrays.dt, zero, noisy, _speed(task, policies),
        warn(task, zero, noisy),
    )  # fmt: skip


def _play(task: "MujocoTask", policies: list[LinearPolicy]) -> Play:
    steps: list[int] = []
    limited: list[float] = []
    forces: list[float] = []
    terms: dict[str, float] = {}
    limit, bound = force_limits(task.model), action_limit(task.parts.action)
    for k, policy in enumerate(policies):
        task.reset(Key(0, Stream.TEST, 0, k))
        before = len(forces)
        for _ in task.steps(policy, H=task.H):
            limited.append(float(np.mean(np.abs(task.arrays.action) >= bound)))
            forces.append(float(np.mean(np.abs(task.data.actuator_force) >= limit)))
        steps.append(len(forces) - before)
        for name, value in task.reward_terms().items():
            terms[name] = terms.get(name, 0.0) + value
    seconds = sum(steps) * task.arrays.dt or 1.0
    return Play(
        float(np.mean(steps)), {name: value / seconds for name, value in terms.items()}, float(np.mean(limited)),
        float(np.mean(forces)),
    )  # fmt: skip


def _speed(task: "MujocoTask", policies: list[LinearPolicy]) -> float:
    """Control steps per second of one core, the best of several."""
    best = 0.0
    for k, policy in enumerate(policies[:5]):
        began = time.perf_counter()
        steps = task.rollout(policy, Key(0, Stream.TEST, 0, k), H=task.H, shift=0.0, gather=True).steps
        best = max(best, steps / (time.perf_counter() - began))
    return best


def warn(task: "MujocoTask", zero: Play, noisy: Play) -> list[str]:
    """What will probably not learn, one sentence each."""
    found = []
    second = 1.0 / task.arrays.dt
    if zero.steps < min(second, task.H):
        found.append(
            f"With an action of zero it falls after {zero.steps * task.arrays.dt:.2f} s: start from a pose that "
            "stands, with PositionTargets around it."
        )
    for name, value in noisy.terms.items():
        rest = sum(abs(other) for one, other in noisy.terms.items() if one != name)
        if len(noisy.terms) > 1 and abs(value) > DWARFS * max(rest, 1e-12):
            found.append(f"{name} is {value:.3g} per second and all others {rest:.3g} together: nothing else counts.")
    for name, value in noisy.terms.items():
        if value == 0.0 and zero.terms[name] == 0.0:
            found.append(f"{name} is always zero: nothing is learned from it.")
    if noisy.limited > SATURATED:
        found.append(f"{noisy.limited:.0%} of the actions are at their limit under small random policies.")
    if noisy.forces > SATURATED:
        found.append(
            f"{noisy.forces:.0%} of the forces are at their limit under small random policies: a smaller scale."
        )
    return found
