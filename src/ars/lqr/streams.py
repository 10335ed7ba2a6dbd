"""The random streams of the LQR comparison; ARS uses the streams of any training run."""

from enum import IntEnum
from typing import cast

import numpy as np

from ars.noise import Key, Stream, generator


class LqrStream(IntEnum):
    """Numbers beyond those of ars.noise.Stream."""

    INSTANCE = 101  # random A and B
    TRIAL = 102  # the seed of each trial
    NOMINAL = 103  # rollouts for nominal control
    LSPI_V1 = 104
    LSPI_V2 = 105


def draw(seed: int, stream: LqrStream, j: int = 0, k: int = 0) -> np.random.Generator:
    """The generator of the key (seed, stream, j, k), at its start."""
    return generator(Key(seed, cast(Stream, stream), j, k))


def trial_seed(seed: int, trial: int) -> int:
    """The seed of one trial of a comparison, independent of the number of trials."""
    return int(draw(seed, LqrStream.TRIAL, k=trial).integers(2**63))
