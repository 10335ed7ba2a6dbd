"""Seeds and grids of one task (`ars sweep`), and the choice of settings as in table 1.

The cost of tuning is part of the result (the paper's conclusion): all rollouts are counted, evaluations too, and the
chosen point is measured on seeds that were not used for tuning.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ars import statistics
from ars.config import Config, shared_settings
from ars.curves import Curve, load_all
from ars.errors import SettingError
from ars.experiments.engine import Job, Outcome
from ars.experiments.run_specs import CAPS, RunSpec, choose_curves, first_episodes, in_name, run_spec, setting_of
from ars.files import safe_name, write_atomic
from ars.presets import grid, paper_robot, robot_of
from ars.presets import threshold as paper_threshold
from ars.searches import DEFAULT, search_class
from ars.settings import finite_number, own_fields, whole_number

RunJobs = Callable[[Sequence[Job]], list[Outcome]]  # runs what is not done yet
NOT_VARIED = ("seed", "protocol", "eval_every", "eval_episodes", "noise", "table_size", "normalise", "observe",
              "mirror", "steady", "least_timesteps", "ramp", "duel", "over")  # fmt: skip


def axes_of(search: str) -> dict[str, type]:
    """What a grid may vary: the numeric settings of a search, and those that all searches share."""
    own = own_fields(search_class(search))
    shared = [f for f in own_fields(Config) if f.name not in NOT_VARIED]
    return {f.name: f.type for f in (*own, *shared) if f.type in (int, float)}


def points(
    axes: Sequence[str], *, task: str, search: str = DEFAULT, variant: str | None = None
) -> list[dict[str, Any]]:
    """The settings of each point of a grid: `alpha=0.01,0.02` for each axis, or `paper` for the paper's grid."""
    if "paper" in axes:
        if len(axes) > 1:
            raise SettingError("grid = paper is the whole grid and cannot be combined: give it alone.")
        if robot_of(task) is None or search != DEFAULT:
            raise SettingError(f"grid = paper needs one of the paper's robots and the search {DEFAULT}.")
        top = variant is None or variant.endswith("-t")
        return [point._asdict() for point in grid(paper_robot(task)) if top or point.b == point.N]
    known, values = axes_of(search), dict[str, list[Any]]()
    for axis in axes:
        name, equals, text = axis.partition("=")
        if name not in known or not equals or name in values:
            listed = ", ".join(f"{setting}=" for setting in known)
            raise SettingError(f"grid = {axis!r} must be one of {listed} with values, each once, or paper.")
        try:
            values[name] = [known[name](value) for value in text.split(",")]
        except ValueError as error:
            kind, example = ("numbers", "0.01,0.02") if known[name] is float else ("whole numbers", "4,8")
            raise SettingError(f"grid = {axis!r} must list {kind}, for example {name}={example}.") from error
    every = [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]
    if search == DEFAULT and {"N", "b"} <= values.keys():  # only valid combinations, as in the paper's grids
        every = [point for point in every if point["b"] <= point["N"]] or every
    return every


@dataclass(frozen=True)
class Sweep:
    """Every point of a grid on every seed; `goal` is the threshold, if there is one."""

    task: str
    seeds: Sequence[int]
    grid: Sequence[Mapping[str, Any]]  # the settings of each point
    settings: Mapping[str, Any]  # those of all points: search, variant, eval_episodes, …
    episodes: int
    goal: float | None
    until_goal: bool
    folder: Path

    def specs(self) -> list[RunSpec]:
        """All runs, seed by seed, so that the first results span the grid."""
        return list(dict.fromkeys(self._spec(point, seed) for seed in self.seeds for point in self.grid))

    def _spec(self, point: Mapping[str, Any], seed: int) -> RunSpec:
        settings = {**self.settings, **point}
        until = self.goal if self.until_goal else None
        spec = run_spec(self.task, seed, episodes=self.episodes, until=until, **settings)
        also = [name for name in (*shared_settings(), *point) if name in settings and name not in NOT_VARIED]
        return replace(spec, also=tuple(dict.fromkeys(also)))

    def jobs(self) -> list[Job]:
        return [Job(spec, self.folder / "runs", self.folder / "curves") for spec in self.specs()]

    def results(self) -> tuple[list[Curve], list[str]]:
        """The curves of its runs so far, up to its cap and threshold, and a message for each damaged file."""
        until = self.goal if self.until_goal else None
        curves, problems = load_all(self.folder / "curves")
        return [curve.up_to(self.episodes, until) for curve in choose_curves(self.specs(), curves)], problems

    def final(self, chosen: "Row", seeds: Sequence[int]) -> "Sweep":
        """The chosen point alone, on other seeds."""
        others = [seed for seed in seeds if seed not in self.seeds]
        return replace(self, seeds=others, grid=[dict(chosen.point)])

    def chosen(self, row: "Row") -> RunSpec:
        """The run of a point on the first seed."""
        return self._spec(row.point, self.seeds[0])


