"""The learning curves of all rivals: by timesteps above, by CPU seconds below, a column per task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.rivals.groups import finished, rewards_at
from ars.rivals.roster import RIVALS, TASKS, TIMESTEPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 200  # per curve
OURS = ("ars", "csa")  # drawn thicker
COLOURS = {  # of those that are drawn: all would hide each other
    "ars": "#d55e00", "csa": "#000000", "es": "#e69f00", "cem": "#8c6d31", "ppo": "#9ecae1", "ppo-2017": "#0072b2",
    "a2c": "#56b4e9", "trpo": "#009e73", "sac": "#cc79a7", "ddpg": "#7a7a7a", "ng-lin": "#b2182b", "ng-rbf": "#f4a582",
}  # fmt: skip


def plot(curves: Sequence[Curve]) -> "Figure":
    """Means over the seeds, and bands from the least to the most."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    from ars import plotting

    figure, axes = plotting.new_figure(2 * len(TASKS), (3.1 * len(TASKS), 6.4), columns=len(TASKS))
    for task, above, below in zip(TASKS, axes, axes[len(TASKS) :], strict=False):
        above.set_title(task)
        for rival in COLOURS:
            if runs := finished(curves, rival, task, TIMESTEPS):
                at = np.linspace(0, TIMESTEPS, POINTS)
                _draw(above, at, [rewards_at(curve, at) for curve in runs], rival)
            if runs := finished(curves, rival, task):
                ends = [curve.seconds for curve in runs]
                first = max(curve.columns["at_seconds"][0] for curve in runs)
                at = np.geomspace(max(first, 1e-3), max(min(ends), 2e-3), POINTS)
                rows = [st.resample(curve.columns["at_seconds"], curve.rewards, at) for curve in runs]
                _draw(below, at, rows, rival)
        above.set_xlabel("timesteps, million")
        above.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g}"))
        below.set_xlabel("CPU seconds of training")
        below.set_xscale("log")
        below.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        below.xaxis.set_minor_formatter(NullFormatter())  # its labels cover each other within one decade
        for ax in (above, below):
            if not ax.lines:
                plotting.leave_empty(ax, f"{task}: no runs yet")
    for ax in (axes[0], axes[len(TASKS)]):
        ax.set_ylabel("reward")
    known = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if known:
        figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=9, frameon=False)
    return figure


def _draw(ax: "Axes", at: st.FloatArray, rows: Sequence[st.FloatArray], rival: str) -> None:
    values, colour = np.array(rows), COLOURS[rival]
    ax.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.12, linewidth=0)
    width, front = (2.0, 3) if rival in OURS else (1.0, 2)
    ax.plot(at, values.mean(axis=0), color=colour, linewidth=width, zorder=front, label=RIVALS[rival].title)
