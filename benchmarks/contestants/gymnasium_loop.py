"""4: the loop that a user would write, without our code.

One process per core, each with a Gymnasium environment; the policy in NumPy, and running normalisation as in the
authors' code and Gymnasium's own wrapper: Welford updates with every observation.
"""

import multiprocessing
from typing import Any

import gymnasium
import mujoco
import numpy as np

from benchmarks import quadruped_env
from benchmarks.workload import Episode, Work, episodes_of

_env: Any = None  # of this worker process


class GymnasiumLoop:
    def __init__(self, work: Work) -> None:
        if work.task == quadruped_env.NAME:
            quadruped_env.check(episodes=4)
        self._pool = multiprocessing.get_context("spawn").Pool(work.threads, _make_env, (work.task,))
        self._batches = [episodes_of(batch) for batch in work.batches]

    def ready(self) -> None: ...

    def run(self) -> int:
        total = 0
        count, mean, m2 = 0, 0.0, 0.0
        for batch in self._batches:
            for _, steps, mean_i, m2_i in self._pool.imap_unordered(_episode, batch):
                d, both = mean_i - mean, count + steps
                mean, m2 = mean + d * steps / both, m2 + m2_i + d * d * count * steps / both
                count, total = both, total + steps
        return total

    def close(self) -> None:
        self._pool.terminate()


def _make_env(task: str) -> None:
    global _env
    mujoco.set_mju_user_warning(lambda message: None)  # HalfCheetah's model gives one; write no MUJOCO_LOG.TXT
    _env = gymnasium.make(task)


def _episode(episode: Episode) -> tuple[float, int, Any, Any]:
    M, mu, sigma, seed = episode
    x, _ = _env.reset(seed=seed)
    count, mean, m2 = 0, np.zeros_like(x), np.zeros_like(x)
    total, done = 0.0, False
    while not done:
        count += 1
        d = x - mean
        mean += d / count
        m2 += d * (x - mean)
        x, reward, terminated, truncated, _ = _env.step(M @ ((x - mu) / sigma))
        total += reward
        done = terminated or truncated
    return total, count, mean, m2
