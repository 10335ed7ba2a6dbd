"""Our Humanoid runs among the training logs that the paper's authors published: results/figures/humanoid_logs.

    python -m tools.humanoid_logs FOLDER

FOLDER holds humanoid_logs.csv: run, iteration, reward_mean, reward_std, timesteps and seconds of the evaluations in the
logs of github.com/modestyachts/ARS (BSD licence). The logs do not become part of this project: the table has counts and
ranks alone, and the figure has their curves as pixels.
"""

import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ars import statistics as st
from ars.curves import COLUMNS, Curve, load_all
from ars.files import write_atomic
from ars.paper.artefact import Table, pick, scientific
from ars.paper.table6 import PUBLISHED, SEEDS
from ars.presets import THRESHOLDS, preset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASK, GOAL = "Humanoid-v1", THRESHOLDS["Humanoid"]
CPUS = max(machine.cpus for machine in PUBLISHED if machine.algorithm == "ARS V2")
SHOWN = 1000  # iterations of the figure: most logs end there
SHARES = (25, 50, 75)


def read_logs(path: Path) -> list[Curve]:
    """A curve per log. The authors' runs have the preset of V2, hence 2 N episodes an iteration."""
    rows: dict[str, list[list[float]]] = {}
    episodes = 2 * preset(TASK, "V2").N
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            spent = float(line["iteration"]), episodes * float(line["iteration"]), float(line["timesteps"])
            values = [*spent, float(line["seconds"]), float(line["reward_mean"]), float(line["reward_std"])]
            rows.setdefault(line["run"], []).append(values)
    return [Curve("ars", TASK, 0, {}, dict(zip(COLUMNS, np.array(log).T, strict=True))) for log in rows.values()]


def best_until(curve: Curve, what: str, limit: float) -> float:
    """The best evaluation until so many iterations or timesteps were spent."""
    within = curve.columns[f"at_{what}"] <= limit
    return float(curve.rewards[within].max()) if within.any() else -math.inf


def rank(ours: Curve, logs: Sequence[Curve], what: str) -> int:
    """1 for the best of the logs and this run: by what it spent to arrive or, if it has not arrived, by the best
    evaluation up to what it has spent."""
    spent = ours.reach(GOAL, what)
    if math.isfinite(spent):
        return 1 + sum(log.reach(GOAL, what) < spent for log in logs)
    limit = float(ours.columns[f"at_{what}"][-1])
    return 1 + sum(best_until(log, what, limit) > ours.best for log in logs)


def nearest(ours: Curve, logs: Sequence[Curve]) -> Curve:
    """The log that arrived after the most similar number of timesteps."""
    spent = ours.reach(GOAL, "timesteps")
    return min(logs, key=lambda log: abs(log.reach(GOAL, "timesteps") - spent))


def table(curves: Sequence[Curve], logs: Sequence[Curve]) -> Table:
    rows = []
    for curve in curves:
        arrived = math.isfinite(curve.reach(GOAL))
        at = [curve.reach(GOAL, w) if arrived else curve.columns[f"at_{w}"][-1] for w in ("iteration", "timesteps")]
        state = "arrived" if arrived else f"best {curve.best:.0f} so far"
        ranks = [f"{rank(curve, logs, what)} of {len(logs) + 1}" for what in ("iteration", "timesteps")]
        first = curve.columns["at_timesteps"][0] / curve.columns["at_episodes"][0]
        rows.append([str(curve.seed), state, f"{at[0]:.0f}", scientific(float(at[1])), *ranks, f"{first:.1f}"])
    columns = [
        "seed",
        "6000",
        "iterations",
        "timesteps",
        "rank by iterations",
        "rank by timesteps",
        "first episodes, steps",
    ]
    notes = [about(logs), *times(curves, logs)]
    return Table("Our Humanoid runs among the authors' logs", columns, rows, notes)


