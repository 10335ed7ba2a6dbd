"""5: sb3-contrib's ARS in the two forms of its documentation, from the same M, mu and sigma.

It has its own update and random numbers, so its episodes are similar to ours but not the same.
"""

import multiprocessing
from functools import partial
from typing import Any

import mujoco
import numpy as np
import torch
from sb3_contrib import ARS
from sb3_contrib.common.vec_env import AsyncEval
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ars.saved_config import read_config
from ars.searches import search_settings
from benchmarks.workload import Work

LESS = 4  # a measurement has this many times fewer steps than ours (but whole iterations), because it is slow


class Sync:
    """Candidates one after the other in this process."""

    def __init__(self, work: Work) -> None:
        torch.set_num_threads(1)
        batch, (N, b, nu) = work.batches[0], _settings(work)
        self._env_fn = partial(_make_env, work.task, batch.policy.mu, batch.policy.sigma)
        self._model = ARS("LinearPolicy", self._env_fn(), n_delta=N, n_top=b, delta_std=nu, seed=0)
        self._first_weights = torch.tensor(batch.policy.M.reshape(-1), dtype=torch.float32)
        self._steps = max(1, work.steps // LESS)
        self._async: Any = None

    def ready(self) -> None:
        self._model.weights = self._first_weights.clone()

    def run(self) -> int:
        self._model.learn(total_timesteps=self._steps, log_interval=None, async_eval=self._async)
        return int(self._model.num_timesteps)

    def close(self) -> None:
        self._model.env.close()


class Async(Sync):
    """Candidates in one process per core."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        multiprocessing.set_forkserver_preload(["sb3_contrib"])
        self._async = AsyncEval([self._env_fn] * work.threads, self._model.policy)
        self._async.seed(0)  # returns when the processes have started
        self._close_workers = self._async.close
        self._async.close = lambda: None  # learn() would end them, and restarting them must not be timed

    def close(self) -> None:
        self._close_workers()
        super().close()


def _settings(work: Work) -> tuple[int, int, float]:
    """N, b and nu of the run."""
    values = search_settings(read_config(work.folder).config.search)
    return int(values["N"]), int(values["b"]), float(values["nu"])


def _make_env(task: str, mu: Any, sigma: Any) -> VecEnv:
    """With its own running normalisation, which starts from ours."""
    mujoco.set_mju_user_warning(lambda message: None)  # HalfCheetah's model gives one; write no MUJOCO_LOG.TXT
    env = VecNormalize(make_vec_env(task), norm_reward=False)
    env.obs_rms.mean[:] = mu
    env.obs_rms.var[:] = np.where(np.isfinite(sigma), sigma, 1e6) ** 2
    env.obs_rms.count = 1e5
    return env
