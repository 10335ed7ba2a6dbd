"""Statistics over runs, as pure functions of arrays. Rows are seeds; "never reached" is infinity and stays so.

Those of the paper (thresholds, percentiles over seeds, R-max of appendix A.1) and those of current practice
(intervals of rates and medians, performance profiles, probability of improvement: Agarwal et al. 2021).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def first_reach(spent: ArrayLike, rewards: ArrayLike, threshold: float) -> float:
    """What was spent (episodes, timesteps, seconds) at the first evaluation of at least `threshold`, or inf."""
    spent, rewards = np.asarray(spent, dtype=float), np.asarray(rewards, dtype=float)
    reached = np.flatnonzero(rewards >= threshold)
    return float(spent[reached[0]]) if len(reached) else np.inf


def mean_of_all(spent: ArrayLike) -> float:
    """Table 1's mean over seeds: infinite unless every seed reached the threshold, so that failures count."""
    return float(np.mean(np.asarray(spent, dtype=float)))


def success_rate(spent: ArrayLike) -> float:
    """The share of seeds that reached the threshold."""
    return float(np.mean(np.isfinite(np.asarray(spent, dtype=float))))


def success_interval(spent: ArrayLike, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's confidence interval of the success rate."""
    from scipy.stats import binomtest

    spent = np.asarray(spent, dtype=float)
    test = binomtest(int(np.isfinite(spent).sum()), spent.size)
    interval = test.proportion_ci(confidence_level=confidence, method="wilson")
    return float(interval.low), float(interval.high)


def median_interval(values: ArrayLike, *, confidence: float = 0.95) -> tuple[float, float]:
    """The order statistics that enclose the median with at least this confidence, whatever the distribution; NaN if
    there are too few values."""
    from scipy.stats import quantile_test

    interval = quantile_test(np.asarray(values, dtype=float), p=0.5).confidence_interval(confidence)
    return float(interval.low), float(interval.high)


def percentile(values: ArrayLike, percent: float | Sequence[float], axis: int = 0) -> FloatArray:
    """Percentiles by the inverted distribution function: always one of the values, so infinities need no arithmetic."""
    q = np.asarray(percent) / 100
    result: FloatArray = np.quantile(np.asarray(values, dtype=float), q, axis=axis, method="inverted_cdf")
    return result


def r_max(rewards: ArrayLike, timesteps: ArrayLike, budget: float) -> float | None:
    """Appendix A.1: the maximum of the seeds' mean curve, up to the first evaluation at which a seed spent the budget.

    rewards, timesteps: (seeds, evaluations), R_i^(j) and h_i^(j). None if no seed has spent the budget.
    """
    mean = np.asarray(rewards, dtype=float).mean(axis=0)  # R-bar_i
    spent = np.asarray(timesteps).max(axis=0) >= budget
    if not spent.any():
        return None
    h = int(np.argmax(spent))  # h-bar, the first such i
    return float(mean[: h + 1].max())  # eq. (6)


def performance_profile(scores: ArrayLike, levels: ArrayLike) -> FloatArray:
    """The share of seeds with a score above each level."""
    from scipy.stats import ecdf

    profile: FloatArray = ecdf(np.asarray(scores, dtype=float)).sf.evaluate(np.asarray(levels, dtype=float))
    return profile


def probability_of_improvement(ours: ArrayLike, theirs: ArrayLike) -> float:
    """P(X > Y) for scores of one run each, ties counting half: the Mann–Whitney statistic. Higher is better."""
    from scipy.stats import mannwhitneyu

    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    return float(mannwhitneyu(ours, theirs, method="asymptotic").statistic / (ours.size * theirs.size))


def probability_of_chance(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Mann and Whitney's two-sided p: how probable ranks as unequal as these are if neither is better."""
    from scipy.stats import mannwhitneyu

    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if np.unique([*ours, *theirs]).size == 1:
        return 1.0  # all equal, for which there is no statistic
    return float(mannwhitneyu(ours, theirs, method="asymptotic").pvalue)


def resample(spent: ArrayLike, rewards: ArrayLike, at: ArrayLike) -> FloatArray:
    """The latest evaluation at each of `at`; NaN before the first, and constant after the last."""
    spent, rewards, at = (np.asarray(values, dtype=float) for values in (spent, rewards, at))
    if not spent.size:
        return np.full(at.shape, np.nan)
    index = np.searchsorted(spent, at, side="right") - 1
    return np.where(index >= 0, rewards[np.maximum(index, 0)], np.nan)
