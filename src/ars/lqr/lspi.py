"""Least-squares policy iteration (section 4.3; Tu and Recht 2017): Q-functions fitted by temporal differencing.

With z = [x; u], the Q-function of u = Kx is q'phi, phi = svec(zz'), and satisfies cost = q'(phi − gamma psi) + lambda,
where psi = svec([I; K] x_next x_next' [I; K]') = M_K xi, xi = svec(x_next x_next'). One pass over the data collects
S1 = Σ ζζ', S2 = Σ ζξ' and b = Σ ζ cost, ζ = [phi; 1]; a policy iteration then costs the same for any number of samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.lqr.episodes import draw_episodes
from ars.lqr.problem import Problem, spectral_radius
from ars.lqr.streams import LqrStream, draw

FloatArray = NDArray[np.float64]

H = 100  # steps to a reset: with 300 the system of equations has a condition number of 1e10
LEAST_EIGENVALUE = 1e-3  # of the Q-function's matrix
LARGEST_K = 3.0  # entries beyond it, or beyond 3 times those of K0, are not accepted


class Sums(NamedTuple):
    """S1: (f + 1, f + 1), S2: (f + 1, n (n + 1)/2), b: (f + 1,), with f = (n + p)(n + p + 1)/2 features."""

    S1: FloatArray
    S2: FloatArray
    b: FloatArray

    @staticmethod
    def empty(n: int, p: int) -> "Sums":
        size = (n + p) * (n + p + 1) // 2 + 1
        return Sums(np.zeros((size, size)), np.zeros((size, n * (n + 1) // 2)), np.zeros(size))


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
        """Timesteps come in whole episodes, for each iteration of version 2."""
        return H if self.version == 1 else H * self.iterations

    def gammas(self) -> list[float]:
        """The discount of each policy iteration."""
        if not self.annealed:
            return [self.gamma] * self.iterations
        rising = (self.iterations + 1) // 2  # the rest is left to settle at 1
        return [1 - (1 - self.gamma) * max(0.0, 1 - i / rising) for i in range(self.iterations)]

    def run(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[float]:
        """The relative cost after each number of timesteps; they ascend."""
        controllers = self._version_1 if self.version == 1 else self._version_2
        return [problem.relative_cost(K) for K in controllers(problem, seed, timesteps)]

    def _version_1(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[FloatArray]:
        K0 = np.array(self.K0)
        rng = draw(seed, LqrStream.LSPI_V1)
        sums, done, controllers = Sums.empty(problem.n, problem.p), 0, []
        for t in timesteps:
            collect(problem, K0, rng, (t - done) // H, sums)
            done, K = t, K0
            for gamma in self.gammas():
                K = improve(K, sums, gamma, self._largest_K)
            controllers.append(K)
        return controllers

    def _version_2(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[FloatArray]:
        """The budget decides how much data an iteration has, so each is a run of its own."""
        controllers = []
        for t in timesteps:
            K = np.array(self.K0)
            for i, gamma in enumerate(self.gammas()):
                sums = Sums.empty(problem.n, problem.p)
                collect(problem, K, draw(seed, LqrStream.LSPI_V2, t, i), t // self.unit, sums)
                K = improve(K, sums, gamma, self._largest_K)
            controllers.append(K)
        return controllers

    @property
    def _largest_K(self) -> float:
        return LARGEST_K * max(1.0, float(np.abs(self.K0).max()))


def collect(problem: Problem, K: FloatArray, rng: np.random.Generator, episodes: int, sums: Sums) -> None:
    """Add the sums of new episodes under u = K x + N(0, I)."""
    from ars.lqr import loops

    for noise in draw_episodes(rng, episodes, H, problem.n, problem.p):
        loops.lspi_sums(problem.A, problem.B, problem.Q, problem.R, K, noise, *sums)


def improve(K: FloatArray, sums: Sums, gamma: float, largest_K: float = LARGEST_K) -> FloatArray:
    """One policy iteration: the Q-function of K, then the K that minimises it; K as it was if that makes no sense."""
    S1, S2, b = sums
    p, n = K.shape
    f = len(b) - 1
    diagonal = np.diag(S1)
    if not (np.isfinite(S1).all() and np.isfinite(S2).all() and (diagonal > 0).all()):
        return K
    scale = 1 / np.sqrt(diagonal)
    system = np.hstack([S1[:, :f] - gamma * S2 @ features_of_next_state(K).T, S1[:, f:]])
    try:
        q = scale[:f] * np.linalg.solve(scale[:, None] * system * scale, scale * b)[:f]
    except np.linalg.LinAlgError:
        return K
    if not np.isfinite(q).all():
        return K
    eigenvalues, V = np.linalg.eigh(smat(q, n + p))
    X = (V * np.maximum(eigenvalues, LEAST_EIGENVALUE)) @ V.T
    K_next = -np.linalg.solve(X[n:, n:], X[n:, :n])
    return K_next if (np.abs(K_next) <= largest_K).all() else K  # false for NaN too


def features_of_next_state(K: FloatArray) -> FloatArray:
    """M_K: (f, n (n + 1)/2), the linear map from svec(x x') to svec([I; K] x x' [I; K]')."""
    p, n = K.shape
    L = np.vstack([np.eye(n), K])
    size = n * (n + 1) // 2
    columns = [svec(L @ smat(e, n) @ L.T) for e in np.eye(size)]
    return np.stack(columns, axis=1)


def svec(X: FloatArray) -> FloatArray:
    """The upper triangle of a symmetric X, row by row, with √2 off the diagonal."""
    rows, columns = np.triu_indices(len(X))
    return X[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def smat(v: FloatArray, size: int) -> FloatArray:
    """The inverse of svec."""
    rows, columns = np.triu_indices(size)
    X = np.zeros((size, size))
    X[rows, columns] = X[columns, rows] = v / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return X


def initial_controller(problem: Problem, gamma: float) -> FloatArray:
    """A K0 for instances other than the paper's: it stabilises the problem discounted by gamma, with little to spare.

    LSPI is given such a K0 (section 4.3), and only knowledge of A and B can make one: the optimum of the most
    discounted problem, in steps of 5%, that will do.
    """
    for weaker in np.arange(0.05, 1.0, 0.05):
        K = problem.discounted_optimum(float(weaker))
        if np.sqrt(gamma) * spectral_radius(problem.A + problem.B @ K) < 1:
            return K
    return problem.K_star
