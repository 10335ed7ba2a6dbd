"""Table 1: average episodes to the reward threshold, for every variant; and which augmentation helps."""

from collections.abc import Sequence

from ars import statistics as st
from ars.experiments.run_specs import FEW_EVAL_EPISODES, RunSpec, run_spec
from ars.paper.artefact import (
    NOTHING,
    ROBOTS,
    Artefact,
    Shown,
    Table,
    main_runs,
    main_variant,
    pick,
    threshold_cell,
)
from ars.presets import PRESETS, THRESHOLDS, paper_robot
from ars.searches.ars import VARIANTS

# Table 1: over three seeds. None: N/A, the threshold was not reached.
PUBLISHED: dict[str, dict[str, int | None]] = {
    "Swimmer": {"V1": 100, "V1-t": 100, "V2": 427, "V2-t": 427},
    "Hopper": {"V1": 89493, "V1-t": 51840, "V2": 3013, "V2-t": 1973},
    "HalfCheetah": {"V1": 10240, "V1-t": 8106, "V2": 2720, "V2-t": 1707},
    "Walker2d": {"V1": 392000, "V1-t": 166133, "V2": 89600, "V2-t": 24000},
    "Ant": {"V1": 101066, "V1-t": 58133, "V2": 60533, "V2-t": 20800},
    "Humanoid": {"V1": None, "V1-t": None, "V2": 142600, "V2-t": 142600},
}
# NG and TRPO from Rajeswaran et al. 2017; ≈ was read off a figure.
RIVALS = {
    "Swimmer": {"NG-lin": "1450", "NG-rbf": "1550", "TRPO-nn": "N/A"},
    "Hopper": {"NG-lin": "13920", "NG-rbf": "8640", "TRPO-nn": "10000"},
    "HalfCheetah": {"NG-lin": "11250", "NG-rbf": "6000", "TRPO-nn": "4250"},
    "Walker2d": {"NG-lin": "36840", "NG-rbf": "25680", "TRPO-nn": "14250"},
    "Ant": {"NG-lin": "39240", "NG-rbf": "30000", "TRPO-nn": "73500"},
    "Humanoid": {"NG-lin": "≈130000", "NG-rbf": "≈130000", "TRPO-nn": "UNK"},
}
PAIRS = (("V1", "BRS"), ("V1-t", "V1"), ("V2", "V1"), ("V2-t", "V2"), ("V2-t", "BRS"))


def same_as(task: str, variant: str) -> str:
    """V1 for V1-t and V2 for V2-t if b = N makes them the same: on Swimmer, whose grid has only N = 1, and on Humanoid,
    for which table 9 has the same values twice."""
    robot, base = paper_robot(task), variant.removesuffix("-t")
    own = PRESETS[variant][robot]
    return base if own.b == own.N and PRESETS[base][robot] == own else variant


def variants(task: str) -> list[str]:
    """The distinct columns, the main one first. BRS is not in the paper's table."""
    main = main_variant(task)
    others = [name for name in ("V2-t", "V2", "V1-t", "V1", "BRS") if name != main]
    return [main, *(name for name in others if same_as(task, name) == name)]


def runs(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """The main column by the paper's protocol; the others, seed by seed, with few rollouts per evaluation."""
    columns = [(task, name) for task in tasks for name in variants(task)[1:]]
    return main_runs(tasks, seeds) + [
        run_spec(task, seed, variant=name, eval_episodes=FEW_EVAL_EPISODES) for seed in seeds for task, name in columns
    ]


def table(shown: Shown) -> Table:
    """Our values and, after a slash, the paper's."""
    rows = []
    for task in shown.tasks:
        robot = paper_robot(task)
        row = [task, f"{THRESHOLDS[robot]:g}"]
        for variant in VARIANTS:
            goal = THRESHOLDS[robot], shown.caps[task]
            group = pick(shown.curves, task, same_as(task, variant), shown.seeds, goal)
            cell = threshold_cell(group, *goal, len(shown.seeds), "episodes", "{:.0f}".format)
            printed = PUBLISHED[robot].get(variant)
            beyond = "†" if printed is not None and printed > shown.caps[task] else ""
            row.append(cell if variant == "BRS" else f"{cell} / {'N/A' if printed is None else printed}{beyond}")
        rows.append(row + list(RIVALS[robot].values()))
    note = (
        f"Ours / the paper's, seeds {', '.join(map(str, shown.seeds))}. A mean where all seeds arrived within the cap "
        "of episodes; otherwise `k of n` arrived, each after so many. †: more than our cap "
        f"({', '.join(f'{task} {shown.caps[task]}' for task in shown.tasks)}), so that a run like the paper's average "
        "is cut short. Evaluation every 10 iterations, by 100 rollouts in the main column (V1 on Swimmer, V2 on "
        "Humanoid, else V2-t), by 10 in the others. BRS is not in the paper's table. Rivals: Rajeswaran et al. 2017, "
        "as the paper prints them; N/A: the method did not reach the threshold; UNK: unknown."
    )
    columns = ["task", "threshold", *VARIANTS, "NG-lin", "NG-rbf", "TRPO-nn"]
    return Table("Table 1: average episodes to the reward threshold", columns, rows, (note,))


def improvement(shown: Shown) -> Table:
    """Whether each augmentation helps: the probability that the best evaluation of a run exceeds that of another, both
    at the end of their cap. Only runs evaluated by equally many rollouts are compared."""
    rows = []
    for task in shown.tasks:
        row = [task]
        for pair in PAIRS:
            better, worse = (same_as(task, name) for name in pair)
            x, y = (
                [c for c in pick(shown.curves, task, name, shown.seeds) if c.failed or c.episodes >= shown.caps[task]]
                for name in (better, worse)
            )
            if better == worse:
                row.append("the same")
            elif not x or not y or len({curve.eval_episodes for curve in (*x, *y)}) > 1:
                row.append(NOTHING)
            else:
                probability = st.probability_of_improvement([c.best for c in x], [c.best for c in y])
                row.append(f"{probability:.2f} ({len(x)}·{len(y)})")
        rows.append(row)
    note = (
        "P(best evaluation of the first > that of the second), ties counting half; in brackets the runs compared. "
        "With three runs each, 0.5 ± 0.25 says nothing. A best evaluation of 10 rollouts is a little more lucky than "
        "one of 100, so columns of table 1 that differ in this are not compared. Each variant has hyperparameters of "
        "its own; the ablation at fixed ones is in ablation.md."
    )
    return Table("Probability of improvement", ["task", *(f"{a} > {b}" for a, b in PAIRS)], rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table1") | improvement(shown).files("table1-improvement")


ARTEFACT = Artefact("Episodes to the reward threshold", ROBOTS, runs, draw)
