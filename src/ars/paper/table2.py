"""Table 2: maximum average reward after 10^6 timesteps; also the form of table 3."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ars import statistics as st
from ars.curves import Curve
from ars.paper.artefact import NOTHING, Artefact, Shown, Table, few_seeds, main_runs, main_variant, pick
from ars.presets import paper_robot


class Budget(NamedTuple):
    """A row: the maximum average reward after some timesteps; ≈ was read off a figure."""

    timesteps: float
    ars: int
    rivals: dict[str, str]


# Table 2: rivals from Schulman et al. 2017, three seeds.
PUBLISHED = {
    "Swimmer": Budget(1e6, 361, {"PPO": "≈110", "A2C": "≈30", "CEM": "≈0", "TRPO": "≈120"}),
    "Hopper": Budget(1e6, 3047, {"PPO": "≈2300", "A2C": "≈900", "CEM": "≈500", "TRPO": "≈2000"}),
    "HalfCheetah": Budget(1e6, 2345, {"PPO": "≈1900", "A2C": "≈1000", "CEM": "≈-400", "TRPO": "≈0"}),
    "Walker2d": Budget(1e6, 894, {"PPO": "≈3500", "A2C": "≈900", "CEM": "≈800", "TRPO": "≈1000"}),
}


def budget_table(title: str, published: Mapping[str, Budget], shown: Shown) -> Table:
    """R-max of appendix A.1 next to the paper's values."""
    rows: list[list[str]] = []
    rivals: list[str] = []
    for task in shown.tasks:
        printed = published[paper_robot(task)]
        rivals = list(printed.rivals)
        group = pick(shown.curves, task, main_variant(task), shown.seeds)
        timesteps = f"{printed.timesteps:.0e}".replace("e+0", "e")
        ours = _r_max(group, printed.timesteps, len(shown.seeds))
        rows.append([task, timesteps, *ours, str(printed.ars), *printed.rivals.values()])
    note = (
        "By the estimator of appendix A.1: the maximum of the mean curve over the seeds, up to the first evaluation at "
        "which one seed has spent the budget; that evaluation is beyond it, and `within` leaves it out. `≥`: the runs "
        "ended, at their cap of episodes, before the budget was spent. Runs under way that have not spent it are left "
        "out. Rivals as the paper prints them."
    )
    return Table(title, ["task", "timesteps", "ours", "within", "the paper's ARS", *rivals], rows, (note,))


def _r_max(group: Sequence[Curve], budget: float, wanted: int) -> tuple[str, str]:
    """By the appendix, and only by evaluations within the budget. An unfinished run that has not spent the budget is
    left out, because it would cut the other curves short."""
    group = [c for c in group if c.status != "unfinished" or c.timesteps >= budget]
    shared = sorted(set.intersection(*(set(c.columns["at_iteration"]) for c in group))) if group else []
    if not shared:
        return NOTHING, NOTHING
    at = [np.isin(c.columns["at_iteration"], shared) for c in group]
    rewards = [c.rewards[here] for c, here in zip(group, at, strict=True)]
    timesteps = [c.columns["at_timesteps"][here] for c, here in zip(group, at, strict=True)]
    mean, few = np.mean(rewards, axis=0), few_seeds(group, wanted)
    by_appendix = st.r_max(rewards, timesteps, budget)
    within = mean[np.max(timesteps, axis=0) <= budget]
    most = f"{within.max():.0f}{few}" if within.size else NOTHING
    return (f"≥ {most}",) * 2 if by_appendix is None else (f"{by_appendix:.0f}{few}", most)


def table(shown: Shown) -> Table:
    return budget_table("Table 2: maximum average reward after timesteps", PUBLISHED, shown)


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table2")


ARTEFACT = Artefact("Maximum average reward after 10^6 timesteps", tuple(PUBLISHED), main_runs, draw)
