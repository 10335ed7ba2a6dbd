"""Quadruped-v1 as a user would write it with Gymnasium, MuJoCo's bindings and NumPy, without our code.

`python -m benchmarks.quadruped_env` checks that observations, rewards and ends are those of ours.
"""

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

NAME = "Quadruped-v1"
MODEL = Path(__file__).parents[1] / "src" / "ars" / "tasks" / "robots" / "models" / "quadruped.xml"
FRAME_SKIP, STEPS = 5, 500  # 50 Hz, 10 s
SPEED, CLOCK = 0.8, 1.5  # m/s, Hz
NOISE = 0.02
LOWEST, HIGHEST, LEAST_UPRIGHT = 0.15, 0.6, np.cos(1.0)
CLOSE = 1e-9


class QuadrupedEnv(gymnasium.Env[FloatArray, FloatArray]):
    """Trunk and imu have the same axes, so that the trunk's orientation and velocity are in qpos and qvel."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(MODEL))
        self.data = mujoco.MjData(self.model)
        self.home = self.model.key("home").qpos[7:].copy()
        self.low, self.high = self.model.actuator_ctrlrange.T
        self.dt = FRAME_SKIP * self.model.opt.timestep
        self.rotation = np.empty(9)
        size = self.model.nu
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (size,), np.float64)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (9 + 2 * size,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[FloatArray, Any]:
        super().reset(seed=seed)
        mujoco.mj_resetDataKeyframe(self.model, self.data, self.model.key("home").id)
        moved = self.np_random.uniform(-1.0, 1.0, self.model.nv)
        mujoco.mj_integratePos(self.model, self.data.qpos, NOISE * moved, 1.0)
        self.data.qvel[:] += self.np_random.uniform(-NOISE, NOISE, self.model.nv)
        mujoco.mj_forward(self.model, self.data)
        self.steps, self.last_action, self.first_y = 0, np.zeros(self.model.nu), self.data.qpos[1]
        return self.observe(), {}

    def step(self, action: FloatArray) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        data = self.data
        action = np.clip(action, -1.0, 1.0)
        before = data.qpos[0]
        data.ctrl[:] = np.clip(self.home + 0.5 * action, self.low, self.high)
        mujoco.mj_step(self.model, data, nstep=FRAME_SKIP)
        self.steps += 1
        observation = self.observe()  # which computes the rotation
        reward = self.reward((data.qpos[0] - before) / self.dt, action)
        self.last_action = action
        fallen = not (LOWEST <= data.qpos[2] <= HIGHEST and self.rotation[8] >= LEAST_UPRIGHT)
        return observation, reward, fallen, False, {}

    def observe(self) -> FloatArray:
        qpos, qvel, R = self.data.qpos, self.data.qvel, self.rotation
        mujoco.mju_quat2Mat(R, qpos[3:7])
        angle = 2.0 * np.pi * CLOCK * self.steps * self.dt
        clock = np.sin(angle), np.cos(angle)
        return np.concatenate([qvel[3:6], -R[6:9], R[3:4], qpos[7:] - self.home, qvel[6:], clock])

    def reward(self, speed: float, action: FloatArray) -> float:
        R, force, change = self.rotation, self.data.actuator_force, action - self.last_action
        forward = 3.0 * (1.0 - abs(speed - SPEED) / SPEED)
        effort = 2e-4 * (force @ force) + 5e-3 * (change @ change)
        tilt, yaw, drift = R[2] * R[2] + R[5] * R[5], R[3] * R[3], abs(self.data.qpos[1] - self.first_y)
        return float(forward + 0.5 - effort - 0.5 * tilt - 0.6 * drift - 0.5 * yaw)


gymnasium.register(NAME, entry_point=f"{__name__}:QuadrupedEnv", max_episode_steps=STEPS)


def check(episodes: int = 20) -> tuple[int, float]:
    """(steps, largest difference of rewards and observations) of our episodes and this environment, from the same
    seeds and with the actions of our policies; an error if it is too large or an end differs."""
    from ars.noise import Key, Stream, environment_seed
    from ars.policy import LinearPolicy
    from ars.tasks.mujoco_loop import MujocoTask
    from ars.tasks.robots.quadruped import QUADRUPED

    task, env, random = MujocoTask(QUADRUPED, NAME), gymnasium.make(NAME), np.random.default_rng(0)
    steps, largest, unused = 0, 0.0, np.empty(task.n)
    for k in range(episodes):
        key = Key(0, Stream.TRAINING, 0, k, 1)
        scale = 0.3 * k / episodes  # of the actions: from standing still to falling at once
        policy = LinearPolicy(scale * random.standard_normal((task.p, task.n)), np.zeros(task.n), np.ones(task.n))
        task.reset(key)
        x, _ = env.reset(seed=environment_seed(key))
        for step in range(task.H):
            ours, _, _, stopped = task._run(policy, step, step + 1, 0.0, False, unused, unused)
            x, reward, fallen, over, _ = env.step(task.arrays.action)
            steps, largest = steps + 1, max(largest, abs(float(reward) - ours), float(np.abs(x - task._x).max()))
            if largest > CLOSE or fallen != stopped or over != (step + 1 == task.H):
                raise RuntimeError(f"Step {step} of episode {k} differs: {reward} and {ours}, {fallen} and {stopped}.")
            if stopped:
                break
    return steps, largest


if __name__ == "__main__":
    print("{} steps, largest difference {:.1e}".format(*check()))
