"""The study of searches: which runs a request needs, and its table and figure, drawn from the curve files alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ars import statistics as st
from ars.curves import Curve, load_all
from ars.errors import SettingError
from ars.experiments.run_specs import RunSpec, choose_curves, missing
from ars.experiments.study import ARMS, BUDGETS, ROBOTS, STAGES, study_specs
from ars.files import make_folder, write_atomic
from ars.paper.artefact import NOTHING, Table, scientific
from ars.paper.reproduce import full_name
from ars.presets import THRESHOLDS, paper_robot
from ars.searches import search_settings
from ars.settings import in_words, whole_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OUT = Path("results/searches")
# Wong et al. 2024, linear policies on -v4: timesteps, and mean, lowest and highest of 10 seeds after these. A maximum
# over repeated tests of 10 episodes each, with tuned population and first step: an upper bound. None: not printed.
PUBLISHED: dict[str, dict[str, tuple[int, float, float | None, float | None]]] = {
    "Swimmer": {"csa": (10**6, 361, 358, 362), "cma": (10**6, 351, 267, 362), "sep-cma": (10**6, 342, 183, 361)},
    "Hopper": {
        "csa": (10**6, 2960, 2680, 3140), "cma": (10**6, 2880, 2620, 3130), "sep-cma": (10**6, 2720, 1420, 2970),
    },
    "HalfCheetah": {
        "csa": (10**6, 3500, 2120, 4240), "cma": (10**6, 3500, 1920, 4640), "sep-cma": (10**6, 3430, None, None),
    },
    "Walker2d": {
        "csa": (10**6, 1660, 511, 3200), "cma": (10**6, 1960, 563, 3030), "sep-cma": (10**6, 2100, 694, 2730),
    },
    "Ant": {
        "csa": (10**7, 2730, 2370, 3190), "cma": (10**7, 2820, 2260, 3510), "sep-cma": (10**7, 2680, None, None),
    },
    "Humanoid": {"csa": (10**7, 822, None, None), "sep-cma": (10**7, 830, None, None)},
}  # fmt: skip
COLUMNS = (
    "task", "arm", "seeds", "reached", "Wilson 95%", "timesteps to it, median", "95% of the median",
    "CPU s to it, median", *(f"reward at {budget:.0e}".replace("e+0", "e") for budget in BUDGETS), "CPU s per run",
)  # fmt: skip
LEAST_SHOWN = 0.2  # of the threshold, below zero
POINTS = 200  # per curve of the figure


@dataclass(frozen=True)
class Study:
    """A request for one stage; the same functions run it as those of `ars reproduce`."""

    stage: str
    out: Path
    names: Sequence[str]  # tasks
    arms: Sequence[str]
    pause: int | None = None  # timesteps after which runs are left for another time

    def specs(self, name: str) -> list[RunSpec]:
        """The runs of a task, the first seed of all arms first."""
        by_seed = zip_longest(*(study_specs(self.stage, name, arm) for arm in self.arms))
        return [replace(spec, pause=self.pause) for spec in chain(*by_seed) if spec is not None]

    def curves(self) -> list[Curve]:
        return load_all(self.out / "runs")[0]

    def to_do(self) -> list[RunSpec]:
        """The missing runs, each task in turn, so that the first results span the tasks."""
        by_task = zip_longest(*(self.specs(name) for name in self.names))
        return missing((spec for spec in chain(*by_task) if spec is not None), self.curves())

    def needs_lqr(self) -> bool:
        return False


def make_study(
    stage: str, *, out: Path = OUT, tasks: Sequence[str] | None = None, arms: Sequence[str] | None = None,
    pause: int | None = None,
) -> Study:  # fmt: skip
    """A stage of the study, or a part of it; `Hopper` means `Hopper-v1`."""
    if stage not in STAGES:
        raise SettingError(f"stage = {stage!r} is unknown: choose one of {', '.join(STAGES)}.")
    names = [full_name(task) for task in tasks or ROBOTS]
    for name in names:
        paper_robot(name)  # raises an error for other tasks
    chosen = tuple(arms or STAGES[stage].arms)
    for arm in chosen:
        if arm not in ARMS:
            raise SettingError(f"arms = {arm} is unknown: choose from {', '.join(ARMS)}.")
    if pause is not None:
        whole_number("pause", pause, 1, 10**12)
    return Study(stage, out, names, chosen, pause)


def draw_study(study: Study, *, say: Callable[[str], None] = print, warn: Callable[[str], None] = print) -> None:
    """Write the table and figure of the whole stage, whichever part of it was requested."""
    from ars.plotting import image_files

    curves, problems = load_all(study.out / "runs")
    for problem in problems:
        warn(f"Left out: {problem}")
    study = _whole(study, curves)
    if not study.names:
        say(f"The stage {study.stage} has no results yet: run ars study searches --stage {study.stage}.")
        return
    drawn, name = table(study, curves), study.stage
    files = {f"{name}.md": drawn.markdown().encode(), f"{name}.csv": drawn.csv().encode()}
    files[f"{name}-summary.md"] = summary(study, curves).markdown().encode()
    make_folder(study.out)
    for file, content in {**files, **image_files(name, lambda: plot(study, curves))}.items():
        write_atomic(study.out / file, content)
        say(str(study.out / file))


def _whole(study: Study, curves: Sequence[Curve]) -> Study:
    """All tasks and arms of its stage that have results."""
    there = {curve.identity for curve in curves}
    tasks = dict.fromkeys([*map(full_name, ROBOTS), *study.names])
    found = {
        (task, arm)
        for task in tasks
        for arm in ARMS
        if any(spec.identity in there for spec in study_specs(study.stage, task, arm))
    }
    kept = {name for pair in found for name in pair}
    names, arms = [task for task in tasks if task in kept], [arm for arm in ARMS if arm in kept]
    return replace(study, names=names, arms=arms)


# -- the table -----------------------------------------------------------------------------------------------------


def table(study: Study, curves: Sequence[Curve]) -> Table:
    """A row per task and arm, and the published values below each task."""
    rows = []
    for task in study.names:
        for arm in study.arms:
            if specs := study_specs(study.stage, task, arm):
                rows.append([task, arm, *cells(specs, curves)])
        rows += _published(task, study.arms)
    return Table(f"Searches: {study.stage} seeds", COLUMNS, rows, (*_settings(study), NOTE))


def summary(study: Study, curves: Sequence[Curve]) -> Table:
    """For the README: a row per task, a column per arm."""
    rows = []
    for task in study.names:
        row = [task, f"{THRESHOLDS[paper_robot(task)]:g}"]
        for arm in study.arms:
            specs = study_specs(study.stage, task, arm)
            seeds, reached, _, median, _, _, reward, *_ = cells(specs, curves) if specs else [NOTHING] * 7
            _, comma, under_way = seeds.partition(", ")
            row.append(
                NOTHING if reached == NOTHING else f"{reached}{comma}{under_way} ({median}); {reward.partition(' ')[0]}"
            )
        rows.append(row)
    note = (
        "Seeds that reached the threshold (median timesteps to it, over the runs that have ended); mean reward at 1e6 "
        f"timesteps, over all that have spent them. {BIAS}"
    )
    return Table(f"Searches: {study.stage} seeds", ("task", "threshold", *study.arms), rows, (note,))


BIAS = "While runs are under way, the share of those that reached it is too high, because they end sooner."
NOTE = (
    "Reached: the paper's threshold, by an evaluation of the mean policy, within the timesteps of the stage, with "
    "Wilson's interval. Timesteps to it: the median over all runs that have ended, in which never is infinite, with "
    "the interval between two order statistics that covers the median 95% of the time (from 6 runs on). Rewards: the "
    "latest evaluation at a budget, mean (least to most); a run ends when it reaches the threshold, and its last "
    "evaluation counts from then on. CPU seconds are the wall-clock time of one thread, evaluations included: an upper "
    f"bound of its CPU time. Only runs that have ended or spent a budget count. {BIAS} Wong: Wong et al. 2024, `-v4`, "
    "a maximum over repeated tests with tuned settings, hence an upper bound."
)


def cells(specs: Sequence[RunSpec], curves: Sequence[Curve]) -> list[str]:
    """The cells of an arm on a task, after its name."""
    [goal] = {THRESHOLDS[paper_robot(spec.task)] for spec in specs}
    there = choose_curves(specs, curves)
    by_identity = {spec.identity: spec for spec in specs}
    done = [curve for curve in there if by_identity[curve.identity].met_by(curve)]
    under_way = f", {len(there) - len(done)} under way" if len(there) > len(done) else ""
    count = f"{len(done)} of {len(specs)}{under_way}"
    rewards = [_reward(there, goal, budget, specs[0].timesteps or math.inf) for budget in BUDGETS]
    if not done:
        return [count, *[NOTHING] * 5, *rewards, NOTHING]
    spent = [curve.reach(goal, "timesteps") for curve in done]
    low, high = st.success_interval(spent)
    least, most = st.median_interval(spent)
    between = NOTHING if math.isnan(least) else f"{_spent(least)} to {_spent(most)}"
    seconds = float(st.percentile([curve.reach(goal, "seconds") for curve in done], 50))
    return [
        count, f"{np.isfinite(spent).sum()} of {len(done)}", f"{low:.0%} to {high:.0%}",
        _spent(float(st.percentile(spent, 50))), between, "never" if math.isinf(seconds) else f"{seconds:.0f}",
        *rewards, f"{np.mean([curve.seconds for curve in done]):.0f}",
    ]  # fmt: skip


def _spent(timesteps: float) -> str:
    return "never" if math.isinf(timesteps) else scientific(timesteps)


def _reward(curves: Sequence[Curve], goal: float, budget: int, most: float) -> str:
    """Mean, least and most at a budget, of the runs whose reward there is known."""
    known = [curve for curve in curves if curve.rewards.size and curve.settled(goal, math.inf, budget)]
    if budget > most or not known:
        return NOTHING
    values = [float(st.resample(curve.columns["at_timesteps"], curve.rewards, budget)) for curve in known]
    values = [value for value in values if not math.isnan(value)]  # NaN: its first evaluation comes later
    return f"{np.mean(values):.0f} ({min(values):.0f} to {max(values):.0f})" if values else NOTHING


def _published(task: str, arms: Sequence[str]) -> list[list[str]]:
    rows = []
    for search, (budget, mean, low, high) in PUBLISHED[paper_robot(task)].items():
        if search not in {ARMS[arm].search for arm in arms}:
            continue
        spread = "" if low is None or high is None else f" ({low:g} to {high:g})"
        rewards = [f"{mean:g}{spread}" if one == budget else NOTHING for one in BUDGETS]
        rows.append([task, f"{search}, Wong", "10", *[NOTHING] * 5, *rewards, NOTHING])
    return rows


def _settings(study: Study) -> list[str]:
    """Every arm with its settings on each task, where they differ."""
    notes = []
    for arm in study.arms:
        listed: dict[str, list[str]] = {}
        for task in study.names:
            for spec in study_specs(study.stage, task, arm)[:1]:
                shared = {name: getattr(spec.config, name) for name in spec.also}
                pairs = {**search_settings(spec.config.search), **shared}.items()
                values = ", ".join(f"{name} {in_words(value)}" for name, value in pairs)
                listed.setdefault(f"{spec.config.label} with {values}", []).append(task)
        each = (f"{what} ({', '.join(tasks)})" if len(listed) > 1 else what for what, tasks in listed.items())
        notes.append(f"{arm}: {'; '.join(each)}.")
    return notes


# -- the figure ----------------------------------------------------------------------------------------------------


def plot(study: Study, curves: Sequence[Curve]) -> "Figure":
    """Median and quartiles of the evaluations against timesteps; a run that has ended stays where it did. What is far
    below zero is cut off, so that it does not flatten the rest."""
    from matplotlib.ticker import FuncFormatter

    from ars import plotting

    figure, axes = plotting.new_figure(len(study.names))
    for ax, task in zip(axes, study.names, strict=False):
        goal = THRESHOLDS[paper_robot(task)]
        plotting.frame(ax, task, goal)
        for i, arm in enumerate(study.arms):
            specs = study_specs(study.stage, task, arm)
            there = [curve for curve in choose_curves(specs, curves) if curve.rewards.size]
            if there:
                _draw(ax, there, known_until(specs, there), arm, f"C{i}")
        ax.set_xlabel("timesteps, million")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g}"))
        ax.set_ylim(bottom=max(ax.get_ylim()[0], -LEAST_SHOWN * goal))
        plotting.add_legend(ax, below=True)
    return figure


def known_until(specs: Sequence[RunSpec], curves: Sequence[Curve]) -> int:
    """The timesteps up to which all these runs are known: the stage's, or those of the shortest that is under way."""
    by_identity = {spec.identity: spec for spec in specs}
    under_way = [curve.timesteps for curve in curves if not by_identity[curve.identity].met_by(curve)]
    return min([specs[0].timesteps or 0, *under_way])


def _draw(ax: "Axes", curves: Sequence[Curve], end: int, label: str, colour: str) -> None:
    at = np.linspace(0, end, POINTS)
    rows = np.array([st.resample(curve.columns["at_timesteps"], curve.rewards, at) for curve in curves])
    rows = np.where(np.isnan(rows), -math.inf, rows)  # before a run's first evaluation: below everything
    low, median, high = (np.where(np.isinf(row), np.nan, row) for row in st.percentile(rows, (25, 50, 75)))
    ax.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(at, median, color=colour, linewidth=1.2, label=f"{label} ({len(curves)})")
