"""A watch for the trap of falling at once: without the survival bonus, a policy can learn that falling costs least.

It depends on the records alone, so that a resumed run has the same records as an uninterrupted one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ars.config import Config
from ars.records import Record
from ars.settings import own_fields

SHARE = 0.7  # of the first iteration's mean length: shorter episodes count
ITERATIONS = 20  # in a row that must be shorter


class Watch:
    """Follows the mean length of training episodes from the first iteration on."""

    def __init__(self, config: Config, definition: Mapping[str, Any], before: Iterable[Mapping[str, Any]] = ()) -> None:
        """`before` are the records of earlier sessions. Without a bonus, shorter may be better (a car that arrives)."""
        self._on = config.shift > 0.0 or definition["survival_bonus"] > 0.0
        self._first, self._shorter = 0.0, 0
        for row in before:
            self._add(row.get("length_mean"))

    def _add(self, length: float | None) -> None:
        if length is not None:
            self._first = self._first or length
            self._shorter = self._shorter + 1 if length < SHARE * self._first else 0

    def add(self, record: Record) -> Record:
        """The record, with `length_first` if the run is in the trap."""
        self._add(record.length_mean)
        return replace(record, length_first=self._first) if self._on and self._shorter >= ITERATIONS else record


def advice(record: Record, config: Config) -> str:
    """What to try, in one sentence; empty if the run is not in the trap."""
    if record.length_first is None:
        return ""
    smaller = [f.name for f in own_fields(config.search) if f.name == "nu"]
    tries = ["--shift 0"] * (config.shift > 0.0) + [f"a smaller {name}" for name in smaller] + ["more directions"]
    return (
        f"episodes have become shorter than at the start ({record.length_mean:.0f} instead of "
        f"{record.length_first:.0f} steps): the policy learns to fall; try {', '.join(tries[:-1])} or {tries[-1]}"
    )
