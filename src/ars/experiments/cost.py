"""What runs will cost on this machine, said before they start: from a short measurement."""

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing, suppress

import numpy as np

from ars.curves import Curve
from ars.errors import ArsError
from ars.executors import Batch, run_one
from ars.experiments.run_specs import EVAL_EVERY, Plan, run_name
from ars.noise import Stream
from ars.presets import robot_of
from ars.tasks import make
from ars.workers import run_many

SECONDS = 0.3  # of measurement per task
FAILING = 1.0  # seconds per episode of an environment that fails: its runs will report why
PATIENCE = 60.0  # seconds; an environment that does not answer by then counts as one that fails


def seconds_per_episode(task: str) -> float:
    """Of an episode to the horizon on one core, as long as the robot hardly moves: one that runs costs a little more,
    and one that falls early less."""
    with suppress(ArsError), closing(make(task)) as made:
        M, mu, sigma = np.zeros((made.p, made.n)), np.zeros(made.n), np.ones(made.n)
        batch = Batch(M, mu, sigma, 0.01, 1, (1,), Stream.TEST, 0, 0, made.H, 0.0, gather=True)
        run_one(made, batch, 0, 1)  # compiles
        steps, started, k = 0, time.perf_counter(), 0
        while time.perf_counter() - started < SECONDS:
            steps += run_one(made, batch, k, 1).steps
            k += 1
        return (time.perf_counter() - started) / max(steps, 1) * made.H
    return FAILING


def costs(plans: Iterable[Plan]) -> dict[Plan, float]:
    """Seconds of one core for each run, if every episode lasts to the horizon and no threshold is reached."""
    speeds: dict[str, float] = {}
    found = {}
    for one in plans:
        if one.task not in speeds:
            speeds[one.task] = seconds_per_episode(one.task) if robot_of(one.task) else _apart(one.task)
        iterations = -(-one.episodes // (2 * one.N))
        evaluated = iterations // EVAL_EVERY * one.eval_episodes
        found[one] = (one.episodes + evaluated) * speeds[one.task]
    return found


def still_to_pay(costs: Mapping[Plan, float], curves: Iterable[Curve]) -> dict[Plan, float]:
    """Without what runs under way have done."""
    done = {run_name(curve.config): curve.episodes for curve in curves}
    return {plan: cost * (1 - min(1.0, done.get(plan.name, 0) / plan.episodes)) for plan, cost in costs.items()}


def _apart(task: str) -> float:
    """The same in a process of its own: an environment of the user's may hang, or take the process down with it."""
    for _, found in run_many(seconds_per_episode, [task], workers=1, seconds=PATIENCE):
        if isinstance(found, float):
            return found
    return FAILING


def on_cores(seconds: Collection[float], cores: int) -> float:
    """Of runs side by side: one thread each, so that the longest is the least."""
    return max(sum(seconds) / cores, max(seconds, default=0.0))


def in_words(seconds: float) -> str:
    """45 s, 12 min, 3.5 h, 6 days."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 72)):
        if seconds < most * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 10 * length else f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
