"""Least-squares policy iteration (section 4.3; Tu and Recht 2017): Q-functions fitted by temporal differencing.

With z = [x; u], the Q-function of u = Kx is q'phi, phi = svec(zz'), and satisfies cost = q'(phi − gamma psi) + lambda,
where psi = svec([I; K] x_next x_next' [I; K]') = M_K xi, xi = svec(x_next x_next'). One pass over the data collects
S = Σ ζ [ζ; xi; cost]', ζ = [phi; 1]; a policy iteration then costs the same for any number of samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ars.experiments.lqr.episodes import draw_episodes
from ars.lqr.problem import Problem, spectral_radius
from ars.lqr.streams import LqrStream, draw

FloatArray = NDArray[np.float64]

H = 100  # steps between resets: with 300, the linear system has a condition number of 1e10
LEAST_EIGENVALUE = 1e-3  # of the Q-function's matrix
LARGEST_K = 3.0  # larger entries, or more than 3 times those of K0, are rejected


@dataclass(frozen=True)
class Lspi:
    """Version 1 reuses one data set, collected with K0; version 2 collects fresh data in each policy iteration."""

    name: str
    label: str
    version: int
    gamma: float
    iterations: int
    K0: tuple[tuple[float, ...], ...]
    annealed: bool = False  # extension: the discount rises from gamma to 1 over the iterations

    @property
    def unit(self) -> int:
        """Timesteps are whole episodes; in version 2, for each policy iteration."""
        return H if self.version == 1 else H * self.iterations

    def gammas(self) -> list[float]:
        """The discount of each policy iteration."""
        if not self.annealed:
            return [self.gamma] * self.iterations
        return [float(gamma) for gamma in np.linspace(self.gamma, 1.0, self.iterations)]

    def run(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[float]:
        """The relative cost after each number of timesteps, which ascend."""
        controllers = self._version_1 if self.version == 1 else self._version_2
        return [problem.relative_cost(K) for K in controllers(problem, seed, timesteps)]

    def _version_1(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[FloatArray]:
        K0 = np.array(self.K0)
        rng = draw(seed, LqrStream.LSPI_V1)
        S, done, controllers = no_data(problem), 0, []
        for t in timesteps:
            collect(problem, K0, rng, (t - done) // H, S)
            done, K = t, K0
            for gamma in self.gammas():
                K = improve(K, S, gamma, self._largest_K)
            controllers.append(K)
        return controllers

    def _version_2(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[FloatArray]:
        """A separate run for each budget, which determines how much data a policy iteration has."""
        controllers = []
        for t in timesteps:
            K = np.array(self.K0)
            for i, gamma in enumerate(self.gammas()):
                S = no_data(problem)
                collect(problem, K, draw(seed, LqrStream.LSPI_V2, t, i), t // self.unit, S)
                K = improve(K, S, gamma, self._largest_K)
            controllers.append(K)
        return controllers

    @property
    def _largest_K(self) -> float:
        return LARGEST_K * max(1.0, float(np.abs(self.K0).max()))


def features(size: int) -> int:
    """The length of svec for symmetric matrices of this size."""
    return size * (size + 1) // 2


def no_data(problem: Problem) -> FloatArray:
    """S: (f + 1, f + 1 + g + 1) without samples; f features of z = [x; u], g of x."""
    f, g = features(problem.n + problem.p), features(problem.n)
    return np.zeros((f + 1, f + 1 + g + 1))


def collect(problem: Problem, K: FloatArray, rng: np.random.Generator, episodes: int, S: FloatArray) -> None:
    """Add new episodes under u = K x + N(0, I) to S, in place."""
    from ars.lqr import loops

    for noise in draw_episodes(rng, episodes, H, problem.n, problem.p):
        loops.lspi_sums(problem.A, problem.B, problem.Q, problem.R, K, noise, S)


def improve(K: FloatArray, S: FloatArray, gamma: float, largest_K: float = LARGEST_K) -> FloatArray:
    """One policy iteration: the Q-function of K, then the K that minimises it; K itself if that fails."""
    p, n = K.shape
    f = len(S) - 1
    S1, S2, b = S[:, : f + 1], S[:, f + 1 : -1], S[:, -1]
    with np.errstate(all="ignore"):  # if K is far from stable, the sums overflow
        scale = 1 / np.sqrt(np.diag(S1))
        system = np.hstack([S1[:, :f] - gamma * S2 @ features_of_next_state(K).T, S1[:, f:]])
        system, right = scale[:, None] * system * scale, scale * b
        if not (np.isfinite(system).all() and np.isfinite(right).all()):
            return K
        try:
            q = scale[:f] * np.linalg.solve(system, right)[:f]
            eigenvalues, V = np.linalg.eigh(smat(q, n + p))
            X = (V * np.maximum(eigenvalues, LEAST_EIGENVALUE)) @ V.T
            K_next = -np.linalg.solve(X[n:, n:], X[n:, :n])
        except np.linalg.LinAlgError:
            return K
    return K_next if (np.abs(K_next) <= largest_K).all() else K  # false for NaN too


def features_of_next_state(K: FloatArray) -> FloatArray:
    """M_K: (f, g), the linear map from svec(x x') to svec([I; K] x x' [I; K]')."""
    n = K.shape[1]
    L = np.vstack([np.eye(n), K])
    return svec(L @ smat(np.eye(features(n)), n) @ L.T).T


def svec(X: FloatArray) -> FloatArray:
    """(..., size, size) → (..., f): the upper triangle of symmetric X, row by row, with √2 off the diagonal."""
    rows, columns = np.triu_indices(X.shape[-1])
    return X[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def smat(v: FloatArray, size: int) -> FloatArray:
    """The inverse of svec."""
    rows, columns = np.triu_indices(size)
    X = np.empty((*v.shape[:-1], size, size))
    X[..., rows, columns] = X[..., columns, rows] = v / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return X


def initial_controller(problem: Problem, gamma: float) -> FloatArray:
    """A K0 for instances other than the paper's, which barely stabilises the problem discounted by gamma.

    LSPI is given such a K0 (section 4.3), which requires knowledge of A and B: it is the optimum of the most discounted
    problem, in steps of 5%, that suffices.
    """
    for weaker in np.arange(0.05, 1.0, 0.05):
        K = problem.discounted_optimum(float(weaker))
        if np.sqrt(gamma) * spectral_radius(problem.A + problem.B @ K) < 1:
            return K
    return problem.K_star
