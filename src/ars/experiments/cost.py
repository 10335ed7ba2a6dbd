"""What runs will cost on this machine, said before they start: from a short measurement, as an upper bound."""

import time
from collections.abc import Iterable

import numpy as np

from ars.executors import Batch, run_one
from ars.experiments.plans import EVAL_EVERY, Plan
from ars.noise import Stream
from ars.tasks import make

SECONDS = 0.3  # of measurement a task


def seconds_per_episode(task: str) -> float:
    """Of a whole episode on one core. A robot that falls early costs less, and one that runs a little more."""

    made = make(task)
    try:
        M, mu, sigma = np.zeros((made.p, made.n)), np.zeros(made.n), np.ones(made.n)
        batch = Batch(M, mu, sigma, 0.01, 1, (1,), Stream.TEST, 0, 0, made.H, 0.0, gather=True)
        run_one(made, batch, 0, 1)  # compiles
        steps, started, k = 0, time.perf_counter(), 0
        while time.perf_counter() - started < SECONDS:
            steps += run_one(made, batch, k, 1).steps
            k += 1
        return (time.perf_counter() - started) / steps * made.H
    finally:
        made.close()


def costs(plans: Iterable[Plan]) -> dict[Plan, float]:
    """Seconds of one core for each run at most: every episode lasts to the horizon, no threshold is reached."""
    speeds: dict[str, float] = {}
    found = {}
    for one in plans:
        if one.task not in speeds:
            speeds[one.task] = seconds_per_episode(one.task)
        iterations = -(-one.episodes // (2 * one.N))
        evaluated = iterations // EVAL_EVERY * one.eval_episodes
        found[one] = (one.episodes + evaluated) * speeds[one.task]
    return found


def in_words(seconds: float) -> str:
    """45 s, 12 min, 3.5 h, 6 days."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 72)):
        if seconds < most * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 10 * length else f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
