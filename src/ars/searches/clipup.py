"""ARS's gradient, followed with a clipped, normalised momentum.

N. E. Toklu, P. Liskowski, R. K. Srivastava, "ClipUp: a simple and powerful optimizer for distribution-based policy
evolution" (2020): v ← m v + a g/‖g‖; v ← v min(1, v_max/‖v‖); M ← M + v. g is the sum of Algorithm 2, line 7. As in the
publication's rule of thumb v_max = speed · nu · sqrt(np) and a = v_max / 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ars.errors import SettingError
from ars.settings import check_settings, setting

if TYPE_CHECKING:
    from ars.searches import FloatArray, Params, Telemetry


@dataclass(frozen=True, kw_only=True)
class ClipUp:
    """Only the direction of the gradient counts, so that no step size has to match the rewards."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)

    nu: float = setting(0.03, help="Standard deviation of the exploration noise.", above=0, shrink=True)
    N: int = setting(16, help="Directions sampled per iteration.", least=1, most=10**6)
    b: int = setting(None, help="Top-performing directions used; all N if not given.", least=1, most=10**6)
    speed: float = setting(1.0 / 15.0, help="Largest step, as a fraction of nu sqrt(np).", above=0, shrink=True)
    momentum: float = setting(0.9, help="Share of the last step that remains; below 1.", above=-1e-300)

    def __post_init__(self) -> None:
        check_settings(self)
        if getattr(self, "b") is None:  # noqa: B009 (an int from here on)
            object.__setattr__(self, "b", self.N)
        if self.b > self.N:
            raise SettingError(f"b = {self.b} is larger than N = {self.N}: choose b from 1 to {self.N}.")
        if self.momentum >= 1.0:
            raise SettingError(f"momentum = {self.momentum:g} must be below 1.")

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        return {"M": np.zeros(shape), "velocity": np.zeros(shape)}

    def size(self, params: "Params") -> int:
        return self.N

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        return params["M"] + (sign * self.nu) * delta

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        from ars.algorithm import norm, top_directions, weighted_sum

        r_plus, r_minus = rewards.T
        g = weighted_sum(deltas, r_plus, r_minus, top_directions(r_plus, r_minus, self.b))
        length, v_max = norm(g), self.speed * self.nu * math.sqrt(g.size)
        velocity = self.momentum * params["velocity"]
        if length > 0.0:
            velocity = velocity + (0.5 * v_max / length) * g
        if (speed := norm(velocity)) > v_max:
            velocity = (v_max / speed) * velocity
        after = {"M": params["M"] + velocity, "velocity": velocity}
        return after, {"gradient_norm": length, "update_norm": norm(velocity)}

    def label(self, normalise: bool) -> str:
        return "clipup"
