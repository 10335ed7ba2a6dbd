"""Small policies and runs for tests, and the bits of a run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import ars
from ars.policy import LinearPolicy
from ars.records import CLOCKS, Record
from ars.tasks import make

QUICK = {"N": 2, "H": 25, "protocol": "paper", "eval_every": 2, "eval_episodes": 2}
SMALL_SEARCHES: dict[str, dict[str, Any]] = {  # search → its settings, for a few short rollouts per iteration
    "ars": {"N": 4},
    "csa": {"N": 4, "growth": 1.0, "N_most": 9, "least_timesteps": 300, "calm": 1, "duel": 20},
    "cma": {"N": 5, "least_timesteps": 300},
    "sep-cma": {"N": 5, "least_timesteps": 0},
    "clipup": {"N": 4, "b": 3},
    "es": {"N": 4},
    "cem": {"N": 10},
}


def small_policy(task: str, seed: int = 0, size: float = 0.3) -> LinearPolicy:
    """A policy that moves the robot about."""
    made = make(task)
    try:
        M = size * np.random.default_rng(seed).standard_normal((made.p, made.n))
        return LinearPolicy(M, np.zeros(made.n), np.ones(made.n), made.definition())
    finally:
        made.close()


def train(folder: Path, task: str = "HalfCheetah-v1", seed: int = 0, iterations: int = 8, **more: Any) -> Path:
    for _ in ars.train(task, seed=seed, iterations=iterations, out=folder, **{**QUICK, **more}):
        pass
    return folder


def run_bits(records: Iterable[Record]) -> list[Any]:
    """Everything in records and their states but clocks and the wire."""
    changing = (*CLOCKS, "wire_bytes_out", "wire_bytes_in")
    return [
        (
            {name: value for name, value in record.to_dict().items() if name not in changing},
            {name: array.tobytes() for name, array in record.state.params.items()},
            [array.tobytes() for array in (record.policy.M, record.policy.mu, record.policy.sigma)],
        )
        for record in records
    ]
