"""A user's subclass of Gymnasium's MujocoEnv, which remembers what it was asked to do."""

from typing import Any

import numpy as np
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.spaces import Box

largest = [0.0]


class Narrow(HopperEnv):
    """Its action space is ±0.1."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action_space = Box(-0.1, 0.1, (3,), np.float64)

    def step(self, action: Any) -> Any:
        largest[0] = max(largest[0], float(np.abs(action).max()))
        return super().step(action)  # type: ignore[no-untyped-call]
