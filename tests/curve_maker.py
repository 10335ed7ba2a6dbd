"""Curves made by hand, for the tests of tables, figures and sweeps."""

from collections.abc import Sequence

import numpy as np

from ars.curves import Curve
from ars.presets import make_config
from ars.stopping import Stop


def curve(
    rewards: Sequence[float],
    *,
    task: str = "Hopper-v1",
    variant: str = "V2-t",
    seed: int = 237,
    status: str = "finished",
    every: int = 160,
    steps: int = 100,
    eval_episodes: int = 100,
    cap: int = 8000,
    **settings: float,
) -> Curve:
    """A run with these evaluations, `every` episodes apart, each episode of `steps` timesteps, one second each."""
    shift = {"Swimmer": 0.0, "HalfCheetah": 0.0, "Humanoid": 5.0}.get(task.partition("-")[0], 1.0)
    config = make_config(
        task, variant=variant, seed=seed, H=1000, shift=shift, eval_every=10, eval_episodes=eval_episodes, **settings
    )
    episodes = every * np.arange(1, len(rewards) + 1, dtype=float)
    columns = {
        "iteration": 10.0 * np.arange(1, len(rewards) + 1),
        "episodes": episodes,
        "timesteps": episodes * steps,
        "seconds": episodes,
        "mean": np.array(rewards, dtype=float),
        "std": np.zeros(len(rewards)),
    }
    last = int(episodes[-1]) if len(rewards) else 0
    sigma_R = np.linspace(1, 2, 10 * len(rewards))
    totals = 10 * len(rewards), last, last * steps, float(last)
    return Curve(config, Stop(episodes=cap), {"numpy": "2"}, "a machine", status, *totals, columns, sigma_R)