def make_sweep(
    task: str,
    *,
    seeds: Sequence[int],
    axes: Sequence[str] = (),
    episodes: int | None = None,
    threshold: float | None = None,
    until_threshold: bool = False,
    out: Path | None = None,
    **settings: Any,
) -> Sweep:
    """A sweep with the paper's values as defaults; `settings` are those of `ars.train`."""
    robot = robot_of(task)
    if episodes is None and robot is None:
        raise SettingError(f"{task} has no default cap: give --episodes.")
    goal = paper_threshold(task) if threshold is None else finite_number("threshold", threshold)
    if until_threshold and goal is None:
        raise SettingError(f"{task} has no default threshold: give --threshold.")
    cap = whole_number("episodes", episodes, 1) if episodes is not None else CAPS[str(robot)]
    given = {name: value for name, value in settings.items() if value is not None}
    every = points(axes, task=task, search=given.get("search", DEFAULT), variant=given.get("variant"))
    folder = out or Path("runs") / f"sweep-{safe_name(task)}"
    made = Sweep(task, seeds, every, given, cap, goal, until_threshold, folder)
    for spec in made.specs():  # report an invalid point before anything runs
        least = first_episodes(spec.config) * spec.config.eval_every
        if cap < least:
            raise SettingError(
                f"episodes = {cap} ends before the first evaluation of {spec.name}, which needs {least}."
            )
    return made


@dataclass(frozen=True)
class Row:
    """A point of the grid over its seeds; `mean_episodes` to the threshold is infinite unless all seeds reached it."""

    point: Mapping[str, Any]  # its settings
    seeds: int
    reached: int
    mean_episodes: float
    mean_best: float  # over seeds, of each run's best evaluation, itself the mean of its rollouts


def ranking(curves: Sequence[Curve], threshold: float | None, specs: Sequence[RunSpec]) -> list[Row]:
    """The points of a grid, best first: by mean episodes to the threshold, then seeds that reached it, then reward.

    `specs` are the runs of all points on all seeds. A missing run counts as one that never reached the threshold, and a
    point without any run is ranked last.
    """
    there = {curve.identity: curve for curve in curves}
    points: dict[tuple[tuple[str, Any], ...], list[Curve | None]] = {}
    for spec in specs:
        points.setdefault(_point(spec), []).append(there.get(spec.identity))
    goal = math.inf if threshold is None else threshold
    rows = []
    for point, runs in points.items():
        made = [run for run in runs if run is not None]
        spent = [math.inf if run is None else run.reach(goal) for run in runs]
        best = sum(run.best for run in made) / len(made) if made else -math.inf
        reached = sum(map(math.isfinite, spent))
        rows.append(Row(dict(point), len(runs), reached, statistics.mean_of_all(spent), best))
    return sorted(rows, key=lambda row: (row.mean_episodes, -row.reached / row.seeds, -row.mean_best))


def _point(spec: RunSpec) -> tuple[tuple[str, Any], ...]:
    """What identifies a point: the settings that are part of its name."""
    return tuple((name, setting_of(spec.config, name)) for name in in_name(spec.config, spec.also))


def rollouts(curves: Sequence[Curve]) -> tuple[int, int]:
    """The (training, evaluation) rollouts of these runs."""
    evaluated = sum(len(curve.rewards) * curve.eval_episodes for curve in curves)
    return sum(curve.episodes for curve in curves), evaluated


def table(rows: Sequence[Row]) -> str:
    """CSV, best point first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*rows[0].point, "seeds", "reached", "mean_episodes", "mean_best"])
    for row in rows:
        episodes = "never" if math.isinf(row.mean_episodes) else f"{row.mean_episodes:.1f}"
        best = "" if math.isinf(row.mean_best) else f"{row.mean_best:.2f}"
        writer.writerow([*row.point.values(), row.seeds, row.reached, episodes, best])
    return text.getvalue()


@dataclass(frozen=True)
class Result:
    """The result of a sweep: the points, best first, their rollouts, and what went wrong."""

    rows: Sequence[Row]
    spent: tuple[int, int]
    outcomes: Sequence[Outcome]
    problems: Sequence[str] = field(default=())


def run_sweep(sweep: Sweep, run: RunJobs, *, name: str = "sweep.csv") -> Result:
    """Run what is missing, and write the table of points into the sweep's folder."""
    outcomes = run(sweep.jobs())
    curves, problems = sweep.results()
    rows = ranking(curves, sweep.goal, sweep.specs())
    write_atomic(sweep.folder / name, table(rows).encode())
    return Result(rows, rollouts(curves), outcomes, problems)
