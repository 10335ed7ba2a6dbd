"""The finished runs of a rival on a task, and what tables and the figure need of them."""

import math
from collections.abc import Sequence

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.rivals.roster import EVERY
from ars.statistics import FloatArray


def asked(curve: Curve) -> int:
    """The timesteps for which the run was asked; its last iteration may end a little later."""
    return int(curve.settings.get("timesteps", curve.timesteps))


def finished(curves: Sequence[Curve], rival: str, task: str, budget: int | None = None) -> list[Curve]:
    """One run per seed: the shortest that has the budget, or the longest of all."""
    runs: dict[int, Curve] = {}
    for curve in sorted(curves, key=asked, reverse=budget is not None):
        fits = (curve.learner, curve.task) == (rival, task) and curve.status != "unfinished" and curve.rewards.size > 0
        if fits and (budget is None or asked(curve) >= budget):
            runs[curve.seed] = curve
    return [runs[seed] for seed in sorted(runs)]


def diverged(curves: Sequence[Curve], rival: str, task: str) -> int:
    return sum(curve.failed for curve in curves if (curve.learner, curve.task) == (rival, task))


def rewards_at(curve: Curve, timesteps: Sequence[float] | FloatArray) -> FloatArray:
    """The latest evaluation at each; the last evaluation of a run counts at the budget of the run."""
    at = np.minimum(curve.columns["at_timesteps"], asked(curve))
    return st.resample(at, curve.rewards, timesteps)


def final(curve: Curve, budget: int) -> float:
    return float(rewards_at(curve, [budget])[0])


def r_max(runs: Sequence[Curve], budget: int) -> float:
    """Appendix A.1, at the same timesteps for all: the maximum of the mean over the seeds; NaN without evaluations that
    all have."""
    marks = EVERY * np.arange(1.0, budget // EVERY + 1)
    mean = np.mean([rewards_at(curve, marks) for curve in runs], axis=0)
    return float(np.nanmax(mean)) if np.isfinite(mean).any() else math.nan


def cpu_seconds(curve: Curve, budget: int) -> float:
    """CPU seconds of training for this many timesteps."""
    return curve.seconds / curve.timesteps * budget if curve.timesteps else math.nan
