"""Evolution strategies as the paper's rival: with a linear policy or, by `--hidden 64,64`, with their network.

T. Salimans, J. Ho, X. Chen, S. Sidor, I. Sutskever, "Evolution strategies as a scalable alternative to reinforcement
learning" (2017): centred ranks over all 2N returns, g = Σ (rank₊ − rank₋) δ / (2N) without 1/nu, and Adam (Kingma and
Ba 2015) on −g + l2 M. Their noise of 0.01 on actions in training is left out, so that an episode is a function of the
candidate and its initial state; only networks clip normalised states at ±5.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ars.settings import check_settings, setting

if TYPE_CHECKING:
    from ars.searches import FloatArray, Params, Telemetry

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, kw_only=True)
class ES:
    """Their sigma is nu, Adam's step size alpha."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)

    alpha: float = setting(0.01, help="Step size.", above=0, shrink=True)
    nu: float = setting(0.02, help="Standard deviation of the exploration noise.", above=0, shrink=True)
    N: int = setting(40, help="Directions sampled per iteration.", least=1, most=10**6)
    l2: float = setting(0.005, help="Weight decay.", above=-1e-300)

    def __post_init__(self) -> None:
        check_settings(self)

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        zeros = np.zeros(shape)
        return {"M": zeros, "first": zeros, "second": zeros, "t": np.array(0.0)}

    def size(self, params: "Params") -> int:
        return self.N

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        return params["M"] + (sign * self.nu) * delta

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        import numpy as np

        from ars.algorithm import finite_directions, norm, weighted_sum
        from ars.searches.ranking import centred_ranks

        ks = finite_directions(*rewards.T)
        ranks = np.full(rewards.shape, np.nan)
        ranks[ks] = centred_ranks(rewards[ks])
        M, t = params["M"], float(params["t"]) + 1.0
        g = weighted_sum(deltas, ranks[:, 0], ranks[:, 1], ks) / (2.0 * len(ks))
        loss = self.l2 * M - g
        first = BETA_1 * params["first"] + (1.0 - BETA_1) * loss
        second = BETA_2 * params["second"] + (1.0 - BETA_2) * np.square(loss)
        rate = self.alpha * math.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)
        update = -rate * first / (np.sqrt(second) + EPSILON)
        after = {"M": M + update, "first": first, "second": second, "t": np.array(t)}
        return after, {"gradient_norm": norm(g), "update_norm": norm(update)}

    def label(self, normalise: bool) -> str:
        return "es"
