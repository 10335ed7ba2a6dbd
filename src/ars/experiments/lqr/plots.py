"""The two plots of the paper's figure on LQR."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ars import plotting
from ars.experiments.lqr.statistics import Result
from ars.experiments.lqr.statistics import stabilising as share_stabilising
from ars.statistics import percentile

# One hue per family of methods, so that nominal, LSPI and ARS can be told apart without the legend.
FAMILIES = {
    "nominal": ("#0b4f8a", "#5aa5dc"),
    "lspi": ("#8c2d04", "#e6640a", "#b8860b", "#f0b429"),
    "ars": ("#0a6e4f", "#6a51a3", "#3fb68b", "#1b1b1b"),
}
MARKERS = "osD^vPX*"
LEAST_COST, LARGEST_COST = 1e-6, 1e2  # the largest range of the vertical axis
LINE: dict[str, Any] = {"linewidth": 1.4, "markersize": 3.5}
SETTINGS = plotting.SETTINGS | {"font.size": 10}


def stabilising(results: list[Result], budget: int, kind: str) -> bytes:
    """How frequently the methods find stabilising controllers, against timesteps; a PNG or SVG file."""

    def make() -> Figure:
        figure, axes = _axes(budget)
        for result, color, marker in _looks(results):
            share = share_stabilising(result.costs)
            axes.plot(result.timesteps, share, color=color, marker=marker, label=result.label, **LINE)
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_ylabel("frequency of stabilising controllers")
        _add_legend(figure, results, "")
        return figure

    return plotting.render(make, kind, SETTINGS)


def relative_cost(results: list[Result], budget: int, kind: str) -> bytes:
    """The median relative cost with the band from the 2nd to the 98th percentile, against timesteps."""

    def make() -> Figure:
        figure, axes = _axes(budget)
        least = LARGEST_COST / 10
        for result, color, marker in _looks(results):
            low, median, high = (percentile(result.costs, percent) for percent in (2, 50, 98))
            drawn = np.isfinite(median)  # elsewhere the band would only show that most trials are unstable
            top = np.minimum(high, 10 * LARGEST_COST)  # an infinite cost is above the top of the plot
            axes.fill_between(
                result.timesteps, np.where(drawn, low, np.nan), top, where=drawn.tolist(), color=color, alpha=0.13,
                linewidth=0,
            )  # fmt: skip
            label = result.label if drawn.any() else f"{result.label} (does not stabilise)"
            median = np.where(drawn, median, np.nan)
            axes.plot(result.timesteps, median, color=color, marker=marker, label=label, linestyle="--", **LINE)
            least = min([least, *low[drawn]])
        axes.set_yscale("log")
        axes.set_ylim(10 ** np.floor(np.log10(max(least, LEAST_COST))), LARGEST_COST)
        axes.set_ylabel(r"relative cost $(J - J_\star)\,/\,J_\star$")
        _add_legend(figure, results, "median, and from the 2nd\nto the 98th percentile")
        return figure

    return plotting.render(make, kind, SETTINGS)


def _axes(budget: int) -> tuple[Figure, Axes]:
    figure, [axes] = plotting.new_figure(size=(8.6, 4.8))
    axes.set_xscale("log")
    axes.set_xlim(100 / 1.15, budget * 1.15)
    axes.set_xlabel("timesteps")
    return figure, axes


def _looks(results: list[Result]) -> list[tuple[Result, str, str]]:
    """Each result with a colour and a marker."""
    left = {family: list(colors) for family, colors in FAMILIES.items()}
    return [
        (result, left[result.name.split("-")[0]].pop(0), MARKERS[i % len(MARKERS)]) for i, result in enumerate(results)
    ]


def _add_legend(figure: Figure, results: list[Result], explanation: str) -> None:
    extensions = "extensions, not in the paper" if all(result.extension for result in results) else ""
    title = "\n".join(line for line in (extensions, explanation) if line)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9, title=title, title_fontsize=9, alignment="left")
