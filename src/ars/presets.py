"""The paper's hyperparameters, grids and thresholds as data, each with its place in the paper.

They are per robot: `Hopper-v1` (the paper's own definition) and `Hopper-v5` share them.
"""

import math
from itertools import product
from numbers import Integral
from typing import Any, NamedTuple

from ars.config import DEFAULT_TABLE_SIZE, Config, shared_settings, usually_steady
from ars.errors import SettingError
from ars.searches import DEFAULT, SEARCHES, Search, search_class
from ars.searches.ars import ARS, VARIANTS, Variant
from ars.settings import own_fields, shown, whole_number


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
        "Walker2d": Preset(0.03, 0.01, 40, 30),
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

# Section 4.3 prints no values; these are from docs/lqr.md. According to section 3.2, V2 is impractical on LQR.
LQR_VARIANT, LQR_PRESET = "V1", Preset(0.0025, 0.01, 4, 4)

# The size of actions under the first noise, on tasks that are not in the paper.
ACTION_NOISE = 0.3

# ARS on these tasks: V2 as HalfCheetah has it.
DEFAULT_VARIANT = "V2"
DEFAULT_PRESET = Preset(0.02, 0.03, 8, 8)

# With the searches that rank any number of pairs (`any_number`), an iteration takes at least as many timesteps as
# so many episodes of full length.
LEAST_EPISODES = 5

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
    """Every point of the robot's grid once; b > N is read as b = N."""
    points = [Preset(alpha, nu, N, min(b, N)) for alpha, nu, N, b in product(*GRIDS[robot])]
    return list(dict.fromkeys(points))


def robot_of(task: str) -> str | None:
    """`Hopper` for `Hopper-v1` and `Hopper-v5`; None for a task that is not in the paper."""
    robot, _, version = task.rpartition("-")
    return robot if robot in THRESHOLDS and version in ("v1", "v5") else None


def paper_robot(task: str) -> str:
    """The same, but an error for a task that is not in the paper."""
    robot = robot_of(task)
    if robot is None:
        known = ", ".join(f"{name}-v1" for name in THRESHOLDS)
        raise SettingError(f"{task!r} is not one of the paper's tasks: choose from {known}, or their -v5 versions.")
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


def suggested(n: int, p: int, H: int) -> tuple[str, dict[str, Any]]:
    """The search for a task that the paper does not have, and those of its settings that are not its defaults: from the
    n numbers of an observation, the p of an action and the horizon alone, with no tuning per task.

    csa, which needs no alpha, with the best half of twice the usual number of pairs: its defaults learn the paper's
    robots faster, but it was this that was measured on other tasks. Of n normalised observations the noise makes
    actions of the size nu sqrt(n); 0.3 of an action's usual range of 1 is enough to be felt and not so much as to
    saturate (docs/choosing.md has the figures).
    """
    from ars.searches.ranking import default_pairs

    nu = float(f"{ACTION_NOISE / math.sqrt(n):.2g}")
    return "csa", {"nu": nu, "N": 2 * default_pairs(n * p), "share": 0.5, "calm": 0, "average": 0, "duel": 0}


