"""The paper's tables from curves, the published values beside ours; pure functions, Markdown and CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ars.presets import DEFAULT_VARIANTS, PRESETS, THRESHOLDS, robot_of
from ars.report import statistics as st
from ars.report.curves import Curve
from ars.report.published import (
    SUCCESS,
    TABLE1_ARS,
    TABLE1_RIVALS,
    TABLE2,
    TABLE3,
    TABLE4,
    TABLE5,
    TABLES_6_AND_7,
    Budget,
)

NOTHING = "–"  # no run yet
PERCENTILES = (10, 25, 50, 75)
SEEDS = 3


@dataclass(frozen=True)
class Table:
    """Cells are text already; `notes` stand below."""

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


def pick(curves: Iterable[Curve], task: str, variant: str) -> list[Curve]:
    """The runs of a variant with its preset."""
    point = PRESETS[variant][robot_of(task) or ""]
    return [c for c in curves if c.config.task == task and c.config.variant == variant and c.identity[2:6] == point]


def same_as(task: str, variant: str) -> str:
    """On Swimmer the grid has N = 1 alone, so V1-t is V1 and V2-t is V2."""
    return variant.removesuffix("-t") if robot_of(task) == "Swimmer" else variant


def spent(curves: Sequence[Curve], threshold: float, what: str = "episodes") -> list[float]:
    """Of each run to the threshold; infinite where it was not reached."""
    return [st.first_reach(c.evaluations[what], c.rewards, threshold) for c in curves]


def to_threshold(curves: Sequence[Curve], threshold: float, what: str, show: Callable[[float], str]) -> str:
    """The mean if every run arrived, else how many did, and whether runs are still to come."""
    if not curves:
        return NOTHING
    found = spent(curves, threshold, what)
    reached = sum(map(math.isfinite, found))
    open_runs = sum(1 for c, x in zip(curves, found, strict=True) if c.status == "unfinished" and math.isinf(x))
    more = f", {open_runs} under way" if open_runs else ""
    few = f" ({len(curves)} seed{'s' if len(curves) > 1 else ''})" if len(curves) < SEEDS else ""
    if reached == len(curves):
        return f"{show(st.mean_of_all(found))}{few}"
    arrived = [x for x in found if math.isfinite(x)]
    mean = f", mean {show(float(np.mean(arrived)))}" if arrived else ""
    return f"{reached} of {len(curves)}{mean}{more}"


def table1(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int]) -> Table:
    """Average episodes to the threshold, with the paper's values after a slash."""
    ours = [c for c in curves if c.config.seed in seeds]
    columns = ["task", "threshold", "BRS", "V1", "V1-t", "V2", "V2-t", "NG-lin", "NG-rbf", "TRPO-nn"]
    rows = []
    for task in tasks:
        robot = robot_of(task) or ""
        row = [task, f"{THRESHOLDS[robot]:g}"]
        for variant in ("BRS", "V1", "V1-t", "V2", "V2-t"):
            group = pick(ours, task, same_as(task, variant))
            cell = to_threshold(group, THRESHOLDS[robot], "episodes", "{:.0f}".format)
            printed = TABLE1_ARS[robot].get(variant)
            row.append(cell if variant == "BRS" else f"{cell} / {'N/A' if printed is None else printed}")
        rows.append(row + list(TABLE1_RIVALS[robot].values()))
    return Table(
        "Table 1: average episodes to the reward threshold",
        columns,
        rows,
        (
            f"Ours / the paper's, seeds {', '.join(map(str, seeds))}. A mean where all seeds arrived within the cap of "
            "episodes; otherwise `k of n` arrived, with the mean of those that did. Evaluation every 10 iterations, by "
            "100 rollouts in the main column (V1 on Swimmer, V2 on Humanoid, else V2-t), by 10 in the others. BRS is "
            "not in the paper's table. Rivals: Rajeswaran et al. 2017, as the paper prints them.",
        ),
    )


def improvement(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int]) -> Table:
    """The ablation in today's terms: does each augmentation help? By best evaluations, run against run."""
    ours = [c for c in curves if c.config.seed in seeds]
    pairs = (("V1", "BRS"), ("V1-t", "V1"), ("V2", "V1"), ("V2-t", "V2"), ("V2-t", "BRS"))
    rows = []
    for task in tasks:
        row = [task]
        for better, worse in pairs:
            x, y = (pick(ours, task, same_as(task, name)) for name in (better, worse))
            if not x or not y:
                row.append(NOTHING)
            elif same_as(task, better) == same_as(task, worse):
                row.append("the same")
            else:
                probability = st.probability_of_improvement([c.best for c in x], [c.best for c in y])
                row.append(f"{probability:.2f} ({len(x)}·{len(y)})")
        rows.append(row)
    notes = (
        "P(best evaluation of the first > that of the second), ties counting half; in brackets the runs compared. "
        "With three runs each, 0.5 ± 0.25 says nothing.",
    )
    return Table("Probability of improvement", ["task", *(f"{a} > {b}" for a, b in pairs)], rows, notes)


