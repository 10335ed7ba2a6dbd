"""Settings are declared once, as fields of a frozen dataclass with default, bounds and help text, from which checks,
flags, run names, files and pages are derived. Also: checks of single numbers that users give."""

import math
from collections.abc import Sequence
from dataclasses import MISSING, Field, field, fields
from numbers import Integral, Real
from typing import Any

from ars.errors import SettingError

LARGEST_SEED = 2**64 - 1


def setting(
    default: Any = MISSING,
    *,
    help: str,
    above: float | None = None,
    least: int | None = None,
    most: int | None = None,
    choices: Sequence[str] = (),
    named: bool = True,
    shrink: bool = False,
) -> Any:
    """A field of a settings dataclass. Numbers must be larger than `above`, whole ones at least `least`, and none
    larger than `most`. A default of None means that `__post_init__` derives the value. `named`: whether the value is
    part of a run's name; `shrink`: whether a smaller value helps against divergence."""
    metadata = {"help": help, "above": above, "least": least, "most": most, "choices": tuple(choices), "named": named,
                "shrink": shrink}  # fmt: skip
    return field(default=default, metadata=metadata)


def own_fields(settings: Any) -> list[Field[Any]]:
    """The fields of a dataclass or instance that were declared by `setting`."""
    return [f for f in fields(settings) if "help" in f.metadata]


def check_settings(settings: Any) -> None:
    """Check every value of a frozen instance and convert it to its type."""
    for f in own_fields(settings):
        value = getattr(settings, f.name)
        if value is None and f.default is None:
            continue
        object.__setattr__(settings, f.name, _checked(f, value))


def _checked(f: Field[Any], value: Any) -> Any:
    rules = f.metadata
    if f.type is bool:
        if not isinstance(value, bool):
            raise SettingError(f"{f.name} = {shown(value)} must be true or false.")
        return value
    if f.type is str:
        if not isinstance(value, str) or (rules["choices"] and value not in rules["choices"]):
            raise SettingError(
                f"{f.name} = {shown(value)} is unknown: choose {' or '.join(rules['choices']) or 'text'}."
            )
        return value
    if f.type is int:
        return whole_number(f.name, value, rules["least"], rules["most"])
    number = finite_number(f.name, value)
    if rules["above"] is not None and not number > rules["above"]:
        raise SettingError(f"{f.name} = {number:g} must be larger than {rules['above']:g}.")
    if rules["most"] is not None and not number <= rules["most"]:
        raise SettingError(f"{f.name} = {number:g} must not be larger than {rules['most']:g}.")
    return number


def finite_number(name: str, value: Any) -> float:
    """`value` as a float (NumPy's numbers too), or SettingError if it is not a finite number."""
    try:
        if _is_bool(value) or not isinstance(value, Real) or not math.isfinite(value):
            raise SettingError(f"{name} = {shown(value)} is not a finite number.")
        return float(value)
    except OverflowError as error:
        raise SettingError(f"{name} is not a finite number: it has more digits than a float can hold.") from error


def whole_number(name: str, value: Any, least: int, most: float | None = None) -> int:
    """`value` as an int within the range, or SettingError."""
    largest = math.inf if most is None else most
    if _is_bool(value) or not isinstance(value, Integral) or not least <= int(value) <= largest:
        limits = f"of at least {least}" if largest == math.inf else f"from {least} to {most}"
        raise SettingError(f"{name} = {shown(value)} must be a whole number {limits}.")
    return int(value)


def is_number(value: Any) -> bool:
    """Whether it is an int or a float, infinite ones too."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def in_words(value: Any) -> str:
    """The value of a setting, for a reader."""
    if _is_bool(value):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _is_bool(value: Any) -> bool:
    """Python's or NumPy's, without importing NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def shown(value: Any) -> str:
    """A value as short text for messages; Python refuses to print integers of thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**50:
        return "a number with many digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
