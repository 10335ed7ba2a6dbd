"""The report's charts as data: the curves of each run, and the bands over the runs of a group.

The curves of a run are the columns of three tables: its evaluations, its telemetry and its speed. Telemetry is every
number in the records besides the columns that all runs share, so that a new quantity gets a chart under its name.
The mean length of the episodes is among it: a policy that learns to end its episodes must be seen.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.records import SHARED
from ars.statistics import percentile
from ars.timing import steps_per_second, training_spent

AXES = ("episodes", "timesteps", "seconds")
TITLES = {
    "length_mean": "Mean length of the training episodes",
    "sigma_R": "σ_R, the deviation of the rewards used in a step",
    "update_norm": "Frobenius norm of the update of M",
    "relative_cost": "Relative cost, (J − J*) / J*",
}
MOST_SPEEDS = 120  # points of a speed curve, each the mean over a part of the run
MOST_BAND_POINTS = 200
DIGITS = 6

Records = list[dict[str, Any]]
Curves = Sequence[tuple[Sequence[float], Sequence[float | None]]]  # xs and ys of each
Table = dict[str, Any]  # a list for each of AXES, and under "columns" the lists of values by name


def tables(records: Records, most: int) -> dict[str, Table]:
    """The three tables of a run, with at most `most` points per curve."""
    evaluated = thin([record for record in records if record.get("eval_mean") is not None], most)
    names = telemetry_names(records)
    with_evaluations = [name for name in names if _only_with_evaluations(name, records)]
    evaluations = _table(evaluated, ["eval_mean", "eval_min", *with_evaluations])
    if all(record.get("eval_std") is not None for record in evaluated):
        for name, sign in (("low", -1), ("high", 1)):
            evaluations[name] = [shorten(record["eval_mean"] + sign * record["eval_std"]) for record in evaluated]
    telemetry = _table(thin(records, most), [name for name in names if name not in with_evaluations])
    return {"evaluations": evaluations, "telemetry": telemetry, "speed": speeds(records)}


def _only_with_evaluations(name: str, records: Records) -> bool:
    """Whether a quantity is in the records of evaluations alone, as the terms of a robot's reward: its curve would
    have no two neighbours among all records."""
    without = [record for record in records if record.get("eval_mean") is None]
    return bool(without) and all(name not in record for record in without)


def telemetry_names(records: Records) -> list[str]:
    """The numeric columns that not every run has, and the length of episodes, in order of first appearance."""
    names = dict.fromkeys(name for record in records for name, value in record.items() if _number(value) is not None)
    return [name for name in names if name not in SHARED or name == "length_mean"]


def fresh_starts(records: Records) -> dict[str, list[list[float]]]:
    """Over each axis from where to where a fresh start trained: its curves begin anew there."""
    spans: list[tuple[dict[str, Any], dict[str, Any]]] = []
    before = dict.fromkeys(AXES, 0)
    for record in records:
        if record.get("duel"):
            first = spans.pop()[0] if spans and spans[-1][1] is before else before
            spans.append((first, record))
        before = record
    return {axis: [[shorten(first[axis]), shorten(last[axis])] for first, last in spans] for axis in AXES}


def speeds(records: Records, most: int = MOST_SPEEDS) -> Table:
    """Training timesteps per second over parts of the run."""
    spent = training_spent(records)
    parts = np.array_split(np.arange(len(spent)), min(most, len(spent))) if spent else []
    last = [spent[part[-1]].record for part in parts]
    values = []
    for part in parts:
        chosen = [spent[i] for i in part]
        speed = steps_per_second(sum(one.timesteps for one in chosen), sum(one.train_seconds for one in chosen))
        values.append(shorten(speed))
    return _table(last, []) | {"columns": {"steps_per_second": values}}


def charts(
    runs: list[dict[str, Any]], groups: list[tuple[str, list[int]]], threshold: float | None
) -> list[dict[str, Any]]:
    """The charts of a task: its learning curve, its telemetry, its speed. `groups` are labels and indices of runs."""
    telemetry = dict.fromkeys(
        name for _, members in groups for i in members for name in runs[i]["telemetry"]["columns"]
    )
    measured = dict.fromkeys(
        name
        for _, members in groups
        for i in members
        for name in runs[i]["evaluations"]["columns"]
        if name not in ("eval_mean", "eval_min")
    )
    columns = [("evaluations", "eval_mean", "Learning curve", "Learning curve: mean reward of the evaluations", "")]
    columns += [("evaluations", "eval_min", "Lowest reward of each evaluation", "Lowest reward of each evaluation", "")]
    columns += [("telemetry", name, TITLES.get(name, name), name, "") for name in telemetry]
    columns += [("evaluations", name, TITLES.get(name, name), name, "") for name in measured]
    columns += [("speed", "steps_per_second", "Training steps per second", "Training timesteps per second", " steps/s")]
    return [
        {
            "table": table, "column": column, "title": title, "label": label, "unit": unit,
            "limit": threshold if column == "eval_mean" else None,
            "bands": [_bands(group, [runs[i] for i in members], table, column) for group, members in groups],
        }
        for table, column, title, label, unit in columns
    ]  # fmt: skip


def _bands(group: str, runs: list[dict[str, Any]], table: str, column: str) -> dict[str, Any] | None:
    """The band of a group over each axis; None for a single curve, and for a race, whose curves end one after the
    other."""
    drawn = [run[table] for run in runs if run[table]["columns"].get(column)]
    if len(drawn) < 2 or any(run.get("race") is not None for run in runs):
        return None
    label = f"{group}median and 10th to 90th percentile of {len(drawn)} runs"
    return {"label": label} | {axis: band([(run[axis], run["columns"][column]) for run in drawn]) for axis in AXES}


def band(curves: Curves) -> dict[str, list[Any]]:
    """Median, 10th and 90th percentile over curves (xs, ys), from where half of them have begun to where half have
    ended, and always of at least two. A curve counts from its first point to its last, with linear interpolation.

    Where such a curve has no value, the percentiles are unknown: None, a gap.
    """
    needed = max(2, math.ceil(len(curves) / 2))
    start = sorted(xs[0] for xs, _ in curves)[needed - 1]
    end = sorted(xs[-1] for xs, _ in curves)[-needed]
    every = np.unique(np.concatenate([np.asarray(xs, dtype=float) for xs, _ in curves]))
    every = every[(every >= start) & (every <= end) & (_present(curves, every).sum(axis=0) >= 2)]
    at = np.array(thin(every.tolist(), MOST_BAND_POINTS))
    values = np.array([np.interp(at, xs, np.array(ys, dtype=float)) for xs, ys in curves])
    present, bands = _present(curves, at).T, np.empty((3, at.size))
    for members in set(map(tuple, present)):  # few: they change only where a curve begins or ends
        here = (present == members).all(axis=1)
        bands[:, here] = percentile(values[np.ix_(members, here)], (10, 50, 90))
    low, median, high = ([shorten(value) for value in row] for row in bands.tolist())
    return {"xs": at.tolist(), "ys": median, "low": low, "high": high}


def _present(curves: Curves, at: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(curves, points): which curves have begun and not ended at each point."""
    return np.array([(at >= xs[0]) & (at <= xs[-1]) for xs, _ in curves])


def thin(points: list[Any], most: int) -> list[Any]:
    """At most `most` of the points, evenly spread, including the first and the last."""
    if len(points) <= most:
        return points
    return [points[i] for i in np.unique(np.linspace(0, len(points) - 1, most).round().astype(int))]


def shorten(value: Any, digits: int = DIGITS) -> Any:
    """A float rounded to as many digits as can be seen; None if it is not finite."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def _table(records: Sequence[Any], names: list[str]) -> Table:
    axes = {axis: [shorten(record[axis]) for record in records] for axis in AXES}
    return axes | {"columns": {name: [shorten(_number(record.get(name))) for record in records] for name in names}}


def _number(value: Any) -> float | None:
    """A finite number of a sensible size, otherwise None: a file may contain anything."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return value if is_number else None