def _budget_table(number: int, published: dict[str, Budget], curves: Sequence[Curve], tasks: Sequence[str],
                  seeds: Sequence[int], variant: Callable[[str], str]) -> Table:  # fmt: skip
    rows: list[list[str]] = []
    rivals: list[str] = []
    for task in tasks:
        printed = published[robot_of(task) or ""]
        rivals = list(printed.rivals)
        group = [c for c in pick(curves, task, variant(task)) if c.config.seed in seeds]
        rows.append([task, f"{printed.timesteps:.0e}", _r_max(group, printed.timesteps), str(printed.ars),
                     *printed.rivals.values()])  # fmt: skip
    note = (
        "By the estimator of appendix A.1: the maximum of the mean curve over the seeds, up to the first evaluation at "
        "which one seed has spent the budget. `≥`: the runs ended before it was spent. Rivals as the paper prints them."
    )
    columns = ["task", "timesteps", "ours", "the paper's ARS", *rivals]
    return Table(f"Table {number}: maximum average reward after timesteps", columns, rows, (note,))


def _r_max(group: Sequence[Curve], budget: float) -> str:
    if not group:
        return NOTHING
    length = min(len(c.rewards) for c in group)
    if not length:
        return NOTHING
    rewards = [c.rewards[:length] for c in group]
    found = st.r_max(rewards, [c.evaluations["timesteps"][:length] for c in group], budget)
    few = f" ({len(group)} seed{'s' if len(group) > 1 else ''})" if len(group) < SEEDS else ""
    return f"≥ {np.mean(rewards, axis=0).max():.0f}{few}" if found is None else f"{found:.0f}{few}"


def table2(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], variant: Callable[[str], str]) -> Table:
    """After 10^6 timesteps."""
    return _budget_table(2, TABLE2, curves, tasks, seeds, variant)


def table3(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], variant: Callable[[str], str]) -> Table:
    """After 2·10^6 to 10^7 timesteps."""
    return _budget_table(3, TABLE3, curves, tasks, seeds, variant)


def table4(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], variant: Callable[[str], str]) -> Table:
    """Average timesteps to another set of thresholds."""
    rows = []
    for task in tasks:
        printed = TABLE4[robot_of(task) or ""]
        group = [c for c in pick(curves, task, variant(task)) if c.config.seed in seeds]
        cell = to_threshold(group, printed.threshold, "timesteps", "{:.2e}".format)
        rows.append([task, f"{printed.threshold:g}", cell, f"{printed.ars:.2e}", *printed.rivals.values()])
    note = (
        "A mean where all seeds arrived, else how many did. ES and TRPO: Salimans et al. 2017, as the paper has them."
    )
    columns = ["task", "threshold", "ours", "the paper's ARS", "ES", "TRPO"]
    return Table("Table 4: average timesteps to the reward threshold", columns, rows, (note,))


def table5(curves: Sequence[Curve], tasks: Sequence[str]) -> Table:
    """The maximum over every run that there is."""
    rows = []
    for task in tasks:
        group = [c for c in curves if c.config.task == task and c.rewards.size]
        printed = str(TABLE5[robot_of(task) or ""])
        if not group:
            rows.append([task, NOTHING, printed, "", "0"])
            continue
        best = max(group, key=lambda c: c.best)
        made = f"{best.config.variant}, seed {best.config.seed}, {best.config.eval_episodes} rollouts"
        rows.append([task, f"{best.best:.0f}", printed, made, str(len(group))])
    note = (
        "The best evaluation of any run here; the paper took it over its whole grids and trained for longer. A maximum "
        "over more runs is larger by chance: the last column says over how many."
    )
    columns = ["task", "ours", "the paper's", "by", "runs"]
    return Table("Table 5: maximum average reward achieved", columns, rows, (note,))


def _minutes(curve: Curve) -> float:
    return st.first_reach(curve.evaluations["seconds"], curve.rewards, THRESHOLDS["Humanoid"]) / 60


