"""6: EnvPool's MuJoCo tasks in lockstep, on as many threads: one environment and policy per episode of a batch.

In its favour, every step of every environment counts, even after its episode has ended; normalisation is folded into
the matrix; no moments are computed.
"""

import envpool
import numpy as np

from benchmarks.workload import Work, episodes_of


class EnvPoolLockstep:
    def __init__(self, work: Work) -> None:
        self._batches = [episodes_of(batch) for batch in work.batches]
        self._width = len(self._batches[0])
        self._lengths = max(1, round(work.steps / work.episodes))
        self._env = envpool.make(
            work.task, env_type="gymnasium", num_envs=self._width, num_threads=work.threads, seed=0
        )

    def ready(self) -> None: ...

    def run(self) -> int:
        steps = 0
        for batch in self._batches:
            W = np.stack([episode.M / episode.sigma for episode in batch])  # (width, p, n)
            c = np.stack([w @ episode.mu for w, episode in zip(W, batch, strict=True)])
            rewards = np.zeros(self._width)
            x, _ = self._env.reset()
            for _ in range(self._lengths):
                a = np.matmul(W, x[:, :, None])[:, :, 0] - c
                x, reward, _, _, _ = self._env.step(a)
                rewards += reward
            steps += self._lengths * self._width
        return steps

    def close(self) -> None:
        self._env.close()
