"""What all plots share: settings, axes, legend, and PNG and SVG output, with equal bytes for equal data."""

import io
import textwrap
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "ars",  # equal bytes
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.dpi": 150,
}
GREY = "#777777"


def image_files(path: str, make: Callable[[], Figure]) -> dict[str, bytes]:
    """PATH.png and PATH.svg of a figure, which is created once for each."""
    return {f"{path}.{kind}": render(make, kind) for kind in ("png", "svg")}


def render(make: Callable[[], Figure], kind: str, settings: dict[Any, Any] = SETTINGS) -> bytes:
    """A figure, created with our settings, as the content of a PNG or SVG file."""
    with mpl.rc_context(settings):
        buffer = io.BytesIO()
        make().savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
        return buffer.getvalue()


def new_figure(count: int = 1, size: tuple[float, float] | None = None) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes, at most three per row."""
    columns = max(min(count, 3), 1)
    rows = max(-(-count // columns), 1)
    size = size or (4.2 * columns + (1.4 if count == 1 else 0), 3.2 * rows)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[count:]:
        ax.set_visible(False)
    for ax in axes:
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def frame(ax: Axes, title: str, threshold: float) -> None:
    """Axes for rewards against episodes, with the threshold."""
    ax.axhline(threshold, color="#aa0000", linewidth=0.8, linestyle=":")
    box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}  # readable over a curve
    ax.annotate(f"{threshold:g}", (1, threshold), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                color="#aa0000", fontsize=7, bbox=box)  # fmt: skip
    ax.set_title(title)
    ax.set_xlabel("episodes")
    ax.set_ylabel("reward")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))


def add_legend(ax: Axes, *, below: bool = False) -> None:
    """A legend, or a message if the axes are empty; `below` the axes where it would cover curves."""
    if not ax.get_legend_handles_labels()[1]:
        leave_empty(ax, f"{ax.get_title()}: no runs yet")
    elif below:
        ax.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, columnspacing=1)
    else:
        ax.legend(frameon=False, fontsize=7, loc="best")


def leave_empty(ax: Axes, why: str) -> None:
    """Replace empty axes by a message."""
    ax.clear()
    ax.set_axis_off()
    ax.text(0.5, 0.5, textwrap.fill(why, 50), ha="center", transform=ax.transAxes, color=GREY)
