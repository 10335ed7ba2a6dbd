"""A robot of MuJoCo as a task: one MjData and its views for one thread, and the loop of its terms.

Three layers, as in MuJoCo's own rollout module: the generated loop, which does not check its arguments
(robots/loop.py); MujocoTask; and the terms' own checks when they are bound to a model. Results of the paper's robots
have the same bits as those of tasks/gymnasium.py: sums run in the same order, and nothing is fused (no fastmath).
"""

from collections import namedtuple
from functools import cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from ars.moments import Moments
from ars.noise import Key, environment_seed
from ars.policy import Actions, LinearPolicy
from ars.subset import ALL
from ars.tasks import Rollout, define
from ars.tasks.axis_names import robot_groups, written
from ars.tasks.locomotion import PROGRESS, Locomotion, describe, divergence_warnings
from ars.tasks.robot_views import robot_view, terms_view
from ars.tasks.robots import loop
from ars.tasks.robots.paper import PaperRobot, paper_robot, position
from ars.tasks.robots.robot import Robot, bind, describe_robot
from ars.tasks.robots.state import VIEWS, State, views
from ars.tasks.robots.terms import Model

FloatArray = NDArray[np.float64]
_Views = namedtuple("_Views", (*VIEWS, "gravity"))


class MujocoTask:
    """A robot for one thread, with its own MjData and a shared model; `compiled=False` runs its loop in plain Python."""

    releases_gil = True

    def __init__(
        self, task: Locomotion | Robot, name: str, *, observe: str = ALL, mirror: bool = False, compiled: bool = True
    ) -> None:
        self.name = name
        self._robot = robot = _as_robot(task)
        self._model = _shared_model(robot)
        self._data = data = mujoco.MjData(self._model)
        self._parts = bind(robot, self._model, data)
        self._view = self._make_view(observe, mirror=mirror)
        self._views = _Views(**views(self._model, data))
        self._arrays = self._make_arrays()
        self._loop = loop.make_loop(self._parts, compiled=compiled)
        self.n, self.p = len(self._arrays.index), int(self._model.nu)
        self.H, self.survival_bonus = robot.H, float(robot.survival_bonus)
        self.time_limit: int | None = robot.H
        self._x, self._x_first = np.empty(self.n), np.empty(self.n)

    def _make_view(self, observe: str, *, mirror: bool) -> Any:
        robot = self._robot
        if isinstance(robot, PaperRobot):
            return robot_view(robot.task, self.name, self._model, self._data, observe=observe, mirror=mirror)
        return terms_view(robot, self.name, self._parts, observe=observe, mirror=mirror)

    def _make_arrays(self) -> loop.Arrays:
        robot, model, parts = self._robot, self._model, self._parts
        k, m, spans = loop.spans(parts)
        whole, nu = int(spans[-1, 2]), int(model.nu)
        indices = range(whole) if self._view.indices is None else self._view.indices
        skip = robot.frame_skip(model)
        paper = isinstance(robot, PaperRobot)
        return loop.Arrays(
            k=k, m=m, spans=spans, weights=np.array([float(term.weight) for term in robot.reward]),
            clip=loop.clips(parts.observe), index=np.array(indices, dtype=np.int64), whole=np.empty(whole),
            action=np.zeros(nu), last_action=np.zeros(nu), ctrl=np.zeros(nu), queue=np.zeros((1, nu)),
            noise=np.zeros((0, 0)), bias=np.zeros(whole), push=np.zeros((0, 4)),
            pushed=self._data.xfrc_applied[min(1, model.nbody - 1)], warnings=self._data.warning.number,
            divergence=np.array(divergence_warnings(), dtype=np.int64), parts=np.zeros(len(parts.reward)),
            frame_skip=skip, dt=float(model.opt.timestep * skip), fresh=not paper,
            contact_forces=robot.task.needs_contact_forces if paper else False,
        )  # fmt: skip

    def definition(self) -> dict[str, Any]:
        actions, robot = Actions().to_dict(), self._robot
        observation = {"shape": [len(self._arrays.whole)]}
        if isinstance(robot, PaperRobot):
            described = {"locomotion": describe(robot.task)}
            if ":" in self.name:  # the user's own; definitions of the six stay as they are in older runs
                sizes = [len(bound.names) for bound in self._parts.observe]
                described["names"] = written(robot_groups(robot.task, self._model, sizes), self._model)
        else:
            described = {"robot": describe_robot(robot, self._model, self._parts)}
        return define(self, observation=observation, actions=actions, **described, **self._view.definition())

    def reset(self, key: Key) -> None:
        """The initial state of an episode: of the paper's robots, what Gymnasium draws from the same seed."""
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(environment_seed(key))))
        self._robot.start.begin(self._model, self._data, random)
        mujoco.mj_forward(self._model, self._data)

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        self.reset(key)
        s1, s2 = np.zeros(self.n), np.zeros(self.n)
        reward, steps, finite, _ = self._run(policy, 0, min(H, self.H), shift, gather, s1, s2)
        moments = Moments.from_sums(steps, self._x_first, s1, s2) if gather else None
        return Rollout(reward, steps, moments, finite)

    def _run(
        self, policy: LinearPolicy, first: int, H: int, shift: float, gather: bool, s1: FloatArray, s2: FloatArray
    ) -> tuple[float, int, bool, bool]:
        """Steps first … H − 1 of an episode: (reward, steps, finite, stopped); always with arguments of the same types,
        so that the loop is compiled once."""
        return self._loop.episode(
            self._model._address, self._data._address, self._views, self._arrays,
            np.ascontiguousarray(policy.W.T), np.ascontiguousarray(policy.c), int(first), int(H), float(shift),
            bool(gather), self._x, self._x_first, s1, s2,
        )  # fmt: skip

    def position(self) -> float:
        """The x that the robot's progress is measured by, now."""
        if isinstance(self._robot, PaperRobot):
            state = State(**self._views._asdict(), action=self._arrays.action, last_action=self._arrays.last_action,
                          t=0.0, step=0, dt=self._arrays.dt)  # fmt: skip
            kind = PROGRESS.index(self._robot.task.progress)
            mass = self._model.body_mass
            return position(state, np.array([float(kind), float(mass.sum()), *mass]))
        return float(self._data.xpos[Model(self._model, self._data, 0.0).root, 0])

    def close(self) -> None:
        """Nothing to release: MjData frees itself."""


@cache
def _shared_model(robot: Robot) -> Any:
    """One MjModel for all threads. In a model with one tree all constraints form one island, so island discovery, which
    costs 5 to 10%, is disabled without changing the bits. Mid-phase collision stays on: without it the order of
    contacts, and so the bits, can change if a body has several geoms (decision 0005)."""
    model = robot.load()
    if model.ntree == 1:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
    return model


@cache
def _paper_robot(task: Locomotion) -> PaperRobot:
    return paper_robot(task)


def _as_robot(task: Locomotion | Robot) -> Robot:
    return _paper_robot(task) if isinstance(task, Locomotion) else task
