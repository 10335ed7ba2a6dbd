"""Nominal control (section 4.3): estimate A and B by least squares, then solve the estimates' Riccati equation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ars.experiments.lqr.episodes import draw_episodes
from ars.lqr.problem import Problem, gain, solve_riccati
from ars.lqr.streams import LqrStream, draw

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Nominal:
    """Rollouts of H steps under u = sigma_u N(0, I), from x_0 = sigma_0 N(0, I)."""

    name: str
    label: str
    H: int
    sigma_0: float = 0.0
    sigma_u: float = 1.0

    @property
    def unit(self) -> int:
        """Timesteps are whole rollouts."""
        return self.H

    def run(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[float]:
        """The relative cost after each number of timesteps, which ascend."""
        from ars.lqr import loops

        n, p = problem.n, problem.p
        rng = draw(seed, LqrStream.NOMINAL)
        ZZ, ZX = np.zeros((n + p, n + p)), np.zeros((n + p, n))
        costs, done = [], 0
        for t in timesteps:
            for noise in draw_episodes(rng, (t - done) // self.H, self.H, n, p):
                loops.nominal_sums(problem.A, problem.B, self.sigma_u, self.sigma_0, noise, ZZ, ZX)
            done = t
            K = nominal_controller(problem, ZZ, ZX)
            costs.append(np.inf if K is None else problem.relative_cost(K))
        return costs


def estimate_dynamics(ZZ: FloatArray, ZX: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The least squares estimates of A and B from Σ z z' and Σ z x_next', z = [x; u]; None if they are not unique."""
    with np.errstate(all="ignore"):
        scale = 1 / np.sqrt(np.diag(ZZ))  # x can be many orders larger than u
        scaled, right = ZZ * np.outer(scale, scale), ZX * scale[:, None]
    if not (np.isfinite(scaled).all() and np.isfinite(right).all()):
        return None
    try:
        AB = np.linalg.solve(scaled, right) * scale[:, None]
    except np.linalg.LinAlgError:
        return None
    n = ZX.shape[1]
    return AB[:n].T, AB[n:].T


def nominal_controller(problem: Problem, ZZ: FloatArray, ZX: FloatArray) -> FloatArray | None:
    """K for the estimates with the true Q and R, which are known; None if there is no solution."""
    estimates = estimate_dynamics(ZZ, ZX)
    if estimates is None:
        return None
    A, B = estimates
    P = solve_riccati(A, B, problem.Q, problem.R)
    try:
        return None if P is None else gain(A, B, problem.R, P)
    except np.linalg.LinAlgError:
        return None
