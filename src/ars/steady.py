"""Steady policies: the statistics of states move on, and M and mu are rewritten so that the policy stays the same.

In Algorithm 2 the policy is M diag(Sigma)^(−1/2) (x − mu), with mu and Sigma of all states so far. Each iteration
changes them, and with them the policy that the step has just chosen: its gains and offsets drift, and a gait that was
found is lost again. With sigma' and m' the new statistics, the same policy is

    M' = M diag(sigma' / sigma),    mu' = m' + sigma' · P ((mu − m') / sigma'),

where P projects onto the rows of M': of the new mean, all is taken over that M' does not see. The search thus goes on
in coordinates of unit variance, and from the policy that it chose. (`scale` bounds sigma' / sigma.)
"""

import numpy as np
from numpy.typing import NDArray

from ars.algorithm import norm
from ars.mirror import Mirror
from ars.moments import Moments

FloatArray = NDArray[np.float64]

MOST_GROWTH = 2.0  # of M in an iteration, once there are statistics
DEPENDENT = 1e-10  # a row that is shorter after the projection, relative to itself, depends on those before


def scale(before: Moments, after: Moments) -> FloatArray:
    """sigma' / sigma; 0 where either ignores the coordinate, because M had no effect there, or has none any more. What
    more than doubles was not known before: a robot had stood still in the first iteration, say. Exploration was then
    too wild along that coordinate, and a policy that was learnt from it is not worth keeping whole."""
    sigma, new = before.freeze()[1], after.freeze()[1]
    there = np.isfinite(sigma) & np.isfinite(new)
    factor = np.where(there, new, 0.0) / np.where(there, sigma, 1.0)
    return np.minimum(factor, MOST_GROWTH) if before.count else factor


def steady_mean(M: FloatArray, mu: FloatArray, after: Moments, mirror: Mirror | None = None) -> FloatArray:
    """mu', which M' does not tell from mu."""
    mean, sigma = after.freeze()
    there = np.isfinite(sigma)
    seen = projected(np.where(there, mu - mean, 0.0) / np.where(there, sigma, 1.0), orthonormal(M))
    moved: FloatArray = mean + np.where(there, sigma, 0.0) * seen
    if mirror is None:
        return moved
    order, signs = mirror.states
    return (moved + signs * moved[order]) / 2.0  # it is symmetric already, but for rounding


def orthonormal(rows: FloatArray) -> list[FloatArray]:
    """An orthonormal basis of the rows' span: Gram and Schmidt, twice because of rounding, and without BLAS, whose bits
    depend on its number of threads."""
    basis: list[FloatArray] = []
    for row in rows:
        rest = row - projected(row, basis)
        rest = rest - projected(rest, basis)
        if norm(rest) > DEPENDENT * norm(row):
            basis.append(rest / norm(rest))
    return basis


def projected(x: FloatArray, basis: list[FloatArray]) -> FloatArray:
    """The projection of x onto the span of orthonormal vectors."""
    total = np.zeros_like(x)
    for q in basis:
        total += np.sum(q * x) * q
    return total
