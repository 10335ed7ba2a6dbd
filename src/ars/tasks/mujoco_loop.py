"""A robot of MuJoCo as a task: one MjData and its views for one thread, and the loop of its terms.

Three layers, as in MuJoCo's own rollout module: the generated loop, which does not check its arguments
(robots/loop.py); MujocoTask; and the terms' own checks when they are bound to a model. Results of the paper's robots
have the same bits as those of tasks/gymnasium.py: sums run in the same order, and nothing is fused (no fastmath).
"""

import copy
import traceback
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, reduce
from typing import Any, cast

import mujoco
import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.files import one_line
from ars.moments import Moments
from ars.noise import Key, Stream, environment_seed, generator, scenario_key
from ars.policy import Actions, LinearPolicy
from ars.subset import ALL
from ars.tasks import LoopPolicy, Policy, Rollout, define
from ars.tasks.axis_names import robot_groups, written
from ars.tasks.locomotion import Locomotion, describe, divergence_warnings
from ars.tasks.robot_views import robot_view, terms_view
from ars.tasks.robots import loop
from ars.tasks.robots.paper import PaperRobot, paper_robot, position, progress_numbers
from ars.tasks.robots.robot import Robot, bind, describe_robot
from ars.tasks.robots.scenarios import Scenario, World, check_over, combined
from ars.tasks.robots.state import VIEWS, State, views
from ars.tasks.robots.terms import Model

FloatArray = NDArray[np.float64]
MEASURED = Key(0, Stream.TEST, 0, 0)  # the episode whose reward terms are in the records: the one that films show
_Views: Any = namedtuple("_Views", [*VIEWS, "gravity"])  # type: ignore[misc]


