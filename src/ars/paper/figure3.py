"""Figure 3: training curves over 100 seeds, by percentile; the same in numbers, and as performance profiles."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.experiments.run_specs import RunSpec, choose_curves, to_threshold
from ars.paper.artefact import (
    ENOUGH,
    MANY,
    NOTHING,
    PERCENTILES,
    ROBOTS,
    Artefact,
    Shown,
    Table,
    episodes_cell,
    median_cell,
    pick,
    success_cell,
)
from ars.presets import DEFAULT_VARIANTS, THRESHOLDS, paper_robot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Section 4.2: how often ARS trains a policy, over 100 seeds.
PUBLISHED = {"Swimmer": 0.7, "Hopper": 0.7, "HalfCheetah": 0.7, "Walker2d": 0.2, "Ant": 0.7, "Humanoid": 0.7}
BANDS = ((0, 100, 0.10), (10, 90, 0.16), (25, 75, 0.28))  # percentiles and opacity, widest first
BLUE = "#0072b2"
POINTS = 200  # per curve


def variant_of(task: str) -> str:
    """Caption of figure 3."""
    return DEFAULT_VARIANTS[paper_robot(task)]


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    return [to_threshold(task, seed, variant=variant_of(task)) for seed in seeds for task in tasks]


def plot(
    groups: Mapping[str, Sequence[Curve]], wanted: Mapping[str, int], caps: Mapping[str, int],
    variants: Mapping[str, str], what: str,
) -> "Figure":  # fmt: skip
    """Task → runs, out of `wanted`: median and percentile bands. A run that ended at the threshold stays there."""
    from ars import plotting

    done = {
        task: [c for c in curves if c.rewards.size and c.settled(THRESHOLDS[paper_robot(task)], caps[task])]
        for task, curves in groups.items()
    }
    shown = {task: curves for task, curves in done.items() if curves}
    figure, axes = plotting.new_figure(max(len(shown), 1))
    for ax, (task, curves) in zip(axes, shown.items(), strict=False):
        threshold = THRESHOLDS[paper_robot(task)]
        plotting.frame(ax, task, threshold)
        ax.set_ylabel("reward, up to the threshold")
        at = np.linspace(min(c.columns["at_episodes"][0] for c in curves), caps[task], POINTS)
        rows = np.array([up_to_threshold(c, threshold, at) for c in curves])
        if len(curves) < ENOUGH:
            for i, row in enumerate(rows):
                ax.plot(at, row, color=BLUE, linewidth=0.9, alpha=0.7, label="each run" if i == 0 else None)
        else:
            _bands(ax, at, rows)
        spent = [c.reach(threshold) for c in curves]
        rate = f"{st.success_rate(spent):.0%}" if len(curves) >= ENOUGH else np.isfinite(spent).sum()
        count = f"{len(curves)} of {wanted[task]} {what}" if len(curves) < wanted[task] else f"{len(curves)} {what}"
        ax.set_title(f"{task} ({variants[task]})\n{count}, {rate} reach {threshold:g}")
        plotting.add_legend(ax, below=True)
    without = ", ".join(task for task in done if task not in shown)
    if not shown:
        plotting.leave_empty(axes[0], f"{without}: no finished runs yet")
    elif without:
        figure.supxlabel(f"No finished runs yet: {without}", color=plotting.GREY, fontsize=9)
    return figure


def _bands(ax: "Axes", at: st.FloatArray, rows: st.FloatArray) -> None:
    rows = np.where(np.isnan(rows), -math.inf, rows)  # before a run's first evaluation: below everything
    for low, high, opacity in BANDS:
        edges = st.percentile(rows, (low, high))
        edges[np.isinf(edges)] = np.nan
        ax.fill_between(at, *edges, color=BLUE, alpha=opacity, linewidth=0, label=f"{low}–{high}%")
    median = st.percentile(rows, 50)
    ax.plot(at, np.where(np.isinf(median), np.nan, median), "--", color="#00344f", linewidth=1.3, label="median")


def up_to_threshold(curve: Curve, threshold: float, at: st.FloatArray) -> st.FloatArray:
    """Rewards up to the threshold: runs that ended there and runs that continued must look the same."""
    rewards = np.minimum(curve.rewards, threshold)
    reached = np.flatnonzero(curve.rewards >= threshold)
    if len(reached):
        rewards[reached[0] :] = threshold
    return st.resample(curve.columns["at_episodes"], rewards, at)


def plot_profiles(groups: Mapping[str, Sequence[Curve]], caps: Mapping[str, int]) -> "Figure":
    """The share of seeds whose best reward, as a fraction of the threshold, is above each level."""
    from ars import plotting

    figure, [ax] = plotting.new_figure()
    levels = np.linspace(0, 1.1, 221)
    for i, (task, curves) in enumerate(groups.items()):
        threshold = THRESHOLDS[paper_robot(task)]
        scores = [c.best / threshold for c in curves if c.rewards.size and c.settled(threshold, caps[task])]
        if scores:
            share = st.performance_profile(np.minimum(scores, 1.0 + 1e-9), levels)
            ax.step(levels, share, where="post", color=f"C{i}", label=f"{task}, {len(scores)} seeds")
    ax.set_xlim(0, 1.05)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("best reward / threshold, up to 1")
    ax.set_ylabel("share of seeds above")
    ax.set_title("Performance profiles over seeds")
    plotting.add_legend(ax)
    return figure


def numbers(shown: Shown) -> Table:
    """Success rates next to the paper's, and episodes by percentile."""
    rows = []
    for task in shown.tasks:
        robot, cap = paper_robot(task), shown.caps[task]
        variant, threshold = variant_of(task), THRESHOLDS[robot]
        group = pick(shown.curves, task, variant, shown.seeds, (threshold, cap))
        done = [c for c in group if c.settled(threshold, cap)]
        under_way = f", {len(group) - len(done)} under way" if len(group) > len(done) else ""
        count, published = f"{len(done)} of {len(shown.seeds)}{under_way}", f"{PUBLISHED[robot]:.0%}"
        if not done:
            rows.append([task, variant, count, NOTHING, published, *[NOTHING] * 4])
            continue
        spent = [c.reach(threshold) for c in done]
        episodes = [episodes_cell(float(x)) for x in st.percentile(spent, PERCENTILES)]
        episodes[PERCENTILES.index(50)] = median_cell(spent)
        few = len(done) < ENOUGH
        rows.append([task, variant, count, success_cell(spent), published, *([NOTHING] * 4 if few else episodes)])
    note = (
        "Seeds that reached the threshold or spent the cap of episodes; as long as some are under way the rate is too "
        "high, for those that arrive end sooner. In brackets 95% intervals: Wilson's for the rate, order statistics "
        f"for the median. Of fewer than {ENOUGH} seeds there are no percentiles. 10 rollouts an evaluation, whose "
        "mean crosses a threshold a little earlier than one of 100, unless a run with 100 is there. Without a list "
        "of one's own, seeds are drawn from [0, 10000), none of them used for tuning. The paper says in words that "
        "it succeeds 70% of the time, on Walker2d 20%. Percentiles are values that a seed had."
    )
    columns = ["task", "variant", "seeds", "success", "the paper's", *(f"episodes, {p}th" for p in PERCENTILES)]
    return Table("Figure 3 in numbers: many seeds", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    from ars.plotting import image_files

    groups, variants = shown.by_task(), {task: variant_of(task) for task in shown.tasks}
    return {
        **image_files("figures/figure3", lambda: plot(groups, shown.wanted(), shown.caps, variants, "seeds")),
        **numbers(replace(shown, curves=choose_curves(shown.specs, shown.curves))).files("figure3-numbers"),
        **image_files("figures/figure3-profiles", lambda: plot_profiles(groups, shown.caps)),
    }


ARTEFACT = Artefact("Training curves over 100 seeds, by percentile", ROBOTS, runs, draw, MANY, many=True)
