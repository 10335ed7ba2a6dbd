"""Evaluate the policies that the paper's authors published in our rebuilt tasks: results/tables/authors.md.

    python -m tools.authors_policies FOLDER

FOLDER holds their files (lin_policy_plus.npz of github.com/modestyachts/ARS, BSD licence), renamed after the task:
Hopper-v1.npz, Walker2d-v1-gait5.npz, … They are read as data (ars/interop) and do not become part of this project.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ars.files import write_atomic
from ars.interop.imports import import_policy
from ars.paper.artefact import NOTHING, Table
from ars.paper.table5 import PUBLISHED
from ars.presets import paper_robot
from ars.sessions import evaluate
from ars.tasks.locomotion import TASKS

EPISODES = 20
PAIRS = 30  # episodes of Swimmer with and without the capsule rule, from the same initial states


def task_of(file: Path) -> str:
    """`Walker2d-v1` for Walker2d-v1-gait5.npz."""
    return "-".join(file.stem.split("-")[:2])


def rows(files: list[Path]) -> Iterator[list[str]]:
    """The policies in the order of the paper's table 5, whose value stands beside the best policy of each robot."""
    for robot, printed in PUBLISHED.items():
        own = [file for file in files if paper_robot(task_of(file)) == robot]
        found = {file: evaluate(import_policy(file, task_of(file)), episodes=EPISODES).rewards for file in own}
        beside = [str(printed), f"{max((r.mean() for r in found.values()), default=0.0) / printed:.1%}"]
        for file, r in sorted(found.items(), key=lambda entry: -entry[1].mean()):
            yield [file.stem, *(f"{value:.0f}" for value in (r.mean(), r.std(), r.min(), r.max())), *beside]
            beside = [NOTHING] * 2  # of its other gaits the paper says nothing


def capsules(file: Path) -> str:
    """Deviation D7: what the rule for the mass and inertia of capsules changes on Swimmer."""
    task = task_of(file)
    without, with_rule = (
        evaluate(import_policy(file, task), replace(TASKS[task], capsules_as_cylinders=rule), episodes=PAIRS).rewards
        for rule in (False, True)
    )
    difference = with_rule - without
    error = difference.std(ddof=1) / np.sqrt(PAIRS)
    return (
        f"{task} with the capsule rule of the other tasks (D7), over {PAIRS} pairs of episodes from the same states: "
        f"{with_rule.mean():.1f} instead of {without.mean():.1f}, a difference of {difference.mean():.1f} ± "
        f"{error:.1f} (standard error)."
    )


def table(files: list[Path]) -> Table:
    notes = [
        f"The policies that the paper's authors published, over {EPISODES} episodes of our tasks: mean, population "
        "standard deviation, lowest and highest reward, beside the paper's best average reward (table 5). The second "
        "policy of a robot has another gait, for which the paper prints no reward. Made by "
        "`python -m tools.authors_policies FOLDER`; the policies are not part of this project.",
        *(capsules(file) for file in files if task_of(file) == "Swimmer-v1"),
    ]
    columns = ["policy", "mean", "std", "min", "max", "the paper's", "ratio"]
    return Table("The authors' policies in our tasks", columns, list(rows(files)), notes)


def main(folder: Path, out: Path = Path("results")) -> None:
    files = sorted(folder.glob("*-v1*.npz"))
    if not files:
        sys.exit(f"{folder} has no files like Hopper-v1.npz.")
    for name, content in table(files).files("authors").items():
        write_atomic(out / name, content)
    print((out / "tables" / "authors.md").read_text())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
