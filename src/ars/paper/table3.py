"""Table 3: maximum average reward after 2·10^6 to 10^7 timesteps."""

from ars.paper.artefact import Artefact, Shown, Table, main_runs
from ars.paper.table2 import Budget, budget_table

# Table 3: rivals from Haarnoja et al. 2018, five seeds.
PUBLISHED = {
    "Hopper": Budget(2e6, 3306, {"SAC": "≈3000", "DDPG": "≈1100", "SQL": "≈1500", "TRPO": "≈1250"}),
    "HalfCheetah": Budget(1e7, 5024, {"SAC": "≈11500", "DDPG": "≈6500", "SQL": "≈8000", "TRPO": "≈1800"}),
    "Walker2d": Budget(5e6, 4205, {"SAC": "≈3500", "DDPG": "≈1600", "SQL": "≈2100", "TRPO": "≈800"}),
    "Ant": Budget(1e7, 2072, {"SAC": "≈2500", "DDPG": "≈200", "SQL": "≈2000", "TRPO": "≈0"}),
}


def table(shown: Shown) -> Table:
    return budget_table("Table 3: maximum average reward after timesteps", PUBLISHED, shown)


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table3")


ARTEFACT = Artefact("Maximum average reward after more timesteps", tuple(PUBLISHED), main_runs, draw)
