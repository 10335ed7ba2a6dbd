"""Figure 2: training curves, the mean over three seeds and a band of one standard deviation, for every variant."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ars.curves import Curve
from ars.paper.artefact import ROBOTS, Artefact, Shown, pick
from ars.paper.table1 import runs, variants
from ars.presets import THRESHOLDS, paper_robot
from ars.statistics import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"BRS": "#7a7a7a", "V1": "#d55e00", "V1-t": "#e69f00", "V2": "#0072b2", "V2-t": "#009e73"}
POINTS = 200  # per curve


def plot(groups: Mapping[str, Mapping[str, Sequence[Curve]]]) -> "Figure":
    """Task → variant → runs."""
    from ars import plotting

    figure, axes = plotting.new_figure(len(groups))
    for ax, (task, of_variants) in zip(axes, groups.items(), strict=False):
        threshold = THRESHOLDS[paper_robot(task)]
        plotting.frame(ax, task, threshold)
        for variant, curves in of_variants.items():
            _mean_and_deviation(ax, variant, [c for c in curves if c.rewards.size > 1])
        ax.set_xlim(left=0)
        low, high = ax.get_ylim()  # BRS may fall far before it diverges, which would squeeze the other curves
        best = max((c.best for curves in of_variants.values() for c in curves), default=0.0)
        ax.set_ylim(max(low, -threshold / 3), min(high, 1.2 * max(best, threshold)))
        plotting.add_legend(ax, below=True)
    return figure


def _mean_and_deviation(ax: "Axes", variant: str, curves: Sequence[Curve]) -> None:
    if not curves:
        return
    diverged = sum(c.failed for c in curves)  # counted in the legend, but too large to draw
    curves = [c for c in curves if not c.failed]
    color = COLORS[variant]
    if not curves:
        ax.plot([], [], color=color, label=f"{variant}: {diverged} seed{'s' if diverged != 1 else ''} diverged")
        return
    complete = [c for c in curves if c.status != "unfinished"]
    under_way = len(curves) - len(complete)
    curves = complete or curves  # an unfinished run would cut the mean of the others short
    ends = [c.columns["at_episodes"][-1] for c in curves]
    at = np.linspace(min(c.columns["at_episodes"][0] for c in curves), max(ends), POINTS)
    rows = np.array([_between(c, at) for c in curves])
    shown = np.isfinite(rows).all(axis=0)  # where every seed has a value
    at, rows = at[shown], rows[:, shown]
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    more = [f"{diverged} more diverged"] if diverged else []
    if under_way:
        more.append(f"{under_way} more under way" if complete else "under way")
    label = f"{variant}, {len(curves)} seed{'s' if len(curves) != 1 else ''}"
    label += f" ({', '.join(more)})" if more else ""
    ax.plot(at, mean, color=color, linewidth=1.3, label=label)
    ax.fill_between(at, mean - deviation, mean + deviation, color=color, alpha=0.18, linewidth=0)


def _between(curve: Curve, at: FloatArray) -> FloatArray:
    """Linear interpolation between evaluations; NaN before the first and after the last."""
    rewards: FloatArray = np.interp(at, curve.columns["at_episodes"], curve.rewards, left=np.nan, right=np.nan)
    return rewards


def draw(shown: Shown) -> dict[str, bytes]:
    from ars.plotting import image_files

    groups = {task: {v: pick(shown.curves, task, v, shown.seeds) for v in variants(task)} for task in shown.tasks}
    return image_files("figures/figure2", lambda: plot(groups))


ARTEFACT = Artefact("Training curves over three seeds", ROBOTS, runs, draw)