def about(logs: Sequence[Curve]) -> str:
    reached = np.array([log.reach(GOAL, "iteration") for log in logs])
    timesteps = [log.reach(GOAL, "timesteps") for log in logs]
    quartiles = ", ".join(f"{x:.0f}" for x in st.percentile(reached, SHARES))
    spent = ", ".join("never" if math.isinf(x) else scientific(float(x)) for x in st.percentile(timesteps, SHARES))
    return (
        f"A rank is among the {len(logs)} logs and the run itself: by the iterations or timesteps to 6000 or, for a "
        "run that has not arrived, by the best evaluation up to as many iterations or timesteps as it has spent. "
        f"{np.isfinite(reached).sum()} of the {len(logs)} logs reach 6000, {(reached <= SHOWN).sum()} of them within "
        f"{SHOWN} iterations; their quartiles are {quartiles} iterations and {spent} timesteps. {first_episodes(logs)} "
        "The logs are those that the authors published, most named after gaits: not a random part of their 100 seeds. "
        "Ranks of runs evaluated by 10 rollouts are a little too good. Made by `python -m tools.humanoid_logs FOLDER`; "
        "the logs are not part of this project."
    )


def first_episodes(logs: Sequence[Curve]) -> str:
    """Whether the logs have our N: a fallen robot at the start takes as many steps everywhere."""
    steps = [log.columns["at_timesteps"][0] / log.columns["at_episodes"][0] for log in logs]
    return f"With our N, their episodes up to the first evaluation last {min(steps):.1f} to {max(steps):.1f} steps."


def times(curves: Sequence[Curve], logs: Sequence[Curve]) -> list[str]:
    """Like for like: our time beside that of the log with the most similar timesteps."""
    notes = []
    for curve in curves:
        if math.isfinite(curve.reach(GOAL)):
            log = nearest(curve, logs)
            hours = curve.reach(GOAL, "seconds") / 3600, log.reach(GOAL, "seconds") * CPUS / 3600
            notes.append(
                f"Seed {curve.seed} arrived after {scientific(curve.reach(GOAL, 'timesteps'))} timesteps and "
                f"{hours[0]:.1f} hours of one thread; the log nearest in timesteps, "
                f"{scientific(log.reach(GOAL, 'timesteps'))}, after {log.reach(GOAL, 'seconds') / 60:.0f} minutes, "
                f"which on {CPUS} CPUs (table 6; the logs do not name their machine) are {hours[1]:.1f} CPU hours: "
                f"{hours[1] / hours[0]:.1f} times as many."
            )
    return notes


def plot(curves: Sequence[Curve], logs: Sequence[Curve]) -> "Figure":
    from matplotlib.ticker import FuncFormatter

    from ars import plotting

    figure, axes = plotting.new_figure(2)
    for ax, what in zip(axes, ("iteration", "timesteps"), strict=True):
        plotting.frame(ax, f"{TASK} (V2), by {what}", GOAL)
        for i, log in enumerate(logs):
            ax.plot(log.columns[f"at_{what}"], log.rewards, color="#999999", linewidth=0.6, alpha=0.7,
                    rasterized=True, label=f"the authors' {len(logs)} logs" if i == 0 else None)  # fmt: skip
        for i, curve in enumerate(curves):
            label = f"ours, seed {curve.seed}{'' if math.isfinite(curve.reach(GOAL)) else ' (under way)'}"
            ax.plot(curve.columns[f"at_{what}"], curve.rewards, color=f"C{i}", linewidth=1.5, label=label)
        ax.set_xlabel("iterations" if what == "iteration" else "timesteps, million")
        plotting.add_legend(ax, below=True)
    axes[0].set_xlim(0, SHOWN)
    axes[1].set_xlim(
        0, max(float(log.columns["at_timesteps"][log.columns["at_iteration"] <= SHOWN][-1]) for log in logs)
    )
    axes[1].xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g}"))
    axes[0].xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    return figure


def main(folder: Path, out: Path = Path("results")) -> None:
    from ars.plotting import image_files

    logs = read_logs(folder / "humanoid_logs.csv")
    curves = [curve for curve in pick(load_all(out / "runs")[0], TASK, "V2", SEEDS) if curve.rewards.size]
    curves.sort(key=lambda curve: SEEDS.index(curve.seed))
    drawn = table(curves, logs).files("humanoid_logs")
    for name, content in {**drawn, **image_files("figures/humanoid_logs", lambda: plot(curves, logs))}.items():
        write_atomic(out / name, content)
    print((out / "tables" / "humanoid_logs.md").read_text())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
