"""A run that an experiment needs: its configuration, its end, its name, and whether an existing curve suffices."""

import math
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from ars import subset
from ars.config import PROTOCOLS, Config, shared_settings
from ars.curves import Curve, by_identity, curve_settings, fullest, identity, rounded
from ars.files import safe_name
from ars.presets import make_config, paper_robot, threshold
from ars.searches import Search, search_name
from ars.settings import own_fields
from ars.stopping import Stop

# Episodes after which a run of the reproduction ends in any case: "not reached" is a result.
CAPS = {
    "Swimmer": 500,
    "Hopper": 8000,
    "HalfCheetah": 8000,
    "Walker2d": 40_000,
    "Ant": 40_000,
    "Humanoid": 300_000,
}
EVAL_EPISODES = PROTOCOLS["paper"][1]
FEW_EVAL_EPISODES = 10  # for many seeds or grid points, where 100 would cost more than training


OFTEN = ("average", "duel")  # shared settings that are part of a name where they are on


def run_name(config: Config, also: Iterable[str] = ()) -> str:
    """The name of a run's folder and curve file; `also` are settings that belong to the name, too."""
    values = [f"{name}{setting_of(config, name)!r}" for name in in_name(config, also)]
    values += [f"{name}{getattr(config, name)}" for name in OFTEN if getattr(config, name) and name not in also]
    protocol = "" if config.protocol == "paper" else f"-{config.protocol}"
    few = "" if config.eval_episodes == PROTOCOLS[config.protocol][1] else f"-eval{config.eval_episodes}"
    return f"{safe_name(config.task)}-{config.label}-{'-'.join(values)}-seed{config.seed}{protocol}{few}"


def in_name(config: Config, also: Iterable[str]) -> list[str]:
    """The settings in a run's name: those by which its search is known, and `also`."""
    return list(dict.fromkeys([*(f.name for f in own_fields(config.search) if f.metadata["named"]), *also]))


def setting_of(config: Config, name: str) -> Any:
    """The value of a setting, of the search or shared."""
    return getattr(config.search if name in {f.name for f in own_fields(config.search)} else config, name)


@dataclass(frozen=True)
class RunSpec:
    """One single-threaded run; `until` ends it at a threshold, if only the way there matters. It has a cap of episodes
    or of training timesteps, or both."""

    config: Config
    episodes: int | None
    until: float | None = None
    also: tuple[str, ...] = ()  # more settings that are part of its name
    timesteps: int | None = None
    pause: int | None = None  # timesteps after which it is left for another time; it does not end there

    @property
    def task(self) -> str:
        return self.config.task

    @property
    def name(self) -> str:
        """The name of its folder and curve file, unique to this run."""
        return run_name(self.config, self.also)

    @property
    def identity(self) -> str:
        """What determines the training, as Curve.identity."""
        config = self.config
        return identity(search_name(config.search), config.task, config.seed, curve_settings(config))

    @property
    def stop(self) -> Stop:
        return Stop(episodes=self.episodes, timesteps=self.timesteps, until=self.until)

    @property
    def cap(self) -> tuple[str, int]:
        """What its progress is measured in, and how much of it ends the run."""
        return ("episodes", self.episodes or 1) if self.for_now is None else ("timesteps", self.for_now)

    @property
    def for_now(self) -> int | None:
        """The timesteps that it is to spend: up to its pause, if it has one."""
        return min((end for end in (self.timesteps, self.pause) if end is not None), default=None)

    def share(self, spent: Mapping[str, float]) -> float:
        """The share done, from what has been spent: the episodes and timesteps of a record, for example."""
        what, limit = self.cap
        return min(1.0, spent[what] / limit)

    def settings(self) -> dict[str, Any]:
        """The settings of this run for `ars.train`."""
        return {"search": self.config.search, **{name: getattr(self.config, name) for name in shared_settings()}}

    def met_by(self, curve: Curve) -> bool:
        """Whether the curve has everything that this run needs."""
        if curve.identity != self.identity or curve.eval_episodes < self.config.eval_episodes:
            return False
        goal = None if self.until is None else rounded(self.until)  # as the evaluation that reached it is stored
        return curve.settled(*(math.inf if end is None else end for end in (goal, self.episodes, self.for_now)))

    def includes(self, other: "RunSpec") -> bool:
        """Whether its curve will also be enough for the other run."""
        if self == other or self.until is not None or _training(self) != _training(other):
            return False
        caps = zip((self.episodes, self.for_now), (other.episodes, other.for_now), strict=True)
        longer = all(ours is None or (theirs is not None and ours >= theirs) for ours, theirs in caps)
        return longer and self.config.eval_episodes >= other.config.eval_episodes


