"""The output of a comparison: lqr.csv, the table and the paper's two plots, all from the results."""

import csv
import io
import math
from pathlib import Path

from ars.experiments.lqr.statistics import Result, first, index_at, stabilising
from ars.files import write_atomic
from ars.statistics import percentile

FREQUENT = 0.9  # the table gives the timesteps to this share of stabilising controllers,
GOOD = 0.1  # and to this median relative cost
COLUMNS = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000)  # timesteps; the budget is the last column


def write(out: Path, results: list[Result], budget: int) -> str:
    """Write lqr.csv, table.md and the plots into the folder `out`; returns the table."""
    write_atomic(out / "lqr.csv", rows(results).encode())
    contents = files(results, budget)
    for name, content in contents.items():
        write_atomic(out / name, content)
    return contents["table.md"].decode()


def files(results: list[Result], budget: int) -> dict[str, bytes]:
    """The contents of table.md and of the plots; methods that are not in the paper have separate plots."""
    from ars.experiments.lqr import plots

    contents = {"table.md": table(results, budget).encode()}
    groups = {"": [r for r in results if not r.extension], "-extensions": [r for r in results if r.extension]}
    for suffix, group in groups.items():
        for kind in ("png", "svg") if group or not suffix else ():
            contents[f"stabilising{suffix}.{kind}"] = plots.stabilising(group, budget, kind)
            contents[f"relative_cost{suffix}.{kind}"] = plots.relative_cost(group, budget, kind)
    return contents


def rows(results: list[Result]) -> str:
    """method, trial, timesteps, relative_cost: six digits, `inf` where the controller does not stabilise."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "trial", "timesteps", "relative_cost"])
    for result in results:
        for trial, costs in enumerate(result.costs):
            for t, cost in zip(result.timesteps, costs, strict=True):
                writer.writerow([result.name, trial, t, f"{cost:.6g}"])
    return text.getvalue()


def table(results: list[Result], budget: int) -> str:
    """Markdown: how soon each method is good, and how good it is after some timesteps."""
    times = [*(t for t in COLUMNS if t < budget), budget]
    trials = len(results[0].costs)
    lines = [
        f"Timesteps to {FREQUENT:.0%} stabilising controllers and to a median relative cost of {number(GOOD)}, and "
        f"what {budget:,} timesteps give: the share that stabilises, the median relative cost [2nd, 98th percentile]. "
        f"{trials} trials a method.",
        "",
        f"| method | to {FREQUENT:.0%} | to {number(GOOD)} | stabilising | relative cost |",
        "|---|--:|--:|--:|--:|",
        *(_summary(result, budget) for result in results),
        "",
        "The share that stabilises and the median relative cost after some timesteps:",
        "",
        f"| method | {' | '.join(f'{t:,}' for t in times)} |",
        f"|---|{'--:|' * len(times)}",
        *(f"| {_label(result)} | {' | '.join(_at(result, t) for t in times)} |" for result in results),
        "",
    ]
    return "\n".join(lines)


def _summary(result: Result, budget: int) -> str:
    share, median = stabilising(result.costs), percentile(result.costs, 50)
    low, high = percentile(result.costs, 2), percentile(result.costs, 98)
    soon = (first(result.timesteps, share >= FREQUENT), first(result.timesteps, median <= GOOD))
    cells = ["never" if t is None else f"{t:,}" for t in soon]
    i = index_at(result.timesteps, budget)
    if i is None:
        cells += ["–", "–"]
    else:
        cells += [f"{share[i]:.0%}", f"{number(median[i])} [{number(low[i])}, {number(high[i])}]"]
    return f"| {_label(result)} | {' | '.join(cells)} |"


def _at(result: Result, t: int) -> str:
    i = index_at(result.timesteps, t)
    if i is None:
        return "–"
    costs = result.costs[:, i : i + 1]
    return f"{stabilising(costs)[0]:.0%} {number(percentile(costs, 50)[0])}"


def _label(result: Result) -> str:
    return f"{result.label} (extension)" if result.extension else result.label


def number(value: float) -> str:
    """Two digits, without a zero before the point; ∞ for no stabilising controller."""
    if math.isinf(value):
        return "∞"
    if abs(value) < 1e-3:
        return f"{value:.1e}".replace("e-0", "e-") if value else "0"
    if abs(value) < 1:
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".replace("0.", ".", 1)
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"
