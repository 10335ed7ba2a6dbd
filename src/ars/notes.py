"""Notes in a run that does not seem to learn: what is seen, once per run, and what to try first (docs/choosing.md).

A symptom is a function of the records so far and the latest policy, so that a resumed run has the same notes as an
uninterrupted one. The record in which it is first seen has a column of its name.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import fmean, median
from typing import Any

import numpy as np

from ars.config import Config
from ars.network import AnyPolicy
from ars.policy import LinearPolicy
from ars.records import Record
from ars.settings import own_fields

Row = Mapping[str, Any]  # a line of records.jsonl

ITERATIONS = 20  # the last ones, which must show a symptom: a single one is noisy
SHORTER = 0.7  # of the first iteration's mean length
ALIKE = 1e-3  # of |mean reward|: differences below it are those of initial states rather than of policies
EARLY, LATE = 5, 10  # the first and the last evaluations: of 10 rollouts each, one is noisy
NEARLY = 0.9  # of the way from the first iteration's mean to its best
SATURATED = 0.5  # of the actions
GROWN = 40  # iterations before saturation counts: M starts at 0


class History:
    """What symptoms are seen in: the first iteration, the last ones, the evaluations and the latest policy."""

    def __init__(self, config: Config, definition: Mapping[str, Any]) -> None:
        self.config, self.definition = config, definition
        self.first: Row = {}
        self.recent: deque[Row] = deque(maxlen=ITERATIONS)
        self.evaluations: list[float] = []
        self.policy: AnyPolicy | None = None

    def add(self, row: Row, policy: AnyPolicy | None = None) -> None:
        if row.get("length_mean") is None or row.get("reward_max") is None:  # a line of format 1
            return
        if row.get("duel"):  # of a fresh start, which is no symptom of the run
            return
        self.first, self.policy = self.first or row, policy
        self.recent.append(row)
        if row.get("eval_mean") is not None:
            self.evaluations.append(row["eval_mean"])

    def has_learned(self) -> bool:
        """Whether rollouts are on average nearly as good as the best of the first iteration, before any update, which
        may have reached the maximum by chance. The task's own reward counts: the survival bonus is added again."""
        above: float = self.first["reward_max"] - self.first["reward_mean"]
        return self.gain() > NEARLY * above

    def gain(self) -> float:
        """By how much the last iterations are better than the first one."""
        return fmean(map(self._reward, self.recent)) - self._reward(self.first)

    def _reward(self, row: Row) -> float:
        return float(row["reward_mean"] + self.config.shift * row["length_mean"])


def shrinking(history: History) -> float | None:
    """The first iteration's mean length, if episodes have become shorter: without the survival bonus, a policy can
    learn that falling at once costs least. On a task without a bonus shorter may be better (a car that arrives)."""
    if history.config.shift <= 0.0 and history.definition["survival_bonus"] <= 0.0:
        return None
    first: float = history.first["length_mean"]
    return first if all(row["length_mean"] < SHORTER * first for row in history.recent) else None


def flat(history: History) -> float | None:
    """The best of the first evaluations, if half of the last are no better; one of the first may be a matter of luck,
    so the last must not be better than those before them either."""
    means = history.evaluations
    if len(means) < 2 * LATE or history.has_learned():
        return None
    best, before, last = max(means[:EARLY]), median(means[-2 * LATE : -LATE]), median(means[-LATE:])
    return best if last <= min(best, before) else None


def alike(history: History) -> float | None:
    """The largest spread of rewards in an iteration, as a part of their mean, if the rollouts of each give nearly the
    same, no better than in the first. Where all reach the maximum, there was a gain."""
    if history.gain() > ALIKE * abs(history.first["reward_mean"]):
        return None
    spreads = [(row["reward_max"] - row["reward_mean"], abs(row["reward_mean"])) for row in history.recent]
    if any(spread > ALIKE * size for spread, size in spreads):
        return None
    return max(spread / size if size else 0.0 for spread, size in spreads)


