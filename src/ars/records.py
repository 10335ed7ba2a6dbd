"""What an iteration leaves behind: the state that the next one starts from, and the record that people read."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.moments import Moments
from ars.policy import LinearPolicy

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """All that the next iteration depends on, besides the configuration: after j iterations."""

    j: int
    M: FloatArray
    moments: Moments
    episodes: int = 0
    timesteps: int = 0

    @staticmethod
    def initial(p: int, n: int) -> "State":
        return State(0, np.zeros((p, n)), Moments.empty(n))  # Alg. 2, line 2

    def policy(self, *, normalised: bool, task: dict[str, Any]) -> LinearPolicy:
        """M_j with mu_j and Sigma_j, or 0 and 1: what this state's evaluation runs and what is saved."""
        n = self.M.shape[1]
        mu, sigma = self.moments.freeze() if normalised else (np.zeros(n), np.ones(n))
        return LinearPolicy(self.M, mu, sigma, task)


@dataclass(frozen=True)
class Evaluation:
    """Rewards of the finite rollouts, the steps of all, and how many were not finite."""

    rewards: FloatArray
    steps: NDArray[np.int64]
    dropped: int

    def summary(self) -> dict[str, Any]:
        """mean, std (population), min, max (None if no rollout was finite) and counts, ready for JSON."""
        r = self.rewards
        stats = (r.mean(), r.std(), r.min(), r.max()) if r.size else (None,) * 4
        mean, std, low, high = (None if value is None else float(value) for value in stats)
        return {
            "mean": mean, "std": std, "min": low, "max": high,
            "episodes": int(self.steps.size), "timesteps": int(self.steps.sum()),
        }  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One iteration: totals so far, this update, an evaluation if one was due, the state and policy after it."""

    iteration: int
    episodes: int  # training rollouts since the start
    timesteps: int  # and their steps
    seconds: float  # of the whole run, evaluations included
    sigma_R: float
    reward_mean: float  # of this iteration's finite training rewards, survival bonus taken off
    reward_max: float
    update_norm: float  # Frobenius norm of M_{j+1} − M_j
    dropped: int  # directions left out because a rollout was not finite
    step_taken: bool  # False if sigma_R was 0
    evaluation: Evaluation | None
    measures: dict[str, float]  # what the task knows of the policy without rollouts: `relative_cost` for LQR
    state: State
    policy: LinearPolicy
    wire_bytes_out: int | None = None  # sent for the training rollouts, by executors that send
    wire_bytes_in: int | None = None  # and received

    @property
    def eval_mean(self) -> float | None:
        """The mean reward of the evaluation; None without one, or if no rollout of it was finite."""
        return self.evaluation.summary()["mean"] if self.evaluation else None

    def to_dict(self) -> dict[str, Any]:
        """The line of records.jsonl."""
        line = {
            name: getattr(self, name)
            for name in (
                "iteration", "episodes", "timesteps", "seconds", "sigma_R", "reward_mean", "reward_max",
                "update_norm", "dropped", "step_taken",
            )
        }  # fmt: skip
        line |= {
            name: getattr(self, name) for name in ("wire_bytes_out", "wire_bytes_in") if getattr(self, name) is not None
        }
        line |= self.measures
        if self.evaluation:
            summary = self.evaluation.summary()
            line |= {f"eval_{name}": summary[name] for name in ("mean", "std", "min", "max", "episodes")}
            line["eval_dropped"] = self.evaluation.dropped
        return {name: value if _is_json(value) else None for name, value in line.items()}


def _is_json(value: Any) -> bool:
    """JSON has no infinity: the cost of a controller that does not stabilise is written as null."""
    return not isinstance(value, float) or math.isfinite(value)
