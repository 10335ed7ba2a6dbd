"""The learners that are compared, and the runs that the comparison asks for.

A rival is one line of RIVALS; a new kind of learner is one line of LEARNERS.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, NamedTuple

from ars.errors import SettingError
from ars.experiments.seeds import draw_seeds
from ars.experiments.study import ARMS, seen_seeds
from ars.files import parse_json, safe_name
from ars.paper.artefact import main_variant
from ars.paper.reproduce import full_name
from ars.presets import paper_robot
from ars.rivals import zoo
from ars.settings import LARGEST_SEED, shown, whole_number

TASKS = ("Swimmer-v1", "Hopper-v1", "HalfCheetah-v1", "Walker2d-v1")
TIMESTEPS = 10**6
EVERY = 20_000  # timesteps of training between evaluations
EPISODES = 10  # of an evaluation
RANDOM_FEATURES = 250  # of NG-rbf: between the 100 and 500 that its authors name without saying where
MASTER = 1901  # draws the seeds

# Kind → where its function is: learn(spec, evaluated) → Ending.
LEARNERS = {
    "search": "ars.rivals.ours:learn",
    "ng": "ars.rivals.ng_training:learn",
    "sb3": "ars.rivals.external:learn",
}
EXTERNAL = ("sb3",)  # kinds that need the extra `rivals`


class Rival(NamedTuple):
    """A learner, its settings on a task, and the runs of it that are asked for unless others are requested."""

    title: str
    kind: str
    minutes: float  # of one core per 1e6 timesteps with its evaluations: an estimate, until it has been measured
    settings: Callable[[str], Mapping[str, Any]]  # of a task
    seeds: int = 3
    tasks: tuple[str, ...] = TASKS
    algorithm: str = ""  # of stable-baselines3, if it is not the name of the rival


def _search(name: str, **settings: Any) -> Callable[[str], Mapping[str, Any]]:
    return lambda _: {"search": name, **settings}


def _csa(task: str) -> Mapping[str, Any]:
    """As the study of searches recommends it; calm and duel tell its files from those of an earlier csa."""
    short = ARMS["csa-ramp"]
    return {"search": "csa", "calm": 150, "duel": 300, **(short.settings if paper_robot(task) in short.robots else {})}


def _zoo(name: str) -> Callable[[str], Mapping[str, Any]]:
    return lambda task: zoo.settings(name, paper_robot(task))


# Schulman et al. 2017, table 3, with the constant step size that is printed there; running statistics of observations
# and rewards as in baselines' ppo2.
PPO_2017 = {
    "normalize": True, "n_steps": 2048, "learning_rate": 3e-4, "n_epochs": 10, "batch_size": 64, "gamma": 0.99,
    "gae_lambda": 0.95, "clip_range": 0.2, "ent_coef": 0.0,
}  # fmt: skip

# In the order in which they run: cheap and informative first. CEM's N = 200 and its deviation of 1 are those of the
# textbook, N = 10 and what belongs to it those of Pourchot and Sigaud's CEM-RL (2019); the batch of the paper's ES is
# not published. Minutes are from short runs on a busy machine.
RIVALS = {
    "ars": Rival("ARS", "search", 2, lambda task: {"search": "ars", "variant": main_variant(task)}),
    "csa": Rival("csa", "search", 2, _csa),
    "es": Rival("ES, N = 10", "search", 2, _search("es", N=10)),
    "es-40": Rival("ES, N = 40", "search", 2, _search("es", N=40)),
    "cem": Rival("CEM, N = 10", "search", 2, _search(
        "cem", N=10, b=5, nu=10**-1.5, extra=1e-3, extra_least=1e-5, ranked=True,
    )),
    "cem-200": Rival("CEM, N = 200", "search", 2, _search("cem")),
    "es-mlp": Rival("ES, 2 × 64", "search", 6, _search("es", N=40, hidden="64,64")),
    "ng-lin": Rival("NG-lin", "ng", 4, lambda _: {"features": None}),
    "ng-rbf": Rival("NG-rbf", "ng", 8, lambda _: {"features": RANDOM_FEATURES}),
    "ppo": Rival("PPO", "sb3", 20, _zoo("ppo")),
    "ppo-2017": Rival("PPO, 2017", "sb3", 20, lambda _: PPO_2017, algorithm="ppo"),
    "a2c": Rival("A2C", "sb3", 20, _zoo("a2c")),
    "trpo": Rival("TRPO", "sb3", 15, _zoo("trpo")),
    "sac": Rival("SAC", "sb3", 300, _zoo("sac"), 1, ("HalfCheetah-v1", "Hopper-v1")),
    "ddpg": Rival("DDPG", "sb3", 300, _zoo("ddpg"), 1, ("HalfCheetah-v1",)),
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """One run."""

    rival: str
    task: str
    seed: int
    timesteps: int

    @property
    def name(self) -> str:
        return safe_name(f"{self.rival}-{self.task}-seed{self.seed}-{self.timesteps}")

    @property
    def kind(self) -> str:
        return RIVALS[self.rival].kind

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the run, besides its task and seed; a file with other settings is of another run."""
        rules = {"timesteps": self.timesteps, "eval_timesteps": EVERY, "eval_episodes": EPISODES}
        return {**RIVALS[self.rival].settings(self.task), **rules}

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Spec":
        try:
            value = parse_json(text)
            spec = Spec(**value)
        except (TypeError, ValueError, RecursionError) as error:
            raise SettingError(f"{shown(text)} is not a run of ars rivals.") from error
        check([spec.rival], [spec.task])
        whole_number("seed", spec.seed, 0, LARGEST_SEED)
        whole_number("timesteps", spec.timesteps, 1, 10**12)
        return spec


def check(rivals: Sequence[str], tasks: Sequence[str]) -> None:
    """Raise an error for a rival or a task that is not known."""
    for rival in rivals:
        if not isinstance(rival, str) or rival not in RIVALS:
            raise SettingError(f"rivals = {shown(rival)} is unknown: choose from {', '.join(RIVALS)}.")
    for task in tasks:
        if not paper_robot(task) or not task.endswith("-v1"):
            raise SettingError(f"tasks = {shown(task)} is not among the rivals' tasks: choose a -v1 robot.")


def seeds(count: int) -> tuple[int, ...]:
    """The same for all rivals, and none that settings were chosen by."""
    return draw_seeds(count, master=MASTER, but=seen_seeds("Hopper"))


def specs(
    rivals: Sequence[str] | None = None, tasks: Sequence[str] | None = None, count: int | None = None,
    timesteps: int = TIMESTEPS,
) -> list[Spec]:  # fmt: skip
    """The runs that are asked for, in the order in which they run: a rival's first seed on all tasks comes first."""
    named = None if tasks is None else [full_name(task) for task in tasks]
    chosen = list(RIVALS if rivals is None else rivals)
    check(chosen, named or ())
    whole_number("timesteps", timesteps, 1, 10**12)
    listed = []
    for name in chosen:
        rival = RIVALS[name]
        pairs = product(seeds(rival.seeds if count is None else count), named or rival.tasks)
        listed += [Spec(name, task, seed, timesteps) for seed, task in pairs]
    return listed
