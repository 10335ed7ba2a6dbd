"""Curves made by hand, for the tests of tables, figures and sweeps."""

from collections.abc import Sequence

import numpy as np

from ars.curves import Curve, curve_settings
from ars.presets import make_config


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
    **settings: float,
) -> Curve:
    """A run with these evaluations, `every` episodes apart, each episode of `steps` timesteps, one second each."""
    shift = {"Swimmer": 0.0, "HalfCheetah": 0.0, "Humanoid": 5.0}.get(task.partition("-")[0], 1.0)
    config = make_config(
        task, variant=variant, seed=seed, H=1000, shift=shift, eval_episodes=eval_episodes,
        protocol="paper", **settings,
    )  # fmt: skip
    episodes = every * np.arange(1, len(rewards) + 1, dtype=float)
    columns = {
        "at_iteration": 10.0 * np.arange(1, len(rewards) + 1),
        "at_episodes": episodes,
        "at_timesteps": episodes * steps,
        "at_seconds": episodes,
        "mean": np.array(rewards, dtype=float),
        "std": np.zeros(len(rewards)),
    }
    last, iterations = int(episodes[-1]) if len(rewards) else 0, 10 * len(rewards)
    telemetry = {
        "episodes": every / 10 * np.arange(1, iterations + 1),
        "sigma_R": np.linspace(1, 2, iterations),
    }
    return Curve(
        learner="ars", label=config.label, task=task, seed=seed, settings=curve_settings(config), columns=columns,
        telemetry=telemetry, status=status, iterations=iterations, episodes=last, timesteps=last * steps,
        seconds=float(last), versions={"numpy": "2"}, machine="a machine",
    )  # fmt: skip
