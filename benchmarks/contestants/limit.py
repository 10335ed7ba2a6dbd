"""1: the limit of libmujoco. `mujoco.rollout` replays the controls of our episodes, open loop, one call per episode.

It computes no observations, actions or rewards. The model is as its file has it: those of the six with islands and
mid-phase collision on, as Gymnasium has them. The replay must end in the same state as our episode, which is checked.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import mujoco
import numpy as np
from mujoco.rollout import Rollout
from numpy.typing import NDArray

from ars.executors import Batch
from ars.noise import Key
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.find import find_robot
from benchmarks.workload import Work

FloatArray = NDArray[np.float64]
PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS


class Replay(NamedTuple):
    """What mujoco.rollout needs for one episode, and the positions in which it must end."""

    state: FloatArray  # (1, nstate)
    warmstart: FloatArray  # (1, nv)
    controls: FloatArray  # (1, steps · frame_skip, nu)
    steps: int
    last_qpos: FloatArray


class Limit:
    def __init__(self, work: Work) -> None:
        robot = find_robot(work.task)
        assert robot is not None
        task = MujocoTask(robot, work.task)
        if task.robot.scenarios is not None:
            raise RuntimeError(f"{work.task} has scenarios, whose worlds a replay does not know.")
        self._batches = [[record(task, batch, k, sign) for k, sign in batch.units()] for batch in work.batches]
        self._model = task.robot.load()  # without the flags that the task adds
        self._pool = ThreadPoolExecutor(work.threads)
        longest = max(replay.controls.shape[1] for batch in self._batches for replay in batch)
        self._players = [_Player(self._model, longest) for _ in range(work.threads)]
        for batch in self._batches:
            for replay in batch:
                self._players[0].play(replay)
                if not np.array_equal(self._players[0].data.qpos, replay.last_qpos):
                    raise RuntimeError(f"The replay of {work.task} differs from the episode that it replays.")

    def ready(self) -> None: ...

    def run(self) -> int:
        """One batch after the other, as in training; within a batch, threads take episodes one by one."""
        steps = 0
        for batch in self._batches:
            left = iter(batch)
            steps += sum(self._pool.map(lambda player, left=left: player.play_all(left), self._players))
        return steps

    def close(self) -> None:
        self._pool.shutdown()


class _Player:
    """What one thread owns. rollout() with nthread = 0 runs in the calling thread and releases the GIL."""

    def __init__(self, model: Any, longest: int) -> None:
        self.data = mujoco.MjData(model)
        self._models = [model]
        self._rollout = Rollout(nthread=0)
        self._states = np.empty((1, longest, mujoco.mj_stateSize(model, PHYSICS)))
        self._sensors = np.empty((1, longest, model.nsensordata))

    def play(self, replay: Replay) -> int:
        nstep = replay.controls.shape[1]
        self._rollout.rollout(
            self._models, [self.data], replay.state, replay.controls, skip_checks=True, nstep=nstep,
            initial_warmstart=replay.warmstart, state=self._states[:, :nstep], sensordata=self._sensors[:, :nstep],
        )  # fmt: skip
        return replay.steps

    def play_all(self, left: Iterator[Replay]) -> int:
        return sum(self.play(replay) for replay in left)


def record(task: MujocoTask, batch: Batch, k: int, sign: int) -> Replay:
    """Run an episode as training does, then again step by step to record its controls."""
    key, policy = Key(batch.seed, batch.stream, batch.j, k, sign), batch.candidate(k, sign)
    steps = task.rollout(policy, key, H=batch.H, shift=batch.shift, gather=False).steps
    model, data, frame_skip = task.model, task.data, task.arrays.frame_skip
    last_qpos = data.qpos.copy()

    task.reset(key)
    state = np.empty((1, mujoco.mj_stateSize(model, PHYSICS)))
    mujoco.mj_getState(model, data, state[0], PHYSICS)
    warmstart = data.qacc_warmstart.copy()[None]
    controls = np.array([data.ctrl.copy() for _ in task.steps(policy, H=batch.H)])
    assert np.array_equal(data.qpos, last_qpos), "the recording differs from the episode"
    return Replay(state, warmstart, np.repeat(controls, frame_skip, axis=0)[None], steps, last_qpos)