def saturated(history: History) -> float | None:
    """The part of the actions outside the limits, if it is large: an estimate, from M alone, for uncorrelated normal
    states. Trained policies may be saturated too, so it only counts in a run that has not learned."""
    policy, config, limits = history.policy, history.config, history.definition.get("actions", {})
    if (
        not isinstance(policy, LinearPolicy)
        or not config.normalise
        or not limits.get("low")
        or history.recent[-1]["iteration"] < GROWN
    ):
        return None
    deviations = np.sqrt((policy.M**2 * np.isfinite(policy.sigma)).sum(axis=1))  # of normalised states: 1 each
    outside = [
        _tail(-low, deviation) + _tail(high, deviation)
        for low, high, deviation in zip(limits["low"], limits["high"], deviations.tolist(), strict=True)
    ]
    share = fmean(outside)
    return share if share > SATURATED and not history.has_learned() else None


def _tail(limit: float, deviation: float) -> float:
    """The probability that a normal number with mean 0 exceeds the limit."""
    return 0.5 * math.erfc(limit / deviation / math.sqrt(2.0)) if deviation else float(limit < 0.0)


SYMPTOMS: dict[str, Callable[[History], float | None]] = {
    "length_first": shrinking,
    "flat_at": flat,
    "reward_spread": alike,
    "saturation": saturated,
}


class Watch:
    """Follows a run from its first iteration on."""

    def __init__(self, config: Config, definition: Mapping[str, Any], before: Iterable[Row] = ()) -> None:
        """`before` are the records of earlier sessions."""
        self._history, self._unseen = History(config, definition), dict(SYMPTOMS)
        for row in before:
            self._history.add(row)
            self._unseen = {name: symptom for name, symptom in self._unseen.items() if row.get(name) is None}

    def add(self, record: Record) -> Record:
        """The record, with a column for each symptom that is seen for the first time."""
        self._history.add(record.to_dict(), record.policy)
        if len(self._history.recent) < ITERATIONS:
            return record
        seen: dict[str, Any] = {name: symptom(self._history) for name, symptom in self._unseen.items()}
        seen = {name: value for name, value in seen.items() if value is not None}
        for name in seen:
            del self._unseen[name]
        return replace(record, **seen) if seen else record


def advice(row: Row, config: Config) -> list[str]:
    """A sentence for each symptom that is first seen in this record: what was seen, and what to try first."""
    return [f"{_sentence(name, row, config)} (docs/choosing.md)" for name in SYMPTOMS if row.get(name) is not None]


def _sentence(name: str, row: Row, config: Config) -> str:
    value: float = row[name]
    settings = [f.name for f in own_fields(config.search) if f.metadata["shrink"]]
    smaller = [f"a smaller {setting}" for setting in settings]
    larger_nu = ["a larger nu"] * ("nu" in settings)
    if name == "length_first":
        seen = (
            f"episodes have become shorter than at the start ({row.get('length_mean') or 0.0:.0f} instead of "
            f"{value:.0f} steps): the policy learns to fall"
        )
        tries = ["--shift 0"] * (config.shift > 0.0) + ["a smaller nu"] * ("nu" in settings) + ["more directions"]
    elif name == "flat_at":
        seen = f"the last {LATE} evaluations are no better than the best of the first {EARLY} ({value:z.1f})"
        tries = [*larger_nu, "more directions", "another search"]
    elif name == "reward_spread":
        seen = "all rollouts of an iteration give nearly the same reward: the search learns nothing from them"
        tries = [*larger_nu, "a reward that shows progress"]
    else:
        seen = f"about {value:.0%} of the actions are beyond their limits, as estimated from M"
        tries = smaller or ["smaller steps"]
    return f"{seen}; try {' or '.join(filter(None, [', '.join(tries[:-1]), tries[-1]]))}"
