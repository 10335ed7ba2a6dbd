"""The paper's hyperparameters, grids and thresholds as data; each table cites where it is printed.

They belong to the robots: `Hopper-v1` (the paper's own definition) and `Hopper-v5` share them.
"""

from dataclasses import fields
from itertools import product
from typing import Any, NamedTuple

from ars.config import LARGEST, VARIANTS, Config, whole_number
from ars.errors import SettingError


class Preset(NamedTuple):
    """alpha, nu, N, b as in Algorithm 2."""

    alpha: float
    nu: float
    N: int
    b: int


# Table 1: the reward thresholds.
THRESHOLDS = {
    "Swimmer": 325.0,
    "Hopper": 3120.0,
    "HalfCheetah": 3430.0,
    "Walker2d": 4390.0,
    "Ant": 3580.0,
    "Humanoid": 6000.0,
}

# Caption of figure 3: the variant used over 100 seeds.
DEFAULT_VARIANTS = {
    "Swimmer": "V1",
    "Hopper": "V2-t",
    "HalfCheetah": "V2",
    "Walker2d": "V2-t",
    "Ant": "V2-t",
    "Humanoid": "V2",
}

PRESETS: dict[str, dict[str, Preset]] = {
    # Appendix A.2, second table, left half.
    "V2": {
        "Swimmer": Preset(0.02, 0.01, 1, 1),
        "Hopper": Preset(0.02, 0.02, 4, 4),
        "HalfCheetah": Preset(0.02, 0.03, 8, 8),
        "Walker2d": Preset(0.025, 0.01, 60, 60),
        "Ant": Preset(0.01, 0.025, 40, 40),
        "Humanoid": Preset(0.02, 0.0075, 230, 230),
    },
    # Appendix A.2, second table, right half.
    "V2-t": {
        "Swimmer": Preset(0.02, 0.01, 1, 1),
        "Hopper": Preset(0.01, 0.025, 8, 4),
        "HalfCheetah": Preset(0.02, 0.03, 32, 4),
        "Walker2d": Preset(0.03, 0.025, 40, 30),
        "Ant": Preset(0.015, 0.025, 60, 20),
        "Humanoid": Preset(0.02, 0.0075, 230, 230),
    },
    # D6: the paper prints no values for the three below. Chosen by small trials: docs/presets.md.
    "V1": {
        "Swimmer": Preset(0.01, 0.03, 1, 1),
        "Hopper": Preset(0.025, 0.03, 8, 8),
        "HalfCheetah": Preset(0.01, 0.02, 8, 8),
        "Walker2d": Preset(0.03, 0.0075, 60, 60),
        "Ant": Preset(0.02, 0.01, 20, 20),
        "Humanoid": Preset(0.025, 0.0075, 310, 310),
    },
    "V1-t": {
        "Swimmer": Preset(0.01, 0.03, 1, 1),
        "Hopper": Preset(0.01, 0.025, 8, 4),
        "HalfCheetah": Preset(0.025, 0.01, 16, 8),
        "Walker2d": Preset(0.025, 0.02, 80, 30),
        "Ant": Preset(0.02, 0.01, 20, 15),
        "Humanoid": Preset(0.01, 0.0075, 350, 200),
    },
    "BRS": {
        "Swimmer": Preset(0.0025, 0.02, 1, 1),
        "Hopper": Preset(0.00025, 0.02, 8, 8),
        "HalfCheetah": Preset(0.0002, 0.02, 32, 32),
        "Walker2d": Preset(0.003, 0.01, 60, 60),
        "Ant": Preset(0.001, 0.025, 40, 40),
        "Humanoid": Preset(2.5e-05, 0.01, 350, 350),
    },
}

# Section 4.3 prints no values: those of docs/lqr.md. V2 is impractical there, the paper says (section 3.2).
LQR_VARIANT, LQR_PRESET = "V1", Preset(0.0025, 0.01, 4, 4)

