"""Flags derived from declared settings: those of every search, and those that all searches share.

The settings of a new search appear here with their help texts, because its class declares them.
"""

from collections.abc import Iterable
from dataclasses import MISSING, Field, field, make_dataclass
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from ars.cli.common import EVALUATION, OTHER, PAPER, Whole, set_fields
from ars.config import Config
from ars.searches import DEFAULT, SEARCHES, search_class
from ars.searches.ars import VARIANTS
from ars.settings import own_fields

GROUPS = {"H": PAPER, "shift": PAPER, "normalise": PAPER} | dict.fromkeys(
    ("protocol", "eval_every", "eval_episodes", "average"), EVALUATION
)


def _flag(f: Field[Any], group: Group, help: str) -> tuple[str, Any, Any]:
    """A field for `make_dataclass`: optional, because the preset supplies a missing value."""
    kinds: dict[Any, Any] = {int: Whole, float: float | None, bool: bool | None, str: str | None}
    kind = Literal[f.metadata["choices"]] | None if f.metadata["choices"] else kinds[f.type]
    name = f"--{f.name.replace('_', '-')}"
    negative = name.replace("--", "--no-") if f.type is bool else None
    return f.name, Annotated[kind, Parameter(name=name, negative=negative, group=group, help=help)], field(default=None)


def _shared_flags() -> list[tuple[str, Any, Any]]:
    flags = []
    for f in own_fields(Config):
        known = f.default not in (MISSING, None, "") and f.name not in ("normalise", "table_size")
        others = _others(f.name)
        default = f" [default: {f.default}{others}]" if known else ""
        flags.append(_flag(f, GROUPS.get(f.name, OTHER), f.metadata["help"] + default))
    return flags


def _others(name: str) -> str:
    """The searches with another default of a flag."""
    member = {"average": "averaged", "duel": "duelled"}.get(name, "")
    found = {search: getattr(search_class(search), member, 0) for search in SEARCHES}
    return "".join(f"; {search}: {count}" for search, count in found.items() if count)


def _search_flags() -> list[tuple[str, Any, Any]]:
    """The flags of every search; a setting that several searches have is one flag."""
    owners: dict[str, list[str]] = {}
    first: dict[str, Field[Any]] = {}
    for search in SEARCHES:
        for f in own_fields(search_class(search)):
            owners.setdefault(f.name, []).append(search)
            first.setdefault(f.name, f)
    flags = []
    for name, f in first.items():
        searches = "" if DEFAULT in owners[name] else f" [{', '.join(owners[name])}]"
        group = PAPER if DEFAULT in owners[name] else Group(f"Settings of the search {owners[name][0]}", sort_key=2)
        flags.append(_flag(f, group, f.metadata["help"] + searches))
    return flags


def _choice(name: str, choices: Iterable[str], help: str) -> tuple[str, Any, Any]:
    return name, Annotated[Literal[tuple(choices)] | None, Parameter(group=PAPER, help=help)], field(default=None)


_fields = [
    _choice("search", SEARCHES, f"Which search [default: {DEFAULT}]."),
    _choice("variant", VARIANTS, "The paper's algorithm: a preset of ars. V1-t and V2-t use the b best directions."),
    *_search_flags(),
    *_shared_flags(),
]
_more = {"__doc__": "Settings that replace the preset's.", "__module__": __name__, "given": set_fields}
Settings: Any = make_dataclass("Settings", _fields, frozen=True, kw_only=True, namespace=_more)
Parameter(name="*")(Settings)
