"""The paper's tables from curves, the published values beside ours; pure functions, Markdown and CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ars import statistics as st
from ars.curves import Curve, fullest
from ars.paper.published import (
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
from ars.presets import DEFAULT_VARIANTS, PRESETS, THRESHOLDS, Preset, paper_robot

NOTHING = "–"  # no run yet
PERCENTILES = (10, 25, 50, 75)


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


def pick(
    curves: Iterable[Curve], task: str, variant: str, seeds: Sequence[int], goal: tuple[float, int] | None = None
) -> list[Curve]:
    """The runs of a variant with its preset, each once; with a goal, (threshold, cap), one of which it is known whether
    it gets there comes before a fuller one."""
    wanted = (task, variant, PRESETS[variant][paper_robot(task)])
    found = (c for c in curves if (c.config.task, c.config.variant, c.point) == wanted and c.config.seed in seeds)
    return fullest(found, lambda c: goal is not None and c.settled(*goal))


def same_as(task: str, variant: str) -> str:
    """V1 for V1-t and V2 for V2-t where b = N makes them the same: on Swimmer, whose grid has N = 1 alone, and on
    Humanoid, for which table 9 has the same values twice."""
    robot, base = paper_robot(task), variant.removesuffix("-t")
    own = PRESETS[variant][robot]
    return base if own.b == own.N and PRESETS[base][robot] == own else variant


def to_threshold(
    curves: Sequence[Curve], threshold: float, cap: int, wanted: int, what: str, show: Callable[[float], str]
) -> str:
    """The mean if every run arrived, else how many did, after how much each, and whether runs are still to come."""
    if not curves:
        return NOTHING
    found = [c.reach(threshold, what) for c in curves]
    arrived = sorted(filter(math.isfinite, found))
    if len(arrived) == len(curves):
        return f"{show(st.mean_of_all(found))}{_few(curves, wanted)}"
    known = sum(c.settled(threshold, cap) for c in curves)
    each = f": {', '.join(map(show, arrived))}" if arrived else ""
    parts = [f"{len(arrived)} of {known}{each}"] if known else []
    return "; ".join(parts + ([f"{len(curves) - known} under way"] if known < len(curves) else []))


def _timesteps(value: float) -> str:
    """1.60e5, as the paper's tables have it."""
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


def _few(curves: Sequence[Curve], wanted: int) -> str:
    return f" ({len(curves)} seed{'s' if len(curves) > 1 else ''})" if len(curves) < wanted else ""


def table1(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], caps: Mapping[str, int]) -> Table:
    """Average episodes to the threshold, with the paper's values after a slash."""
    columns = ["task", "threshold", "BRS", "V1", "V1-t", "V2", "V2-t", "NG-lin", "NG-rbf", "TRPO-nn"]
    rows = []
    for task in tasks:
        robot = paper_robot(task)
        row = [task, f"{THRESHOLDS[robot]:g}"]
        for variant in ("BRS", "V1", "V1-t", "V2", "V2-t"):
            goal = THRESHOLDS[robot], caps[task]
            group = pick(curves, task, same_as(task, variant), seeds, goal)
            cell = to_threshold(group, *goal, len(seeds), "episodes", "{:.0f}".format)
            printed = TABLE1_ARS[robot].get(variant)
            beyond = "†" if printed is not None and printed > caps[task] else ""
            row.append(cell if variant == "BRS" else f"{cell} / {'N/A' if printed is None else printed}{beyond}")
        rows.append(row + list(TABLE1_RIVALS[robot].values()))
    return Table(
        "Table 1: average episodes to the reward threshold",
        columns,
        rows,
        (
            f"Ours / the paper's, seeds {', '.join(map(str, seeds))}. A mean where all seeds arrived within the cap of "
            "episodes; otherwise `k of n` arrived, each after so many. †: more than our cap "
            f"({', '.join(f'{task} {caps[task]}' for task in tasks)}), so that a run like the paper's average is cut "
            "short. Evaluation every 10 iterations, by 100 rollouts in the main column (V1 on Swimmer, V2 on Humanoid, "
            "else V2-t), by 10 in the others. BRS is not in the paper's table. Rivals: Rajeswaran et al. 2017, as the "
            "paper prints them; N/A: the method did not reach the threshold; UNK: unknown.",
        ),
    )


