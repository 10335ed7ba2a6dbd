"""What the rank-based searches share: the order of candidates, their weights, and the evolution path of the step size.

Sources: N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), for weights and paths; D. Brockhoff et al.,
"Mirrored sampling and sequential selection for evolution strategies" (2010), for pairs of which the better is kept.
All sums run over candidates in the order of their rank, one at a time and without BLAS.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.algorithm import finite_directions, norm

FloatArray = NDArray[np.float64]


class Selection(NamedTuple):
    """The best directions in the order of their rank, the better sign of each, and their weights."""

    ks: NDArray[np.intp]
    signs: FloatArray
    weights: FloatArray
    mueff: float  # 1 / Σ w²: how many equally weighted directions would average noise as well

    def sum(self, deltas: Sequence[FloatArray]) -> FloatArray:
        """z = Σ w_i s_i δ_i."""
        total: FloatArray = np.zeros(deltas[0].shape)
        for k, sign, weight in zip(self.ks, self.signs, self.weights, strict=True):
            total += (weight * sign) * deltas[k]
        return total


def log_weights(b: int) -> FloatArray:
    """w_i ∝ ln(b + ½) − ln i for i = 1 … b, with Σ w = 1."""
    weights = np.array([math.log(b + 0.5) - math.log(i) for i in range(1, b + 1)])
    return np.asarray(weights / math.fsum(weights))


def best_of_pairs(rewards: FloatArray, b: int) -> Selection:
    """The b pairs with the best better half. Of each pair one is kept: both would cancel in the path.

    rewards: (N, 2) of M ± nu δ_k. Ties go to + and to the lower k. Pairs that are not finite are ignored (D3).
    """
    r_plus, r_minus = rewards.T
    ks = finite_directions(r_plus, r_minus)
    best_first = np.argsort(-np.maximum(r_plus[ks], r_minus[ks]), kind="stable")
    ks = ks[best_first[: max(1, min(b, len(ks)))]]
    weights = log_weights(len(ks))
    return Selection(ks, np.where(r_plus[ks] >= r_minus[ks], 1.0, -1.0), weights, 1.0 / math.fsum(weights**2))


def both_halves(rewards: FloatArray, b: int) -> Selection:
    """The b pairs with the best better half, each weighted by the difference of its halves' ranks, Σ |w| = 1.

    A pair whose halves are equally good says nothing, and one whose halves differ much says most. Given the ranks, a
    random walk has steps of the same length as with the weights of `best_of_pairs`, so that the path stays unbiased.
    rewards as above. None of the b pairs may differ: the weights are then 0, and mueff is infinite.
    """
    r_plus, r_minus = rewards.T
    ks = finite_directions(r_plus, r_minus)
    ranks = centred_ranks(rewards[ks])
    best_first = np.argsort(-np.maximum(r_plus[ks], r_minus[ks]), kind="stable")[: max(1, min(b, len(ks)))]
    difference = ranks[best_first, 0] - ranks[best_first, 1]
    total = math.fsum(np.abs(difference))
    weights = np.abs(difference) / total if total > 0.0 else np.zeros(len(difference))
    mueff = 1.0 / math.fsum(weights**2) if total > 0.0 else math.inf
    return Selection(ks[best_first], np.where(difference >= 0.0, 1.0, -1.0), weights, mueff)


def centred_ranks(values: FloatArray) -> FloatArray:
    """rank / (count − 1) − ½ for every value, in the shape of `values`; equal values share their mean rank."""
    if values.size < 2:
        return np.zeros(values.shape)
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts + 1) / 2.0
    return np.asarray(ranks[place].reshape(values.shape) / (values.size - 1) - 0.5)


def is_flat(rewards: FloatArray) -> bool:
    """Whether all finite rewards are equal, so that no candidate is better than another.  # D2"""
    finite = rewards[np.isfinite(rewards).all(axis=1)]
    return bool(finite.min() == finite.max())


def usual_population(d: int) -> float:
    """4 + 3 ln d candidates for d parameters."""
    return 4.0 + 3.0 * math.log(d)


def default_pairs(d: int) -> int:
    """As pairs, rounded up."""
    return math.ceil(usual_population(d) / 2.0)


def expected_norm(d: int) -> float:
    """E‖N(0, I)‖ in d dimensions, to order 1/d²."""
    return math.sqrt(d) * (1.0 - 1.0 / (4.0 * d) + 1.0 / (21.0 * d * d))


class StepSize(NamedTuple):
    """Cumulative step-size adaptation (A. Ostermeier, A. Gawelczyk, N. Hansen, 1994)."""

    path: FloatArray
    nu: float

    def adapt(self, z: FloatArray, mueff: float) -> "StepSize":
        """The path and nu after a step z. If steps follow one another the path grows longer than that of a random walk,
        and nu grows; if they undo one another nu shrinks."""
        d = z.size
        c = (mueff + 2.0) / (d + mueff + 5.0)
        damping = 1.0 + c + 2.0 * max(0.0, math.sqrt((mueff - 1.0) / (d + 1.0)) - 1.0)
        path = (1.0 - c) * self.path + math.sqrt(c * (2.0 - c) * mueff) * z
        return StepSize(path, self.nu * math.exp((c / damping) * (norm(path) / expected_norm(d) - 1.0)))
