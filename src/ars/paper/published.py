"""What the paper prints: its own figures and the rivals' columns, which it took from others. Data, never computed with.

None: "N/A" (the threshold was not reached) or "UNK". A value that the paper marks ≈ was read off a figure.
"""

from typing import NamedTuple

# Table 1: average episodes to the threshold over three seeds; NG and TRPO from Rajeswaran et al. 2017.
TABLE1_ARS: dict[str, dict[str, int | None]] = {
    "Swimmer": {"V1": 100, "V1-t": 100, "V2": 427, "V2-t": 427},
    "Hopper": {"V1": 89493, "V1-t": 51840, "V2": 3013, "V2-t": 1973},
    "HalfCheetah": {"V1": 10240, "V1-t": 8106, "V2": 2720, "V2-t": 1707},
    "Walker2d": {"V1": 392000, "V1-t": 166133, "V2": 89600, "V2-t": 24000},
    "Ant": {"V1": 101066, "V1-t": 58133, "V2": 60533, "V2-t": 20800},
    "Humanoid": {"V1": None, "V1-t": None, "V2": 142600, "V2-t": 142600},
}
TABLE1_RIVALS: dict[str, dict[str, str]] = {
    "Swimmer": {"NG-lin": "1450", "NG-rbf": "1550", "TRPO-nn": "N/A"},
    "Hopper": {"NG-lin": "13920", "NG-rbf": "8640", "TRPO-nn": "10000"},
    "HalfCheetah": {"NG-lin": "11250", "NG-rbf": "6000", "TRPO-nn": "4250"},
    "Walker2d": {"NG-lin": "36840", "NG-rbf": "25680", "TRPO-nn": "14250"},
    "Ant": {"NG-lin": "39240", "NG-rbf": "30000", "TRPO-nn": "73500"},
    "Humanoid": {"NG-lin": "≈130000", "NG-rbf": "≈130000", "TRPO-nn": "UNK"},
}


class Budget(NamedTuple):
    """A row of tables 2 and 3: the maximum average reward after so many timesteps."""

    timesteps: float
    ars: int
    rivals: dict[str, str]


# Table 2: rivals from Schulman et al. 2017, three seeds.
TABLE2 = {
    "Swimmer": Budget(1e6, 361, {"PPO": "≈110", "A2C": "≈30", "CEM": "≈0", "TRPO": "≈120"}),
    "Hopper": Budget(1e6, 3047, {"PPO": "≈2300", "A2C": "≈900", "CEM": "≈500", "TRPO": "≈2000"}),
    "HalfCheetah": Budget(1e6, 2345, {"PPO": "≈1900", "A2C": "≈1000", "CEM": "≈-400", "TRPO": "≈0"}),
    "Walker2d": Budget(1e6, 894, {"PPO": "≈3500", "A2C": "≈900", "CEM": "≈800", "TRPO": "≈1000"}),
}

# Table 3: rivals from Haarnoja et al. 2018, five seeds.
TABLE3 = {
    "Hopper": Budget(2e6, 3306, {"SAC": "≈3000", "DDPG": "≈1100", "SQL": "≈1500", "TRPO": "≈1250"}),
    "HalfCheetah": Budget(1e7, 5024, {"SAC": "≈11500", "DDPG": "≈6500", "SQL": "≈8000", "TRPO": "≈1800"}),
    "Walker2d": Budget(5e6, 4205, {"SAC": "≈3500", "DDPG": "≈1600", "SQL": "≈2100", "TRPO": "≈800"}),
    "Ant": Budget(1e7, 2072, {"SAC": "≈2500", "DDPG": "≈200", "SQL": "≈2000", "TRPO": "≈0"}),
}


class Timesteps(NamedTuple):
    """A row of table 4: average timesteps to a threshold."""

    threshold: float
    ars: float
    rivals: dict[str, str]


# Table 4: ES and TRPO from Salimans et al. 2017, six seeds.
TABLE4 = {
    "Swimmer": Timesteps(128.25, 6.00e4, {"ES": "1.39e6", "TRPO": "4.59e6"}),
    "Hopper": Timesteps(3403.46, 2.00e6, {"ES": "3.16e7", "TRPO": "4.56e6"}),
    "HalfCheetah": Timesteps(2385.79, 5.86e5, {"ES": "2.88e6", "TRPO": "5.00e6"}),
    "Walker2d": Timesteps(3830.03, 8.14e6, {"ES": "3.79e7", "TRPO": "4.81e6"}),
}

# Table 5: the maximum average reward over all hyperparameters and the three seeds.
TABLE5 = {"Swimmer": 365, "Hopper": 3909, "HalfCheetah": 6722, "Walker2d": 11389, "Ant": 5146, "Humanoid": 11600}


class Machine(NamedTuple):
    """A row of tables 6 and 7: time to 6000 on Humanoid; minutes at the 10th, 25th, 50th and 75th percentile."""

    algorithm: str
    instance: str
    cpus: int
    minutes: tuple[int | None, int | None, int, int | None]
    cpu_hours: int


# Tables 6 and 7: ES from Salimans et al. 2017, seven trials; ARS over 100 seeds.
TABLES_6_AND_7 = (
    Machine("ES", "unknown", 18, (None, None, 657, None), 197),
    Machine("ES", "unknown", 1440, (None, None, 10, None), 240),
    Machine("ARS V2", "m5.24xlarge", 48, (10, 13, 21, 45), 16),
    Machine("ARS V2", "c5.9xlarge", 18, (16, 23, 41, 96), 12),
    Machine("ARS V2", "c4.8xlarge", 18, (21, 28, 57, 144), 17),
)

# Section 4.2 on figure 3: how often ARS trains a policy, over 100 seeds.
SUCCESS = {"Swimmer": 0.7, "Hopper": 0.7, "HalfCheetah": 0.7, "Walker2d": 0.2, "Ant": 0.7, "Humanoid": 0.7}
