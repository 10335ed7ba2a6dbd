"""Stopping rules, which do not affect a run's bits. All count from the start of the run, over all its sessions."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from ars.errors import SettingError
from ars.records import Record
from ars.settings import finite_number, whole_number

LARGEST_RULE = 10**15  # more than any run can reach
LONGEST_ESTIMATE = 10 * 365 * 86400  # seconds; a longer "time left" is meaningless


@dataclass(frozen=True, kw_only=True)
class Stop:
    """The rule that applies first ends the run; without any rule it does not end."""

    iterations: int | None = None
    episodes: int | None = None
    timesteps: int | None = None
    minutes: float | None = None
    until: float | None = None  # mean reward of an evaluation

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            if name in ("iterations", "episodes", "timesteps"):
                object.__setattr__(self, name, whole_number(name, value, 1, LARGEST_RULE))
            else:
                object.__setattr__(self, name, finite_number(name, value))
        if self.minutes is not None and self.minutes <= 0:
            raise SettingError(f"minutes = {self.minutes:g} must be larger than 0.")

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) is not None for f in fields(self))

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def is_goal(self, mean: float | None) -> bool:
        """Whether a mean reward is that of `until`, or more."""
        return self.until is not None and mean is not None and mean >= self.until

    def reason(
        self, iterations: int, episodes: int, timesteps: int, seconds: float, eval_mean: float | None,
        confirmed_by: int | None = None,
    ) -> str:  # fmt: skip
        """Why to stop now; empty if not yet. `confirmed_by` is the number of rollouts of which `eval_mean` is the mean,
        if they confirmed an evaluation."""
        if self.is_goal(eval_mean):
            if confirmed_by:
                return f"the goal of {self.until:g} is confirmed by {confirmed_by} rollouts: mean {eval_mean:.1f}"
            return f"an evaluation reached {eval_mean:.1f}, the goal was {self.until:g}"
        for name, value in (("iterations", iterations), ("episodes", episodes), ("timesteps", timesteps)):
            limit = getattr(self, name)
            if limit is not None and value >= limit:
                return f"{value} {name} are done"
        if self.minutes is not None and seconds >= 60 * self.minutes:
            return f"{self.minutes:g} minutes are over"
        return ""

    def reached(self, record: Record) -> str:
        """The same, for a record."""
        confirmed_by = None if record.confirmation is None else record.confirmation.steps.size
        return self.reason(
            record.iteration, record.episodes, record.timesteps, record.seconds, record.best_known_mean, confirmed_by
        )

    def seconds_left(self, record: Record) -> float | None:
        """An estimate from the speed so far; None if no rule allows one (rewards cannot be predicted)."""
        done = {"iterations": record.iteration, "episodes": record.episodes, "timesteps": record.timesteps}
        left = [
            record.seconds * (limit / value - 1)
            for name, value in done.items()
            if value and (limit := getattr(self, name)) is not None
        ]
        if self.minutes is not None:
            left.append(60 * self.minutes - record.seconds)
        shortest = min(left, default=math.inf)
        return max(0.0, shortest) if shortest < LONGEST_ESTIMATE else None
