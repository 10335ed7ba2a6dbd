"""Counter keys: distinct, independent of everything else, and pinned."""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from ars.noise import Key, Stream, direction, environment_seed, generator

SMALL_KEYS = [
    Key(seed, stream, j, k, sign)
    for seed, stream, j, k, sign in product((0, 1, 2**64 - 1), Stream, (0, 1, 2**40), (0, 1, 7), (-1, 0, 1))
]


def test_distinct_keys_give_distinct_numbers() -> None:
    """Two rollouts must never see the same randomness because their keys were mixed up."""
    drawn = {generator(key).bytes(16) for key in SMALL_KEYS}
    assert len(drawn) == len(SMALL_KEYS)


def test_a_key_gives_the_same_numbers_every_time() -> None:
    """Any worker, at any time, in any order."""
    key = Key(5, Stream.TRAINING, 3, 2, -1)
    first = generator(key).standard_normal(1000)
    generator(Key(5, Stream.TRAINING, 3, 3, -1)).standard_normal(10)
    assert np.array_equal(generator(key).standard_normal(1000), first)


def test_numbers_of_neighbouring_keys_do_not_overlap() -> None:
    """A long draw from one key must not run into the next key's numbers: the counter's words are far apart."""
    keys = [Key(0, Stream.DELTA, j, k, sign) for j, k, sign in product((0, 1), (0, 1), (-1, 0, 1))]
    words = np.concatenate([generator(key).integers(2**64, size=5000, dtype=np.uint64) for key in keys])
    assert len(np.unique(words)) == len(words)


def test_directions_differ_over_k_j_and_seed() -> None:
    """RLlib's workers seed the same generator and all draw the same directions."""
    drawn = {direction(seed, j, k, 2, 3).tobytes() for seed, j, k in product((0, 1, 237), (0, 1, 2), range(16))}
    assert len(drawn) == 3 * 3 * 16


def test_directions_are_uncorrelated_over_k() -> None:
    """Different is not enough: shifted copies of one sequence would also differ."""
    deltas = np.stack([direction(0, 0, k, 10, 100).ravel() for k in range(20)])
    correlations = np.corrcoef(deltas) - np.eye(20)
    assert np.abs(correlations).max() < 0.17  # 190 pairs of 1000 numbers: 5 standard deviations are 0.16


def test_directions_are_standard_normal() -> None:
    """Mean 0, variance 1, kurtosis 3, no truncation: Algorithm 2, line 4."""
    x = np.concatenate([direction(1, j, k, 20, 50).ravel() for j, k in product(range(10), range(20))])
    count = len(x)
    assert abs(x.mean()) < 5 / np.sqrt(count)
    assert abs(x.var() - 1) < 5 * np.sqrt(2 / count)
    assert abs((x**4).mean() - 3) < 5 * np.sqrt(96 / count)
    assert np.abs(x).max() > 4.0


def test_global_state_of_numpy_neither_matters_nor_changes() -> None:
    """A user's np.random.seed must not decide a run, and a run must not disturb the user."""
    np.random.seed(1)  # noqa: NPY002
    first = direction(0, 0, 0, 3, 3)
    np.random.seed(2)  # noqa: NPY002
    expected = np.random.RandomState(2).random_sample(3)
    assert np.array_equal(direction(0, 0, 0, 3, 3), first)
    assert np.array_equal(np.random.random_sample(3), expected)  # noqa: NPY002


def test_environment_seeds_fit_what_environments_take() -> None:
    """np.random.seed takes 0 … 2**32 − 1; seeds of distinct rollouts differ."""
    keys = [Key(0, Stream.TRAINING, j, k, sign) for j, k, sign in product(range(20), range(20), (-1, 1))]
    seeds = [environment_seed(key) for key in keys]
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    assert len(set(seeds)) == len(seeds)


def test_pinned_directions() -> None:
    """A change of the streams would break resume and every published number: let it be noticed."""
    assert direction(237, 2, 1, 1, 3)[0].tolist() == [-0.41593663182627605, 1.2856039949130218, -0.4723868400791156]


def test_pinned_environment_seed() -> None:
    assert environment_seed(Key(237, Stream.TRAINING, 2, 1, -1)) == 3911507766


@pytest.mark.parametrize("stream", list(Stream))
def test_stream_numbers_are_fixed(stream: Stream) -> None:
    """They are part of every key, so of every result."""
    numbers = {"DELTA": 0, "TRAINING": 1, "EVALUATION": 2, "TEST": 3, "TABLE": 4, "CONFIRMATION": 5, "SCENARIO": 6,
               "NETWORK": 7, "ACTION": 8, "FEATURES": 9}  # fmt: skip
    assert numbers[stream.name] == stream


def test_no_noise_table() -> None:
    """The reference keeps 2 GB of noise; ours remembers the directions of an iteration and no more than 64 MB."""
    tracemalloc.start()
    try:
        for k in range(1000):
            direction(0, 0, k, 17, 376)
        for k in range(3):
            direction(0, 0, k, 1000, 1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20
