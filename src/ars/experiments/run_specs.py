"""A run that an experiment asks for: its settings, its name, and whether a curve that is there already will do."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ars.config import Config
from ars.curves import Curve, by_identity, fullest, identity
from ars.files import safe_name
from ars.presets import Preset, make_config, paper_robot, preset, threshold
from ars.stopping import Stop

# Episodes after which a run of the reproduction ends, whatever it reached: "not reached" is a result.
CAPS = {
    "Swimmer": 500,
    "Hopper": 8000,
    "HalfCheetah": 8000,
    "Walker2d": 40_000,
    "Ant": 40_000,
    "Humanoid": 300_000,
}
EVAL_EVERY, EVAL_EPISODES = 10, 100  # the paper's protocol
FEW_EVAL_EPISODES = 10  # for many seeds or many grid points, where evaluations would cost more than training


def run_name(settings: "Plan | Config") -> str:
    """Of a run's folder and its small file."""
    few = "" if settings.eval_episodes == EVAL_EPISODES else f"-eval{settings.eval_episodes}"
    point = f"alpha{settings.alpha!r}-nu{settings.nu!r}-N{settings.N}-b{settings.b}"
    return f"{safe_name(settings.task)}-{settings.variant}-{point}-seed{settings.seed}{few}"


@dataclass(frozen=True)
class Plan:
    """One run, single-threaded; `until` ends it at a threshold, where only the way there matters."""

    task: str
    variant: str
    alpha: float
    nu: float
    N: int
    b: int
    seed: int
    episodes: int
    eval_episodes: int = EVAL_EPISODES
    until: float | None = None

    @property
    def name(self) -> str:
        """Of its folder and its file; another plan has another name."""
        return run_name(self)

    @property
    def config(self) -> Config:
        """Everything that decides the run, checked: a mistake raises SettingError."""
        H, shift = _defaults(self.task)
        return make_config(self.task, H=H, shift=shift, **self.settings())

    @property
    def identity(self) -> Config:
        """As of Curve: what decides the training."""
        return identity(self.config)

    @property
    def stop(self) -> Stop:
        return Stop(episodes=self.episodes, until=self.until)

    def settings(self) -> dict[str, Any]:
        names = ("variant", "alpha", "nu", "N", "b", "seed", "eval_episodes")
        return {name: getattr(self, name) for name in names} | {"eval_every": EVAL_EVERY}

    def folder(self, runs: Path) -> Path:
        return runs / self.name

    def met_by(self, curve: Curve) -> bool:
        """Whether the curve says all that the plan asks for."""
        if curve.identity != self.identity or curve.config.eval_episodes < self.eval_episodes:
            return False
        return curve.settled(math.inf if self.until is None else self.until, self.episodes)

    def includes(self, other: "Plan") -> bool:
        """Whether its curve will also meet the other plan."""
        same = replace(other, episodes=self.episodes, eval_episodes=self.eval_episodes, until=self.until) == self
        full = self.until is None and self.episodes >= other.episodes and self.eval_episodes >= other.eval_episodes
        return same and full and self != other


def plan(task: str, variant: str, seed: int, point: Preset | None = None, **more: Any) -> Plan:
    """A run of the reproduction: the preset, or another point, to the task's cap."""
    point = point or preset(task, variant)
    return Plan(task, variant, *point, seed=seed, **{"episodes": CAPS[paper_robot(task)]} | more)


def to_threshold(task: str, variant: str, seed: int, point: Preset | None = None) -> Plan:
    """The same to the task's threshold only, with few rollouts an evaluation: for success rates."""
    return plan(task, variant, seed, point, eval_episodes=FEW_EVAL_EPISODES, until=threshold(task))


def missing(plans: Iterable[Plan], curves: Iterable[Curve]) -> list[Plan]:
    """The plans that no curve meets, each once, and none that another of them includes."""
    there = by_identity(curves)
    todo = [one for one in dict.fromkeys(plans) if not any(one.met_by(c) for c in there.get(one.identity, ()))]
    full = {replace(one, eval_episodes=0): one for one in todo if one.until is None}
    including = (full.get(replace(one, eval_episodes=0, until=None)) for one in todo)
    return [one for one, other in zip(todo, including, strict=True) if other is None or not other.includes(one)]


def found(plans: Iterable[Plan], curves: Iterable[Curve]) -> list[Curve]:
    """For each plan a curve that meets it, or else the furthest; those without one are left out."""
    there = by_identity(curves)
    wanted = {one.identity: one for one in plans}
    return [curve for run, one in wanted.items() for curve in fullest(there.get(run, ()), one.met_by)]


@cache
def _defaults(task: str) -> tuple[int, float]:
    """H and the survival bonus of a task."""
    from ars.tasks import make

    made = make(task)
    try:
        return made.H, made.survival_bonus
    finally:
        made.close()
