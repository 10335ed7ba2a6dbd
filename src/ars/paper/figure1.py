"""Figure 1: sigma_R at each iteration, while training Humanoid; and how much it grows."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ars.curves import Curve
from ars.experiments.run_specs import RunSpec
from ars.experiments.seeds import PAPER_SEEDS
from ars.paper.artefact import NOTHING, Artefact, Shown, Table, main_runs, pick
from ars.paper.table6 import SEEDS as OTHERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = tuple(dict.fromkeys((*PAPER_SEEDS, *OTHERS)))
MOST = 3  # runs shown; the paper shows one
NEAR = 10  # iterations over which a value is averaged
LATER = 300  # the iteration at which the paper speaks of steps a thousand times larger (section 3.1)


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """The run of the first seed, unless seeds were listed: others are shown if another artefact has run them."""
    return main_runs(tasks, seeds[:1] if seeds == SEEDS else seeds)


def plot(curves: Sequence[Curve]) -> "Figure":
    from ars import plotting

    figure, [ax] = plotting.new_figure()
    for i, curve in enumerate(curves):
        sigma_R = curve.telemetry["sigma_R"]
        label = f"{curve.task} {curve.label}, seed {curve.seed}"
        ax.plot(np.arange(1, len(sigma_R) + 1), sigma_R, color=f"C{i}", linewidth=1, label=label)
    ax.set_xlabel("iteration")
    ax.set_ylabel(r"$\sigma_R$")
    ax.set_title(r"$\sigma_R$ of the rewards of each iteration")
    plotting.add_legend(ax)
    return figure


def growth(curves: Sequence[Curve]) -> Table:
    """How much sigma_R has grown."""
    rows = []
    for curve in curves:
        sigma_R = curve.telemetry["sigma_R"]
        first, last = (float(part.mean()) if part.size else math.nan for part in (sigma_R[:NEAR], sigma_R[-NEAR:]))
        later = float(sigma_R[LATER - NEAR : LATER].mean()) if sigma_R.size >= LATER else math.nan
        cells = [NOTHING if math.isnan(x) else f"{x:.1f}" for x in (first, later, later / first, last / first)]
        rows.append([curve.task, str(curve.seed), str(len(sigma_R)), *cells])
    columns = ["task", "seed", "iterations", "first", f"iteration {LATER}", "ratio", "last / first"]
    note = (
        f"sigma_R as the mean of the first {NEAR} iterations, of the {NEAR} up to iteration {LATER}, and of the last "
        f"{NEAR}. The paper says that at iteration {LATER} steps would be a thousand times larger without it."
    )
    return Table("Figure 1 in numbers: the growth of sigma_R", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    from ars.plotting import image_files

    every = [curve for task in shown.tasks for curve in pick(shown.curves, task, "V2", shown.seeds)]
    curves = sorted(every, key=lambda curve: shown.seeds.index(curve.seed))[:MOST]
    return {**image_files("figures/figure1", lambda: plot(curves)), **growth(curves).files("figure1-numbers")}


ARTEFACT = Artefact("sigma_R while training Humanoid", ("Humanoid",), runs, draw, SEEDS)
