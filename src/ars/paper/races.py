"""The study of races as a table, from its small files alone."""

from collections.abc import Callable
from pathlib import Path

from ars import statistics as st
from ars.experiments.race_study import Chosen, Plan, read_study
from ars.files import make_folder, write_atomic
from ars.paper.artefact import Table, scientific

COLUMNS = ("race", "winner", "its timesteps", "reward", "best restart", "its timesteps", "reward")


def draw_races(plan: Plan, out: Path, say: Callable[[str], None] = print) -> None:
    """Write races.md and races.csv beside the folder of the races."""
    drawn = table(plan, out)
    if not drawn.rows:
        say("There are no races yet: run ars study races.")
        return
    make_folder(out.parent)
    for name, text in {"races.md": drawn.markdown(), "races.csv": drawn.csv()}.items():
        write_atomic(out.parent / name, text.encode())
        say(str(out.parent / name))


def table(plan: Plan, out: Path) -> Table:
    """A row per race, and how many led to a walk."""
    found = read_study(plan, out)
    rows = [[str(k), *_cells(raced.race), *_cells(raced.restarts)] for k, raced in sorted(found.items())]
    races = [raced.race.reward >= plan.walks for raced in found.values()]
    restarts = [raced.restarts.reward >= plan.walks for raced in found.values()]
    note = (
        f"{plan.task}, {plan.search}: {plan.seeds} seeds and {scientific(plan.budget)} timesteps in all for each race, "
        f"and for restarts of the same seeds, {plan.budget // plan.seeds:,} timesteps each, of which the best in "
        f"training was chosen. Rewards are of the last evaluation by 10 episodes; {plan.walks:g} or more is a walk: "
        f"for races {_count(races)}, for restarts {_count(restarts)}. {len(found)} of {plan.races} races are complete."
    )
    return Table("Races beside restarts", COLUMNS, rows, (note,))


def _cells(chosen: Chosen) -> list[str]:
    return [str(chosen.seed), f"{chosen.timesteps:,}", f"{chosen.reward:.0f}"]


def _count(walks: list[bool]) -> str:
    low, high = st.success_interval([0.0 if yes else float("inf") for yes in walks]) if walks else (0.0, 1.0)
    return f"{sum(walks)} of {len(walks)} ({low:.0%} to {high:.0%})"
