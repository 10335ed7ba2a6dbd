"""Table 6: median time and CPU time to 6000 on Humanoid; and what it shares with table 7."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.experiments.run_specs import RunSpec
from ars.experiments.seeds import PAPER_SEEDS
from ars.paper import figure3
from ars.paper.artefact import ENOUGH, MANY, NOTHING, Artefact, Shown, Table, main_runs, pick, scientific
from ars.presets import THRESHOLDS

SEEDS = (PAPER_SEEDS[0], *MANY[:-1])  # figure 1's run, and others


class Machine(NamedTuple):
    """A row: minutes at the 10th, 25th, 50th and 75th percentile."""

    algorithm: str
    instance: str
    cpus: int
    minutes: tuple[int | None, int | None, int, int | None]
    cpu_hours: int


# Tables 6 and 7: ES from Salimans et al. 2017, seven trials; ARS over 100 seeds.
PUBLISHED = (
    Machine("ES", "unknown", 18, (None, None, 657, None), 197),
    Machine("ES", "unknown", 1440, (None, None, 10, None), 240),
    Machine("ARS V2", "m5.24xlarge", 48, (10, 13, 21, 45), 16),
    Machine("ARS V2", "c5.9xlarge", 18, (16, 23, 41, 96), 12),
    Machine("ARS V2", "c4.8xlarge", 18, (21, 28, 57, 144), 17),
)
OUR_TIME = (
    "Our time is wall-clock time of one thread, evaluations included: an upper bound of its CPU time; > is the "
    "time spent so far, where 6000 is not reached. The paper's values are over 100 seeds; of fewer than "
    f"{ENOUGH} seeds each is given, and no median or percentile."
)


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """The first run by the paper's protocol, the others up to the threshold."""
    return main_runs(tasks, seeds[:1]) + figure3.runs(tasks, seeds[1:])


def humanoids(shown: Shown) -> list[Curve]:
    return pick(shown.curves, shown.tasks[0], "V2", shown.seeds)


def our_name(group: Sequence[Curve], shown: Shown) -> list[str]:
    """The first three cells of our row."""
    return [f"ours, V2, {len(group)} of {len(shown.seeds)} seeds", group[0].machine, "1"]


def minutes(curves: Sequence[Curve], percents: Sequence[float]) -> list[tuple[str, float]]:
    """Percentiles of the time to 6000: "" and the time, or "> " and a lower bound, where the time that runs have spent
    without reaching 6000 would change them. Of few runs, the time of each, in the order of the times."""
    reached = np.array([c.reach(THRESHOLDS["Humanoid"], "seconds") / 60 for c in curves])
    least = np.where(np.isfinite(reached), reached, [c.seconds / 60 for c in curves])
    if len(curves) < ENOUGH:
        times = sorted(zip(reached, least, strict=True))
    else:
        times = list(zip(st.percentile(reached, percents), st.percentile(least, percents), strict=True))
    return [("" if exact == bound else "> ", float(bound)) for exact, bound in times]


def notes(group: Sequence[Curve]) -> list[str]:
    """How the time is measured, and what each run has done."""
    return [OUR_TIME] + [
        f"Seed {c.seed}: {c.status}, {c.iterations} iterations, {c.episodes} episodes, "
        f"{scientific(c.timesteps)} training timesteps in {c.seconds / 60:.0f} minutes of one thread, evaluations "
        f"included ({c.timesteps / max(c.seconds, 1e-9):.0f} a second); best evaluation {c.best:.0f}."
        for c in group
    ]


def table(shown: Shown) -> Table:
    group = humanoids(shown)
    rows = [[m.algorithm, m.instance, str(m.cpus), f"{m.minutes[2]} min", f"{m.cpu_hours} h"] for m in PUBLISHED]
    if group:
        times = minutes(group, (50,))
        wall = ", ".join(f"{more}{time:.0f} min" for more, time in times)
        cpu = ", ".join(f"≤ {time / 60:.1f} h{' so far' if more else ''}" for more, time in times)
        rows.append([*our_name(group, shown), f"{'each: ' if len(group) < ENOUGH else ''}{wall}", cpu])
    else:
        rows.append(["ours, V2", *[NOTHING] * 4])
    columns = ["algorithm", "machine", "CPUs", "median time", "CPU time"]
    return Table(f"Table 6: time to 6000 on {shown.tasks[0]}", columns, rows, notes(group))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table6")


ARTEFACT = Artefact("Time to 6000 on Humanoid, with CPU time", ("Humanoid",), runs, draw, SEEDS, many=True)
