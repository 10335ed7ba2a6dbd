"""The study of searches (`ars study searches`) as data: its arms, stages and runs.

Settings are chosen on the seeds of the tuning stage, with one rule for all tasks; the chosen arms are then compared
with ARS on seeds that tuning has not seen. All arms have equal timesteps and equal evaluations.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ars.config import shared_settings
from ars.experiments.run_specs import CAPS, RunSpec, task_defaults
from ars.experiments.seeds import draw_seeds
from ars.presets import THRESHOLDS, make_config, paper_robot, threshold

ROBOTS = tuple(THRESHOLDS)
SMALL = tuple(robot for robot in ROBOTS if robot != "Humanoid")  # n·p up to 1000: for a full covariance


class Arm(NamedTuple):
    """A search with its settings as a function of n·p, the same on every task. Those of ARS are the paper's preset."""

    search: str
    settings: Callable[[int], Mapping[str, Any]] = lambda _: {}
    robots: tuple[str, ...] = ROBOTS


ARMS = {
    "ars": Arm("ars"),
    "csa": Arm("csa", lambda _: {"nu": 0.03}),
    "csa-slow": Arm("csa", lambda _: {"nu": 0.02}),
    "csa-grow": Arm("csa", lambda _: {"nu": 0.03, "growth": 0.1}),
    "csa-24": Arm("csa", lambda _: {"nu": 0.03, "N": 24}),
    "cma": Arm("cma", lambda _: {"nu": 0.03}, SMALL),
    "sep-cma": Arm("sep-cma", lambda _: {"nu": 0.03}),
    "clipup": Arm("clipup"),
    "es": Arm("es"),
    "cem": Arm("cem"),
    "cem-small": Arm("cem", lambda _: {"nu": 0.0316, "N": 10, "b": 5, "extra": 1e-3, "ranked": True}),
}


class Stage(NamedTuple):
    """Which seeds, how long, and the arms that run unless others are requested."""

    master: int  # draws the seeds
    seeds: Mapping[str, int]  # robot → how many
    timesteps: Mapping[str, int]  # robot → training timesteps of a run
    episodes: Mapping[str, int]  # robot → a cap as well; the one that comes first ends the run
    arms: tuple[str, ...]


STAGES = {
    "tuning": Stage(1601, dict.fromkeys(ROBOTS, 4), dict.fromkeys(ROBOTS, 10**6), {}, tuple(ARMS)),
    "held-out": Stage(
        1602,
        {"Swimmer": 20, "Hopper": 20, "HalfCheetah": 20, "Walker2d": 20, "Ant": 5, "Humanoid": 3},
        {"Swimmer": 3 * 10**6, "Hopper": 3 * 10**6, "HalfCheetah": 3 * 10**6, "Walker2d": 10**7, "Ant": 10**7,
         "Humanoid": 2 * 10**7},
        {"Walker2d": CAPS["Walker2d"]},
        ("ars", "csa", "sep-cma"),  # ARS and the best two of tuning
    ),
}  # fmt: skip
PROTOCOL = "frugal"  # an evaluation costs all arms a tenth of training, and the threshold is confirmed by 100 rollouts
BUDGETS = (10**6, 3 * 10**6, 10**7, 2 * 10**7)  # timesteps at which rewards are compared


def study_seeds(stage: str, robot: str) -> tuple[int, ...]:
    """The seeds of a stage; those of tuning are never among the held-out ones."""
    used = () if stage == "tuning" else study_seeds("tuning", robot)
    return draw_seeds(STAGES[stage].seeds[robot], master=STAGES[stage].master, but=used)


def study_spec(stage: str, task: str, arm: str, seed: int) -> RunSpec:
    """One run: to the paper's threshold, or the timesteps of its stage."""
    chosen, robot = STAGES[stage], paper_robot(task)
    H, shift, (p, n) = task_defaults(task)
    search, settings, _ = ARMS[arm]
    given = settings(n * p)
    config = make_config(task, search=search, seed=seed, **{"H": H, "shift": shift, "protocol": PROTOCOL, **given})
    also = tuple(name for name in shared_settings() if name in given)
    return RunSpec(config, chosen.episodes.get(robot), threshold(task), also, chosen.timesteps[robot])


def study_specs(stage: str, task: str, arm: str) -> list[RunSpec]:
    """The runs of an arm on a task, one per seed; none if the arm does not have it."""
    robot = paper_robot(task)
    seeds = study_seeds(stage, robot) if robot in ARMS[arm].robots else ()
    return [study_spec(stage, task, arm, seed) for seed in seeds]
