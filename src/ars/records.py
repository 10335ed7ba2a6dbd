"""The result of an iteration: the state from which the next one starts, and a record of what happened.

A record is one line of records.jsonl; only `parse_line` reads it, and `parse_lines` the whole file.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ars import network
from ars.errors import FileError
from ars.files import one_line, parse_json
from ars.layers import hidden_layers
from ars.moments import Moments
from ars.network import AnyPolicy, MLPPolicy
from ars.policy import LinearPolicy, brief
from ars.searches import Params, Search, initial_params
from ars.versions import versions

FloatArray = NDArray[np.float64]

LARGEST_COUNT = 2**53  # of iterations, episodes or timesteps
LONGEST_LINE = 2**20  # bytes; a usual line has a few hundred

# The columns that all searches share. The others are the search's telemetry and the task's measures, by name.
COUNTS = ("iteration", "episodes", "timesteps")
CLOCKS = ("seconds", "train_seconds", "eval_seconds")  # everything else in a record is determined by the configuration
SYMPTOMS = ("length_first", "flat_at", "reward_spread", "saturation")  # each where it is first seen: notes.py
SHARED = (
    *COUNTS, *CLOCKS, "reward_mean", "reward_max", "length_mean", "dropped", "duel", "fresh_won", *SYMPTOMS,
    "wire_bytes_out", "wire_bytes_in", "eval_mean", "eval_std", "eval_min", "eval_max", "eval_episodes", "eval_dropped",
    "confirm_mean", "confirm_std", "confirm_min", "confirm_max", "confirm_episodes", "confirm_dropped",
)  # fmt: skip
WHOLE = (*COUNTS, "dropped", "duel", "wire_bytes_out", "wire_bytes_in", "eval_episodes", "eval_dropped",
         "confirm_episodes", "confirm_dropped")  # fmt: skip


class Evaluations(NamedTuple):
    """What the evaluations of a run have cost so far, by which the frugal protocol decides when the next one is due."""

    timesteps: int = 0  # of all evaluations that were due
    latest: int = 0  # timesteps of the latest
    j: int = 0  # iterations before the latest


NO_EVALUATIONS = Evaluations()


class Age(NamedTuple):
    """What a start has had so far: everything since the beginning, unless there were duels (duel.py)."""

    j: int = 0  # iterations
    timesteps: int = 0


NEWBORN = Age()


@dataclass(frozen=True)
class State:
    """The state after j iterations: all that the next one depends on, besides the configuration."""

    j: int
    params: Params  # of the search; "M" is what is evaluated, unless there is an average
    moments: Moments
    episodes: int = 0
    timesteps: int = 0
    evaluations: Evaluations = NO_EVALUATIONS  # by the frugal protocol
    average: FloatArray | None = None  # of M over the iterations so far, if it is asked for
    length: float = 0.0  # mean steps per rollout of the last iteration, if their number depends on it
    mu: FloatArray | None = None  # in place of the states' mean, if policies are steady (steady.py)
    age: Age = NEWBORN
    score: float = 0.0  # what duels compare, if there are any (duel.py)
    duels: int = 0  # begun so far
    waiting: "State | None" = None  # the start whose policy is evaluated and saved, while a duel lasts

    def __repr__(self) -> str:
        p, n = self.M.shape
        return f"State(iteration {self.j}, {p}×{n}, {self.episodes} episodes, {self.timesteps} timesteps)"

    @staticmethod
    def initial(search: Search, p: int, n: int, *, hidden: str = "", seed: int = 0) -> "State":
        """Of a linear policy, or of a network, whose first weights depend on the seed."""
        if not hidden:
            return State(0, initial_params(search, (p, n)), Moments.empty(n))  # Alg. 2, line 2
        M = network.initial((n, *hidden_layers(hidden), p), seed)
        return State(0, {**initial_params(search, M.shape), "M": M}, Moments.empty(n))

    @property
    def M(self) -> FloatArray:
        return self.params["M"]

    def policy(self, *, normalised: bool, task: dict[str, Any], hidden: str = "") -> AnyPolicy:
        """M_j or its average with mu_j and Sigma_j, or with 0 and 1: the policy that is evaluated and saved."""
        if self.waiting is not None:
            return self.waiting.policy(normalised=normalised, task=task, hidden=hidden)
        n = len(self.moments.mean)
        mu, sigma = self.moments.freeze() if normalised else (np.zeros(n), np.ones(n))
        if self.mu is not None:
            mu = self.mu
        M, layers = self.M if self.average is None else self.average, hidden_layers(hidden)
        return MLPPolicy(M, mu, sigma, layers, task) if layers else LinearPolicy(M, mu, sigma, task)


@dataclass(frozen=True)
class Evaluation:
    """Rewards of the finite rollouts, steps of all rollouts, and how many were not finite."""

    rewards: FloatArray
    steps: NDArray[np.int64]
    dropped: int

    def __repr__(self) -> str:
        """One line: Evaluation(reward 1570 ± 12.5 over 100 episodes)."""
        return f"Evaluation({self._describe()})"

    def _describe(self) -> str:
        r = self.rewards
        reward = f"reward {brief(float(r.mean()))} ± {brief(float(r.std()))}" if r.size else "no finite reward"
        return f"{reward} over {self.steps.size} episodes"

    def summary(self) -> dict[str, Any]:
        """mean, std (population), min, max (None if no rollout was finite) and counts, ready for JSON."""
        r = self.rewards
        stats = (r.mean(), r.std(), r.min(), r.max()) if r.size else (None,) * 4
        mean, std, low, high = (None if value is None else float(value) for value in stats)
        return {
            "mean": mean, "std": std, "min": low, "max": high,
            "episodes": int(self.steps.size), "timesteps": int(self.steps.sum()),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Record:
    """One iteration: totals so far, its rollouts and update, its evaluation if any, and the state and policy after."""

    iteration: int
    episodes: int  # training rollouts since the start
    timesteps: int  # their steps
    seconds: float  # of the whole run, evaluations included
    train_seconds: float = 0.0  # of this iteration's rollouts and update
    eval_seconds: float = 0.0  # of its evaluation
    reward_mean: float  # of this iteration's finite training rewards, survival bonus subtracted
    reward_max: float
    length_mean: float  # steps per training rollout of this iteration
    dropped: int  # directions left out because a rollout was not finite
    duel: int | None = None  # the number of the duel, if this iteration's rollouts were those of a fresh start
    fresh_won: bool | None = None  # whether it goes on, in the last iteration of a duel
    evaluation: Evaluation | None
    state: State
    policy: AnyPolicy
    telemetry: Mapping[str, float] = field(default_factory=dict)  # of the search: sigma_R, update_norm, …
    measures: Mapping[str, float] = field(default_factory=dict)  # of the task: relative_cost for LQR
    length_first: float | None = None  # the first iteration's mean length, if episodes have become shorter
    flat_at: float | None = None  # the best of the first evaluations, if the last ones are no better
    reward_spread: float | None = None  # (maximum − mean) / |mean| of the training rewards, if it is tiny
    saturation: float | None = None  # estimated part of the actions beyond their limits, if it is large
    wire_bytes_out: int | None = None  # sent for the training rollouts, if the executor uses a network
    wire_bytes_in: int | None = None  # received
    confirmation: Evaluation | None = None  # of the same policy, where the evaluation seemed to reach `until`

    def __repr__(self) -> str:
        """One line: Record(iteration 20, reward 1570 ± 12.5 over 100 episodes, 320 episodes, …)."""
        reward = self.evaluation._describe() if self.evaluation else f"training reward {brief(self.reward_mean)}"
        spent = f"trained for {self.episodes} episodes, {self.timesteps} timesteps, {self.seconds:.1f} s"
        return f"Record(iteration {self.iteration}, {reward}; {spent})"

    @property
    def eval_mean(self) -> float | None:
        """The mean reward of the evaluation; None if there is none, or if none of its rollouts was finite."""
        return self.evaluation.summary()["mean"] if self.evaluation else None

    @property
    def best_known_mean(self) -> float | None:
        """The mean reward of the confirmation, if there is one, or else of the evaluation."""
        return self.confirmation.summary()["mean"] if self.confirmation else self.eval_mean

    def __getattr__(self, name: str) -> float:
        """Telemetry and measures by name: record.sigma_R."""
        if name not in ("telemetry", "measures") and not name.startswith("_"):
            for values in (self.telemetry, self.measures):
                if name in values:
                    return values[name]
        raise AttributeError(f"This record has no {name}.")

    def to_dict(self) -> dict[str, Any]:
        """The line of records.jsonl."""
        optional = ("duel", "fresh_won", *SYMPTOMS, "wire_bytes_out", "wire_bytes_in")
        evaluated = ("eval_", "confirm_")
        line = {name: getattr(self, name) for name in SHARED if not name.startswith(evaluated) or name in CLOCKS}
        line = {name: value for name, value in line.items() if name not in optional or value is not None}
        line |= {name: round(line[name], 6) for name in CLOCKS}
        line |= {**self.telemetry, **self.measures}
        for prefix, evaluation in (("eval", self.evaluation), ("confirm", self.confirmation)):
            if evaluation:
                summary = evaluation.summary()
                line |= {f"{prefix}_{name}": summary[name] for name in ("mean", "std", "min", "max", "episodes")}
                line[f"{prefix}_dropped"] = evaluation.dropped
        return {name: value if _is_json(value) else None for name, value in line.items()}


def policy_task(definition: dict[str, Any]) -> dict[str, Any]:
    """What a policy file stores about its task."""
    return {**definition, "versions": versions()}


class Observer(Protocol):
    """Anything that follows the progress of training: a display, a dashboard."""

    def record(self, record: Record) -> None: ...


def _is_json(value: Any) -> bool:
    """False for infinity, which JSON lacks: the cost of a controller that does not stabilise is written as null."""
    return not isinstance(value, float) or math.isfinite(value)


def best_known(line: Mapping[str, Any], what: str = "mean") -> Any:
    """`mean`, `std`, `min` or `max` of a line's confirmation, if it has one, or else of its evaluation; None without
    either, or if none of the rollouts was finite."""
    return line.get(f"confirm_{what}" if "confirm_mean" in line else f"eval_{what}")


def parse_line(line: str) -> dict[str, Any]:
    """A line of records.jsonl as a mapping of numbers; ValueError for anything else. Format 1 lacks some columns."""
    if not (line.isascii() and line.isprintable() and len(line) < LONGEST_LINE):
        raise ValueError("the record is not a line of text")
    row = parse_json(line)
    for name, value in {**dict.fromkeys((*COUNTS, "seconds")), **row}.items():
        if name in WHOLE:
            if type(value) is not int or not 0 <= value <= LARGEST_COUNT:
                raise ValueError(f"{name} is not a count")
        elif name == "fresh_won":
            if type(value) is not bool:
                raise ValueError(f"{name} is neither true nor false")
        elif (value is None and name not in CLOCKS) or (isinstance(value, bool) and name not in SHARED):
            continue  # not finite; telemetry that is true or false
        elif type(value) not in (int, float) or not abs(value) < 1.8e308 or (name in CLOCKS and value < 0):
            raise ValueError(f"{name:.100} is not a number")
    return row


def parse_lines(path: Any, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The lines of a records.jsonl, for iterations 1, 2, …, with totals that do not decrease; FileError otherwise."""
    before: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = parse_line(line.decode("ascii"))
            if row["iteration"] != number:
                raise ValueError(f"it is not that of iteration {number}")
            for name in ("episodes", "timesteps", "seconds"):
                if row[name] < before.get(name, 0):
                    raise ValueError(f"{name} is less than before")
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path} is damaged in line {number}: {one_line(error).rstrip('.')}.") from error
        before = row
        yield row
