"""Every random number of a run, from a counter key (seed, stream, j, k, sign).

No generator state is kept: any worker can draw the numbers of any rollout at any time, so results do not depend on the
number of workers, their order or crashes. Philox is a counter-based generator: its key is (seed, stream), the upper
words of its counter are (j, k, sign), and the lowest word counts the numbers drawn.
With the shared noise table of section 4.1, the key gives an index into the table instead.
"""

import os
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.errors import SettingError
from ars.mirror import Mirror

FloatArray = NDArray[np.float64]


class Stream(IntEnum):
    """What a random number is for; streams never share numbers."""

    DELTA = 0  # the directions delta_k
    TRAINING = 1  # initial states and transitions of training rollouts
    EVALUATION = 2  # the same for evaluations within a run
    TEST = 3  # the same for evaluations of a saved policy
    TABLE = 4  # the shared noise table
    CONFIRMATION = 5  # initial states and transitions of the rollouts that confirm an evaluation
    SCENARIO = 6  # worlds and initial states of robots that are trained in several scenarios
    NETWORK = 7  # a network's weights at first
    ACTION = 8  # actions of stochastic policies
    FEATURES = 9  # random features of states


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


def scenario_key(key: Key, i: int) -> Key:
    """The key of scenario i of a rollout: the same for both signs, and different in each stream."""
    return Key(key.seed, Stream.SCENARIO, key.j, key.k, 10_000 * int(key.stream) + i)


def environment_seed(key: Key) -> int:
    """An integer for `env.reset(seed=...)`; below 2**32, because environments may hand it to np.random.seed."""
    return int(generator(key).integers(2**32))


def direction(
    seed: int, j: int, k: int, p: int, n: int, *, table_size: int = 0, mirror: Mirror | None = None
) -> FloatArray:
    """delta_k of iteration j: (p, n) i.i.d. standard normal entries, read-only; with a table, a view of it. With a
    mirror, its projection onto symmetric matrices."""
    if mirror is not None:
        return mirror.project(direction(seed, j, k, p, n, table_size=table_size))
    if table_size:
        start = int(generator(Key(seed, Stream.DELTA, j, k)).integers(table_size - p * n + 1))
        return table(seed, table_size)[start : start + p * n].reshape(p, n)
    draw = _remembered if p * n <= LARGEST_REMEMBERED else _draw
    return draw(seed, j, k, p, n)


class Directions(Sequence[FloatArray]):
    """delta_0 … delta_{size−1} of iteration j, each drawn on access: together they may not fit in memory."""

    def __init__(
        self, seed: int, j: int, size: int, shape: tuple[int, int], *, table_size: int = 0, mirror: Mirror | None = None
    ) -> None:
        self._seed, self._j, self._size, self._shape = seed, j, size, shape
        self._table_size, self._mirror = table_size, mirror

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(self._size))]
        if not -self._size <= k < self._size:
            raise IndexError(k)
        key = self._seed, self._j, int(k) % self._size
        return direction(*key, *self._shape, table_size=self._table_size, mirror=self._mirror)


def _draw(seed: int, j: int, k: int, p: int, n: int) -> FloatArray:
    delta = generator(Key(seed, Stream.DELTA, j, k)).standard_normal((p, n))  # Alg. 2, line 4
    delta.flags.writeable = False
    return delta


# The two rollouts of a pair and the update use the same delta_k: drawing it once saves 2% of Humanoid's time.
LARGEST_REMEMBERED = 2**14  # numbers; 512 such directions take at most 64 MB
_remembered = lru_cache(maxsize=512)(_draw)


# -- the shared noise table (section 4.1) ----------------------------------------------------------------------------
# Its content depends on (seed, size) only; keeping it in the process saves time and memory and changes no result.

_tables: dict[tuple[int, int], FloatArray] = {}
_drawing = Lock()


def table(seed: int, size: int) -> FloatArray:
    """The table of this process, for all its threads: (size,) standard normal numbers, read-only."""
    with _drawing:
        if (seed, size) not in _tables:
            _tables[seed, size] = draw_table(seed, size)
        return _tables[seed, size]


def keep_table(seed: int, size: int, numbers: FloatArray) -> None:
    """Use this table, which is in shared memory."""
    with _drawing:
        _tables[seed, size] = numbers


def forget_tables() -> None:
    """Free the memory; a table that is needed again is drawn again."""
    with _drawing:
        _tables.clear()


def draw_table(seed: int, size: int, out: FloatArray | None = None) -> FloatArray:
    """The numbers of the table, drawn into `out` if it is given."""
    try:
        numbers = np.empty(size) if out is None else out
    except MemoryError as error:
        raise SettingError(f"table_size = {size} needs {8 * size} bytes, more memory than there is.") from error
    generator(Key(seed, Stream.TABLE, 0, 0)).standard_normal(out=numbers)
    numbers.flags.writeable = False
    return numbers


class SharedTable:
    """The table in anonymous shared memory, which the kernel frees when the last process that uses it ends, however it
    ends. `path` is where child processes find it; None on systems without such memory."""

    def __init__(self, seed: int, size: int) -> None:
        self.key = seed, size
        self.path: str | None = None
        self._descriptor: int | None = None
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("ars-noise-table")
            self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
            try:
                os.posix_fallocate(self._descriptor, 0, 8 * size)
            except OSError as error:
                self.close()
                raise SettingError(f"table_size = {size} needs {8 * size} bytes of shared memory: {error}.") from error
            numbers = np.asarray(np.memmap(self.path, dtype=np.float64, mode="r+", shape=(size,)))
            keep_table(seed, size, draw_table(seed, size, out=numbers))

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None


def attach_table(seed: int, size: int, path: str | None) -> None:
    """In a child: use the parent's SharedTable."""
    if path is not None and (seed, size) not in _tables:
        keep_table(seed, size, np.asarray(np.memmap(path, dtype=np.float64, mode="r", shape=(size,))))


def check_table_size(size: int, p: int, n: int) -> None:
    """Raise an error if a table is too small for one direction."""
    if size and size < p * n:
        raise SettingError(f"table_size = {size} is smaller than one direction, which has p · n = {p} · {n} numbers.")