DEFAULT_TABLE_SIZE = 25_000_000  # numbers of a shared noise table: 200 MB

# For a task that the paper does not have.
DEFAULT_VARIANT = "V2"
DEFAULT_PRESET = Preset(0.02, 0.03, 8, 8)

# Appendix A.2, first table: alpha, nu, N, b.
GRIDS: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...], tuple[int, ...]]] = {
    "Swimmer": ((0.01, 0.02, 0.025), (0.03, 0.02, 0.01), (1,), (1,)),
    "Hopper": ((0.01, 0.02, 0.025), (0.03, 0.025, 0.02, 0.01), (8, 16, 32), (4, 8, 32)),
    "HalfCheetah": ((0.01, 0.02, 0.025), (0.025, 0.02, 0.01), (4, 8, 16, 32), (2, 4, 8, 32)),
    "Walker2d": ((0.01, 0.02, 0.025, 0.03), (0.025, 0.02, 0.01, 0.0075), (40, 60, 80, 100), (15, 30, 100)),
    "Ant": ((0.01, 0.015, 0.02, 0.025), (0.025, 0.02, 0.01), (20, 40, 60, 80), (15, 20, 40, 80)),
    "Humanoid": ((0.01, 0.02, 0.025), (0.01, 0.0075), (90, 230, 270, 310, 350), (100, 200, 360)),
}


def grid(robot: str) -> list[Preset]:
    """Every combination of the robot's grid; b > N reads as b = N, and duplicates count once."""
    points = [Preset(alpha, nu, N, min(b, N)) for alpha, nu, N, b in product(*GRIDS[robot])]
    return list(dict.fromkeys(points))


def robot_of(task: str) -> str | None:
    """`Hopper` for `Hopper-v1` and `Hopper-v5`; None for a task that the paper does not have."""
    robot, _, version = task.rpartition("-")
    return robot if robot in THRESHOLDS and version in ("v1", "v5") else None


def paper_robot(task: str) -> str:
    """The same, for a task that must be one of the paper's."""
    robot = robot_of(task)
    if robot is None:
        known = ", ".join(f"{name}-v1" for name in THRESHOLDS)
        raise SettingError(f"tasks = {task!r} is not of the paper: choose from {known}, or -v5.")
    return robot


def default_variant(task: str) -> str:
    robot = robot_of(task)
    if task == "lqr":
        return LQR_VARIANT
    return DEFAULT_VARIANTS[robot] if robot else DEFAULT_VARIANT


def preset(task: str, variant: str) -> Preset:
    robot = robot_of(task)
    if task == "lqr":
        return LQR_PRESET
    return PRESETS[variant][robot] if robot else DEFAULT_PRESET


def threshold(task: str) -> float | None:
    robot = robot_of(task)
    return THRESHOLDS[robot] if robot else None


def make_config(task: str, *, H: int, shift: float, variant: str | None = None, **overrides: Any) -> Config:
    """The preset of a task with what the user set instead; H and shift are what the task itself says."""
    given = {name: value for name, value in overrides.items() if value is not None}
    variant = default_variant(task) if variant is None else variant
    if not isinstance(variant, str) or variant not in VARIANTS:
        raise SettingError(f"variant = {variant!r} is unknown: choose one of {', '.join(VARIANTS)}.")
    values = preset(task, variant)._asdict()
    if "N" in given and "b" not in given:  # b is the preset's, not the user's: without -t it is N by definition
        N = whole_number("N", given["N"], 1, LARGEST["N"])
        values["b"] = min(values["b"], N) if VARIANTS[variant].top_directions else N
    if given.get("noise") == "table":
        given.setdefault("table_size", DEFAULT_TABLE_SIZE)
    unknown = sorted(set(given) - {f.name for f in fields(Config)})
    if unknown:
        raise SettingError(f"There is no setting {unknown[0]!r}.")
    return Config(**{"task": task, "variant": variant, "H": H, "shift": shift, **values, **given})
