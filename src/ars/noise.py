"""Every random number of a run, from a counter key (seed, stream, j, k, sign).

There is no generator to carry along: any worker can draw the numbers of any rollout at any time, so the number
of workers, their order and a crash cannot change a result. Philox is a counter-based generator: the key chooses
(seed, stream), the upper words of its counter (j, k, sign), the lowest word counts the numbers drawn.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Stream(IntEnum):
    """What a random number is for; streams never share numbers."""

    DELTA = 0  # the directions delta_k
    TRAINING = 1  # initial states and transitions of training rollouts
    EVALUATION = 2  # the same for evaluations within a run
    TEST = 3  # the same for evaluations of a saved policy


class Key(NamedTuple):
    """Names one batch of random numbers; sign is +1 or -1 for the rollouts of ±delta_k, else 0."""

    seed: int
    stream: Stream
    j: int
    k: int
    sign: int = 0


def generator(key: Key) -> np.random.Generator:
    """The generator of one key, at its start."""
    words = np.array([0, key.sign + 1, key.k, key.j], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=np.array([key.seed, key.stream], dtype=np.uint64), counter=words))


def environment_seed(key: Key) -> int:
    """An integer for `env.reset(seed=...)`; below 2**32, because environments may hand it to np.random.seed."""
    return int(generator(key).integers(2**32))


def direction(seed: int, j: int, k: int, p: int, n: int) -> FloatArray:
    """delta_k of iteration j: (p, n) i.i.d. standard normal entries."""  # Alg. 2, line 4
    return generator(Key(seed, Stream.DELTA, j, k)).standard_normal((p, n))
