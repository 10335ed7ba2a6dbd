"""The selection: how much of a printed point is the luck of its three seeds. Part of HalfCheetah's grid is ranked by
the paper's rule on these seeds, and the winner is measured on fresh ones beside the printed points."""

import math
from collections.abc import Sequence

from ars.curves import Curve
from ars.errors import SettingError
from ars.experiments.run_specs import RunSpec, choose_curves, missing, to_threshold
from ars.experiments.sweep import Row, ranking
from ars.paper.artefact import MANY, NOTHING, Artefact, Shown, Table, median_cell, success_cell, threshold_cell
from ars.presets import PRESETS, THRESHOLDS, Preset, grid, paper_robot

NU, DIRECTIONS = 0.025, (4, 8, 16)  # the part of the grid nearest to the printed nu, which is in no grid (D10)
PRINTED = ("V2", "V2-t")
FRESH = MANY[:20]


def points(task: str) -> list[Preset]:
    return [point for point in grid(paper_robot(task)) if point.nu == NU and point.N in DIRECTIONS]


def at(task: str, point: Preset, seeds: Sequence[int]) -> list[RunSpec]:
    return [to_threshold(task, seed, variant="V2-t", **point._asdict()) for seed in seeds]


def tuning(task: str, seeds: Sequence[int]) -> list[RunSpec]:
    """Seed by seed, so that the first results span the grid."""
    return [spec for seed in seeds for point in points(task) for spec in at(task, point, [seed])]


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """The grid, and the printed points on the fresh seeds."""
    if used := sorted(set(seeds) & set(FRESH)):
        raise SettingError(f"Seed {used[0]} is among those that the winner is measured on: choose others for the grid.")
    printed = [(task, PRESETS[name][paper_robot(task)]) for task in tasks for name in PRINTED]
    specs = [spec for task in tasks for spec in tuning(task, seeds)]
    return specs + [spec for task, point in printed for spec in at(task, point, FRESH)]


def ranked(task: str, seeds: Sequence[int], curves: Sequence[Curve]) -> list[Row]:
    """The points, best first: the least mean episodes to the threshold."""
    specs = tuning(task, seeds)
    return ranking(choose_curves(specs, curves), THRESHOLDS[paper_robot(task)], specs)


def winner(task: str, seeds: Sequence[int], curves: Sequence[Curve]) -> Preset | None:
    """The best point, once every run of the grid has ended."""
    if missing(tuning(task, seeds), curves):
        return None
    best = ranked(task, seeds, curves)[0].point
    return Preset(*(best[name] for name in Preset._fields))


def on_fresh_seeds(tasks: Sequence[str], seeds: Sequence[int], curves: Sequence[Curve]) -> list[RunSpec]:
    chosen = {task: winner(task, seeds, curves) for task in tasks}
    return [spec for task, point in chosen.items() if point for spec in at(task, point, FRESH)]


def grid_table(shown: Shown) -> Table:
    rows = []
    for task in shown.tasks:
        for row in ranked(task, shown.seeds, shown.curves):
            point = Preset(*(row.point[name] for name in Preset._fields))
            goal = THRESHOLDS[paper_robot(task)], shown.caps[task]
            group = choose_curves(at(task, point, shown.seeds), shown.curves)
            cell = threshold_cell(group, *goal, len(shown.seeds), "episodes", "{:.0f}".format)
            best = NOTHING if math.isinf(row.mean_best) else f"{row.mean_best:.0f}"
            rows.append([task, *(f"{value:g}" for value in point), cell, best])
    note = (
        f"Part of the paper's grid, nu = {NU} and N in {', '.join(map(str, DIRECTIONS))}, on seeds "
        f"{', '.join(map(str, shown.seeds))}, ranked by the paper's rule: the least mean episodes to the threshold."
    )
    columns = ["task", *Preset._fields, "episodes to the threshold", "mean best evaluation"]
    return Table("Selection: a part of the grid on three seeds", columns, rows, (note,))


def fresh_table(shown: Shown) -> Table:
    rows = []
    for task in shown.tasks:
        candidates = {f"printed, {name}": PRESETS[name][paper_robot(task)] for name in PRINTED}
        chosen = winner(task, shown.seeds, shown.curves)
        for name, point in {**candidates, **({"chosen here": chosen} if chosen else {})}.items():
            goal = THRESHOLDS[paper_robot(task)], shown.caps[task]
            done = [c for c in choose_curves(at(task, point, FRESH), shown.curves) if c.settled(*goal)]
            spent = [curve.reach(goal[0]) for curve in done]
            cells = (success_cell(spent), median_cell(spent)) if spent else (NOTHING, NOTHING)
            rows.append([task, name, *(f"{value:g}" for value in point), f"{len(done)} of {len(FRESH)}", *cells])
    note = (
        f"On {len(FRESH)} seeds that chose nothing. The winner is known once every run of the grid has ended. Every "
        "evaluation has 10 rollouts; in brackets 95% intervals."
    )
    columns = ["task", "point", *Preset._fields, "seeds", "success", "episodes, median"]
    return Table("Selection: the winner on fresh seeds", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    return grid_table(shown).files("selection") | fresh_table(shown).files("selection-fresh")


ARTEFACT = Artefact(
    "Chosen on three seeds, measured on fresh ones", ("HalfCheetah",), runs, draw, then=on_fresh_seeds, beyond=True
)
