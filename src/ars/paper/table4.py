"""Table 4: average timesteps to another set of thresholds."""

from typing import NamedTuple

from ars.paper.artefact import Artefact, Shown, Table, main_runs, main_variant, pick, scientific, threshold_cell
from ars.presets import paper_robot


class Timesteps(NamedTuple):
    """A row: average timesteps to a threshold."""

    threshold: float
    ars: float
    rivals: dict[str, str]


# Table 4: ES and TRPO from Salimans et al. 2017, six seeds.
PUBLISHED = {
    "Swimmer": Timesteps(128.25, 6.00e4, {"ES": "1.39e6", "TRPO": "4.59e6"}),
    "Hopper": Timesteps(3403.46, 2.00e6, {"ES": "3.16e7", "TRPO": "4.56e6"}),
    "HalfCheetah": Timesteps(2385.79, 5.86e5, {"ES": "2.88e6", "TRPO": "5.00e6"}),
    "Walker2d": Timesteps(3830.03, 8.14e6, {"ES": "3.79e7", "TRPO": "4.81e6"}),
}


def table(shown: Shown) -> Table:
    rows = []
    for task in shown.tasks:
        printed = PUBLISHED[paper_robot(task)]
        goal = printed.threshold, shown.caps[task]
        group = pick(shown.curves, task, main_variant(task), shown.seeds, goal)
        cell = threshold_cell(group, *goal, len(shown.seeds), "timesteps", scientific)
        rows.append([task, f"{printed.threshold:g}", cell, scientific(printed.ars), *printed.rivals.values()])
    note = (
        "A mean where all seeds arrived, else how many did, each after so many. ES and TRPO: Salimans et al. 2017, as "
        "the paper has them."
    )
    columns = ["task", "threshold", "ours", "the paper's ARS", "ES", "TRPO"]
    return Table("Table 4: average timesteps to the reward threshold", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table4")


ARTEFACT = Artefact("Timesteps to the reward threshold", tuple(PUBLISHED), main_runs, draw)
