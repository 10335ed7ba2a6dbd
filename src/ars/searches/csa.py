"""An evolution strategy with mirrored pairs, ranks and cumulative step-size adaptation; N grows where noise prevails.

It weighs all pairs, as ARS V2 does, by ranks instead of rewards, and its step length adapts: no alpha, no sigma_R. A
pair weighs as much as the ranks of its halves differ. In the literature only the better halves of the best pairs count
(both=False, share=0.5): the best of a few noisy rollouts leads to policies whose neighbours fail, and to long swings
(docs/decisions/0013-csa.md). The equations are in ranking.py.

The factor r of the step size is below 1 if steps undo one another: the optimum is near, which a smaller nu answers, or
rewards are noise, which more pairs answer. Nothing tells the one from the other, so that N and nu share the factor;
what N cannot take within its bounds is left to nu:

    N ← N r^(−growth) within [N_0, N_most],    nu ← nu r · (N / N_old)^(1 / (2 growth)) ≤ nu_most nu_0

K. Nishida and Y. Akimoto, "PSA-CMA-ES: CMA-ES with population size adaptation" (2018), have the same purpose; with
their rule nu ran away. The bound on nu is for the same reason: a robot that learns to fall ever sooner leaves a long
path too. A large nu finds better gaits at first, but where rewards are noisy nothing would shrink it later; after
j > calm steps the bound is therefore nu_most nu_0 · max(nu_least, (calm / j)²).
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
    """M moves by the weighted mean of the pairs."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)
    any_number: ClassVar[bool] = True  # of directions can be ranked
    averaged: ClassVar[int] = 10  # iterations whose mean is evaluated: steps are long, and their noise averages out
    duelled: ClassVar[int] = 300  # whole episodes: by then its seeds differ most

    nu: float = setting(0.03, help="Standard deviation of the exploration noise, at first.", above=0, shrink=True)
    N: int = setting(0, help="Pairs of directions at first; 0: (4 + 3 ln np) / 3.", least=0, most=LARGEST_N)
    share: float = setting(1.0, help="Part of the pairs that counts, by the better half.", above=0, most=1)
    both: bool = setting(True, help="Weigh pairs by the difference of their halves' ranks, not by the better half's.")
    stride: float = setting(1.5, help="Step, as a multiple of the weighted mean.", above=0, named=False)
    growth: float = setting(0.0, help="How much N grows while noise prevails; 0: it stays.", above=-1e-300)
    N_most: int = setting(100, help="N does not grow beyond it.", least=1, most=LARGEST_N, named=False)
    nu_most: float = setting(2.0, help="Upper bound on nu, as a multiple of its first value.", above=0, named=False)
    calm: int = setting(150, help="Steps after which the bound on nu falls, as 1/j²; 0: never.", least=0, most=10**9)
    nu_least: float = setting(
        1.0 / 3.0, help="The bound on nu falls to this part of itself at most.", above=0, most=1, named=False
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        from ars.searches.ranking import usual_population

        N = self.N or math.ceil(usual_population(shape[0] * shape[1]) / 3.0)
        zeros = np.zeros(shape)
        return {"M": zeros, "path": zeros, "nu": np.array(self.nu), "N": np.array(float(N)), "j": np.array(0.0)}

    def size(self, params: "Params") -> int:
        return round(float(params["N"]))

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        return params["M"] + (sign * float(params["nu"])) * delta

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        import numpy as np

        from ars.algorithm import norm
        from ars.searches.ranking import StepSize, best_of_pairs, both_halves, expected_norm, is_flat

        nu, N, j = (float(params[name]) for name in ("nu", "N", "j"))
        telemetry: Telemetry = {"nu_now": nu, "N_now": float(len(rewards)), "update_norm": 0.0}
        if is_flat(rewards):
            return params, telemetry
        best = (both_halves if self.both else best_of_pairs)(rewards, int(self.share * len(rewards)))
        if math.isinf(best.mueff):
            return params, telemetry
        z = best.sum(deltas)
        adapted = StepSize(params["path"], nu).adapt(z, best.mueff)
        N_new, nu_new = self.grown(N, nu, adapted.nu, float(self.initial(z.shape)["N"]))
        nu_new = min(nu_new, self.bound(j + 1.0))
        after = {
            "M": params["M"] + (self.stride * nu) * z,
            "path": adapted.path,
            "nu": np.array(nu_new),
            "N": np.array(N_new),
            "j": np.array(j + 1.0),
        }
        path_length = norm(adapted.path) / expected_norm(z.size)
        return after, {**telemetry, "update_norm": self.stride * nu * norm(z), "path_length": path_length}

    def grown(self, N: float, nu: float, adapted: float, N_0: float) -> tuple[float, float]:
        """N and nu after a step that would adapt nu to `adapted`."""
        if self.growth > 0.0:
            N_new = min(max(N * (nu / adapted) ** self.growth, N_0), max(float(self.N_most), N_0))
            N, adapted = N_new, adapted * (N_new / N) ** (0.5 / self.growth)
        return N, adapted

    def bound(self, j: float) -> float:
        """What nu does not exceed after j steps."""
        share = (self.calm / j) ** 2 if 0 < self.calm < j else 1.0
        return self.nu_most * self.nu * max(self.nu_least, share)

    def label(self, normalise: bool) -> str:
        return "csa"
