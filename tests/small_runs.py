"""Small policies and runs for the tests that look."""

from pathlib import Path
from typing import Any

import numpy as np

import ars
from ars.policy import LinearPolicy
from ars.tasks import make

QUICK = {"N": 2, "H": 25, "protocol": "paper", "eval_every": 2, "eval_episodes": 2}


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
