"""The study of races as a table, from its small files alone."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from ars import statistics as st
from ars.experiments.race_study import Chosen, Plan, Raced, read_study
from ars.files import make_folder, write_atomic
from ars.paper.artefact import NOTHING, Table, scientific

COLUMNS = ("race", "winner", "its timesteps", "reward", "best restart", "its timesteps", "reward")


def draw_races(plan: Plan, out: Path, say: Callable[[str], None] = print) -> None:
    """Write races.md and races.csv beside the folder of the races."""
    found = read_study(plan, out)
    if not found:
        say("There are no races yet: run ars study races.")
        return
    drawn = table(plan, found)
    make_folder(out.parent)
    for name, text in {"races.md": drawn.markdown(), "races.csv": drawn.csv()}.items():
        write_atomic(out.parent / name, text.encode())
        say(str(out.parent / name))


def table(plan: Plan, found: Mapping[int, Raced]) -> Table:
    """A row per race, and how many led to a walk."""
    rows = [[str(k), *_cells(raced.race), *_cells(raced.restarts)] for k, raced in sorted(found.items())]
    races, restarts = ([_walks(plan, one) for one in side] for side in zip(*found.values(), strict=True))
    note = (
        f"{plan.task}, {plan.search}: {plan.seeds} seeds and {scientific(plan.budget)} timesteps in all for each race, "
        f"and for restarts of the same seeds, {plan.budget // plan.seeds:,} timesteps each, of which the best in "
        f"training was chosen. Rewards are of the last evaluation by 10 episodes, up to 1e5 timesteps before the end; "
        f"{plan.walks:g} or more is a walk: for races {_count(races)}, for restarts {_count(restarts)}, with Wilson's "
        f"intervals (both have the same seeds). {len(found)} of {plan.races} races are complete."
    )
    return Table("Races beside restarts", COLUMNS, rows, (note,))


def _walks(plan: Plan, chosen: Chosen | None) -> bool:
    return chosen is not None and chosen.reward >= plan.walks


def _cells(chosen: Chosen | None) -> list[str]:
    if chosen is None:
        return [NOTHING, NOTHING, "diverged"]
    return [str(chosen.seed), f"{chosen.timesteps:,}", f"{chosen.reward:.0f}"]


def _count(walks: list[bool]) -> str:
    low, high = st.success_interval([0.0 if yes else math.inf for yes in walks])
    return f"{sum(walks)} of {len(walks)} ({low:.0%} to {high:.0%})"
