"""Figure 4: sensitivity to hyperparameters, by percentile over the points of the grids; and the same in numbers."""

import math
from collections.abc import Mapping, Sequence

from ars import statistics as st
from ars.curves import Curve
from ars.experiments.run_specs import RunSpec, to_threshold
from ars.paper import figure3
from ars.paper.artefact import NOTHING, ROBOTS, Artefact, Shown, Table, threshold_cell
from ars.presets import THRESHOLDS, Preset, grid, paper_robot, preset


def variant_of(task: str) -> str:
    """Caption of figure 4."""
    return "V1" if paper_robot(task) == "Swimmer" else "V2-t"


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """First the points with the preset's N and b on all seeds, the plane of alpha and nu; then the rest."""
    specs = []
    for task in tasks:
        variant = variant_of(task)
        own, every = preset(task, variant), grid(paper_robot(task))
        in_plane = [point for point in every if point[2:] == own[2:]]
        rest = [point for point in every if point[2:] != own[2:]]
        for points in (in_plane, rest):
            specs += [
                to_threshold(task, seed, variant=variant, **point._asdict()) for seed in seeds for point in points
            ]
    return specs


def point_of(curve: Curve) -> Preset:
    return Preset(*(curve.settings[name] for name in Preset._fields))


def numbers(groups: Mapping[str, Sequence[Curve]], wanted: Mapping[str, int], caps: Mapping[str, int]) -> Table:
    """The share of (point, seed) pairs that reach the threshold."""
    rows = []
    for task, curves in groups.items():
        threshold = THRESHOLDS[paper_robot(task)]
        done = [c for c in curves if c.settled(threshold, caps[task])]
        spent = [c.reach(threshold) for c in done]
        reached = f"{sum(map(math.isfinite, spent))} of {len(done)} ({st.success_rate(spent):.0%})" if done else NOTHING
        rows.append([task, str(len(set(map(point_of, done)))), f"{len(done)} of {wanted[task]}", reached])
    columns = ["task", "points of the grid", "runs", "reach the threshold"]
    note = "Runs that reached the threshold or spent the cap; the points with the preset's N and b come first."
    return Table("Figure 4 in numbers: sensitivity to hyperparameters", columns, rows, (note,))


def plane(groups: Mapping[str, Sequence[Curve]], seeds: Sequence[int], caps: Mapping[str, int]) -> Table:
    """Episodes to the threshold at each point of the grids at which only alpha and nu vary."""
    rows = []
    for task, curves in groups.items():
        own = preset(task, variant_of(task))
        points: dict[Preset, list[Curve]] = {}
        for curve in curves:
            if point_of(curve)[2:] == own[2:]:
                points.setdefault(point_of(curve), []).append(curve)
        for point, group in sorted(points.items()) if len(points) > 1 else ():
            threshold = THRESHOLDS[paper_robot(task)]
            cell = threshold_cell(group, threshold, caps[task], len(seeds), "episodes", "{:.0f}".format)
            rows.append([task, f"{point.alpha:g}", f"{point.nu:g}", str(point.N), str(point.b), cell])
    columns = ["task", "alpha", "nu", "N", "b", "episodes to the threshold"]
    note = "A mean where all seeds arrived, else how many did, each after so many. Tasks with one point are left out."
    return Table("Figure 4 in numbers: the plane of alpha and nu", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    from ars.plotting import image_files

    groups, wanted, caps = shown.by_task(), shown.wanted(), shown.caps
    variants = {task: variant_of(task) for task in shown.tasks}
    return {
        **image_files("figures/figure4", lambda: figure3.plot(groups, wanted, caps, variants, "runs")),
        **plane(groups, shown.seeds, caps).files("figure4-plane"),
        **numbers(groups, wanted, caps).files("figure4-numbers"),
    }


ARTEFACT = Artefact("Sensitivity to hyperparameters, by percentile", ROBOTS, runs, draw)
