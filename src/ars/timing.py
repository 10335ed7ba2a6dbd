"""Durations and lengths as text and the training speed of a run, for displays, dashboards and pages."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


def duration(seconds: float) -> str:
    """45.2 s, 2 min 3 s, 1 h 2 min or 6 d 4 h: the two largest units."""
    if seconds < 59.5:
        return f"{seconds:.3g} s"
    if (whole := round(seconds)) < 60 * 60:
        (count, rest), larger, smaller = divmod(whole, 60), "min", "s"
    elif (whole := round(seconds / 60)) < 24 * 60:
        (count, rest), larger, smaller = divmod(whole, 60), "h", "min"
    else:
        (count, rest), larger, smaller = divmod(round(seconds / 3600), 24), "d", "h"
    return f"{count} {larger} {rest} {smaller}" if rest else f"{count} {larger}"


def length_text(now: float, first: float) -> str:
    """ "213 (-40%)": the mean episode length, and how it has changed since the first iteration. A policy that learns to
    end its episodes at once keeps showing it, which the change since the last line would not."""
    change = round(100 * (now / first - 1)) if first > 0 else 0
    return f"{now:.0f} ({change:+d}%)" if change else f"{now:.0f}"


def steps_per_second(timesteps: float, train_seconds: float) -> float | None:
    """Training timesteps per second of training, without evaluations; None if no time has passed."""
    return timesteps / train_seconds if train_seconds > 0 else None


class Spent(NamedTuple):
    """The cost of training for one iteration; `record` is its line of records.jsonl."""

    record: Mapping[str, Any]
    timesteps: int
    train_seconds: float


def training_spent(records: Sequence[Mapping[str, Any]]) -> list[Spent]:
    """What each record after the first spent on training; the time of the first may include compilation.

    Records of format 1 have no `train_seconds`: the difference of `seconds` is used instead, and iterations with an
    evaluation, whose time it includes, are left out unless there are no others.
    """
    pure: list[Spent] = []
    mixed: list[Spent] = []
    for before, record in itertools.pairwise(records):
        timesteps = record["timesteps"] - before["timesteps"]
        measured = isinstance(record.get("train_seconds"), float)
        seconds = record["train_seconds"] if measured else record["seconds"] - before["seconds"]
        if seconds > 0:
            (pure if measured or "eval_mean" not in record else mixed).append(Spent(record, timesteps, seconds))
    return pure or mixed


def mean_speed(records: Sequence[Mapping[str, Any]]) -> float | None:
    """Training timesteps per second over all records; None if there are too few."""
    spent = training_spent(records)
    return steps_per_second(sum(one.timesteps for one in spent), sum(one.train_seconds for one in spent))


class SpeedMeter:
    """The same during a run: training timesteps per second of training, since the first record."""

    def __init__(self) -> None:
        self._before = 0
        self._timesteps, self._seconds = 0, 0.0
        self._begun = False

    def add(self, record: Any) -> float | None:
        """The speed up to this record; None at the first, whose time may include compilation."""
        timesteps, self._before = record.timesteps - self._before, record.timesteps
        if not self._begun:
            self._begun = True
            return None
        self._timesteps, self._seconds = self._timesteps + timesteps, self._seconds + record.train_seconds
        return steps_per_second(self._timesteps, self._seconds)
