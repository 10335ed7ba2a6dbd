"""Seeds and grids of one task (`ars sweep`), and the choice of hyperparameters as table 1 makes it.

What tuning cost is part of the result (the paper's conclusion): rollouts are counted, evaluations too, and the chosen
point is measured on seeds that tuning has not seen.
"""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from ars import statistics
from ars.config import VARIANTS, finite_number, whole_number
from ars.curves import Curve, load_all
from ars.errors import SettingError
from ars.experiments.engine import Job
from ars.experiments.run_specs import CAPS, EVAL_EPISODES, EVAL_EVERY, Plan, found
from ars.files import safe_name
from ars.presets import Preset, default_variant, grid, preset, robot_of
from ars.presets import threshold as paper_threshold

NAMES = {"alpha": float, "nu": float, "N": int, "b": int}


def points(task: str, variant: str, axes: Sequence[str]) -> list[Preset]:
    """The grid: `alpha=0.01,0.02` for each axis that varies, or `paper` for the whole of the robot's printed grid."""
    base = preset(task, variant)
    if list(axes) == ["paper"]:
        robot = robot_of(task)
        if robot is None:
            raise SettingError(f"grid = paper needs one of the paper's robots, and {task} is none.")
        top = VARIANTS[variant].top_directions
        return [point for point in grid(robot) if top or point.b == point.N]
    if "paper" in axes:
        raise SettingError("grid = paper is the whole grid: give it alone.")
    values: dict[str, list[float]] = {}
    for axis in axes:
        name, equals, text = axis.partition("=")
        if name not in NAMES or not equals or name in values:
            raise SettingError(f"grid = {axis!r} must be alpha=, nu=, N= or b= with values, each once, or paper.")
        try:
            values[name] = [NAMES[name](value) for value in text.split(",")]
        except ValueError as error:
            kind, example = ("numbers", "0.01,0.02") if NAMES[name] is float else ("whole numbers", "4,8")
            raise SettingError(f"grid = {axis!r} must list {kind}, for example {name}={example}.") from error
    result = []
    for combination in product(*values.values()):
        point = Preset(**base._asdict() | dict(zip(values, combination, strict=True)))
        all_directions = not VARIANTS[variant].top_directions
        if "b" not in values and (all_directions or point.b > point.N):  # b is the preset's there, not the user's
            point = point._replace(b=point.N)
        result.append(point)
    if {"N", "b"} <= values.keys():  # as in the paper's grids: the combinations that there are
        result = [point for point in result if point.b <= point.N] or result
    return list(dict.fromkeys(result))


@dataclass(frozen=True)
class Study:
    """A sweep: every point of a grid on every seed; `goal` is the threshold, where there is one."""

    task: str
    variant: str
    seeds: Sequence[int]
    axes: Sequence[str]
    episodes: int
    eval_episodes: int
    goal: float | None
    until_goal: bool
    folder: Path

    def points(self) -> list[Preset]:
        return points(self.task, self.variant, self.axes)

    def plans(self) -> list[Plan]:
        """Seed by seed, so that the first results span the grid."""
        chosen = self.points()
        until = self.goal if self.until_goal else None
        return [
            Plan(self.task, self.variant, *point, seed, self.episodes, self.eval_episodes, until)
            for seed in self.seeds
            for point in chosen
        ]

    def jobs(self) -> list[Job]:
        return [Job(plan, self.folder / "runs", self.folder / "curves") for plan in self.plans()]

    def results(self) -> tuple[list[Curve], list[str]]:
        """Those of its runs that are there, up to its cap and threshold; a sentence for each file that is damaged."""
        until = self.goal if self.until_goal else None
        curves, problems = load_all(self.folder / "curves")
        return [curve.up_to(self.episodes, until) for curve in found(self.plans(), curves)], problems

    def final(self, point: Preset, seeds: Sequence[int]) -> "Study":
        """The chosen point alone, on other seeds."""
        axes = [f"{name}={value!r}" for name, value in point._asdict().items()]
        return replace(self, seeds=[seed for seed in seeds if seed not in self.seeds], axes=axes)


def study(
    task: str,
    *,
    seeds: Sequence[int],
    variant: str | None = None,
    axes: Sequence[str] = (),
    episodes: int | None = None,
    eval_episodes: int = EVAL_EPISODES,
    threshold: float | None = None,
    until_threshold: bool = False,
    out: Path | None = None,
) -> Study:
    """A sweep with the paper's values where none are given."""
    robot = robot_of(task)
    if episodes is None and robot is None:
        raise SettingError(f"{task} has no cap of its own: give --episodes.")
    goal = paper_threshold(task) if threshold is None else finite_number("threshold", threshold)
    if until_threshold and goal is None:
        raise SettingError(f"{task} has no threshold of its own: give --threshold.")
    folder = out or Path("runs") / f"sweep-{safe_name(task)}"
    cap = whole_number("episodes", episodes, 1) if episodes is not None else CAPS[str(robot)]
    chosen = variant or default_variant(task)
    made = Study(task, chosen, seeds, axes, cap, eval_episodes, goal, until_threshold, folder)
    for plan in made.plans():  # a mistake in a point is said before anything runs
        least = 2 * plan.config.N * EVAL_EVERY
        if cap < least:
            raise SettingError(f"episodes = {cap} ends before the first evaluation: N = {plan.N} needs {least}.")
    return made


@dataclass(frozen=True)
class Row:
    """A point of the grid over its seeds; `mean_episodes` to the threshold is infinite unless all seeds arrived."""

    point: Preset
    seeds: int
    reached: int
    mean_episodes: float
    mean_best: float


def ranking(curves: Sequence[Curve], threshold: float | None, seeds: int, points: Sequence[Preset] = ()) -> list[Row]:
    """The points of a grid, best first: least mean episodes to the threshold, then most seeds there, then reward.

    A seed whose run is missing counts as one that never arrived, and a point without any run is the last.
    """
    groups: dict[Preset, list[Curve]] = {point: [] for point in points}
    for curve in curves:
        groups.setdefault(curve.point, []).append(curve)
    rows = []
    for point, group in groups.items():
        goal = math.inf if threshold is None else threshold
        spent = [c.reach(goal) for c in group]
        spent += [math.inf] * (seeds - len(group))
        best = sum(c.best for c in group) / len(group) if group else -math.inf
        reached = sum(map(math.isfinite, spent))
        rows.append(Row(point, seeds, reached, statistics.mean_of_all(spent), best))
    return sorted(rows, key=lambda row: (row.mean_episodes, -row.reached / row.seeds, -row.mean_best))


def rollouts(curves: Sequence[Curve]) -> tuple[int, int]:
    """(of training, of evaluation) that these runs took."""
    evaluated = sum(len(curve.rewards) * curve.config.eval_episodes for curve in curves)
    return sum(curve.episodes for curve in curves), evaluated


def table(rows: Sequence[Row]) -> str:
    """CSV, best point first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*Preset._fields, "seeds", "reached", "mean_episodes", "mean_best"])
    for row in rows:
        episodes = "never" if math.isinf(row.mean_episodes) else f"{row.mean_episodes:.1f}"
        best = "" if math.isinf(row.mean_best) else f"{row.mean_best:.2f}"
        writer.writerow([*row.point, row.seeds, row.reached, episodes, best])
    return text.getvalue()