class MujocoTask:
    """A robot for one thread, with its own MjData and a shared model; compiled=False runs its loop in plain Python.
    What looks at an episode as it goes on reads its public parts, `model`, `data`, `arrays` and so on, and never writes
    to them."""

    releases_gil = True

    def __init__(
        self,
        task: Locomotion | Robot,
        name: str,
        *,
        observe: str = ALL,
        mirror: bool = False,
        over: str = "mean",
        compiled: bool = True,
        changes: bool = False,
    ) -> None:
        """`changes`: whether scenarios will change the model, which then is not shared."""
        self.name, self._over = name, over
        self.robot = robot = _as_robot(task)
        check_over(over, robot.scenarios, name)
        changes = changes or robot.scenarios is not None
        self.model = copy.copy(_shared_model(robot)) if changes else _shared_model(robot)
        self.data = data = mujoco.MjData(self.model)
        self.parts = bind(robot, self.model, data)
        self._sizes = [
            (type(term).__name__, len(bound.names))
            for term, bound in zip(robot.observe, self.parts.observe, strict=True)
        ]
        self.named = Model(self.model, data, robot.frame_skip(self.model) * float(self.model.opt.timestep))
        self._world = World(self.named) if changes else None
        if robot.scenarios is not None:
            robot.scenarios.check(self.named, dict(self._sizes))
        self._view = self._make_view(observe, mirror=mirror)
        self._views = _Views(**views(self.model, data))
        self.arrays = self._make_arrays()
        self._compiled = compiled
        self._loop = loop.make_loop(self.parts, compiled=compiled)
        self._loops = {loop.act_linear: self._loop}  # by the function of the policy
        self.n, self.p = len(self.arrays.index), int(self.model.nu)
        self.H, self.survival_bonus = robot.H, float(robot.survival_bonus)
        self.time_limit: int | None = robot.H
        self._x, self._x_first = np.empty(self.n), np.empty(self.n)
        self.stopped = False  # whether a stop ended the last episode
        if compiled and not all(map(loop.is_ours, self.parts.all)):
            _try_own_terms(robot, name)

    def _make_view(self, observe: str, *, mirror: bool) -> Any:
        robot = self.robot
        if isinstance(robot, PaperRobot):
            return robot_view(robot.task, self.name, self.model, self.data, observe=observe, mirror=mirror)
        return terms_view(robot, self.name, self.parts, observe=observe, mirror=mirror)

    def _make_arrays(self) -> loop.Arrays:
        robot, model, parts = self.robot, self.model, self.parts
        k, m, spans = loop.spans(parts)
        whole, nu = int(spans[-1, 2]), int(model.nu)
        indices = range(whole) if self._view.indices is None else self._view.indices
        skip, fresh = robot.frame_skip(model), not isinstance(robot, PaperRobot)
        return loop.Arrays(
            k=k, m=m, spans=spans, weights=np.array([float(term.weight) for term in robot.reward]),
            clip=loop.clips(parts.observe), index=np.array(indices, dtype=np.int64), whole=np.empty(whole),
            action=np.zeros(nu), last_action=np.zeros(nu), ctrl=np.zeros(nu), queue=np.zeros((1, nu)),
            noise=np.zeros((0, 0)), bias=np.zeros(whole), push=np.zeros((0, 4)),
            pushed=self.data.xfrc_applied[self.named.root], warnings=self.data.warning.number,
            divergence=np.array(divergence_warnings(), dtype=np.int64), parts=np.zeros(len(parts.reward)),
            rewards=np.zeros(0),
            frame_skip=skip, dt=float(model.opt.timestep * skip), fresh=fresh,
            split=fresh and model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4,  # which mj_step2 does not have
            contact_forces=isinstance(robot, PaperRobot) and robot.task.needs_contact_forces,
        )  # fmt: skip

    def definition(self) -> dict[str, Any]:
        actions, robot = Actions().to_dict(), self.robot
        observation = {"shape": [len(self.arrays.whole)]}
        if isinstance(robot, PaperRobot):
            described = {"locomotion": describe(robot.task)}
            if ":" in self.name:  # the user's own; definitions of the six stay as they are in older runs
                sizes = [len(bound.names) for bound in self.parts.observe]
                described["names"] = written(robot_groups(robot.task, self.model, sizes), self.model)
        else:
            described = {"robot": describe_robot(robot, self.model, self.parts)}
        return define(self, observation=observation, actions=actions, **described, **self._view.definition())

    def reset(self, key: Key) -> None:
        """The initial state of an episode: of the paper's robots, what Gymnasium draws from the same seed; of a robot
        with scenarios, the first of them."""
        if self.robot.scenarios is not None:
            self._begin_scenario(key, 0)
            return
        self.begin(np.random.Generator(np.random.PCG64(np.random.SeedSequence(environment_seed(key)))))

    def begin(self, random: np.random.Generator) -> None:
        self.robot.start.begin(self.model, self.data, random)
        mujoco.mj_forward(self.model, self.data)

    def _begin_scenario(self, key: Key, i: int) -> None:
        random = generator(scenario_key(key, i))
        assert self.robot.scenarios is not None
        self.enter(self.robot.scenarios.draw(random, self.named, self._sizes, self.H))
        self.begin(random)

    def enter(self, scenario: Scenario) -> None:
        """Change the world for the episodes that follow; the task must have been made with `changes`."""
        assert self._world is not None
        self._world.apply(scenario)
        whole, dt = len(self.arrays.whole), self.arrays.dt
        pushes = [(round(start / dt), max(1, round(length / dt)), x, y) for start, length, x, y in scenario.pushes]
        self.arrays = self.arrays._replace(
            queue=np.zeros((scenario.delay + 1, self.p)), noise=scenario.noise,
            bias=np.zeros(whole) if scenario.bias is None else scenario.bias,
            push=np.array(pushes, dtype=np.float64).reshape(-1, 4),
        )  # fmt: skip

    def rollout(self, policy: Policy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        scenarios = self.robot.scenarios
        if scenarios is None:
            self.reset(key)
            return self.episode(policy, H=H, shift=shift, gather=gather)
        rollouts = []
        for i in range(scenarios.each if key.stream == Stream.TRAINING else 1):
            self._begin_scenario(key, i)
            rollouts.append(self.episode(policy, H=H, shift=shift, gather=gather))
        moments = reduce(Moments.merge, (one.moments for one in rollouts if one.moments)) if gather else None
        reward, steps = combined([one.reward for one in rollouts], self._over), sum(one.steps for one in rollouts)
        return Rollout(reward, steps, moments, all(one.finite for one in rollouts))

    def episode(self, policy: Policy, *, H: int, shift: float, gather: bool) -> Rollout:
        """One episode from the current state and world."""
        s1, s2 = np.zeros(self.n), np.zeros(self.n)
        reward, steps, finite, self.stopped = self._run(policy, 0, min(H, self.H), shift, gather, s1, s2)
        moments = Moments.from_sums(steps, self._x_first, s1, s2) if gather else None
        return Rollout(reward, steps, moments, finite)

    def steps(self, policy: Policy, *, H: int, shift: float = 0.0) -> Iterator[tuple[float, bool]]:
        """The same episode step by step, from the current state and world: (reward, finite) after each step, when
        MjData is the caller's to look at."""
        nothing = np.zeros(self.n)
        self.stopped = False
        for step in range(min(H, self.H)):
            reward, done, finite, self.stopped = self._run(policy, step, step + 1, shift, False, nothing, nothing)
            if done:
                yield reward, finite
            if not done or not finite or self.stopped:
                return

    def trajectory(self, policy: LoopPolicy, key: Key, *, H: int) -> tuple[Rollout, FloatArray]:
        """One episode, and the reward of each of its steps; a policy records states and actions itself."""
        self.reset(key)
        usual = self.arrays
        self.arrays = usual._replace(rewards=np.zeros(min(H, self.H)))
        try:
            rollout = self.episode(policy, H=H, shift=0.0, gather=False)
            return rollout, self.arrays.rewards[: rollout.steps]
        finally:
            self.arrays = usual

    def _run(
        self, policy: Policy, first: int, H: int, shift: float, gather: bool, s1: FloatArray, s2: FloatArray
    ) -> tuple[float, int, bool, bool]:
        """Steps first … H − 1 of an episode: (reward, steps, finite, stopped); always with arguments of the same types,
        so that the loop is compiled once."""
        function, parameters = _in_loop(policy)
        if function not in self._loops:
            self._loops[function] = loop.make_loop(self.parts, function, compiled=self._compiled)
        return self._loops[function].episode(
            self.model._address, self.data._address, self._views, self.arrays, parameters, int(first), int(H),
            float(shift), bool(gather), self._x, self._x_first, s1, s2,
        )  # fmt: skip

    def reward_terms(self) -> dict[str, float]:
        """The sum of each reward term over the last episode, by its name; a second of the same kind is numbered."""
        found: dict[str, float] = {}
        for term, value in zip(self.robot.reward, self.arrays.parts.tolist(), strict=True):
            own = getattr(term, "function", None)
            name = f"reward_{getattr(own, '__name__', type(term).__name__)}"
            same = sum(other.rstrip("0123456789") == name for other in found)
            found[f"{name}{same + 1}" if same else name] = value
        return found

    @property
    def measure_episode(self) -> Callable[[Policy], dict[str, float]] | None:
        """What an episode of the policy earns by each term; the paper's robots have one term."""
        return None if isinstance(self.robot, PaperRobot) else self._measure_episode

    def _measure_episode(self, policy: Policy) -> dict[str, float]:
        rollout = self.rollout(policy, MEASURED, H=self.H, shift=0.0, gather=False)
        return {**self.reward_terms(), "episode_steps": float(rollout.steps)}

    def position(self) -> float:
        """The x that the robot's progress is measured by, now."""
        if isinstance(self.robot, PaperRobot):
            state = State(**self._views._asdict(), action=self.arrays.action, last_action=self.arrays.last_action,
                          t=0.0, step=0, dt=self.arrays.dt)  # fmt: skip
            return position(state, np.array(progress_numbers(self.robot.task, self.model)))
        return float(self.data.xpos[self.named.root, 0])

    def close(self) -> None:
        """Nothing to release: MjData frees itself."""


def _in_loop(policy: Policy) -> tuple[Callable[..., None], tuple[FloatArray, ...]]:
    """The function of a policy for the loop, and its parameters."""
    if isinstance(policy, LinearPolicy):
        return loop.act_linear, (np.ascontiguousarray(policy.W.T), np.ascontiguousarray(policy.c))
    other = cast(LoopPolicy, policy)
    return other.function, other.parameters


@lru_cache(maxsize=16)  # a program may make robots without end, and models with meshes are large
def _shared_model(robot: Robot) -> Any:
    """One MjModel for all threads. In a model with one tree all constraints form one island, so island discovery, which
    costs 5 to 10%, is disabled without changing the bits. Mid-phase collision stays on: without it the order of
    contacts, and so the bits, can change if a body has several geoms (decision 0005)."""
    model = robot.load()
    if model.ntree == 1:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
    return model


@lru_cache(maxsize=16)
def _try_own_terms(robot: Robot, name: str) -> None:
    """Two steps of a user's terms in plain Python, where an index beyond an array is an error; compiled code would read
    what lies there. Ours are within their arrays when they are bound."""
    task = MujocoTask(robot, name, compiled=False)
    task.reset(MEASURED)
    zero = LinearPolicy(np.zeros((task.p, task.n)), np.zeros(task.n), np.ones(task.n))
    try:
        task.episode(zero, H=2, shift=0.0, gather=False)
    except Exception as error:  # whatever they raise
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{frames[-1].name} (line {frames[-1].lineno})"
        raise TaskError(f"{robot.name}: its term {where} fails: {type(error).__name__}: {one_line(error)}") from error


@cache
def _paper_robot(task: Locomotion) -> PaperRobot:
    return paper_robot(task)


def _as_robot(task: Locomotion | Robot) -> Robot:
    return _paper_robot(task) if isinstance(task, Locomotion) else task