def _training(spec: RunSpec) -> Config:
    """What determines the training and when it is evaluated."""
    return replace(spec.config, eval_episodes=1) if spec.config.protocol == "paper" else spec.config


def run_spec(
    task: str, seed: int, *, variant: str | None = None, search: str | Search | None = None,
    episodes: int | None = None, until: float | None = None, **settings: Any,
) -> RunSpec:  # fmt: skip
    """A run by the paper's protocol, unless `settings` have another: the task's preset, overridden by these, up to the
    task's cap."""
    config = config_for(task, search=search, variant=variant, seed=seed, **{"protocol": "paper", **settings})
    return RunSpec(config, CAPS[paper_robot(task)] if episodes is None else episodes, until)


def config_for(task: str, **settings: Any) -> Config:
    """The configuration that `ars.train` would have for a task that is known by name; a subset of the observation
    becomes indices."""
    from ars.tasks.observations import check_text

    observe = subset.ALL if settings.get("observe") is None else settings["observe"]
    check_text(observe)
    own = task_defaults(task, observe)
    given = {name: value for name, value in settings.items() if value is not None}
    return make_config(task, shape=own.shape, **{"H": own.H, "shift": own.shift, **given, "observe": own.observe})


def to_threshold(task: str, seed: int, *, variant: str, **settings: Any) -> RunSpec:
    """The same up to the task's threshold, with few rollouts per evaluation, for success rates."""
    return run_spec(task, seed, variant=variant, until=threshold(task), eval_episodes=FEW_EVAL_EPISODES, **settings)


def missing(specs: Iterable[RunSpec], curves: Iterable[Curve]) -> list[RunSpec]:
    """The runs for which no curve is enough, each once, without those that another of them includes."""
    there = by_identity(curves)
    todo = [one for one in dict.fromkeys(specs) if not any(one.met_by(c) for c in there.get(one.identity, ()))]
    full: dict[Config, list[RunSpec]] = {}
    for one in todo:
        full.setdefault(_training(one), []).append(one)
    return [one for one in todo if not any(other.includes(one) for other in full[_training(one)])]


def choose_curves(specs: Iterable[RunSpec], curves: Iterable[Curve]) -> list[Curve]:
    """For each run a curve that is enough, or the longest; runs without a curve are left out."""
    there = by_identity(curves)
    wanted = {one.identity: one for one in specs}
    return [curve for run, one in wanted.items() for curve in fullest(there.get(run, ()), one.met_by)]


def first_episodes(config: Config) -> int:
    """Training rollouts of the first iteration, which only the search knows."""
    shape = config.shape(*task_defaults(config.task, config.observe).shape)
    return len(config.search.signs) * config.search.size(config.search.initial(shape))


class TaskDefaults(NamedTuple):
    """What a task determines of a configuration."""

    H: int
    shift: float  # the survival bonus
    shape: tuple[int, int]  # p × n of M
    observe: str  # a subset of the observation, as indices


@cache
def task_defaults(task: str, observe: str = subset.ALL) -> TaskDefaults:
    """Those of a task of which policies see a subset."""
    from ars.tasks import make

    with closing(make(task, observe=observe)) as made:
        seen = made.definition().get("observe", subset.ALL)
        return TaskDefaults(made.H, made.survival_bonus, (made.p, made.n), seen)