def improvement(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], caps: Mapping[str, int]) -> Table:
    """The ablation in today's terms: does each augmentation help? By best evaluations, run against run, each at the
    end of its cap."""
    pairs = (("V1", "BRS"), ("V1-t", "V1"), ("V2", "V1"), ("V2-t", "V2"), ("V2-t", "BRS"))
    rows = []
    for task in tasks:
        row = [task]
        for better, worse in pairs:
            x, y = (
                [c for c in pick(curves, task, same_as(task, name), seeds) if c.failed or c.episodes >= caps[task]]
                for name in (better, worse)
            )
            if same_as(task, better) == same_as(task, worse):
                row.append("the same")
            elif not x or not y:
                row.append(NOTHING)
            else:
                probability = st.probability_of_improvement([c.best for c in x], [c.best for c in y])
                row.append(f"{probability:.2f} ({len(x)}·{len(y)})")
        rows.append(row)
    notes = (
        "P(best evaluation of the first > that of the second), ties counting half; in brackets the runs compared. "
        "With three runs each, 0.5 ± 0.25 says nothing. A best evaluation of 10 rollouts is a little more lucky than "
        "one of 100: table 1 says which column has which.",
    )
    return Table("Probability of improvement", ["task", *(f"{a} > {b}" for a, b in pairs)], rows, notes)


def _budget_table(number: int, published: dict[str, Budget], curves: Sequence[Curve], tasks: Sequence[str],
                  seeds: Sequence[int], variant: Callable[[str], str]) -> Table:  # fmt: skip
    rows: list[list[str]] = []
    rivals: list[str] = []
    for task in tasks:
        printed = published[paper_robot(task)]
        rivals = list(printed.rivals)
        group = pick(curves, task, variant(task), seeds)
        rows.append([task, f"{printed.timesteps:.0e}".replace("e+0", "e"),
                     *_r_max(group, printed.timesteps, len(seeds)), str(printed.ars),
                     *printed.rivals.values()])  # fmt: skip
    note = (
        "By the estimator of appendix A.1: the maximum of the mean curve over the seeds, up to the first evaluation at "
        "which one seed has spent the budget; that evaluation is beyond it, and `within` leaves it out. `≥`: the runs "
        "ended, at their cap of episodes, before the budget was spent. Runs under way that have not spent it are left "
        "out. Rivals as the paper prints them."
    )
    columns = ["task", "timesteps", "ours", "within", "the paper's ARS", *rivals]
    return Table(f"Table {number}: maximum average reward after timesteps", columns, rows, (note,))


def _r_max(group: Sequence[Curve], budget: float, wanted: int) -> tuple[str, str]:
    """By the appendix, and by the evaluations within the budget alone. A run under way that has not spent the budget
    would end the others' curves where it happens to be, so it waits."""
    group = [c for c in group if c.status != "unfinished" or c.timesteps >= budget]
    shared = sorted(set.intersection(*(set(c.evaluations["iteration"]) for c in group))) if group else []
    if not shared:
        return NOTHING, NOTHING
    at = [np.isin(c.evaluations["iteration"], shared) for c in group]
    rewards = [c.rewards[here] for c, here in zip(group, at, strict=True)]
    timesteps = [c.evaluations["timesteps"][here] for c, here in zip(group, at, strict=True)]
    mean, few = np.mean(rewards, axis=0), _few(group, wanted)
    found = st.r_max(rewards, timesteps, budget)
    within = mean[np.max(timesteps, axis=0) <= budget]
    most = f"{within.max():.0f}{few}" if within.size else NOTHING
    return (f"≥ {most}",) * 2 if found is None else (f"{found:.0f}{few}", most)


def table2(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], variant: Callable[[str], str]) -> Table:
    """After 10^6 timesteps."""
    return _budget_table(2, TABLE2, curves, tasks, seeds, variant)


def table3(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], variant: Callable[[str], str]) -> Table:
    """After 2·10^6 to 10^7 timesteps."""
    return _budget_table(3, TABLE3, curves, tasks, seeds, variant)


def table4(
    curves: Sequence[Curve],
    tasks: Sequence[str],
    seeds: Sequence[int],
    variant: Callable[[str], str],
    caps: Mapping[str, int],
) -> Table:
    """Average timesteps to another set of thresholds."""
    rows = []
    for task in tasks:
        printed = TABLE4[paper_robot(task)]
        goal = printed.threshold, caps[task]
        group = pick(curves, task, variant(task), seeds, goal)
        cell = to_threshold(group, *goal, len(seeds), "timesteps", _timesteps)
        rows.append([task, f"{printed.threshold:g}", cell, _timesteps(printed.ars), *printed.rivals.values()])
    note = (
        "A mean where all seeds arrived, else how many did, each after so many. ES and TRPO: Salimans et al. 2017, as "
        "the paper has them."
    )
    columns = ["task", "threshold", "ours", "the paper's ARS", "ES", "TRPO"]
    return Table("Table 4: average timesteps to the reward threshold", columns, rows, (note,))


