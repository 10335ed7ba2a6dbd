"""A user's robot, watched step by step: single steps of the loop give the same episode as one call."""

import math
from types import SimpleNamespace

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
        declared = named_feet(name, self.model, self.robot.feet)
        simulation = SimpleNamespace(model=self.model, data=self.data)
        self.scene = Scene(
            name, simulation, dt=self.arrays.dt, feet=declared or find_feet(self.model, self.data),
            commanded=_commanded(self.robot),
        )  # fmt: skip
        self._watch = watch

    def rollout(self, policy: Policy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        self.reset(key)
        snapshot = Snapshot(0, 0.0, 0.0, None, self.scene.contacts())
        self._watch(self.scene, snapshot)
        finite, x = True, self.position()
        for step, (reward, finite) in enumerate(self.steps(policy, H=H, shift=shift), start=1):  # noqa: B007
            before, x = x, self.position()
            speed = smooth(snapshot.speed, (x - before) / self.scene.dt, self.scene.dt)
            snapshot = Snapshot(step, step * self.scene.dt, snapshot.reward + reward, speed, self.scene.contacts())
            self._watch(self.scene, snapshot)
        return Rollout(snapshot.reward, snapshot.step, None, finite)
