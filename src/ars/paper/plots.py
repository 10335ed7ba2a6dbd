"""The paper's figures from curves: drawn and nothing else. PNG or SVG bytes, the same for the same curves."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ars import statistics as st
from ars.curves import Curve
from ars.presets import THRESHOLDS, paper_robot

SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "ars",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.dpi": 150,
}
COLORS = {"BRS": "#7a7a7a", "V1": "#d55e00", "V1-t": "#e69f00", "V2": "#0072b2", "V2-t": "#009e73"}
BANDS = ((0, 100, 0.10), (10, 90, 0.16), (25, 75, 0.28))  # percentiles and opacity, widest first
BLUE = "#0072b2"
POINTS = 200  # of a curve
ENOUGH = 8  # runs for percentiles to mean something; fewer are drawn one by one


def sigma_R(curves: Sequence[Curve], kind: str) -> bytes:
    """Figure 1: sigma_R at each iteration."""
    with mpl.rc_context(SETTINGS):
        figure, axes = _figure(1)
        for i, curve in enumerate(curves):
            iterations = np.arange(1, len(curve.sigma_R) + 1)
            label = f"{curve.config.task} {curve.config.variant}, seed {curve.config.seed}"
            axes[0].plot(iterations, curve.sigma_R, color=f"C{i}", linewidth=1, label=label)
        axes[0].set_xlabel("iteration")
        axes[0].set_ylabel(r"$\sigma_R$")
        axes[0].set_title(r"$\sigma_R$ of the rewards of each iteration")
        _legend(axes[0])
        return _render(figure, kind)


def three_seeds(groups: dict[str, dict[str, list[Curve]]], kind: str) -> bytes:
    """Figure 2: task → variant → runs; the mean over seeds, and a band of one standard deviation."""
    with mpl.rc_context(SETTINGS):
        figure, axes = _figure(len(groups))
        for ax, (task, variants) in zip(axes, groups.items(), strict=False):
            _frame(ax, task)
            for variant, curves in variants.items():
                _mean_and_deviation(ax, variant, [c for c in curves if c.rewards.size > 1])
            ax.set_xlim(left=0)
            low, high = ax.get_ylim()  # BRS may fall far before it diverges, and the others need the room
            threshold = THRESHOLDS[paper_robot(task)]
            best = max((c.best for curves in variants.values() for c in curves), default=0.0)
            ax.set_ylim(max(low, -threshold / 3), min(high, 1.2 * max(best, threshold)))
            _legend(ax)
        return _render(figure, kind)


def _mean_and_deviation(ax: Axes, variant: str, curves: Sequence[Curve]) -> None:
    if not curves:
        return
    diverged = sum(c.failed for c in curves)  # their rewards have no bounds: said, not drawn
    curves = [c for c in curves if not c.failed]
    color = COLORS[variant]
    if not curves:
        ax.plot([], [], color=color, label=f"{variant}: {diverged} seed{'s' if diverged != 1 else ''} diverged")
        return
    complete = [c for c in curves if c.status != "unfinished"]
    under_way = len(curves) - len(complete)
    curves = complete or curves  # one under way would cut the others' mean short
    ends = [c.evaluations["episodes"][-1] for c in curves]
    at = np.linspace(min(c.evaluations["episodes"][0] for c in curves), max(ends), POINTS)
    rows = np.array([_between(c, at) for c in curves])
    shown = np.isfinite(rows).all(axis=0)  # where all seeds have something to say
    at, rows = at[shown], rows[:, shown]
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    more = [f"{diverged} more diverged"] if diverged else []
    if under_way:
        more.append(f"{under_way} more under way" if complete else "under way")
    label = f"{variant}, {len(curves)} seed{'s' if len(curves) != 1 else ''}"
    label += f" ({', '.join(more)})" if more else ""
    ax.plot(at, mean, color=color, linewidth=1.3, label=label)
    ax.fill_between(at, mean - deviation, mean + deviation, color=color, alpha=0.18, linewidth=0)


def _between(curve: Curve, at: st.FloatArray) -> st.FloatArray:
    """Straight lines between evaluations; NaN before the first and after the last."""
    found: st.FloatArray = np.interp(at, curve.evaluations["episodes"], curve.rewards, left=np.nan, right=np.nan)
    return found


def percentiles(
    groups: dict[str, list[Curve]], wanted: dict[str, int], caps: dict[str, int], kind: str, *, what: str
) -> bytes:
    """Figures 3 and 4: task → runs, of so many; median and bands of percentiles. A run that ended at the threshold
    stays there."""
    done = {
        task: [c for c in curves if c.rewards.size and c.settled(THRESHOLDS[paper_robot(task)], caps[task])]
        for task, curves in groups.items()
    }
    shown = {task: curves for task, curves in done.items() if curves}
    with mpl.rc_context(SETTINGS):
        figure, axes = _figure(max(len(shown), 1))
        for ax, (task, curves) in zip(axes, shown.items(), strict=False):
            threshold = THRESHOLDS[paper_robot(task)]
            _frame(ax, task)
            ax.set_ylabel("reward, up to the threshold")
            at = np.linspace(min(c.evaluations["episodes"][0] for c in curves), caps[task], POINTS)
            rows = np.array([_staying(c, threshold, at) for c in curves])
            if len(curves) < ENOUGH:
                for i, row in enumerate(rows):
                    ax.plot(at, row, color=BLUE, linewidth=0.9, alpha=0.7, label="each run" if i == 0 else None)
            else:
                _bands(ax, at, rows)
            arrived = [c.reach(threshold) for c in curves]
            rate = f"{st.success_rate(arrived):.0%}" if len(curves) >= ENOUGH else np.isfinite(arrived).sum()
            variants = ", ".join(sorted({c.config.variant for c in curves}))
            count = f"{len(curves)} of {wanted[task]} {what}" if len(curves) < wanted[task] else f"{len(curves)} {what}"
            ax.set_title(f"{task} ({variants})\n{count}, {rate} reach {threshold:g}")
            _legend(ax)
        without = ", ".join(task for task in done if task not in shown)
        if not shown:
            _empty(axes[0], f"{without}: no finished runs yet")
        elif without:
            figure.supxlabel(f"No finished runs yet: {without}", color="#777777", fontsize=9)
        return _render(figure, kind)


def _bands(ax: Axes, at: st.FloatArray, rows: st.FloatArray) -> None:
    rows = np.where(np.isnan(rows), -math.inf, rows)  # before a run's first evaluation: below all
    for low, high, opacity in BANDS:
        edges = st.percentile(rows, (low, high))
        edges[np.isinf(edges)] = np.nan
        ax.fill_between(at, *edges, color=BLUE, alpha=opacity, linewidth=0, label=f"{low}–{high}%")
    median = st.percentile(rows, 50)
    ax.plot(at, np.where(np.isinf(median), np.nan, median), "--", color="#00344f", linewidth=1.3, label="median")


def _staying(curve: Curve, threshold: float, at: st.FloatArray) -> st.FloatArray:
    """Rewards up to the threshold: above it the runs that ended there and those that went on must look alike."""
    rewards = np.minimum(curve.rewards, threshold)
    arrived = np.flatnonzero(curve.rewards >= threshold)
    if len(arrived):
        rewards[arrived[0] :] = threshold
    return st.resample(curve.evaluations["episodes"], rewards, at)


def profiles(groups: dict[str, list[Curve]], caps: dict[str, int], kind: str) -> bytes:
    """Performance profiles: the share of seeds whose best reward, over the threshold, is above each level."""
    with mpl.rc_context(SETTINGS):
        figure, axes = _figure(1)
        levels = np.linspace(0, 1.1, 221)
        for i, (task, curves) in enumerate(groups.items()):
            threshold = THRESHOLDS[paper_robot(task)]
            scores = [c.best / threshold for c in curves if c.rewards.size and c.settled(threshold, caps[task])]
            if scores:
                share = st.performance_profile(np.minimum(scores, 1.0 + 1e-9), levels)
                axes[0].step(levels, share, where="post", color=f"C{i}", label=f"{task}, {len(scores)} seeds")
        axes[0].set_xlim(0, 1.05)
        axes[0].set_ylim(0, 1.02)
        axes[0].set_xlabel("best reward / threshold, up to 1")
        axes[0].set_ylabel("share of seeds above")
        axes[0].set_title("Performance profiles over seeds")
        _legend(axes[0])
        return _render(figure, kind)


def _figure(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(count, 3)
    rows = -(-count // columns) if count else 1
    figure = Figure(figsize=(4.2 * max(columns, 1) + (1.4 if count == 1 else 0), 3.2 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, max(columns, 1), squeeze=False)
    axes = list(grid.flat)
    for ax in axes[count:]:
        ax.set_visible(False)
    for ax in axes:
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _frame(ax: Axes, task: str) -> None:
    threshold = THRESHOLDS[paper_robot(task)]
    ax.axhline(threshold, color="#aa0000", linewidth=0.8, linestyle=":")
    box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}  # readable over a curve
    ax.annotate(f"{threshold:g}", (1, threshold), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                color="#aa0000", fontsize=7, bbox=box)  # fmt: skip
    ax.set_title(task)
    ax.set_xlabel("episodes")
    ax.set_ylabel("reward")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))


def _legend(ax: Axes) -> None:
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize=7, loc="best")
    else:
        _empty(ax, f"{ax.get_title()}: no runs yet")


def _empty(ax: Axes, why: str) -> None:
    """Said instead of an axis that measures nothing."""
    ax.clear()
    ax.set_axis_off()
    ax.text(0.5, 0.5, textwrap.fill(why, 50), ha="center", transform=ax.transAxes, color="#777777")


def _render(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()
