"""The cross-entropy method with a linear policy: a normal distribution refitted to its best samples.

R. Rubinstein (1999); with extra variance that decays, I. Szita and A. Lőrincz, "Learning Tetris using the noisy
cross-entropy method" (2006). theta ~ N(M, diag(variance)); one rollout per sample, without mirrored pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ars.errors import SettingError
from ars.settings import check_settings, setting

if TYPE_CHECKING:
    from ars.searches import FloatArray, Params, Telemetry


@dataclass(frozen=True, kw_only=True)
class CEM:
    """M and the variance of each entry become those of the best b of N samples."""

    signs: ClassVar[tuple[int, ...]] = (+1,)

    nu: float = setting(1.0, help="Standard deviation of the exploration noise, at first.", above=0, shrink=True)
    N: int = setting(200, help="Samples per iteration.", least=2, most=10**6)
    b: int = setting(None, help="Best samples kept; a fifth of N if not given.", least=1, most=10**6)
    extra: float = setting(0.01, help="Variance added at first.", above=-1e-300)
    decay: float = setting(0.95, help="What the added variance is multiplied by after an iteration.", above=0)
    extra_least: float = setting(1e-5, help="Added variance does not fall below it.", above=-1e-300)
    ranked: bool = setting(False, help="Weight the best samples by the logarithm of their rank.", named=False)

    def __post_init__(self) -> None:
        check_settings(self)
        if getattr(self, "b") is None:  # noqa: B009 (an int from here on)
            object.__setattr__(self, "b", max(1, self.N // 5))
        if self.b > self.N:
            raise SettingError(f"b = {self.b} is larger than N = {self.N}: choose b from 1 to {self.N}.")

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        return {"M": np.zeros(shape), "variance": np.full(shape, self.nu**2), "extra": np.array(self.extra)}

    def size(self, params: "Params") -> int:
        return self.N

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        import numpy as np

        return params["M"] + np.sqrt(params["variance"]) * delta

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        import numpy as np

        from ars.algorithm import norm
        from ars.searches.ranking import is_flat, log_weights

        M, extra = params["M"], float(params["extra"])
        deviation = np.sqrt(params["variance"])
        if is_flat(rewards):
            return params, {"deviation_mean": float(deviation.mean()), "update_norm": 0.0}
        ks = np.flatnonzero(np.isfinite(rewards[:, 0]))
        best = ks[np.argsort(-rewards[ks, 0], kind="stable")[: self.b]]
        weights = log_weights(len(best)) if self.ranked else np.full(len(best), 1.0 / len(best))
        z, square = np.zeros(M.shape), np.zeros(M.shape)
        for k, weight in zip(best, weights, strict=True):
            z += weight * deltas[k]
        for k, weight in zip(best, weights, strict=True):
            square += weight * np.square(deltas[k] - z)
        after = {"M": M + deviation * z, "variance": params["variance"] * square + extra}
        after["extra"] = np.array(max(extra * self.decay, min(self.extra, self.extra_least)))
        return after, {"deviation_mean": float(deviation.mean()), "update_norm": norm(deviation * z)}

    def label(self, normalise: bool) -> str:
        return "cem"
