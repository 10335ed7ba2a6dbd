"""What a network of 2 × 64 tanh costs in the compiled loop, beside a matrix.

Both always act by 0, so that the physics are the same; processor time of one thread, in turns, best of many.
"""

import time
from typing import Any

import numpy as np

from ars.network import AnyPolicy, MLPPolicy, initial
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.tasks import make

TASKS = ("Swimmer-v5", "HalfCheetah-v5", "Humanoid-v5")
HIDDEN = (64, 64)
STEPS = 2_000  # per turn, at least
TURNS = 5  # per repetition


def measure(repetitions: int) -> list[dict[str, Any]]:
    return [_measure(name, TURNS * repetitions) for name in TASKS]


def _measure(name: str, turns: int) -> dict[str, Any]:
    """Microseconds per step."""
    task = make(name)
    M = initial((task.n, *HIDDEN, task.p), seed=0)
    M[0, -(HIDDEN[-1] + 1) * task.p :] = 0.0
    mu, sigma = np.zeros(task.n), np.ones(task.n)
    policies: dict[str, AnyPolicy] = {
        "linear": LinearPolicy(np.zeros((task.p, task.n)), mu, sigma),
        "network": MLPPolicy(M, mu, sigma, HIDDEN),
    }
    best = dict.fromkeys(policies, np.inf)
    for turn in range(turns + 1):
        for kind, policy in policies.items():
            start, steps, k = time.process_time(), 0, 0
            while steps < STEPS:
                key = Key(0, Stream.TRAINING, 0, k, 1)
                steps, k = steps + task.rollout(policy, key, H=task.H, shift=0.0, gather=True).steps, k + 1
            if turn:  # the first one compiles
                best[kind] = min(best[kind], 1e6 * (time.process_time() - start) / steps)
    task.close()
    return {"task": name, **best}
