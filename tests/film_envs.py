"""Environments that can or cannot draw themselves, named `film_envs:Name`."""

import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ars.tasks.locomotion import TASKS

walker, swimmer = TASKS["Walker2d-v5"], TASKS["Swimmer-v5"]  # as a user's own description would be


class Blind(gymnasium.Env):
    """Twelve steps, nothing to see."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))
    action_space = spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self.np_random.standard_normal(2), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.np_random.standard_normal(2), float(action[0]), False, self.t >= 12, {}


class Painted(Blind):
    """A white square that moves to the right, ten times a second."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def render(self) -> Any:
        picture = np.zeros((60, 90, 3), dtype=np.uint8)
        picture[20:30, 5 * self.t : 5 * self.t + 10] = 255
        return picture


class Unpainted(Painted):
    """Lacks what it needs to draw."""

    def render(self) -> Any:
        raise ImportError("pygame is not installed")


def stubborn() -> gymnasium.Env[Any, Any]:
    """Could draw, but cannot be asked to."""
    return Painted()


class Driven(Painted):
    """Notes the driver by which pygame would draw."""

    drivers: list[str | None] = []  # noqa: RUF012

    def render(self) -> Any:
        self.drivers.append(os.environ.get("SDL_VIDEODRIVER"))
        return super().render()
