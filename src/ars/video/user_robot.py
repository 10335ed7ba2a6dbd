"""A user's robot (a Locomotion from module:attribute), watched step by step in the compiled loop.

Single steps of the loop give the same episode as one call, because its only state is MjData.
"""

from types import SimpleNamespace

import numpy as np

from ars.noise import Key
from ars.policy import LinearPolicy
from ars.tasks import Rollout
from ars.tasks.locomotion import Locomotion
from ars.tasks.mujoco_loop import MujocoTask, _forward_position, _is_healthy
from ars.video.episode import Scene, Snapshot, Watcher, smooth


class WatchedRobot(MujocoTask):
    """The compiled task, which calls a watcher after every step."""

    def __init__(self, robot: Locomotion, name: str, watch: Watcher, observe: str) -> None:
        super().__init__(robot, name, observe=observe)
        self.scene = Scene(name, SimpleNamespace(model=self._model, data=self._data), dt=self._rules.dt)
        self._watch = watch

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        self.reset(key)
        snapshot = Snapshot(0, 0.0, 0.0, None, self.scene.contacts())
        self._watch(self.scene, snapshot)
        healthy, finite = True, True
        while healthy and finite and snapshot.step < min(H, self.H):
            position = _forward_position(self._views.position, self._rules)
            reward, done, finite = self._run(policy, 1, shift, False, np.zeros(self.n), np.zeros(self.n))
            if not done:
                break
            step = snapshot.step + 1
            velocity = (_forward_position(self._views.position, self._rules) - position) / self.scene.dt
            speed = smooth(snapshot.speed, velocity, self.scene.dt)
            snapshot = Snapshot(step, step * self.scene.dt, snapshot.reward + reward, speed, self.scene.contacts())
            self._watch(self.scene, snapshot)
            healthy = _is_healthy(self._views.qpos, self._views.qvel, self._rules)
        return Rollout(snapshot.reward, snapshot.step, None, finite)
