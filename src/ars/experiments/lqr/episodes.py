"""The random numbers of episodes for nominal control and LSPI, in chunks that fit into memory."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

CHUNK = 2**18  # numbers; affects only memory


def draw_episodes(rng: np.random.Generator, episodes: int, H: int, n: int, p: int) -> Iterator[NDArray[np.float64]]:
    """Arrays (some, n + H (p + n)) with `episodes` rows in total: x_0, then p and n numbers for each step."""
    width = n + H * (p + n)
    at_once = max(1, CHUNK // width)
    for start in range(0, episodes, at_once):
        yield rng.standard_normal((min(at_once, episodes - start), width))