def table5(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int]) -> Table:
    """The maximum over every run on these seeds, whatever its hyperparameters, that was evaluated by 100 rollouts."""
    rows = []
    for task in tasks:
        whole = [c for c in curves if c.config.task == task and c.config.eval_episodes >= 100 and c.rewards.size]
        group = [c for c in whole if c.config.seed in seeds]
        printed = str(TABLE5[paper_robot(task)])
        if not group:
            rows.append([task, NOTHING, printed, "", "0"])
            continue
        best = max(group, key=lambda c: c.best)
        made = f"{best.config.variant}, seed {best.config.seed}"
        rows.append([task, f"{best.best:.0f}", printed, made, str(len(group))])
    note = (
        f"The best evaluation, by 100 rollouts, of any run on seeds {', '.join(map(str, seeds))}; the paper took it "
        "over its whole grids and trained for longer. A maximum over more runs is larger by chance: the last column "
        "says over how many."
    )
    columns = ["task", "ours", "the paper's", "by", "runs"]
    return Table("Table 5: maximum average reward achieved", columns, rows, (note,))


def _minutes(curves: Sequence[Curve], percents: Sequence[float]) -> list[tuple[str, float]]:
    """Percentiles of the time to 6000: "" and the time, or "> " and what it is more than, by the time that the runs
    which are not there yet have taken."""
    reached = np.array([c.reach(THRESHOLDS["Humanoid"], "seconds") / 60 for c in curves])
    least = np.minimum(reached, [c.seconds / 60 for c in curves])
    found = zip(st.percentile(reached, percents), st.percentile(least, percents), strict=True)
    return [("> " if math.isinf(exact) else "", float(bound)) for exact, bound in found]


def _progress(group: Sequence[Curve]) -> list[str]:
    return [
        f"Seed {c.config.seed}: {c.status}, {c.iterations} iterations, {c.episodes} episodes, "
        f"{_timesteps(c.timesteps)} training timesteps in {c.seconds / 60:.0f} minutes of one thread, evaluations "
        f"included ({c.timesteps / max(c.seconds, 1e-9):.0f} a second); best evaluation {c.best:.0f}."
        for c in group
    ]


OUR_TIME = (
    "Our time is wall-clock time of one thread, evaluations included: an upper bound of its CPU time; > is the "
    "time spent so far, where 6000 is not reached. The paper's values are over 100 seeds."
)


def table6(curves: Sequence[Curve], task: str, seeds: Sequence[int]) -> Table:
    """Median time and CPU time."""
    group = pick(curves, task, "V2", seeds)
    rows = [[m.algorithm, m.instance, str(m.cpus), f"{m.minutes[2]} min", f"{m.cpu_hours} h"] for m in TABLES_6_AND_7]
    if group:
        [(more, median)] = _minutes(group, (50,))
        cells = f"{more}{median:.0f} min", f"≤ {median / 60:.1f} h{' so far' if more else ''}"
        rows.append([f"ours, V2, {len(group)} of {len(seeds)} seeds", group[0].machine, "1", *cells])
    else:
        rows.append(["ours, V2", *[NOTHING] * 4])
    columns = ["algorithm", "machine", "CPUs", "median time", "CPU time"]
    return Table(f"Table 6: time to 6000 on {task}", columns, rows, (OUR_TIME, *_progress(group)))


def table7(curves: Sequence[Curve], task: str, seeds: Sequence[int]) -> Table:
    """Minutes by percentile over seeds."""
    group = pick(curves, task, "V2", seeds)
    rows = [
        [m.algorithm, m.instance, str(m.cpus), *(NOTHING if x is None else str(x) for x in m.minutes)]
        for m in TABLES_6_AND_7
        if m.algorithm != "ES"
    ]
    if group:
        cells = [f"{more}{minutes:.0f}" for more, minutes in _minutes(group, PERCENTILES)]
        rows.append([f"ours, V2, {len(group)} of {len(seeds)} seeds", group[0].machine, "1", *cells])
    else:
        rows.append(["ours, V2", *[NOTHING] * (2 + len(PERCENTILES))])
    columns = ["algorithm", "machine", "CPUs", *(f"{percent}th" for percent in PERCENTILES)]
    return Table(f"Table 7: minutes to 6000 on {task}, by percentile", columns, rows, (OUR_TIME, *_progress(group)))


