"""An estimate of what runs will cost on this machine, from a short measurement before they start."""

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing, suppress

import numpy as np

from ars.config import FRUGAL
from ars.curves import Curve
from ars.errors import ArsError
from ars.executors import Batch, run_one
from ars.experiments.run_specs import RunSpec, first_episodes
from ars.noise import Stream
from ars.policy import LinearPolicy
from ars.presets import robot_of
from ars.tasks import make
from ars.workers import run_many

SECONDS = 0.3  # of measurement per task
FAILING = 1.0  # seconds per episode assumed for an environment that fails: its runs will report why
PATIENCE = 60.0  # seconds; a slower environment counts as one that fails


def seconds_per_episode(task: str) -> float:
    """Seconds for an episode to the horizon on one core, for a robot that hardly moves; one that runs costs a little
    more, and one that falls early less."""
    with suppress(ArsError), closing(make(task)) as made:
        policy = LinearPolicy(np.zeros((made.p, made.n)), np.zeros(made.n), np.ones(made.n))
        batch = Batch(policy=policy, size=1, stream=Stream.TEST, seed=0, j=0, H=made.H, gather=True)
        run_one(made, batch, 0, 0)  # compiles
        steps, started, k = 0, time.perf_counter(), 0
        while time.perf_counter() - started < SECONDS:
            steps += run_one(made, batch, k, 0).steps
            k += 1
        return (time.perf_counter() - started) / max(steps, 1) * made.H
    return FAILING


def costs(specs: Iterable[RunSpec]) -> dict[RunSpec, float]:
    """Seconds of one core for each run, if every episode lasts to the horizon and no threshold is reached."""
    speeds: dict[str, float] = {}
    seconds = {}
    for spec in specs:
        if spec.task not in speeds:
            speeds[spec.task] = seconds_per_episode(spec.task) if robot_of(spec.task) else _measure_apart(spec.task)
        config = spec.config
        caps = spec.episodes, None if spec.for_now is None else -(-spec.for_now // config.H)
        episodes = min(cap for cap in caps if cap is not None)
        iterations = -(-episodes // first_episodes(config))
        evaluations = iterations // config.eval_every if config.eval_every else 0
        evaluating: float = evaluations * config.eval_episodes
        if config.protocol == "frugal":
            evaluating = min(evaluating, max(config.eval_episodes, episodes / FRUGAL))
        seconds[spec] = (episodes + evaluating) * speeds[spec.task]
    return seconds


def remaining_cost(costs: Mapping[RunSpec, float], curves: Iterable[Curve]) -> dict[RunSpec, float]:
    """The costs without what unfinished runs have already done."""
    done: dict[tuple[str, int], Curve] = {}
    for curve in curves:
        key = curve.identity, curve.eval_episodes
        done[key] = max(curve, done.get(key, curve), key=lambda one: one.episodes)

    def share(spec: RunSpec) -> float:
        curve = done.get((spec.identity, spec.config.eval_episodes))
        return 0.0 if curve is None else spec.share({"episodes": curve.episodes, "timesteps": curve.timesteps})

    return {spec: cost * (1 - share(spec)) for spec, cost in costs.items()}


def _measure_apart(task: str) -> float:
    """The same in a separate process: a user's environment may hang or crash it."""
    for _, result in run_many(seconds_per_episode, [task], workers=1, seconds=PATIENCE):
        if isinstance(result, float):
            return result
    return FAILING


def on_cores(seconds: Collection[float], cores: int) -> float:
    """Seconds for parallel runs with one thread each: at least those of the longest run."""
    return max(sum(seconds) / cores, max(seconds, default=0.0))
