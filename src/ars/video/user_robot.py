"""A robot of the user's own (a Locomotion, by module:attribute), watched step by step over the compiled loop.

One step of the loop after the other is the same episode as all of them at once: it keeps nothing but MjData.
"""

from types import SimpleNamespace

import numpy as np

from ars.noise import Key
from ars.policy import LinearPolicy
from ars.tasks import Rollout
from ars.tasks.locomotion import Locomotion
from ars.tasks.mujoco_loop import MujocoTask, _episode, _is_healthy, _where
from ars.video.episode import Moment, Scene, Watcher, smooth


class WatchedRobot(MujocoTask):
    """The compiled task, shown to a watcher after every step."""

    def __init__(self, robot: Locomotion, name: str, watch: Watcher) -> None:
        super().__init__(robot, name)
        self.scene = Scene(name, SimpleNamespace(model=self._model, data=self._data), dt=self._rules.dt)
        self._watch = watch

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        self.reset(key)
        moment = Moment(0, 0.0, 0.0, None, self.scene.contacts())
        self._watch(self.scene, moment)
        healthy, finite = True, True
        while healthy and finite and moment.step < min(H, self.H):
            place = _where(self._views.place, self._rules)
            reward, done, finite = self._step(policy, shift)
            if not done:
                break
            step = moment.step + 1
            speed = smooth(
                moment.speed, (_where(self._views.place, self._rules) - place) / self.scene.dt, self.scene.dt
            )
            moment = Moment(step, step * self.scene.dt, moment.reward + reward, speed, self.scene.contacts())
            self._watch(self.scene, moment)
            healthy = _is_healthy(self._views.qpos, self._views.qvel, self._rules)
        return Rollout(moment.reward, moment.step, None, finite)

    def _step(self, policy: LinearPolicy, shift: float) -> tuple[float, int, bool]:
        return _episode(
            self._model._address, self._data._address, self._views, self._layout, self._rules,
            np.ascontiguousarray(policy.W.T), policy.c, -self._contact_high, self._contact_high,
            1, shift, False, self._x, self._x_first, np.zeros(self.n), np.zeros(self.n),
        )  # fmt: skip
