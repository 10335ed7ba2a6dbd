"""ARS on an LQR instance (section 4.3): the usual training, measured by the exact relative cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ars.errors import DivergedError
from ars.executors import SerialExecutor
from ars.lqr.problem import Problem
from ars.presets import make_config
from ars.records import State
from ars.training import training_batch, update


@dataclass(frozen=True)
class RandomSearch:
    """V1 or V2 from M = 0. The two extensions are not the paper's method."""

    name: str
    label: str
    variant: str
    alpha: float = 0.0025
    nu: float = 0.01
    N: int = 4
    H: int = 302
    decay: float | None = None  # extension: alpha_j = alpha / √(1 + j / decay)
    common_noise: bool = False  # extension: the rollouts of ±delta_k share their random numbers

    @property
    def unit(self) -> int:
        """The timesteps per iteration; a rollout that diverges counts in full."""
        return 2 * self.N * self.H

    def alpha_at(self, j: int) -> float:
        return self.alpha if self.decay is None else self.alpha / math.sqrt(1 + j / self.decay)

    def run(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[float]:
        """The relative cost of the last iterate after each number of timesteps, which ascend."""
        from ars.tasks.lqr import LqrTask

        config = make_config(
            "lqr", variant=self.variant, alpha=self.alpha, nu=self.nu, N=self.N, H=self.H, shift=0.0, seed=seed
        )
        task = LqrTask(problem, H=self.H, common_noise=self.common_noise)
        executor, state = SerialExecutor(lambda: task), State.initial(config.search, problem.p, problem.n)
        costs: list[float] = []
        try:
            for t in timesteps:
                while state.j < t // self.unit:
                    rollouts = executor.run(training_batch(config, state))
                    search = replace(config.search, alpha=self.alpha_at(state.j))  # type: ignore[type-var]
                    state, _ = update(replace(config, search=search), state, rollouts)
                policy = state.policy(normalised=config.normalise, task={})
                costs.append(task.measure(policy)["relative_cost"])
        except DivergedError:  # from here on, this trial has no stabilising controller
            costs += [math.inf] * (len(timesteps) - len(costs))
        return costs
