"""The configuration of a run: everything that, with the seed, decides its bits. The variants are field values."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from ars.errors import SettingError


class Variant(NamedTuple):
    """Which of the paper's three augmentations of basic random search are on."""

    scaled_by_sigma_R: bool  # section 3.1
    normalised: bool  # section 3.2
    top_directions: bool  # section 3.3


VARIANTS = {
    "BRS": Variant(False, False, False),
    "V1": Variant(True, False, False),
    "V1-t": Variant(True, False, True),
    "V2": Variant(True, True, False),
    "V2-t": Variant(True, True, True),
}

NOISES = ("counter", "table")

LARGEST = {
    "N": 10**6, "b": 10**6, "H": 10**9, "seed": 2**64 - 1, "eval_every": 10**9, "eval_episodes": 10**6,
    "table_size": 10**9, "stats_every": 10**9,
}  # fmt: skip


def finite_number(name: str, value: Any) -> float:
    """value as a float, NumPy's numbers too; a sentence if it is not a finite number."""
    try:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
            raise SettingError(f"{name} = {shown(value)} is not a finite number.")
        return float(value)
    except OverflowError as error:
        raise SettingError(f"{name} is not a finite number: it has more digits than a float can hold.") from error


def whole_number(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """value as an int within its range, or a sentence."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or not least <= int(value) <= most:
        limit = "on" if most == math.inf else f"to {most}"
        raise SettingError(f"{name} = {shown(value)} must be a whole number from {least} {limit}.")
    return int(value)


def shown(value: Any) -> str:
    """A value in a sentence; Python refuses to write integers of thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**50:
        return "a number of many digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, kw_only=True)
class Config:
    """The paper's symbols; H and shift are for training only."""

    task: str
    variant: str
    alpha: float  # step-size
    nu: float  # standard deviation of the exploration noise
    N: int  # directions sampled per iteration
    b: int  # top-performing directions used
    H: int  # horizon of training rollouts
    shift: float  # the survival bonus, taken off every training step
    seed: int = 0
    eval_every: int = 10  # iterations between evaluations; 0 for none
    eval_episodes: int = 100
    noise: str = "counter"  # where delta_k comes from: its key, or the shared noise table of section 4.1
    table_size: int = 0  # numbers in that table; 0 without one
    stats_every: int = 1  # only iterations with j mod stats_every = 0 gather states (section 4.4)

    def __post_init__(self) -> None:
        if not isinstance(self.variant, str) or self.variant not in VARIANTS:
            raise SettingError(f"variant = {shown(self.variant)} is unknown: choose one of {', '.join(VARIANTS)}.")
        for name in ("alpha", "nu", "shift"):
            object.__setattr__(self, name, finite_number(name, getattr(self, name)))
        for name in ("alpha", "nu"):
            if getattr(self, name) <= 0:
                raise SettingError(f"{name} = {getattr(self, name):g} must be larger than 0.")
        for name, largest in LARGEST.items():
            least = 0 if name in ("seed", "eval_every", "table_size") else 1
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, largest))
        if self.b > self.N:
            raise SettingError(f"b = {self.b} is larger than N = {self.N}: choose b from 1 to {self.N}.")
        if self.b < self.N and not self.features.top_directions:
            raise SettingError(
                f"b = {self.b} < N = {self.N} needs a variant with top directions (V1-t or V2-t), "
                f"not {self.variant}: leave b out, or set it to {self.N}."
            )
        if not isinstance(self.noise, str) or self.noise not in NOISES:
            raise SettingError(f"noise = {shown(self.noise)} is unknown: choose {' or '.join(NOISES)}.")
        if (self.noise == "table") != (self.table_size > 0):
            raise SettingError(f"noise = {self.noise} and table_size = {self.table_size} contradict each other.")
        if self.stats_every > 1 and not self.features.normalised:
            raise SettingError(f"stats_every = {self.stats_every} needs statistics, and {self.variant} has none.")

    @property
    def features(self) -> Variant:
        return VARIANTS[self.variant]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Config":
        """The inverse of to_dict; unknown or missing names are mistakes."""
        names = {f.name for f in fields(Config)}
        odd = sorted(names.symmetric_difference(value))
        if odd:
            raise SettingError(f"The configuration has {shown(odd[0])} missing or does not know it.")
        if not isinstance(value["task"], str) or not value["task"].isprintable():
            raise SettingError(f"task = {shown(value['task'])} is not a name.")
        return Config(**value)
