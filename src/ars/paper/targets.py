"""The paper's tables and figures: which runs each needs, most important first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ars.experiments.run_specs import FEW_EVAL_EPISODES, Plan, plan, to_threshold
from ars.experiments.seeds import PAPER_SEEDS, draw_seeds
from ars.paper.tables import same_as
from ars.presets import DEFAULT_VARIANTS, THRESHOLDS, grid, paper_robot, preset

MANY = 100  # seeds of figure 3 and tables 6 and 7
MAIN_VARIANTS = {"Swimmer": "V1", "Humanoid": "V2"}  # captions of table 4 and figure 4; V2-t for the rest


class Target(NamedTuple):
    """A table or figure: its title, and its runs for some tasks and seeds (None: the paper's)."""

    title: str
    robots: tuple[str, ...]
    plans: Callable[[Sequence[str], Sequence[int] | None], list[Plan]]


def main_variant(task: str) -> str:
    """The column that tables 2 to 5 are about: V1 on Swimmer, V2 on Humanoid, V2-t elsewhere."""
    return MAIN_VARIANTS.get(paper_robot(task), "V2-t")


def variants(task: str) -> list[str]:
    """The columns of table 1 that differ from each other, the main one first. BRS is ours."""
    main = main_variant(task)
    others = [name for name in ("V2-t", "V2", "V1-t", "V1", "BRS") if name != main]
    return [main, *(name for name in others if same_as(task, name) == name)]


def _three_seeds(tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
    return [plan(task, main_variant(task), seed) for task in tasks for seed in seeds or PAPER_SEEDS]


def _every_variant(tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
    """The main column by the paper's protocol; the others, seed by seed, with few rollouts an evaluation."""
    columns = [(task, name) for task in tasks for name in variants(task)[1:]]
    return _three_seeds(tasks, seeds) + [
        plan(task, name, seed, eval_episodes=FEW_EVAL_EPISODES)
        for seed in seeds or PAPER_SEEDS
        for task, name in columns
    ]


def _many_seeds(tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
    found = []
    for seed in seeds or draw_seeds(MANY):
        found += [to_threshold(task, DEFAULT_VARIANTS[paper_robot(task)], seed) for task in tasks]
    return found


def _grids(tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
    """Those with the preset's N and b first, on all seeds: the plane of alpha and nu."""
    found = []
    for task in tasks:
        variant = "V1" if paper_robot(task) == "Swimmer" else "V2-t"
        own, every = preset(task, variant), grid(paper_robot(task))
        plane = [point for point in every if point[2:] == own[2:]]
        rest = [point for point in every if point[2:] != own[2:]]
        for points in (plane, rest):
            found += [to_threshold(task, variant, seed, point) for seed in seeds or PAPER_SEEDS for point in points]
    return found


def _one_humanoid(tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
    return [plan(task, "V2", seed) for task in tasks for seed in seeds or PAPER_SEEDS[:1]]


def _many_humanoids(tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
    """Figure 1's run, and others to the threshold."""
    first, *others = seeds or seeds_of("table6")
    return _one_humanoid(tasks, (first,)) + (_many_seeds(tasks, others) if others else [])


ALL = tuple(THRESHOLDS)
HUMANOID = ("Humanoid",)
TARGETS = {
    "table1": Target("Episodes to the reward threshold", ALL, _every_variant),
    "table2": Target("Maximum average reward after 10^6 timesteps", ALL[:4], _three_seeds),
    "table3": Target("Maximum average reward after more timesteps", ALL[1:5], _three_seeds),
    "table4": Target("Timesteps to the reward threshold", ALL[:4], _three_seeds),
    "table5": Target("Maximum average reward achieved", ALL, _three_seeds),
    "table6": Target("Time to 6000 on Humanoid, with CPU time", HUMANOID, _many_humanoids),
    "table7": Target("Time to 6000 on Humanoid, by percentile", HUMANOID, _many_humanoids),
    "figure1": Target("sigma_R while training Humanoid", HUMANOID, _one_humanoid),
    "figure2": Target("Training curves over three seeds", ALL, _every_variant),
    "figure3": Target("Training curves over 100 seeds, by percentile", ALL, _many_seeds),
    "figure4": Target("Sensitivity to hyperparameters, by percentile", ALL, _grids),
    "figure5": Target("LQR: nominal control, LSPI and ARS", (), lambda tasks, seeds: []),
}


WITH_MANY_SEEDS = ("figure3", "table6", "table7")


def seeds_of(name: str) -> tuple[int, ...]:
    """The seeds that a target shows."""
    if name not in WITH_MANY_SEEDS:
        return PAPER_SEEDS
    return draw_seeds(MANY) if name == "figure3" else (PAPER_SEEDS[0], *draw_seeds(MANY - 1))


def chosen(name: str, tasks: Sequence[str] | None) -> list[str]:
    """The tasks of a target, narrowed to those asked for; `Hopper` reads as `Hopper-v1`."""
    robots = TARGETS[name].robots
    return [task for task in map(_full, tasks or robots) if paper_robot(task) in robots]


def versions(tasks: Sequence[str] | None) -> list[str]:
    """Which definitions of the robots were asked for: v1, v5 or both."""
    return sorted({_full(task).rpartition("-")[2] for task in tasks or ALL})


def _full(task: str) -> str:
    return task if "-" in task else f"{task}-v1"
