"""A user's robot, watched step by step: single steps of the loop give the same episode as one call."""

import math
from types import SimpleNamespace

import numpy as np

from ars.noise import Key, Stream
from ars.tasks import Policy, Rollout
from ars.tasks.locomotion import Locomotion
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.rewards import Forward
from ars.tasks.robots.robot import Robot
from ars.video.episode import Scene, Snapshot, Watcher, smooth
from ars.video.framing import find_feet, named_feet


def _commanded(robot: Robot) -> float | None:
    """The speed along x that its reward asks for, in m/s."""
    targets = [float(term.target) for term in robot.reward if isinstance(term, Forward) and term.target is not None]
    return targets[0] if targets and math.isfinite(targets[0]) else None


class WatchedRobot(MujocoTask):
    """The compiled task, which calls a watcher after every step."""

    def __init__(self, robot: Locomotion | Robot, name: str, watch: Watcher, observe: str) -> None:
        super().__init__(robot, name, observe=observe)
        self.reset(Key(0, Stream.TEST, 0, 0))  # feet that are not declared are those near the ground at the start
        declared = named_feet(name, self._model, self._robot.feet)
        simulation = SimpleNamespace(model=self._model, data=self._data)
        self.scene = Scene(
            name, simulation, dt=self._arrays.dt, feet=declared or find_feet(self._model, self._data),
            commanded=_commanded(self._robot),
        )  # fmt: skip
        self._watch = watch

    def rollout(self, policy: Policy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        self.reset(key)
        snapshot = Snapshot(0, 0.0, 0.0, None, self.scene.contacts())
        self._watch(self.scene, snapshot)
        stopped, finite = False, True
        while not stopped and finite and snapshot.step < min(H, self.H):
            x, step = self.position(), snapshot.step
            reward, done, finite, stopped = self._run(
                policy, step, step + 1, shift, False, np.zeros(self.n), np.zeros(self.n)
            )
            if not done:
                break
            speed = smooth(snapshot.speed, (self.position() - x) / self.scene.dt, self.scene.dt)
            snapshot = Snapshot(
                step + 1, (step + 1) * self.scene.dt, snapshot.reward + reward, speed, self.scene.contacts()
            )
            self._watch(self.scene, snapshot)
        return Rollout(snapshot.reward, snapshot.step, None, finite)