def many_seeds(curves: Sequence[Curve], tasks: Sequence[str], seeds: Sequence[int], caps: Mapping[str, int]) -> Table:
    """What figure 3 shows, in numbers: success rates beside the paper's, and today's statistics."""
    rows = []
    for task in tasks:
        robot = paper_robot(task)
        variant, threshold = DEFAULT_VARIANTS[robot], THRESHOLDS[robot]
        group = pick(curves, task, variant, seeds, (threshold, caps[task]))
        done = [c for c in group if c.settled(threshold, caps[task])]
        under_way = f", {len(group) - len(done)} under way" if len(group) > len(done) else ""
        count, published = f"{len(done)} of {len(seeds)}{under_way}", f"{SUCCESS[robot]:.0%}"
        if not done:
            rows.append([task, variant, count, NOTHING, published, *[NOTHING] * 5])
            continue
        found = [c.reach(threshold) for c in done]
        scores = [min(c.best / threshold, 1.0) for c in done]
        low, high = st.bootstrap_interval(scores)
        episodes = ["never" if math.isinf(x) else f"{x:.0f}" for x in st.percentile(found, PERCENTILES)]
        iqm = f"{st.interquartile_mean(scores):.2f} [{low:.2f}, {high:.2f}]"
        least, most = st.success_interval(found)
        success = f"{st.success_rate(found):.0%} [{least:.0%}, {most:.0%}]"
        rows.append([task, variant, count, success, published, *episodes, iqm])
    note = (
        "Seeds that reached the threshold or spent the cap of episodes; as long as some are under way the rate is too "
        "high, for those that arrive end sooner. In brackets Wilson's 95% interval. 10 rollouts an evaluation, whose "
        "mean crosses a threshold a little earlier than one of 100, unless a run with 100 is there. Without a list "
        "of one's own, seeds are drawn from [0, 10000), none of them used for tuning. The paper says in words that "
        "it succeeds 70% of the time, on Walker2d 20%. Percentiles are values that a seed had. Last column: "
        "interquartile mean of best reward / threshold with its 95% bootstrap interval; runs end at the threshold, "
        "so it is at most 1, and 1 as soon as three in four arrive."
    )
    columns = ["task", "variant", "seeds", "success", "the paper's", *(f"episodes, {p}th" for p in PERCENTILES), "IQM"]
    return Table("Figure 3 in numbers: many seeds", columns, rows, (note,))


def sensitivity(groups: Mapping[str, Sequence[Curve]], wanted: Mapping[str, int], caps: Mapping[str, int]) -> Table:
    """What figure 4 shows, in numbers: the share of (point, seed) that reach the threshold."""
    rows = []
    for task, curves in groups.items():
        threshold = THRESHOLDS[paper_robot(task)]
        done = [c for c in curves if c.settled(threshold, caps[task])]
        spent = [c.reach(threshold) for c in done]
        reached = f"{sum(map(math.isfinite, spent))} of {len(done)} ({st.success_rate(spent):.0%})" if done else NOTHING
        rows.append([task, str(len({c.point for c in done})), f"{len(done)} of {wanted[task]}", reached])
    columns = ["task", "points of the grid", "runs", "reach the threshold"]
    note = "Runs that reached the threshold or spent the cap; the points with the preset's N and b come first."
    return Table("Figure 4 in numbers: sensitivity to hyperparameters", columns, rows, (note,))


def plane(groups: Mapping[str, Sequence[Curve]], seeds: Sequence[int], caps: Mapping[str, int]) -> Table:
    """The part of figure 4's grids in which only alpha and nu vary: episodes to the threshold at each point."""
    rows = []
    for task, curves in groups.items():
        robot = paper_robot(task)
        points: dict[Preset, list[Curve]] = {}
        for curve in curves:
            if curve.point[2:] == PRESETS[curve.config.variant][robot][2:]:
                points.setdefault(curve.point, []).append(curve)
        for point, group in sorted(points.items()) if len(points) > 1 else ():
            cell = to_threshold(group, THRESHOLDS[robot], caps[task], len(seeds), "episodes", "{:.0f}".format)
            rows.append([task, f"{point.alpha:g}", f"{point.nu:g}", str(point.N), str(point.b), cell])
    columns = ["task", "alpha", "nu", "N", "b", "episodes to the threshold"]
    note = "A mean where all seeds arrived, else how many did, each after so many. Tasks with one point are left out."
    return Table("Figure 4 in numbers: the plane of alpha and nu", columns, rows, (note,))
