"""An evolution strategy with mirrored pairs, ranks and cumulative step-size adaptation; N grows as noise prevails.

It chooses directions as ARS V2-t does, with ranks instead of rewards, and its step length adapts: no alpha, no sigma_R.
The equations are in ranking.py; the growth of N follows K. Nishida and Y. Akimoto, "PSA-CMA-ES: CMA-ES with
population size adaptation" (2018), reduced to the mean's path: see `_grown`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ars.settings import check_settings, setting

if TYPE_CHECKING:
    from ars.searches import FloatArray, Params, Telemetry

LARGEST_N = 10**6


@dataclass(frozen=True, kw_only=True)
class CSA:
    """M moves to the weighted mean of the best b = N/2 pairs' better halves."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)

    nu: float = setting(0.03, help="Standard deviation of the exploration noise, at first.", above=0, shrink=True)
    N: int = setting(0, help="Pairs of directions at first; 0: (4 + 3 ln np)/2.", least=0, most=LARGEST_N)
    growth: float = setting(0.0, help="How fast N may grow while noise prevails; 0: it stays.")
    N_most: int = setting(100, help="N does not grow beyond it.", least=1, most=LARGEST_N, named=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        from ars.searches.ranking import default_pairs

        N = self.N or default_pairs(shape[0] * shape[1])
        zeros = np.zeros(shape)
        return {"M": zeros, "path": zeros, "nu": np.array(self.nu), "N": np.array(float(N)), "drift": zeros,
                "gamma": np.array(0.0)}  # fmt: skip

    def size(self, params: "Params") -> int:
        return round(float(params["N"]))

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        return params["M"] + (sign * float(params["nu"])) * delta

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        import numpy as np

        from ars.algorithm import norm
        from ars.searches.ranking import StepSize, best_of_pairs, is_flat

        nu, N = float(params["nu"]), float(params["N"])
        if is_flat(rewards):
            return params, {"nu_now": nu, "N_now": float(self.size(params)), "update_norm": 0.0}
        best = best_of_pairs(rewards, self.size(params) // 2)
        z = best.sum(deltas)
        adapted = StepSize(params["path"], nu).adapt(z, best.mueff)
        beta = 0.4
        drift = (1.0 - beta) * params["drift"] + math.sqrt(beta * (2.0 - beta) * best.mueff / z.size) * z
        gamma = (1.0 - beta) ** 2 * float(params["gamma"]) + beta * (2.0 - beta)
        signal = norm(drift) ** 2
        if self.growth > 0.0:
            N = N * math.exp(self.growth * (gamma - signal / 1.4))
            N = min(max(N, float(self.size(self.initial(z.shape)))), float(self.N_most))
        after = {"M": params["M"] + nu * z, "path": adapted.path, "nu": np.array(adapted.nu), "N": np.array(N),
                 "drift": drift, "gamma": np.array(gamma)}  # fmt: skip
        telemetry: Telemetry = {
            "nu_now": nu,
            "N_now": float(self.size(params)),
            "update_norm": nu * norm(z),
            "signal": signal,
        }
        return after, telemetry

    def label(self, normalise: bool) -> str:
        return "csa"