def _progress(group: Sequence[Curve]) -> list[str]:
    return [
        f"Seed {c.config.seed}: {c.status}, {c.iterations} iterations, {c.episodes} episodes, {c.timesteps:.3g} "
        f"timesteps in {c.seconds / 60:.0f} minutes of one core ({c.timesteps / c.seconds:.0f} steps/s without "
        f"evaluations); best evaluation {c.best:.0f}."
        for c in group
        if c.seconds
    ]


def table6(curves: Sequence[Curve]) -> Table:
    """Median time and CPU time; our runs have one thread, so that both are the same."""
    group = pick(curves, "Humanoid-v1", "V2")
    rows = [[m.algorithm, m.instance, str(m.cpus), f"{m.minutes[2]} min", f"{m.cpu_hours} h"] for m in TABLES_6_AND_7]
    if group:
        median = float(st.percentile([_minutes(c) for c in group], 50))
        cells = ("not reached yet",) * 2 if math.isinf(median) else (f"{median:.0f} min", f"{median / 60:.1f} h")
        rows.append([f"ours, V2, {len(group)} seed(s)", group[0].machine, "1", *cells])
    columns = ["algorithm", "machine", "CPUs", "median time", "CPU time"]
    return Table("Table 6: time to 6000 on Humanoid-v1", columns, rows, _progress(group))


def table7(curves: Sequence[Curve]) -> Table:
    """Minutes by percentile over seeds."""
    group = pick(curves, "Humanoid-v1", "V2")
    rows = [
        [m.algorithm, m.instance, str(m.cpus), *(NOTHING if x is None else str(x) for x in m.minutes)]
        for m in TABLES_6_AND_7
        if m.algorithm != "ES"
    ]
    if group:
        found = st.percentile([_minutes(c) for c in group], PERCENTILES)
        cells = ["not reached yet" if math.isinf(x) else f"{x:.0f}" for x in found]
        rows.append([f"ours, V2, {len(group)} seed(s)", group[0].machine, "1", *cells])
    columns = ["algorithm", "machine", "CPUs", *(f"{percent}th" for percent in PERCENTILES)]
    return Table("Table 7: minutes to 6000 on Humanoid-v1, by percentile", columns, rows, _progress(group))


def many_seeds(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int]) -> Table:
    """What figure 3 shows, in numbers: success rates beside the paper's, and today's statistics."""
    rows = []
    for task in tasks:
        robot = robot_of(task) or ""
        variant, threshold = DEFAULT_VARIANTS[robot], THRESHOLDS[robot]
        group = [c for c in pick(curves, task, variant) if c.config.seed in seeds]
        done = [c for c in group if c.status != "unfinished" or c.best >= threshold]
        published = f"{SUCCESS[robot]:.0%}"
        if not done:
            rows.append([task, variant, "0", NOTHING, published, *[NOTHING] * 5])
            continue
        found = spent(done, threshold)
        scores = [min(c.best / threshold, 1.0) for c in done]
        low, high = st.bootstrap_interval(scores)
        episodes = ["never" if math.isinf(x) else f"{x:.0f}" for x in st.percentile(found, PERCENTILES)]
        iqm = f"{st.interquartile_mean(scores):.2f} [{low:.2f}, {high:.2f}]"
        rows.append([task, variant, str(len(done)), f"{st.success_rate(found):.0%}", published, *episodes, iqm])
    note = (
        "Finished runs on seeds drawn from [0, 10000), none of them used for tuning; 10 rollouts an evaluation; a run "
        "ends at the threshold or at its cap of episodes. The paper says in words that it succeeds 70% of the time, on "
        "Walker2d 20%. Last column: interquartile mean of best reward / threshold, at most 1, with its 95% bootstrap."
    )
    columns = ["task", "variant", "seeds", "success", "the paper's", *(f"episodes, {p}th" for p in PERCENTILES), "IQM"]
    return Table("Figure 3 in numbers: many seeds", columns, rows, (note,))


def sensitivity(curves: Sequence[Curve], tasks: Sequence[str], wanted: dict[str, int]) -> Table:
    """What figure 4 shows, in numbers: the share of (point, seed) that reach the threshold."""
    rows = []
    for task in tasks:
        threshold = THRESHOLDS[robot_of(task) or ""]
        group = [c for c in curves if c.config.task == task and (c.status != "unfinished" or c.best >= threshold)]
        points = {c.identity[2:6] for c in group}
        rate = f"{st.success_rate(spent(group, threshold)):.0%}" if group else NOTHING
        rows.append([task, str(len(points)), f"{len(group)} of {wanted[task]}", rate])
    columns = ["task", "points of the grid", "runs", "reach the threshold"]
    return Table("Figure 4 in numbers: sensitivity to hyperparameters", columns, rows)
