"""A run that an experiment asks for: its settings, its name, and whether a curve that is there already will do."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ars.config import Config
from ars.presets import Preset, preset, robot_of, threshold
from ars.report.curves import IDENTITY, Curve
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


def safe(task: str) -> str:
    """A task's name as part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in task)


def run_name(settings: "Plan | Config") -> str:
    """Of a run's folder and its small file."""
    few = "" if settings.eval_episodes == EVAL_EPISODES else f"-eval{settings.eval_episodes}"
    point = f"alpha{settings.alpha:g}-nu{settings.nu:g}-N{settings.N}-b{settings.b}"
    return f"{safe(settings.task)}-{settings.variant}-{point}-seed{settings.seed}{few}"


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
    def identity(self) -> tuple[Any, ...]:
        """As of Curve: what decides the training."""
        return tuple(getattr(self, name) for name in IDENTITY)

    @property
    def preset(self) -> Preset:
        return Preset(self.alpha, self.nu, self.N, self.b)

    @property
    def stop(self) -> Stop:
        return Stop(episodes=self.episodes, until=self.until)

    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in IDENTITY if name != "task"} | {
            "eval_every": EVAL_EVERY,
            "eval_episodes": self.eval_episodes,
        }

    def folder(self, runs: Path) -> Path:
        return runs / self.name

    def met_by(self, curve: Curve) -> bool:
        """Whether the curve says all that the plan asks for."""
        same = curve.identity == self.identity and curve.config.eval_every == EVAL_EVERY
        if not same or curve.config.eval_episodes < self.eval_episodes:
            return False
        arrived = self.until is not None and curve.best >= self.until
        return arrived or curve.episodes >= self.episodes or curve.status not in ("finished", "unfinished")


def plan(task: str, variant: str, seed: int, point: Preset | None = None, **more: Any) -> Plan:
    """A run of the reproduction: the preset, or another point, to the task's cap."""
    point = point or preset(task, variant)
    return Plan(task, variant, *point, seed=seed, **{"episodes": CAPS[robot_of(task) or "Humanoid"]} | more)


def to_threshold(task: str, variant: str, seed: int, point: Preset | None = None) -> Plan:
    """The same to the task's threshold only, with few rollouts an evaluation: for success rates."""
    return plan(task, variant, seed, point, eval_episodes=FEW_EVAL_EPISODES, until=threshold(task))


def missing(plans: Iterable[Plan], curves: Iterable[Curve]) -> list[Plan]:
    """The plans that no curve meets, each once."""
    there: dict[tuple[Any, ...], list[Curve]] = {}
    for curve in curves:
        there.setdefault(curve.identity, []).append(curve)
    return [one for one in dict.fromkeys(plans) if not any(one.met_by(c) for c in there.get(one.identity, ()))]


def found(plans: Iterable[Plan], curves: Iterable[Curve]) -> list[Curve]:
    """For each plan its furthest curve, finished or not; those without one are left out."""
    there: dict[tuple[Any, ...], Curve] = {}
    for curve in curves:
        known = there.get(curve.identity)
        rank = (curve.config.eval_episodes, curve.episodes)
        if known is None or rank > (known.config.eval_episodes, known.episodes):
            there[curve.identity] = curve
    wanted = dict.fromkeys(one.identity for one in plans)
    return [there[identity] for identity in wanted if identity in there]
