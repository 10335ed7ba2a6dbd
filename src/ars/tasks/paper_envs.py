"""The twelve locomotion environments in plain Python: Gymnasium's `-v5`, and `-v1` as subclasses that override only
what differs in the paper's definition."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.humanoid_v5 import HumanoidEnv
from gymnasium.envs.mujoco.swimmer_v5 import SwimmerEnv
from gymnasium.envs.mujoco.walker2d_v5 import Walker2dEnv
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from ars.tasks import locomotion

FloatArray = NDArray[np.float64]


class _V1:
    """What all `-v1` share: the model of the task's description, and the bonus for the step that falls."""

    task: locomotion.Locomotion
    _healthy_reward: float

    def _initialize_simulation(self) -> tuple[Any, Any]:
        import mujoco

        model = locomotion.load_model(self.task)
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)  # type: ignore[attr-defined]
        model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)  # type: ignore[attr-defined]
        return model, mujoco.MjData(model)

    @property
    def healthy_reward(self) -> float:
        return self._healthy_reward


class SwimmerV1(_V1, SwimmerEnv):
    task = locomotion.TASKS["Swimmer-v1"]


class HopperV1(_V1, HopperEnv):
    task = locomotion.TASKS["Hopper-v1"]


class HalfCheetahV1(_V1, HalfCheetahEnv):
    task = locomotion.TASKS["HalfCheetah-v1"]


class Walker2dV1(_V1, Walker2dEnv):
    task = locomotion.TASKS["Walker2d-v1"]


class AntV1(_V1, AntEnv):
    """Progress is that of the torso's subtree; the contact forces of the world body are observed."""

    task = locomotion.TASKS["Ant-v1"]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = Box(-np.inf, np.inf, shape=(111,), dtype=np.float64)

    def step(self, action: Any) -> Any:
        x_before = self.data.subtree_com[1, 0]
        obs, _, terminated, truncated, info = super().step(action)  # type: ignore[no-untyped-call]
        x_velocity = (self.data.subtree_com[1, 0] - x_before) / self.dt
        reward, rewards = self._get_rew(x_velocity, action)
        return obs, reward, terminated, truncated, {**info, **rewards, "x_velocity": x_velocity}

    def _get_obs(self) -> FloatArray:
        return np.concatenate([self.data.qpos[2:], self.data.qvel, self.contact_forces.flat])


class HumanoidV1(_V1, HumanoidEnv):
    """The control cost is of the clamped controls; the world body and the root's actuator forces are observed."""

    task = locomotion.TASKS["Humanoid-v1"]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.observation_space = Box(-np.inf, np.inf, shape=(376,), dtype=np.float64)

    def control_cost(self, action: FloatArray) -> Any:
        low, high = self.model.actuator_ctrlrange.T
        return self._ctrl_cost_weight * np.sum(np.square(np.clip(self.data.ctrl, low, high)))

    def _get_obs(self) -> FloatArray:
        d = self.data
        parts = (d.qpos[2:], d.qvel, d.cinert.flat, d.cvel.flat, d.qfrc_actuator, d.cfrc_ext.flat)
        return np.concatenate(parts)


V1 = {env.task.name: env for env in (SwimmerV1, HopperV1, HalfCheetahV1, Walker2dV1, AntV1, HumanoidV1)}


def make(name: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """The environment of one of locomotion.TASKS, with its time limit."""
    if name not in V1:
        return gymnasium.make(name, disable_env_checker=True, **kwargs)
    env = V1[name](xml_file=locomotion.TASKS[name].xml, **kwargs)
    return TimeLimit(env, locomotion.TASKS[name].H)
