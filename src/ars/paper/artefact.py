"""What tables and figures share: their form, tables as text, the choice of runs, and common cells."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ars import statistics as st
from ars.curves import Curve, fullest
from ars.experiments.run_specs import RunSpec, choose_curves, run_spec
from ars.experiments.seeds import PAPER_SEEDS, draw_seeds
from ars.presets import THRESHOLDS, paper_robot

ROBOTS = tuple(THRESHOLDS)
MANY = draw_seeds(100)  # the seeds of figure 3, and all but one of tables 6 and 7
MAIN_VARIANTS = {"Swimmer": "V1", "Humanoid": "V2"}  # captions of table 4 and figure 4; V2-t for the rest
PERCENTILES = (10, 25, 50, 75)  # of table 7
ENOUGH = 8  # runs for percentiles; of fewer each is shown
NOTHING = "–"  # no run yet


@dataclass(frozen=True)
class Shown:
    """What a table or figure is drawn from: all available curves, and the tasks, seeds and runs that it shows."""

    curves: Sequence[Curve]
    tasks: Sequence[str]
    seeds: Sequence[int]
    caps: Mapping[str, int]  # task → episodes after which its runs end
    specs: Sequence[RunSpec] = ()
    out: Path = Path("results")

    def by_task(self) -> dict[str, list[Curve]]:
        """The curves of the runs in `specs`."""
        chosen = choose_curves(self.specs, self.curves)
        return {task: [curve for curve in chosen if curve.task == task] for task in self.tasks}

    def wanted(self) -> dict[str, int]:
        """How many runs of each task are in `specs`."""
        return {task: sum(spec.task == task for spec in self.specs) for task in self.tasks}


@dataclass(frozen=True)
class Artefact:
    """A table or figure. `runs(tasks, seeds)` are the runs that it needs, most important first, and `then` those that
    depend on the outcome of others; `draw` returns the contents of its files by their paths in the results folder,
    empty if there is nothing to draw."""

    title: str
    robots: tuple[str, ...]
    runs: Callable[[Sequence[str], Sequence[int]], list[RunSpec]]
    draw: Callable[[Shown], dict[str, bytes]]
    seeds: tuple[int, ...] = PAPER_SEEDS
    many: bool = False  # whether the user may request only the first few of its seeds
    files: tuple[str, ...] = ()  # the main files for the index, if they are not named after it
    then: Callable[[Sequence[str], Sequence[int], Sequence[Curve]], list[RunSpec]] | None = None
    beyond: bool = False  # whether the paper does not have it
    whole: bool = False  # whether it shows runs beyond the caps of the others


@dataclass(frozen=True)
class Table:
    """Cells are text; `notes` are printed below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())

    def markdown(self) -> str:
        lines = [f"# {self.title}", "", f"| {' | '.join(self.columns)} |", f"|---|{'--:|' * (len(self.columns) - 1)}"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def files(self, name: str) -> dict[str, bytes]:
        return {f"tables/{name}.md": self.markdown().encode(), f"tables/{name}.csv": self.csv().encode()}


def main_variant(task: str) -> str:
    """The variant of tables 2 to 5: V1 on Swimmer, V2 on Humanoid, V2-t elsewhere."""
    return MAIN_VARIANTS.get(paper_robot(task), "V2-t")


def main_runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """The main variant by the paper's protocol."""
    return [run_spec(task, seed, variant=main_variant(task)) for task in tasks for seed in seeds]


def pick(
    curves: Sequence[Curve], task: str, variant: str, seeds: Sequence[int], goal: tuple[float, int] | None = None
) -> list[Curve]:
    """The runs of a variant with its preset, each once. With a goal, (threshold, cap), a curve whose outcome is known
    is preferred to one with more evaluation rollouts."""
    wanted = {run_spec(task, seed, variant=variant).identity for seed in seeds}
    chosen = (curve for curve in curves if curve.task == task and curve.identity in wanted)
    return fullest(chosen, lambda curve: goal is not None and curve.settled(*goal))


def threshold_cell(
    curves: Sequence[Curve], threshold: float, cap: int, wanted: int, what: str, show: Callable[[float], str]
) -> str:
    """The mean if every run reached the threshold, otherwise how many did, what each spent, and how many are still
    running."""
    if not curves:
        return NOTHING
    spent = [curve.reach(threshold, what) for curve in curves]
    reached = sorted(filter(math.isfinite, spent))
    if len(reached) == len(curves):
        return f"{show(st.mean_of_all(spent))}{few_seeds(curves, wanted)}"
    known = sum(curve.settled(threshold, cap) for curve in curves)
    each = f": {', '.join(map(show, reached))}" if reached else ""
    parts = [f"{len(reached)} of {known}{each}"] if known else []
    return "; ".join(parts + ([f"{len(curves) - known} under way"] if known < len(curves) else []))


def success_cell(spent: Sequence[float]) -> str:
    """The share of runs that arrived with Wilson's interval; as a count if there are few."""
    low, high = st.success_interval(spent)
    share = f"{st.success_rate(spent):.0%}" if len(spent) >= ENOUGH else f"{np.isfinite(spent).sum()} of {len(spent)}"
    return f"{share} [{low:.0%}, {high:.0%}]"


def episodes_cell(episodes: float) -> str:
    return "never" if math.isinf(episodes) else f"{episodes:.0f}"


def median_cell(spent: Sequence[float]) -> str:
    """The median with its interval by order statistics, unless there are too few runs."""
    if len(spent) < ENOUGH:
        return NOTHING
    low, high = st.median_interval(spent)
    return f"{episodes_cell(float(st.percentile(spent, 50)))} [{episodes_cell(low)}, {episodes_cell(high)}]"


def few_seeds(curves: Sequence[Curve], wanted: int) -> str:
    """How many seeds there are, if some are missing."""
    return f" ({len(curves)} seed{'s' if len(curves) > 1 else ''})" if len(curves) < wanted else ""


def scientific(value: float) -> str:
    """1.60e5, as in the paper's tables."""
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}"
