"""What a rival tells of itself while it learns."""

from typing import NamedTuple


class Point(NamedTuple):
    """An evaluation: 10 episodes with deterministic actions, after so many timesteps of training."""

    timesteps: int
    episodes: int
    mean: float
    rewards: tuple[float, ...]
    cpu_seconds: float
