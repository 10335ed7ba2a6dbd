"""The natural policy gradient of linear policies and of random Fourier features, on arrays.

A. Rajeswaran, K. Lowrey, E. Todorov, S. Kakade, "Towards generalization and simplicity in continuous control" (2017):
section 3.1 the gradient, section 3.2 the features, algorithm 1 the whole. A policy is a = W φ(s) + σ ξ. Its Fisher
matrix has a block for each row of W and is diagonal in log σ, so that F⁻¹ g is solved exactly where they run ten
conjugate gradients. Ten of these, or wider features, change NG-rbf much but not reliably for the better:
docs/rivals.md.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.noise import Key, Stream, generator

FloatArray = NDArray[np.float64]

DAMPING = 1e-4  # added to the diagonal of the Fisher matrix of W
LOG_SIGMA_LEAST = -3.0
RIDGE = 1e-3  # of the baseline
WIDEST = 100  # numbers of a state of which the baseline has all products; of more it has squares only
MOST_PAIRED = 500  # states whose distances give the width of features


class Features(NamedTuple):
    """φ = [s; 1], or [sin(P s / ν + phases); 1]; P_over_nu: (f, n), or (0, n) for the first."""

    P_over_nu: FloatArray
    phases: FloatArray

    def __call__(self, states: FloatArray) -> FloatArray:
        """(T, n) → (T, f + 1), or (T, n + 1)."""
        y = np.sin(states @ self.P_over_nu.T + self.phases) if len(self.phases) else states
        return np.hstack([y, np.ones((len(states), 1))])

    @property
    def size(self) -> int:
        """Numbers of φ."""
        return (len(self.phases) or self.P_over_nu.shape[1]) + 1


def linear_features(n: int) -> Features:
    return Features(np.zeros((0, n)), np.zeros(0))


def random_features(f: int, nu: float, n: int, seed: int) -> Features:
    """P_ij ~ N(0, 1) and phases ~ U[−π, π).  # section 3.2"""
    random = generator(Key(seed, Stream.FEATURES, 0, 0))
    P = random.standard_normal((f, n))
    return Features(P / nu, random.uniform(-np.pi, np.pi, f))


def width(states: FloatArray) -> float:
    """ν: the mean distance of pairs of states, of at most MOST_PAIRED that are spread evenly over them."""
    some = states[:: -(-len(states) // MOST_PAIRED)]
    distances = np.sqrt(np.square(some[:, None] - some[None]).sum(axis=2))
    count = len(some) * (len(some) - 1)
    return float(distances.sum() / count) if count and distances.any() else 1.0


# -- advantages ------------------------------------------------------------------------------------------------------


def discounted(values: FloatArray, factor: float) -> FloatArray:
    """Σ_{k ≥ t} factor^(k − t) values_k for every t."""
    sums, total = np.empty(len(values)), 0.0
    for t in range(len(values) - 1, -1, -1):
        total = values[t] + factor * total
        sums[t] = total
    return sums


def advantages(rewards: FloatArray, values: FloatArray, ended: bool, gamma: float, lam: float) -> FloatArray:
    """Generalised advantage estimation (Schulman et al. 2016) of one episode. The state after the last is worth nothing
    if the episode ended there and otherwise, if its time was up, as much as the last, as in the authors' code."""
    after = np.append(values[1:], 0.0 if ended else values[-1])
    return discounted(rewards + gamma * after - values, gamma * lam)


def whitened(A: FloatArray) -> FloatArray:
    return np.asarray((A - A.mean()) / (A.std() + 1e-6))


class Baseline(NamedTuple):
    """V(s, t): a ridge regression on [o, o ⊗ o, 1, τ … τ⁴] with o = clip(s, ±10)/10 and τ = t/1000; 0 before its first
    fit. The scales are those of the authors' code."""

    coefficients: FloatArray | None = None

    @staticmethod
    def features(states: FloatArray) -> FloatArray:
        """Of the states of one episode, (T, n), in order."""
        o, tau = np.clip(states, -10.0, 10.0) / 10.0, np.arange(len(states))[:, None] / 1000.0
        n = o.shape[1]
        i, j = np.triu_indices(n) if n <= WIDEST else (np.arange(n),) * 2
        return np.hstack([o, o[:, i] * o[:, j], np.ones((len(o), 1)), tau, tau**2, tau**3, tau**4])

    @staticmethod
    def fit(features: FloatArray, returns: FloatArray) -> "Baseline":
        gram = features.T @ features + RIDGE * np.eye(features.shape[1])
        return Baseline(np.asarray(np.linalg.solve(gram, features.T @ returns), dtype=np.float64))

    def predict(self, features: FloatArray) -> FloatArray:
        return np.zeros(len(features)) if self.coefficients is None else np.asarray(features @ self.coefficients)


# -- the step --------------------------------------------------------------------------------------------------------


class Parameters(NamedTuple):
    """W: (p, features) and log_sigma: (p,); also a gradient or a direction in these."""

    W: FloatArray
    log_sigma: FloatArray

    def dot(self, other: "Parameters") -> float:
        return float((self.W * other.W).sum() + (self.log_sigma * other.log_sigma).sum())


def gradient(theta: Parameters, phi: FloatArray, actions: FloatArray, A: FloatArray) -> Parameters:
    """g = mean(A ∇ log π(a | s)): with z = (a − W φ)/σ, g_W,j = mean(A z_j φ)/σ_j and g_logσ,j = mean(A (z_j² − 1)).

    phi: (T, features), actions: (T, p), A: (T,).
    """
    sigma = np.exp(theta.log_sigma)
    z = (actions - phi @ theta.W.T) / sigma
    weighted = A[:, None] * z
    return Parameters((weighted.T @ phi) / (len(A) * sigma[:, None]), (A[:, None] * (z * z - 1.0)).mean(axis=0))


def natural(theta: Parameters, phi: FloatArray, g: Parameters) -> Parameters:
    """d = F⁻¹ g: with S = mean(φ φᵀ), d_W,j = (S/σ_j² + DAMPING I)⁻¹ g_W,j and d_logσ = g_logσ/2."""
    S = phi.T @ phi / len(phi)
    values, vectors = np.linalg.eigh(S)  # one decomposition for all rows
    variances = np.exp(2.0 * theta.log_sigma)[:, None]
    rows = (g.W @ vectors) / (np.maximum(values, 0.0) / variances + DAMPING)
    return Parameters(rows @ vectors.T, g.log_sigma / 2.0)


def step(theta: Parameters, phi: FloatArray, actions: FloatArray, A: FloatArray, delta: float) -> Parameters:
    """θ + sqrt(δ / gᵀd) d, whose mean KL divergence from θ is about δ/2; no step along a flat surrogate."""
    g = gradient(theta, phi, actions, A)
    d = natural(theta, phi, g)
    length = g.dot(d)
    if not length > 0.0:
        return theta
    rate = np.sqrt(delta / length)
    return Parameters(theta.W + rate * d.W, np.maximum(theta.log_sigma + rate * d.log_sigma, LOG_SIGMA_LEAST))
