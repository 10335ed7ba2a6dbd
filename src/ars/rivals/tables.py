"""The tables of `ars rivals`, from the finished runs alone: tables 1 to 4 of the paper with what was measured beside
what it quotes, and what the paper does not have: where ARS loses, CPU time, and the policies themselves."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.paper import table1, table2, table3, table4
from ars.paper.artefact import NOTHING, Table, scientific
from ars.presets import THRESHOLDS, paper_robot
from ars.rivals.groups import cpu_seconds, diverged, final, finished, r_max
from ars.rivals.roster import RIVALS, TASKS, TIMESTEPS, Spec
from ars.rivals.running import seconds_of

# What the paper's tables call a rival.
MEASURED_AS = {
    "PPO": "ppo-2017", "A2C": "a2c", "CEM": "cem", "TRPO": "trpo", "TRPO-nn": "trpo", "SAC": "sac", "DDPG": "ddpg",
    "ES": "es-mlp", "NG-lin": "ng-lin", "NG-rbf": "ng-rbf",
}  # fmt: skip
CPU = (10, 60, 300, 1000)  # seconds
QUOTED = {"SQL": "no maintained implementation: the published figures are quoted"}
SEEDS = "Over the finished runs; in brackets the least and the most of the seeds, or how many there are if not three."


def robots_of(published: Sequence[str]) -> list[str]:
    return [task for task in TASKS if paper_robot(task) in published]


def spread(values: Sequence[float]) -> str:
    """Mean (least to most)."""
    if not values:
        return NOTHING
    if len(values) == 1:
        return f"{values[0]:.0f} (1 seed)"
    few = f", {len(values)} seeds" if len(values) != 3 else ""
    return f"{np.mean(values):.0f} ({min(values):.0f} to {max(values):.0f}{few})"


def losses(curves: Sequence[Curve]) -> Table:
    """Where a rival is ahead of ARS after the same timesteps, the largest lead first."""
    found = []
    for task in TASKS:
        ours = finished(curves, "ars", task, TIMESTEPS)
        for rival in RIVALS:
            theirs = finished(curves, rival, task, TIMESTEPS)
            if rival == "ars" or not ours or not theirs:
                continue
            here, there = ([final(curve, TIMESTEPS) for curve in runs] for runs in (ours, theirs))
            lead = float(np.mean(there) - np.mean(here)) / THRESHOLDS[paper_robot(task)]
            if lead > 0:
                cost = [np.mean([cpu_seconds(curve, TIMESTEPS) for curve in runs]) for runs in (ours, theirs)]
                row = [
                    task,
                    RIVALS[rival].title,
                    spread(there),
                    spread(here),
                    f"{lead:.0%}",
                    f"{cost[1] / cost[0]:.1f}",
                ]
                found.append((lead, row))
    rows = [row for _, row in sorted(found, key=lambda one: -one[0])]
    columns = ("task", "rival", "its reward", "ARS", "lead, of the threshold", "CPU time, of ARS's")
    return Table("Where ARS loses after 1e6 timesteps", columns, rows, (SEEDS,))


def scores(curves: Sequence[Curve]) -> Table:
    """All that was measured, task by task, the best first."""
    rows = []
    for task in TASKS:
        ranked = []
        for rival, about in RIVALS.items():
            if runs := finished(curves, rival, task, TIMESTEPS):
                last = [final(curve, TIMESTEPS) for curve in runs]
                cpu = np.mean([cpu_seconds(curve, TIMESTEPS) for curve in runs])
                lost = diverged(curves, rival, task)
                count = f"{len(runs)}, {lost} diverged" if lost else str(len(runs))
                row = [task, about.title, count, spread(last), _number(r_max(runs, TIMESTEPS)), f"{cpu:.0f}"]
                ranked.append((-float(np.mean(last)), row))
        rows += [row for _, row in sorted(ranked)]
    columns = ("task", "rival", "seeds", "reward at 1e6", "maximum of the mean curve", "CPU s of training")
    return Table("Rewards after 1e6 timesteps", columns, rows, (SEEDS,))


def _number(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.0f}"


# -- the paper's tables ----------------------------------------------------------------------------------------------


def beside(measured: str, published: str) -> str:
    return f"{measured} / {published}"


def rewards_table(
    name: str, title: str, published: dict[str, table2.Budget], curves: Sequence[Curve], note: str
) -> Table:
    """Tables 2 and 3: the maximum of the mean curve within 1e6 timesteps / the published value."""
    rivals = list(next(iter(published.values())).rivals)
    rows = []
    for task in robots_of(list(published)):
        printed = published[paper_robot(task)]
        row = [task, scientific(printed.timesteps)]
        for rival, value in (("ars", str(printed.ars)), ("csa", NOTHING), *printed.rivals.items()):
            runs = finished(curves, MEASURED_AS.get(rival, rival), task, TIMESTEPS)
            few = f" ({len(runs)} seed{'s' if len(runs) > 1 else ''})" if runs and len(runs) != 3 else ""
            row.append(beside(f"{_number(r_max(runs, TIMESTEPS))}{few}" if runs else NOTHING, value))
        rows.append(row)
    return Table(
        f"{name}, measured / published: {title}", ("task", "published at", "ARS", "csa", *rivals), rows, (note,)
    )


def paper2(curves: Sequence[Curve]) -> Table:
    note = (
        "Measured: the maximum over 1e6 timesteps of the seeds' mean curve. Published: Schulman et al. 2017, whose "
        "settings the measured PPO has; PPO with the zoo's is among the rewards."
    )
    return rewards_table("Table 2", "maximum average reward", table2.PUBLISHED, curves, note)


def paper3(curves: Sequence[Curve]) -> Table:
    note = (
        "Measured at 1e6 timesteps, published (Haarnoja et al. 2018) at those of the second column: not the same "
        "budget. SQL has no maintained implementation."
    )
    return rewards_table("Table 3", "maximum average reward", table3.PUBLISHED, curves, note)


def reached(runs: Sequence[Curve], threshold: float, what: str, show: Callable[[float], str]) -> str:
    """The mean if every run reached the threshold, otherwise how many did and what each spent."""
    if not runs:
        return NOTHING
    spent = [curve.reach(threshold, what) for curve in runs]
    there = sorted(filter(math.isfinite, spent))
    if len(there) == len(runs):
        return f"{show(st.mean_of_all(spent))}" + (f" ({len(runs)} seeds)" if len(runs) not in (1, 3) else "")
    return f"{len(there)} of {len(runs)}" + (f": {', '.join(map(show, there))}" if there else "")


def thresholds_table(
    title: str, curves: Sequence[Curve], rows_of: dict[str, tuple[float, dict[str, str]]], what: str,
    show: Callable[[float], str], note: str,
) -> Table:  # fmt: skip
    """Tables 1 and 4. `rows_of`: robot → threshold, and what the paper quotes of ARS and each rival."""
    columns = list(next(iter(rows_of.values()))[1])
    rows = []
    for task in robots_of(list(rows_of)):
        threshold, quoted = rows_of[paper_robot(task)]
        row = [task, f"{threshold:g}"]
        for rival, value in quoted.items():
            name = rival.lower() if rival in ("ARS", "csa") else MEASURED_AS[rival]
            row.append(beside(reached(finished(curves, name, task), threshold, what, show), value))
        rows.append(row)
    return Table(title, ("task", "threshold", *columns), rows, (note,))


REACHED = "Measured: a mean where all seeds arrived, else how many did, each after so many; runs are of 1e6 timesteps, "


def paper1(curves: Sequence[Curve]) -> Table:
    rows = {
        robot: (
            THRESHOLDS[robot],
            {"ARS": str(table1.PUBLISHED[robot]["V1" if robot == "Swimmer" else "V2-t"]), "csa": NOTHING, **quoted},
        )
        for robot, quoted in table1.RIVALS.items()
    }
    note = f"{REACHED}or longer where there are longer ones. Published: Rajeswaran et al. 2017."
    title = "Table 1, measured / published: episodes to the reward threshold"
    return thresholds_table(title, curves, rows, "episodes", "{:.0f}".format, note)


def paper4(curves: Sequence[Curve]) -> Table:
    rows = {
        robot: (one.threshold, {"ARS": scientific(one.ars), "csa": NOTHING, **one.rivals})
        for robot, one in table4.PUBLISHED.items()
    }
    note = f"{REACHED}or longer where there are longer ones. Published: Salimans et al. 2017."
    title = "Table 4, measured / published: timesteps to the reward threshold"
    return thresholds_table(title, curves, rows, "timesteps", scientific, note)


# -- what the paper does not have ------------------------------------------------------------------------------------


def by_cpu(curves: Sequence[Curve]) -> Table:
    """Rewards after equal CPU time, of the longest runs."""
    rows = []
    for task in TASKS:
        for rival, about in RIVALS.items():
            if runs := finished(curves, rival, task):
                rows.append([task, about.title, *(_at_cpu(runs, seconds) for seconds in CPU)])
    note = (
        "CPU seconds of training on one core, evaluations not counted. †: at least one of the runs ended before; its "
        "reward is that of its last evaluation."
    )
    columns = ("task", "rival", *(f"{seconds} s" for seconds in CPU))
    return Table("Rewards after equal CPU time", columns, rows, (note,))


def _at_cpu(runs: Sequence[Curve], seconds: float) -> str:
    values = [float(st.resample(c.columns["at_seconds"], c.rewards, [seconds])[0]) for c in runs]
    if any(map(math.isnan, values)):
        return NOTHING
    return f"{np.mean(values):.0f}" + ("†" if min(curve.seconds for curve in runs) < seconds else "")


def policies(curves: Sequence[Curve]) -> Table:
    """Parameters, bytes and microseconds per action of the final policies."""
    rows = []
    for rival, about in RIVALS.items():
        row = [about.title]
        for task in TASKS:
            found = [c.measures for c in finished(curves, rival, task) if "microseconds" in c.measures]
            fastest = min((one["microseconds"] for one in found), default=0.0)
            row.append(
                f"{found[0]['parameters']:.0f}; {found[0]['bytes']:.0f} B; {fastest:.0f} µs" if found else NOTHING
            )
        if row[1:] != [NOTHING] * len(TASKS):
            rows.append(row)
    note = (
        "Parameters of what acts (not of critics); bytes of these and of the statistics that normalise observations; "
        "microseconds from an observation to an action in Python, on one core: LinearPolicy.act, or "
        "stable-baselines3's predict."
    )
    return Table("The final policies", ("rival", *TASKS), rows, (note,))


def unmeasured(curves: Sequence[Curve]) -> Table:
    """Every rival and task without a finished run, why, and what a run would cost."""
    rows = [[name, "all", why, NOTHING] for name, why in QUOTED.items()]
    for rival, about in RIVALS.items():
        left = [task for task in TASKS if not finished(curves, rival, task, TIMESTEPS)]
        for planned in (True, False):
            if tasks := [task for task in left if (task in about.tasks) == planned]:
                cost = seconds_of([Spec(rival, tasks[0], 0, TIMESTEPS)], curves)
                why = "not run yet" if planned else "left out for its cost"
                rows.append([about.title, ", ".join(tasks), why, f"{sum(cost.values()) / 3600:.2f}"])
    return Table("Not measured", ("rival", "tasks", "why", "core hours per run"), rows)


TABLES = {
    "losses": losses, "scores": scores, "table1": paper1, "table2": paper2, "table3": paper3, "table4": paper4,
    "cpu": by_cpu, "policies": policies, "unmeasured": unmeasured,
}  # fmt: skip
