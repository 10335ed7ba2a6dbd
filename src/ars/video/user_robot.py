"""A user's robot, watched step by step: single steps of the loop give the same episode as one call."""

from types import SimpleNamespace

import numpy as np

from ars.noise import Key
from ars.policy import LinearPolicy
from ars.tasks import Rollout
from ars.tasks.locomotion import Locomotion
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.robot import Robot
from ars.video.episode import Scene, Snapshot, Watcher, smooth


class WatchedRobot(MujocoTask):
    """The compiled task, which calls a watcher after every step."""

    def __init__(self, robot: Locomotion | Robot, name: str, watch: Watcher, observe: str) -> None:
        super().__init__(robot, name, observe=observe)
        self.scene = Scene(name, SimpleNamespace(model=self._model, data=self._data), dt=self._arrays.dt)
        self._watch = watch

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
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
