"""The ablation: each augmentation alone, at fixed alpha, nu and N, over the same seeds. The paper's variants have each
its own hyperparameters, so that table 1 does not separate the two."""

from collections.abc import Mapping, Sequence

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.experiments.run_specs import RunSpec, choose_curves, to_threshold
from ars.paper.artefact import MANY, NOTHING, Artefact, Shown, Table, median_cell, success_cell
from ars.presets import DEFAULT_VARIANTS, THRESHOLDS, Preset, paper_robot, preset

ROBOTS = ("Swimmer", "Hopper", "HalfCheetah")  # where twenty runs take hours, not weeks
SEEDS = MANY[:20]
SCALE = SEEDS[:10]  # they decide the scale of BRS, whichever seeds are asked for
# Feature, with it, without it.
PAIRS = (
    ("sigma_R", "V1", "BRS"),
    ("normalisation", "V2", "V1"),
    ("normalisation", "V2-t", "V1-t"),
    ("best directions", "V1-t", "V1"),
    ("best directions", "V2-t", "V2"),
)


def point(task: str, variant: str) -> Preset:
    """alpha, nu and N of the variant in figure 3, whose runs are then shared; -t uses the better half of the
    directions."""
    own = preset(task, DEFAULT_VARIANTS[paper_robot(task)])
    return own._replace(b=own.N // 2 if variant.endswith("-t") else own.N)


def variants(task: str) -> list[str]:
    """Without BRS. With N = 1 there is no better half."""
    return [name for name in ("V1", "V1-t", "V2", "V2-t") if point(task, name).b > 0]


def arm(task: str, variant: str, seeds: Sequence[int]) -> list[RunSpec]:
    return [to_threshold(task, seed, variant=variant, **point(task, variant)._asdict()) for seed in seeds]


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """Seed by seed, so that the first results span the variants, and what the scale of BRS needs."""
    every = [arm(task, name, seeds) for task in tasks for name in variants(task)]
    listed = [spec for of_seed in zip(*every, strict=True) for spec in of_seed]
    return list(dict.fromkeys([*listed, *(spec for task in tasks for spec in arm(task, "V1", SCALE))]))


def basic(tasks: Sequence[str], seeds: Sequence[int], curves: Sequence[Curve]) -> list[RunSpec]:
    """BRS, where sigma_R of the first iteration is known. Its step has the scale of the rewards, so the same alpha
    would not be the same step: it is divided by the median of that sigma_R, which is then kept instead of updated."""
    specs = []
    for task in tasks:
        own = arm(task, "V1", SCALE)
        first = [c.telemetry["sigma_R"][0] for c in choose_curves(own, curves) if c.telemetry["sigma_R"].size]
        if own and len(first) == len(own):
            at = point(task, "BRS")
            alpha = float(f"{at.alpha / np.median(first):.2g}")
            specs += [to_threshold(task, s, variant="BRS", **at._replace(alpha=alpha)._asdict()) for s in seeds]
    return specs


def arms(shown: Shown, task: str) -> dict[str, tuple[Preset, list[Curve]]]:
    """Variant → its settings, and the runs whose outcome is known."""
    goal, found = (THRESHOLDS[paper_robot(task)], shown.caps[task]), {}
    every = {name: arm(task, name, shown.seeds) for name in variants(task)}
    for name, specs in {"BRS": basic([task], shown.seeds, shown.curves), **every}.items():
        if specs:
            at = Preset(*(getattr(specs[0].config.search, field) for field in Preset._fields))
            found[name] = at, [c for c in choose_curves(specs, shown.curves) if c.settled(*goal)]
    return found


def table(shown: Shown) -> Table:
    rows = []
    for task in shown.tasks:
        threshold = THRESHOLDS[paper_robot(task)]
        for name, (at, curves) in arms(shown, task).items():
            spent = [curve.reach(threshold) for curve in curves]
            cells = (success_cell(spent), median_cell(spent)) if spent else (NOTHING, NOTHING)
            settings = [f"{at.alpha:g}", f"{at.nu:g}", str(at.N), str(at.b)]
            rows.append([task, name, *settings, f"{len(curves)} of {len(shown.seeds)}", *cells])
    note = (
        "One feature at a time: alpha, nu and N are those of figure 3, -t keeps the better half of the directions, and "
        "BRS has alpha divided by the median sigma_R of the first iteration (of ten seeds of V1), so that its first "
        "step is like that of V1. Every evaluation has 10 rollouts; runs end at the threshold or at the cap. In "
        "brackets 95% intervals."
    )
    columns = ["task", "variant", "alpha", "nu", "N", "b", "seeds", "success", "episodes, median"]
    return Table("The ablation at fixed hyperparameters", columns, rows, (note,))


def scores(curves: Sequence[Curve], threshold: float) -> list[float]:
    """By which runs are ranked: sooner is better and, of those that never arrive, the better best evaluation."""
    spent = [curve.reach(threshold) for curve in curves]
    return [1 + 1 / s if np.isfinite(s) else c.best / threshold for s, c in zip(spent, curves, strict=True)]


def compared(ours: Sequence[float], theirs: Sequence[float]) -> str:
    better, chance = st.probability_of_improvement(ours, theirs), st.probability_of_chance(ours, theirs)
    return f"{better:.2f}, p = {chance:.2f} ({len(ours)}·{len(theirs)})"


def pairs(shown: Shown) -> Table:
    rows = []
    for feature, better, worse in PAIRS:
        row = [feature, f"{better} > {worse}"]
        for task in shown.tasks:
            groups: Mapping[str, tuple[Preset, list[Curve]]] = arms(shown, task)
            x, y = (groups[name][1] if name in groups else [] for name in (better, worse))
            threshold = THRESHOLDS[paper_robot(task)]
            row.append(compared(scores(x, threshold), scores(y, threshold)) if x and y else NOTHING)
        rows.append(row)
    note = (
        "The probability that a run of the first beats a run of the second: that it arrives sooner or, if neither "
        "arrives, has the better best evaluation; ties count half. p is that of Mann and Whitney's test (two-sided, "
        "each pair on its own). In brackets the runs compared."
    )
    return Table("The ablation, feature by feature", ["feature", "variants", *shown.tasks], rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("ablation") | pairs(shown).files("ablation-pairs")


ARTEFACT = Artefact(
    "One augmentation at a time, at fixed hyperparameters",
    ROBOTS,
    runs,
    draw,
    SEEDS,
    many=True,
    then=basic,
    beyond=True,
)
