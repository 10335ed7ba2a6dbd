"""Algorithms 1 and 2 of the paper, on arrays: the update of theta or M from the 2N rewards.
deltas: N arrays (p, n); r_plus, r_minus: (N,), NaN where a rollout was not finite. Sums run over k in ascending order.
The states' statistics (Algorithm 2, line 8) are in moments.py, the policies (line 5) in policy.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Step(NamedTuple):
    """The next parameters, sigma_R of the rewards used, and which k were used."""

    M: FloatArray
    sigma_R: float
    used: NDArray[np.intp]


def finite_directions(r_plus: FloatArray, r_minus: FloatArray) -> NDArray[np.intp]:
    """The k whose two rewards are both finite; the others are excluded from the update.  # D3"""
    return np.flatnonzero(np.isfinite(r_plus) & np.isfinite(r_minus))


def top_directions(r_plus: FloatArray, r_minus: FloatArray, b: int) -> NDArray[np.intp]:
    """The b best k by max{r_plus, r_minus}, ties to the lower k, in ascending order."""  # Alg. 2, line 6
    ks = finite_directions(r_plus, r_minus)
    best_first = np.argsort(-np.maximum(r_plus[ks], r_minus[ks]), kind="stable")
    return np.sort(ks[best_first[:b]])


def weighted_sum(
    deltas: Sequence[FloatArray], r_plus: FloatArray, r_minus: FloatArray, ks: NDArray[np.intp]
) -> FloatArray:
    """Σ_k [r(π_k,+) − r(π_k,−)] δ_k, added one k at a time without BLAS, so that the bits are the same everywhere."""
    total: FloatArray = np.zeros(deltas[0].shape)
    for k in ks:
        total += (r_plus[k] - r_minus[k]) * deltas[k]
    return total


def deviation(rewards: FloatArray) -> float:
    """sigma_R, the population standard deviation; exactly 0 when all are equal, however the mean is rounded."""
    with np.errstate(over="ignore"):  # the caller checks for an infinite sigma_R
        return float(np.std(rewards)) if np.ptp(rewards) > 0.0 else 0.0


def norm(update: FloatArray) -> float:
    """The Frobenius norm, scaled so that squares do not overflow; np.linalg.norm would use BLAS."""
    largest = float(np.abs(update).max())
    return largest * float(np.sqrt(np.square(update / largest).sum())) if largest > 0.0 else 0.0


def brs_step(
    theta: FloatArray, deltas: Sequence[FloatArray], r_plus: FloatArray, r_minus: FloatArray, *, alpha: float
) -> Step:
    """Basic random search."""
    ks = finite_directions(r_plus, r_minus)
    sigma_R = deviation(np.stack([r_plus[ks], r_minus[ks]]))  # for the record; Algorithm 1 does not use it
    update = (alpha / len(ks)) * weighted_sum(deltas, r_plus, r_minus, ks)  # Alg. 1, line 6
    return Step(theta + update, sigma_R, ks)


def ars_step(
    M: FloatArray, deltas: Sequence[FloatArray], r_plus: FloatArray, r_minus: FloatArray, *, alpha: float, b: int
) -> Step:
    """Augmented random search; b = N for V1 and V2."""
    ks = top_directions(r_plus, r_minus, b)
    sigma_R = deviation(np.stack([r_plus[ks], r_minus[ks]]))  # of the 2b rewards used
    if sigma_R == 0.0:  # D2: all rewards are equal, so no direction is better than another
        return Step(M, sigma_R, ks)
    update = (alpha / (len(ks) * sigma_R)) * weighted_sum(deltas, r_plus, r_minus, ks)  # Alg. 2, line 7
    return Step(M + update, sigma_R, ks)
