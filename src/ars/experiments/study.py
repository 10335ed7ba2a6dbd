"""The study of searches (`ars study searches`) as data: its arms, stages and runs.

Settings are chosen on the seeds of the tuning stage, with one rule for all tasks; the chosen arms are then compared
with ARS on seeds that tuning has not seen. All arms have equal timesteps and equal evaluations.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ars.config import shared_settings
from ars.experiments.run_specs import RunSpec, config_for
from ars.experiments.seeds import draw_seeds
from ars.presets import THRESHOLDS, paper_robot, threshold

ROBOTS = tuple(THRESHOLDS)
SMALL = tuple(robot for robot in ROBOTS if robot != "Humanoid")  # n·p up to 1000: for a full covariance


class Arm(NamedTuple):
    """A search with its settings, the same on every task. Those of ARS are the paper's preset."""

    search: str
    settings: Mapping[str, Any] = {}
    robots: tuple[str, ...] = ROBOTS


# Positions and velocities alone, without inertias, contact forces and the like.
BARE = ("Ant", "Humanoid")
STEADY = {"normalise": True, "steady": True}
# With its defaults csa learns to fall on Ant: its controls cost more than falling does. Small noise, and the better
# halves of the best of many pairs, keep the robot on its feet (docs/observe.md).
UPRIGHT = {"nu": 0.02, "N": 22, "share": 0.5, "both": False, "stride": 1.0, "calm": 0, "duel": 0}
ARMS = {
    "ars": Arm("ars"),
    "ars-steady": Arm("ars", STEADY),
    "csa": Arm("csa"),
    "csa-ramp": Arm("csa", {"ramp": 3000, "stride": 1.0}, ("HalfCheetah",)),  # they harm Hopper and Swimmer
    "csa-grow": Arm("csa", {"growth": 1.0}),
    "csa-better": Arm("csa", {"both": False, "share": 0.5, "stride": 1.0}),
    "cma": Arm("cma", robots=SMALL),
    "sep-cma": Arm("sep-cma"),
    "clipup": Arm("clipup"),
    "es": Arm("es"),
    "cem": Arm("cem"),
    "ars-observe": Arm("ars", {**STEADY, "observe": "qpos,qvel"}, BARE),
    "csa-observe": Arm("csa", {"observe": "qpos,qvel", **UPRIGHT}, BARE),
}


class Stage(NamedTuple):
    """Which seeds, how long, and the arms that run unless others are requested."""

    master: int  # draws the seeds
    seeds: Mapping[str, int]  # robot → how many
    timesteps: Mapping[str, int]  # robot → training timesteps of a run
    arms: tuple[str, ...]


STAGES = {
    "tuning": Stage(1601, dict.fromkeys(ROBOTS, 4), dict.fromkeys(ROBOTS, 10**6), tuple(ARMS)),
    "held-out": Stage(
        1603,
        {"Swimmer": 20, "Hopper": 20, "HalfCheetah": 20, "Walker2d": 20, "Ant": 5, "Humanoid": 3},
        {"Swimmer": 3 * 10**6, "Hopper": 3 * 10**6, "HalfCheetah": 3 * 10**6, "Walker2d": 10**7, "Ant": 10**7,
         "Humanoid": 2 * 10**7},
        ("ars", "csa", "csa-ramp", "ars-observe", "csa-observe"),  # what the trials of csa led to (docs/searches.md)
    ),
}  # fmt: skip
# How many held-out seeds there were then. What is drawn depends on it, so it does not follow the stage.
FORMER = {"Swimmer": 20, "Hopper": 20, "HalfCheetah": 20, "Walker2d": 20, "Ant": 5, "Humanoid": 3}
PROTOCOL = "frugal"  # an evaluation costs all arms a tenth of training, and the threshold is confirmed by 100 rollouts
BUDGETS = (10**6, 3 * 10**6, 10**7, 2 * 10**7)  # timesteps at which rewards are compared


def study_seeds(stage: str, robot: str) -> tuple[int, ...]:
    """The seeds of a stage; those of tuning are never among the held-out ones, nor those that chose `duel`."""
    used = () if stage == "tuning" else seen_seeds(robot)
    return draw_seeds(STAGES[stage].seeds[robot], master=STAGES[stage].master, but=used)


def seen_seeds(robot: str) -> tuple[int, ...]:
    """The seeds on which settings were chosen: those of tuning, and the held-out ones until duels were built, by whose
    curves the age of duels was chosen."""
    tuning = study_seeds("tuning", robot)
    return *tuning, *draw_seeds(FORMER[robot], master=1602, but=tuning)


def study_spec(stage: str, task: str, arm: str, seed: int) -> RunSpec:
    """One run: to the paper's threshold, or the timesteps of its stage."""
    search, settings, _ = ARMS[arm]
    config = config_for(task, search=search, seed=seed, protocol=PROTOCOL, **settings)
    in_label = ("normalise", "steady", "observe")
    also = tuple(name for name in shared_settings() if name in settings and name not in in_label)
    return RunSpec(config, None, threshold(task), also, STAGES[stage].timesteps[paper_robot(task)])


def study_specs(stage: str, task: str, arm: str) -> list[RunSpec]:
    """The runs of an arm on a task, one per seed; none if the arm does not have it."""
    robot = paper_robot(task)
    seeds = study_seeds(stage, robot) if robot in ARMS[arm].robots else ()
    return [study_spec(stage, task, arm, seed) for seed in seeds]
