"""Environments in Python: our rollouts against a loop that only replays their actions, on four classic tasks.

Both run the same episodes in one process, in turns of a fraction of a second; processor time, best of many turns.
"""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from ars.noise import Key, Stream, environment_seed
from ars.policy import LinearPolicy
from ars.tasks import compiled_step  # noqa: F401 (loaded before anything is timed)
from ars.tasks.gymnasium import GymnasiumTask

TASKS = ("MountainCarContinuous-v0", "CartPole-v1", "Pendulum-v1", "Acrobot-v1")
STEPS = 3_000  # per turn, at least
TURNS = 8  # per repetition


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes the actions of each episode."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.episodes: list[list[Any]] = []

    def reset(self, **kwargs: Any) -> Any:
        self.episodes.append([])
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        self.episodes[-1].append(action)
        return self.env.step(action)


def measure(repetitions: int) -> list[dict[str, Any]]:
    return [_measure(name, TURNS * repetitions) for name in TASKS]


def _measure(name: str, turns: int) -> dict[str, Any]:
    """A policy for each episode, as in training, with compiled steps."""
    task = GymnasiumTask(name, plain_steps=0)
    rng = np.random.default_rng(0)
    policies: list[LinearPolicy] = []
    env = task._env
    task._env = recorder = Recorder(env)

    def rollout(k: int) -> int:
        return task.rollout(policies[k], Key(0, Stream.TRAINING, 0, k, 1), H=task.H, shift=0.5, gather=True).steps

    steps = 0
    while steps < STEPS:
        M = rng.standard_normal((task.p, task.n))
        policies.append(LinearPolicy(M, 0.1 * rng.standard_normal(task.n), 0.5 + rng.random(task.n)))
        steps += rollout(len(policies) - 1)
    task._env = env
    seeds = [environment_seed(Key(0, Stream.TRAINING, 0, k, 1)) for k in range(len(policies))]
    bare_env = gymnasium.make(name, disable_env_checker=True).unwrapped

    def ours() -> int:
        return sum(rollout(k) for k in range(len(policies)))

    def bare() -> int:
        for seed, actions in zip(seeds, recorder.episodes, strict=True):
            bare_env.reset(seed=seed)
            for action in actions:
                bare_env.step(action)
        return steps

    best = {"bare": np.inf, "ours": np.inf}
    for _ in range(turns):
        for contestant, run in (("bare", bare), ("ours", ours)):
            best[contestant] = min(best[contestant], _microseconds(run, steps))
    task.close()
    return {"task": name, "steps_per_episode": steps / len(policies), **best}


def _microseconds(run: Callable[[], int], steps: int) -> float:
    """Processor time per step."""
    start = time.process_time()
    made = run()
    seconds = time.process_time() - start
    if made != steps:
        raise RuntimeError(f"{made} steps instead of {steps}: an episode is not what it was.")
    return 1e6 * seconds / steps
