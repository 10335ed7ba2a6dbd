"""Count, mean and sum of squared deviations of states: Algorithm 2, line 8, without storing the states.

Merging uses Chan's formula; merging with empty moments returns the other side unchanged. `merge_tree` merges neighbours
level by level, so that a worker may merge any aligned block of 2**q entries first without changing the bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SMALLEST_VARIANCE = 1e-8  # the footnote of Algorithm 2: below it a coordinate is ignored


@dataclass(frozen=True)
class Moments:
    """count: (...), mean and m2: (..., n), with any leading shape; m2 is the sum of squared deviations."""

    count: NDArray[np.int64]
    mean: FloatArray
    m2: FloatArray

    @staticmethod
    def empty(n: int, *leading: int) -> "Moments":
        return Moments(np.zeros(leading, dtype=np.int64), np.zeros((*leading, n)), np.zeros((*leading, n)))

    @staticmethod
    def from_sums(count: int, center: FloatArray, s1: FloatArray, s2: FloatArray) -> "Moments":
        """From s1 = Σ (x − center) and s2 = Σ (x − center)²; safe when center is one of the x."""
        if count == 0:
            return Moments.empty(len(center))
        shift = s1 / count
        m2 = np.maximum(s2 - s1 * shift, 0.0)
        return Moments(np.asarray(count, dtype=np.int64), center + shift, m2)

    def merge(self, other: "Moments") -> "Moments":
        """Both together, elementwise over the leading shape."""
        count = self.count + other.count
        safe = np.maximum(count, 1)
        share = (other.count / safe)[..., None]
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks for values that are not finite
            delta = other.mean - self.mean
            mean = self.mean + delta * share
            m2 = self.m2 + other.m2 + delta * delta * (self.count[..., None] * share)
        nothing_here, nothing_there = (self.count == 0)[..., None], (other.count == 0)[..., None]
        mean = np.where(nothing_here, other.mean, np.where(nothing_there, self.mean, mean))
        m2 = np.where(nothing_here, other.m2, np.where(nothing_there, self.m2, m2))
        return Moments(count, mean, m2)

    def symmetric(self, order: NDArray[np.intp], signs: FloatArray) -> "Moments":
        """Those of the states and their mirror images x' = signs · x[order] together, counted as half as many."""
        image = signs * self.mean[..., order]
        half = (self.mean - image) / 2.0
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks, as in `merge`
            m2 = (self.m2 + self.m2[..., order]) / 2.0 + half * half * self.count[..., None]
        return Moments(self.count, (self.mean + image) / 2.0, m2)

    def __getitem__(self, index: slice) -> "Moments":
        return Moments(self.count[index], self.mean[index], self.m2[index])

    def freeze(self) -> tuple[FloatArray, FloatArray]:
        """mu and sigma = sqrt(Sigma_diag) for one iteration; sigma is infinite where a coordinate is ignored."""
        if self.count == 0:
            return np.zeros_like(self.mean), np.ones_like(self.mean)  # Alg. 2, line 2
        Sigma_diag = self.m2 / self.count
        ignored = Sigma_diag < SMALLEST_VARIANCE
        return self.mean, np.where(ignored, np.inf, np.sqrt(Sigma_diag))


def stack(parts: list[Moments]) -> Moments:
    """One Moments with leading shape (len(parts), ...)."""
    return Moments(
        np.array([part.count for part in parts], dtype=np.int64),
        np.array([part.mean for part in parts]),
        np.array([part.m2 for part in parts]),
    )


def merge_tree(parts: Moments) -> Moments:
    """All entries of the first axis as one: neighbours merged level by level; an odd last entry moves up unchanged."""
    while (size := len(parts.count)) > 1:
        pairs = parts[0 : size - 1 : 2].merge(parts[1:size:2])
        parts = pairs if size % 2 == 0 else _append(pairs, parts[size - 1 :])
    return Moments(parts.count[0], parts.mean[0], parts.m2[0])


def _append(head: Moments, tail: Moments) -> Moments:
    return Moments(
        np.concatenate([head.count, tail.count]),
        np.concatenate([head.mean, tail.mean]),
        np.concatenate([head.m2, tail.m2]),
    )
