"""The state in which an episode begins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ars.errors import TaskError
from ars.files import one_line
from ars.tasks.robots.terms import Model, positive


@dataclass(frozen=True)
class Keyframe:
    """A keyframe of the model. Noise is uniform: of positions in ±qpos_noise (rad, m; the orientation of a free body
    too), of velocities in ±qvel_noise."""

    name: str
    qpos_noise: float = 0.0
    qvel_noise: float = 0.0

    def check(self, model: Model) -> None:
        model.find(self, "keyframe", self.name)
        for name in ("qpos_noise", "qvel_noise"):
            positive(self, **{name: getattr(self, name) or None})

    def begin(self, model: Any, data: Any, random: np.random.Generator) -> None:
        import mujoco

        mujoco.mj_resetDataKeyframe(model, data, model.key(self.name).id)
        moved = random.uniform(-1.0, 1.0, model.nv)
        mujoco.mj_integratePos(model, data.qpos, self.qpos_noise * moved, 1.0)
        data.qvel[:] += random.uniform(-self.qvel_noise, self.qvel_noise, model.nv)


@dataclass(frozen=True)
class Start:
    """A user's own: function(model, data, random) changes MjData after mj_resetData; it is not compiled, and `random`
    is the only source of random numbers that keeps runs reproducible."""

    function: Callable[[Any, Any, np.random.Generator], None]

    def check(self, model: Model) -> None:
        pass

    def begin(self, model: Any, data: Any, random: np.random.Generator) -> None:
        import mujoco

        mujoco.mj_resetData(model, data)
        try:
            self.function(model, data, random)
        except Exception as error:  # whatever it raises
            name = getattr(self.function, "__name__", "its function")
            raise TaskError(f"Start({name}) fails: {type(error).__name__}: {one_line(error)}") from error
