"""What a policy stands: one episode in each world of a fixed grid, friction × mass, push × direction, delay × slope.

The grid is the same for every policy of a robot, so that two policies can be compared by what they survive. No real
robot has the model's perfect sensors, and neither have its worlds: actions arrive one control step late, and
observations have noise of a tenth of their standard deviation in training.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ars.errors import SettingError, TaskError
from ars.executors.threads import TaskThreads
from ars.noise import Key, Stream, environment_seed, generator
from ars.policy import LinearPolicy
from ars.settings import LARGEST_SEED, whole_number
from ars.tasks.robots.find import AnyRobot, find_robot
from ars.tasks.robots.robot import Robot
from ars.tasks.robots.scenarios import Scenario

if TYPE_CHECKING:
    from ars.tasks.mujoco_loop import MujocoTask

PUSH_SECONDS = 0.2
LATE = 1  # control steps from an action to the actuators, where the delay does not vary
NOISE = 0.1  # uniform, ± this part of the policy's sigma
FRICTION = tuple(round(0.2 + 0.1 * i, 2) for i in range(15))  # factor
MASS = tuple(round(-0.12 + 0.04 * i, 2) for i in range(13))  # of the robot's whole mass, more on its first body
PUSH = tuple(round(0.1 * i, 1) for i in range(1, 13))  # of the robot's weight, for PUSH_SECONDS
DIRECTION = tuple(range(0, 360, 23))[:16]  # degrees; 0 from behind
DELAY = tuple(range(7))  # control steps
SLOPE = tuple(range(-16, 17, 2))  # degrees; uphill is positive


@dataclass(frozen=True)
class Map:
    """Two quantities that vary, with their values as shown; `world` is the scenario of a pair."""

    title: str
    x: str
    xs: tuple[float, ...]
    y: str
    ys: tuple[float, ...]
    world: Callable[[float, float], Scenario]

    @property
    def size(self) -> int:
        return len(self.xs) * len(self.ys)


def maps(mass: float, first_body: float, gravity: float, seconds: float) -> list[Map]:
    """The grid for a robot of this mass and weight, whose episodes last so many seconds; a push comes after a third."""
    lightest = -0.9 * first_body

    def push(share: float, degrees: float) -> Scenario:
        force, angle = share * mass * gravity, math.radians(degrees)
        x, y = force * math.cos(angle), force * math.sin(angle)
        return Scenario(delay=LATE, pushes=((seconds / 3, PUSH_SECONDS, x, y),))

    return [
        Map("Friction and mass", "friction, factor", FRICTION, "added mass, kg",
            tuple(round(max(share * mass, lightest), 2) for share in MASS),
            lambda friction, kg: Scenario(friction=friction, mass=kg, delay=LATE)),
        Map(f"A push of {PUSH_SECONDS:g} s", "force, part of the weight", PUSH, "direction, °", DIRECTION, push),
        Map("Delay and slope", "slope uphill, °", SLOPE, "delay, control steps", DELAY,
            lambda slope, delay: Scenario(slope=math.radians(slope), delay=int(delay))),
    ]  # fmt: skip


def measure_robustness(
    policy: LinearPolicy,
    task: str | AnyRobot,
    *,
    seed: int = 0,
    workers: int,
    finished: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """The result as JSON: for each map, survival (1, or the share of the episode) and mean speed along x."""
    from ars.tasks.mujoco_loop import MujocoTask

    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    robot = find_robot(task) if isinstance(task, str) else task
    name = task if isinstance(task, str) else task.name
    if robot is None:
        raise TaskError(f"{name} is not a robot of MuJoCo: ars can change friction, mass and delay only of those.")
    robot = without_scenarios(robot)
    threads = TaskThreads(lambda: MujocoTask(robot, name, observe=policy.observe, changes=True), workers)
    with closing(threads):
        grid = threads.submit(_grid, policy, name).result()
        worlds = [each.world(x, y) for each in grid for y in each.ys for x in each.xs]
        futures = [threads.submit(_episode, policy, world, seed, k) for k, world in enumerate(worlds)]
        outcomes = []
        for future in futures:
            outcomes.append(future.result())
            finished(len(outcomes) / len(worlds))
    left = iter(outcomes)
    results = [_map_result(each, list(islice(left, each.size))) for each in grid]
    survived = sum(share == 1.0 for part in results for row in part["survived"] for share in row)
    return {"format": 1, "task": name, "seed": seed, "conditions": len(worlds), "survived": survived, "maps": results}


def _grid(task: "MujocoTask", policy: LinearPolicy, name: str) -> list[Map]:
    if (policy.p, policy.n) != (task.p, task.n):
        raise SettingError(f"This policy is {policy.p} × {policy.n} and {name} needs {task.p} × {task.n}.")
    model, root = task.model, task.named.root
    gravity = float(np.linalg.norm(model.opt.gravity)) or 9.81  # Swimmer floats
    return maps(float(model.body_mass.sum()), float(model.body_mass[root]), gravity, task.H * task.arrays.dt)


def _noise(policy: LinearPolicy, task: "MujocoTask", seed: int, k: int) -> Any:
    """(steps, whole observation) for the k-th world. Entries that never varied have none."""
    sigma = np.zeros(len(task.arrays.whole))
    sigma[task.arrays.index] = np.where(np.isfinite(policy.sigma), policy.sigma, 0.0)
    random = generator(Key(seed, Stream.SCENARIO, 0, k))
    return NOISE * sigma * random.uniform(-1.0, 1.0, (task.H + 1, len(sigma)))


def without_scenarios(robot: AnyRobot) -> AnyRobot:
    return replace(robot, scenarios=None) if isinstance(robot, Robot) else robot


def _episode(task: "MujocoTask", policy: LinearPolicy, world: Scenario, seed: int, k: int) -> tuple[float, float]:
    """The k-th world: (share of the episode survived, mean speed along x)."""
    task.enter(replace(world, noise=_noise(policy, task, seed, k)))
    start = np.random.SeedSequence(environment_seed(Key(seed, Stream.TEST, 0, 0)))
    task.begin(np.random.Generator(np.random.PCG64(start)))
    x = task.position()
    rollout = task.episode(policy, H=task.H, shift=0.0, gather=False)
    seconds = rollout.steps * task.arrays.dt
    if not rollout.finite or not rollout.steps:
        return 0.0, 0.0
    share = min(rollout.steps / task.H, 0.999) if task.stopped else 1.0  # a fall in the last step is one
    return share, (task.position() - x) / seconds


def _map_result(each: Map, outcomes: list[tuple[float, float]]) -> dict[str, Any]:
    shape = (len(each.ys), len(each.xs), 2)
    table = np.array(outcomes).reshape(shape)
    return {
        "title": each.title, "x": each.x, "xs": list(each.xs), "y": each.y, "ys": list(each.ys),
        "survived": np.round(table[..., 0], 4).tolist(), "speed": np.round(table[..., 1], 4).tolist(),
    }  # fmt: skip


def summary(result: dict[str, Any]) -> Iterator[str]:
    """One line for all, and one for each map."""
    yield f"It survives {result['survived']} of {result['conditions']} conditions."
    for part in result["maps"]:
        cells = [share for row in part["survived"] for share in row]
        speeds = [v for v, share in zip(chain(*part["speed"]), cells, strict=True) if share == 1.0]
        mean = f", at {sum(speeds) / len(speeds):.2f} m/s on average" if speeds else ""
        yield f"  {part['title']}: {sum(share == 1.0 for share in cells)} of {len(cells)}{mean}"
