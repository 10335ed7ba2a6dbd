"""Covariance matrix adaptation over mirrored pairs: full for up to some 1000 parameters, diagonal for more.

N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), equations in ranking.py and below; the diagonal form is
R. Ros and N. Hansen, "A simple modification in CMA-ES achieving linear time and space complexity" (2008).
Candidates are M ± nu A δ with A A' = C; nu's path uses δ, the covariance uses y = A δ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ars.errors import SettingError
from ars.settings import check_settings, setting

if TYPE_CHECKING:
    from ars.searches import FloatArray, Params, Telemetry
    from ars.searches.ranking import StepSize

LARGEST_FULL = 2000  # parameters: C and A then take 64 MB


def learning_rates(d: int, mueff: float) -> tuple[float, float, float]:
    """c_c, c_1 and c_mu of the tutorial's table 1, without negative weights."""
    c_c = (4.0 + mueff / d) / (d + 4.0 + 2.0 * mueff / d)
    c_1 = 2.0 / ((d + 1.3) ** 2 + mueff)
    c_mu = min(1.0 - c_1, 2.0 * (mueff - 2.0 + 1.0 / mueff) / ((d + 2.0) ** 2 + mueff))
    return c_c, c_1, c_mu


@dataclass(frozen=True, kw_only=True)
class SepCMA:
    """C is diagonal, so that its learning rates can be (d + 2)/3 times as large."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)
    any_number: ClassVar[bool] = True  # of directions can be ranked

    nu: float = setting(0.03, help="Standard deviation of the exploration noise, at first.", above=0, shrink=True)
    N: int = setting(0, help="Pairs of directions; 0: (4 + 3 ln np)/2.", least=0, most=10**6)

    def __post_init__(self) -> None:
        check_settings(self)

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        zeros = np.zeros(shape)
        return {"M": zeros, "path": zeros, "path_c": zeros, "nu": np.array(self.nu), "C": np.ones(shape),
                "t": np.array(0.0)}  # fmt: skip

    def size(self, params: "Params") -> int:
        from ars.searches.ranking import default_pairs

        return self.N or default_pairs(params["M"].size)

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        import numpy as np

        return params["M"] + (sign * float(params["nu"])) * (np.sqrt(params["C"]) * delta)

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        import numpy as np

        from ars.algorithm import norm
        from ars.searches.ranking import best_of_pairs, is_flat

        nu, C = float(params["nu"]), params["C"]
        if is_flat(rewards):
            return params, {"nu_now": nu, "update_norm": 0.0, "axis_ratio": math.sqrt(C.max() / C.min())}
        d, best = C.size, best_of_pairs(rewards, len(rewards) // 2)
        root, z = np.sqrt(C), best.sum(deltas)
        adapted, path_c, steady = paths(params, z, root * z, best.mueff)
        c_c, c_1, c_mu = learning_rates(d, best.mueff)
        c_1, c_mu = c_1 * (d + 2.0) / 3.0, min(1.0 - c_1 * (d + 2.0) / 3.0, c_mu * (d + 2.0) / 3.0)
        squares = np.zeros(C.shape)
        for k, weight in zip(best.ks, best.weights, strict=True):
            squares += weight * np.square(root * deltas[k])
        kept = 1.0 - c_1 - c_mu + (0.0 if steady else c_1 * c_c * (2.0 - c_c))
        grown = kept * C + c_1 * np.square(path_c) + c_mu * squares
        after = {"M": params["M"] + nu * (root * z), "path": adapted.path, "path_c": path_c,
                 "nu": np.array(adapted.nu),
                 "C": np.where((squares == 0.0) & (path_c == 0.0), C, grown),  # a mirror keeps these entries at 0
                 "t": params["t"] + 1.0}  # fmt: skip
        telemetry: Telemetry = {"nu_now": nu, "update_norm": nu * norm(root * z)}
        return after, {**telemetry, "axis_ratio": math.sqrt(C.max() / C.min())}

    def label(self, normalise: bool) -> str:
        return "sep-cma"


@dataclass(frozen=True, kw_only=True)
class CMA:
    """C is a full matrix over the entries of M, row by row."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)
    any_number: ClassVar[bool] = True  # of directions can be ranked

    nu: float = setting(0.03, help="Standard deviation of the exploration noise, at first.", above=0, shrink=True)
    N: int = setting(0, help="Pairs of directions; 0: (4 + 3 ln np)/2.", least=0, most=10**6)

    def __post_init__(self) -> None:
        check_settings(self)

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        d = shape[0] * shape[1]
        if d > LARGEST_FULL:
            raise SettingError(
                f"search = cma is for p · n up to {LARGEST_FULL}, because its covariance has (p · n)² entries, and "
                f"p · n = {shape[0]} · {shape[1]} here: take sep-cma."
            )
        zeros = np.zeros(shape)
        return {"M": zeros, "path": zeros, "path_c": zeros, "nu": np.array(self.nu), "C": np.eye(d), "A": np.eye(d),
                "t": np.array(0.0), "decomposed": np.array(0.0)}  # fmt: skip

    def size(self, params: "Params") -> int:
        from ars.searches.ranking import default_pairs

        return self.N or default_pairs(params["M"].size)

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        return params["M"] + (sign * float(params["nu"])) * transformed(params["A"], delta)

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        import numpy as np

        from ars.algorithm import norm
        from ars.searches.ranking import best_of_pairs, is_flat

        nu, C, A = float(params["nu"]), params["C"], params["A"]
        if is_flat(rewards):
            return params, {"nu_now": nu, "update_norm": 0.0}
        d, best = len(C), best_of_pairs(rewards, len(rewards) // 2)
        z = best.sum(deltas)
        y = transformed(A, z)
        adapted, path_c, steady = paths(params, z, y, best.mueff)
        c_c, c_1, c_mu = learning_rates(d, best.mueff)
        kept = 1.0 - c_1 - c_mu + (0.0 if steady else c_1 * c_c * (2.0 - c_c))
        C = kept * C + c_1 * np.multiply.outer(path_c.ravel(), path_c.ravel())
        for k, weight in zip(best.ks, best.weights, strict=True):
            y_k = transformed(A, deltas[k]).ravel()
            C += (c_mu * weight) * np.multiply.outer(y_k, y_k)
        t, decomposed = float(params["t"]) + 1.0, float(params["decomposed"])
        if t - decomposed > 1.0 / ((c_1 + c_mu) * d * 10.0):
            A, decomposed = square_root(C), t
        after = {"M": params["M"] + nu * y, "path": adapted.path, "path_c": path_c, "nu": np.array(adapted.nu),
                 "C": C, "A": A, "t": np.array(t), "decomposed": np.array(decomposed)}  # fmt: skip
        return after, {"nu_now": nu, "update_norm": nu * norm(y)}

    def label(self, normalise: bool) -> str:
        return "cma"


def paths(params: "Params", z: "FloatArray", y: "FloatArray", mueff: float) -> "tuple[StepSize, FloatArray, bool]":
    """The step size with its path, the path of the covariance, and whether the latter went on: it stalls while the
    former is too long (h_sigma), or C would grow along with nu."""
    from ars.algorithm import norm
    from ars.searches.ranking import StepSize, expected_norm

    d, t = z.size, float(params["t"])
    adapted = StepSize(params["path"], float(params["nu"])).adapt(z, mueff)
    c_sigma, c_c = (mueff + 2.0) / (d + mueff + 5.0), learning_rates(d, mueff)[0]
    length = norm(adapted.path) / math.sqrt(1.0 - (1.0 - c_sigma) ** (2.0 * (t + 1.0)))
    steady = length < (1.4 + 2.0 / (d + 1.0)) * expected_norm(d)
    path_c = (1.0 - c_c) * params["path_c"]
    if steady:
        path_c = path_c + math.sqrt(c_c * (2.0 - c_c) * mueff) * y
    return adapted, path_c, steady


def transformed(A: "FloatArray", delta: "FloatArray") -> "FloatArray":
    """A δ, δ as one column; einsum sums without BLAS, whose bits depend on its number of threads."""
    import numpy as np

    return np.asarray(np.einsum("ij,j->i", A, delta.ravel()).reshape(delta.shape))


def square_root(C: "FloatArray") -> "FloatArray":
    """The symmetric A with A A = C, computed in one thread."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        values, vectors = np.linalg.eigh((C + C.T) / 2.0)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 1e-300))) @ vectors.T)
