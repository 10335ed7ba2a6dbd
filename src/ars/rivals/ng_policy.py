"""The stochastic policy of ng.py inside the compiled loop, where it also records the episode.

Its random numbers are drawn before the episode, so that the bits do not depend on who runs it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ars.rivals.ng import Features, Parameters

FloatArray = NDArray[np.float64]


def act_gaussian(parameters: Any, x: Any, a: Any) -> None:
    """Fill a with W φ(x) + σ ξ_t, for the compiled loop: see GaussianPolicy.parameters."""
    W_columns, P_columns, phases, sigma, xi, states, actions, y, step = parameters
    t, f = step[0], len(y)
    if len(phases) == 0:
        for j in range(f):
            y[j] = x[j]
    else:
        for j in range(f):
            y[j] = phases[j]
        for k in range(len(x)):
            for j in range(f):
                y[j] += P_columns[k, j] * x[k]
        for j in range(f):
            y[j] = math.sin(y[j])
    for i in range(len(a)):
        a[i] = W_columns[f, i]
    for j in range(f):
        for i in range(len(a)):
            a[i] += W_columns[j, i] * y[j]
    if t < len(xi):
        for i in range(len(a)):
            a[i] += sigma[i] * xi[t, i]
        for k in range(len(x)):
            states[t, k] = x[k]
        for i in range(len(a)):
            actions[t, i] = a[i]
    step[0] = t + 1


@dataclass
class GaussianPolicy:
    """For one episode. xi: (H, p) standard normal numbers, for as many steps; with (0, p), the mean actions.

    After the episode, `states` (H, n) and `actions` (H, p) have the steps that it took.
    """

    theta: Parameters
    features: Features
    xi: FloatArray
    states: FloatArray = field(init=False)
    actions: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.states, self.actions = np.zeros((len(self.xi), self.n)), np.zeros(self.xi.shape)

    @property
    def n(self) -> int:
        return int(self.features.P_over_nu.shape[1])

    @property
    def p(self) -> int:
        return len(self.theta.W)

    @property
    def function(self) -> Callable[..., None]:
        return act_gaussian

    @property
    def parameters(self) -> tuple[NDArray[Any], ...]:
        """Arrays of the loop; the last counts its steps."""
        W, P = np.ascontiguousarray(self.theta.W.T), np.ascontiguousarray(self.features.P_over_nu.T)
        room, step = np.empty(self.features.size - 1), np.zeros(1, dtype=np.int64)
        sigma = np.exp(self.theta.log_sigma)
        return W, P, self.features.phases, sigma, self.xi, self.states, self.actions, room, step

    def act(self, obs: ArrayLike) -> FloatArray:
        """The mean action, up to rounding."""
        x = np.asarray(obs, dtype=np.float64)
        mean: FloatArray = (self.features(x.reshape(1, -1)) @ self.theta.W.T)[0]
        return mean