def _suggestion(task: str, shape: tuple[int, int] | None, H: int, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same, unless the paper has the task, or the user gives a setting that only another search has."""
    if shape is None or task == "lqr" or robot_of(task):
        return DEFAULT, {}
    p, n = shape
    name, settings = suggested(n, p, whole_number("H", H, 1, 10**9))
    fitting = {*shared_settings(), "start", *(f.name for f in own_fields(search_class(name)))}
    return (name, settings) if given.keys() <= fitting else (DEFAULT, {})


def threshold(task: str) -> float | None:
    robot = robot_of(task)
    return THRESHOLDS[robot] if robot else None


def make_config(
    task: str,
    *,
    H: int,
    shift: float,
    shape: tuple[int, int] | None = None,
    search: str | Search | None = None,
    variant: str | None = None,
    **overrides: Any,
) -> Config:
    """The configuration from a task's preset and the user's overrides; H and shift are the task's own.

    `search` is a name, or a search object, whose settings then cannot be among the overrides. `variant` selects a
    preset of ARS by the paper's name. Without either, a task that is not in the paper has the search that is suggested
    for matrices M of this `shape`, or ARS if it is unknown.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    if search is None and variant is None:
        search, values = _suggestion(task, shape, H, given)
        given = values | given
    shared: dict[str, Any] = {"normalise": task != "lqr"}  # section 3.2: V2 is impractical on LQR
    if search is None or isinstance(search, str):
        cls, name = search_class(search or DEFAULT), search or DEFAULT
        own = {f.name for f in own_fields(cls)}
        _refuse_unknown(given, own, name)
        block = {name: given.pop(name) for name in list(given) if name in own}
        if cls is ARS:
            values, shared["normalise"] = _ars_preset(task, variant, block, given.get("normalise"))
            block, variant = values | block, None
        made: Search = cls(**block)
    else:
        made, name = search, type(search).__name__
        _refuse_unknown(given, set(), name)
    if variant is not None:
        raise SettingError(f"variant = {shown(variant)} is a preset of the search ars, not of {name}.")
    if given.get("noise") == "table":
        given.setdefault("table_size", DEFAULT_TABLE_SIZE)
    if not isinstance(made, ARS):  # which stays as the paper has it
        normalise = given.get("normalise", shared["normalise"])
        shared["steady"] = usually_steady(made, normalise, given.get("hidden", ""))
    if getattr(made, "any_number", False):
        shared["least_timesteps"] = LEAST_EPISODES * whole_number("H", H, 1, 10**9)
    shared["average"] = getattr(made, "averaged", 0)
    shared["duel"] = 0 if given.get("hidden") or given.get("start") else getattr(made, "duelled", 0)
    return Config(**{"task": task, "search": made, "H": H, "shift": shift, **shared, **given})


def _refuse_unknown(given: dict[str, Any], own: set[str], search: str) -> None:
    known = {*shared_settings(), "start", *own}
    for name in given:
        if name not in known:
            others = [other for other in SEARCHES if name in {f.name for f in own_fields(search_class(other))}]
            where = f": it belongs to the search {' or '.join(others)}, not to {search}" if others else ""
            raise SettingError(f"There is no setting {shown(name)}{where}.")


def _ars_preset(
    task: str, variant: str | None, block: dict[str, Any], normalise: bool | None
) -> tuple[dict[str, Any], bool]:
    """The settings of ARS for a task, and whether states are normalised."""
    if variant is not None and (not isinstance(variant, str) or variant not in VARIANTS):
        raise SettingError(f"variant = {shown(variant)} is unknown: choose one of {', '.join(VARIANTS)}.")
    chosen = VARIANTS[variant or default_variant(task)]
    wanted = chosen._replace(
        scaled=block.get("scaled", chosen.scaled), normalise=chosen.normalise if normalise is None else normalise
    )
    if variant is not None and wanted != chosen:
        odd = "normalise" if wanted.normalise != chosen.normalise else "scaled"
        raise SettingError(
            f"{odd} = {getattr(wanted, odd)} and variant = {variant} contradict each other: give one of them."
        )
    if not wanted.scaled:
        wanted = Variant(False, wanted.normalise, False)
    closest = variant or next((name for name, value in VARIANTS.items() if value == wanted), "BRS")
    values: dict[str, Any] = preset(task, closest)._asdict() | {"scaled": wanted.scaled}
    top = wanted.top_directions
    if "N" in block and "b" not in block:  # b is the preset's; without -t it is N by definition
        N = whole_number("N", block["N"], 1, 10**6)
        values["b"] = min(values["b"], N) if top else N
    b, N = block.get("b", values["b"]), block.get("N", values["N"])
    if variant is not None and not top and isinstance(b, Integral) and isinstance(N, Integral) and b < N:
        raise SettingError(
            f"b = {int(b)} < N = {int(N)} needs a variant with top directions (V1-t or V2-t), not {variant}: "
            f"leave b out, or set it to {int(N)}."
        )
    return values, wanted.normalise
