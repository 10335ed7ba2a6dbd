"""From states to actions and moments, for environments in Python: with NumPy, and compiled, to the same bits.

An actor serves one task: `begin` an episode, `act` on each state, and read the `moments` at its end. Loading compiled
code takes as long as some ten thousand steps save, so a task begins with the plain actor, which is also the oracle.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.moments import Moments
from ars.policy import Actions, LinearPolicy
from ars.tasks import Policy

FloatArray = NDArray[np.float64]


class PlainActor:
    """The policy's own `act` and Actions.apply, and the sums of Moments.from_sums."""

    def __init__(self, actions: Actions, n: int, p: int) -> None:
        self._actions, self._n = actions, n

    def begin(self, policy: Policy, x: FloatArray, *, gather: bool) -> None:
        self._policy, self._gather = policy, gather
        self._x_first, self._s1, self._s2 = x.copy(), np.zeros(self._n), np.zeros(self._n)

    def act(self, x: FloatArray) -> Any:
        """A new action for the environment, or None if x or π(x) is not finite."""
        if not np.isfinite(x).all():
            return None
        if self._gather:  # Alg. 2, line 8: states that are acted on, around the first one (decision 0003)
            d = x - self._x_first
            self._s1 += d
            self._s2 += d * d
        a = self._policy.act(x)
        return self._actions.apply(a) if np.isfinite(a).all() else None

    def moments(self, steps: int) -> Moments:
        return Moments.from_sums(steps, self._x_first, self._s1, self._s2)


class CompiledActor:
    """The same for linear policies with one compiled call per step, on arrays that are made once."""

    def __init__(self, actions: Actions, n: int, p: int) -> None:
        from ars.tasks.compiled_step import act

        self._call = act
        self._x_first, self._s1, self._s2, self._a = np.empty(n), np.empty(n), np.empty(n), np.empty(p)
        low, high = actions.bounds or (-np.inf, np.inf)
        self._low, self._high = np.full(p, low), np.full(p, high)
        self._dtype = np.dtype(actions.dtype or np.float64)
        self._whole = self._dtype.kind in "iu"
        self._shaped = self._a if actions.shape is None else self._a.reshape(actions.shape)
        self._choices = list(np.arange(p) + actions.start) if actions.kind == "discrete" else None

    def begin(self, policy: LinearPolicy, x: FloatArray, *, gather: bool) -> None:
        self._x_first[:], self._s1[:], self._s2[:] = x, 0.0, 0.0
        W_columns, c = (np.ascontiguousarray(array, dtype=np.float64) for array in (policy.W.T, policy.c))
        self._rest = (
            W_columns, c, self._low, self._high, self._whole, gather, self._x_first, self._s1, self._s2, self._a,
        )  # fmt: skip

    def act(self, x: FloatArray) -> Any:
        best = self._call(x, *self._rest)
        if best < 0:
            return None
        return self._choices[best] if self._choices is not None else self._shaped.astype(self._dtype)

    def moments(self, steps: int) -> Moments:
        return Moments.from_sums(steps, self._x_first, self._s1, self._s2)


def load() -> bool:
    """Load the compiled step. False if another process does so now: many workers must not all compile the same code,
    and can go on with plain steps meanwhile."""
    if "ars.tasks.compiled_step" not in sys.modules:
        with suppress(ImportError, OSError), Path(__file__).open("rb") as file:  # locked until it is closed
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            from ars.tasks import compiled_step  # noqa: F401
    return True
