"""The linear quadratic regulator: the problem, its Riccati optimum and the exact cost of a controller (section 4.3).

min lim 1/T E Σ_t x_t'Q x_t + u_t'R u_t, subject to x_{t+1} = A x_t + B u_t + w_t, with w_t, x_0 ~ N(0, I).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ars.errors import FileError, SettingError
from ars.files import read_json, write_json
from ars.lqr.streams import LqrStream, draw
from ars.settings import LARGEST_SEED, whole_number

FloatArray = NDArray[np.float64]

ROUNDING = 1e-10  # relative; a matrix this close to symmetric or semidefinite counts as such
MOST_DOUBLINGS = 64  # any spectral radius below 1 in float64 needs fewer


@dataclass(frozen=True, eq=False)
class Problem:
    """A: (n, n), B: (n, p), Q: (n, n) positive semidefinite, R: (p, p) positive definite; a controller is u = K x."""

    A: FloatArray
    B: FloatArray
    Q: FloatArray
    R: FloatArray

    def __post_init__(self) -> None:
        for name in "ABQR":
            object.__setattr__(self, name, _matrix(name, getattr(self, name)))
        n, p = self.B.shape
        for name, shape in (("A", (n, n)), ("Q", (n, n)), ("R", (p, p))):
            if getattr(self, name).shape != shape:
                raise SettingError(
                    f"{name} is {_size(getattr(self, name))}, but B is {_size(self.B)}: {name} must be "
                    f"{shape[0]} × {shape[1]}."
                )
        object.__setattr__(self, "Q", _semidefinite("Q", self.Q, strictly=False))
        object.__setattr__(self, "R", _semidefinite("R", self.R, strictly=True))
        _check_stabilisable(self.A, self.B)
        if self.J_star <= 0:
            raise SettingError("Q gives this system an optimal cost of 0, so no cost is relative to it: enlarge Q.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Construct it again when unpickled in a worker, so that its arrays are read-only there too."""
        return Problem, (self.A, self.B, self.Q, self.R)

    @property
    def n(self) -> int:
        return int(self.B.shape[0])

    @property
    def p(self) -> int:
        return int(self.B.shape[1])

    @cached_property
    def P(self) -> FloatArray:
        """(n, n): the stabilising solution of the discrete algebraic Riccati equation."""
        P = solve_riccati(self.A, self.B, self.Q, self.R)
        if P is None or not spectral_radius(self.A + self.B @ gain(self.A, self.B, self.R, P)) < 1:
            raise SettingError(
                "The Riccati equation of this A, B, Q, R has no stabilising solution: Q must weigh every mode of A "
                "on the unit circle."
            )
        return P

    @cached_property
    def K_star(self) -> FloatArray:
        """(p, n): the optimal controller."""
        return gain(self.A, self.B, self.R, self.P)

    @property
    def J_star(self) -> float:
        """The optimal average cost."""
        return float(np.trace(self.P))

    def is_stabilising(self, K: ArrayLike) -> bool:
        """Whether x stays bounded in mean square under u = K x: rho(A + BK) < 1."""
        return spectral_radius(self._closed_loop(self._controller(K))) < 1

    def cost(self, K: ArrayLike, c: ArrayLike | None = None) -> float:
        """The average cost of u = K x − c; infinite if K does not stabilise. c: (p,), by default 0."""
        K = self._controller(K)
        F = self._closed_loop(K)
        if not spectral_radius(F) < 1:  # checked first: the Lyapunov equation also has a solution for rho > 1
            return np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            J = float(np.trace(_sum_of_powers(F, self.Q + K.T @ self.R @ K)))
            if c is not None:  # the offset moves the mean of the stationary states from 0 to m
                m = np.linalg.solve(np.eye(self.n) - F, -self.B @ np.asarray(c, dtype=np.float64))
                u = K @ m - c
                J += float(m @ self.Q @ m + u @ self.R @ u)
        return J if np.isfinite(J) else np.inf

    def relative_cost(self, K: ArrayLike, c: ArrayLike | None = None) -> float:
        """(J(K) − J*) / J*."""
        return (self.cost(K, c) - self.J_star) / self.J_star

    def discounted_optimum(self, gamma: float) -> FloatArray:
        """(p, n): the K that minimises E Σ_t gamma^t (x_t'Q x_t + u_t'R u_t)."""
        if not 0 < gamma <= 1:
            raise SettingError(f"gamma = {gamma!r} must be larger than 0 and at most 1.")
        A, B = np.sqrt(gamma) * self.A, np.sqrt(gamma) * self.B
        P = solve_riccati(A, B, self.Q, self.R)
        if P is None:
            raise SettingError(f"The Riccati equation of the problem discounted by gamma = {gamma:g} has no solution.")
        return gain(A, B, self.R, P)

    def _controller(self, K: ArrayLike) -> FloatArray:
        K = np.asarray(K, dtype=np.float64)
        if K.shape != (self.p, self.n):
            raise SettingError(f"K has the shape {K.shape}: this problem needs ({self.p}, {self.n}).")
        return K

    def _closed_loop(self, K: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # a K that is not finite does not stabilise
            return self.A + self.B @ K

    @staticmethod
    def paper() -> "Problem":
        """The instance of the paper, introduced by Dean et al. (2017)."""
        A = [[1.01, 0.01, 0.0], [0.01, 1.01, 0.01], [0.0, 0.01, 1.01]]
        return Problem(np.array(A), np.eye(3), 1e-3 * np.eye(3), np.eye(3))

    @staticmethod
    def random(n: int, p: int, rho: float, seed: int) -> "Problem":
        """Normal A, scaled to the spectral radius rho, and normal B; Q = I/1000 and R = I, as in the paper."""
        n, p = whole_number("n", n, 1, 1000), whole_number("p", p, 1, 1000)
        seed = whole_number("seed", seed, 0, LARGEST_SEED)
        if not 0 <= rho < np.inf:
            raise SettingError(f"rho = {rho!r} must be a number of at least 0.")
        rng = draw(seed, LqrStream.INSTANCE, n, p)
        A = rng.standard_normal((n, n))
        B = rng.standard_normal((n, p))
        return Problem(A * (rho / spectral_radius(A)), B, 1e-3 * np.eye(n), np.eye(p))

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in "ABQR"}

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Problem":
        """The inverse of to_dict; unknown and missing names are errors."""
        odd = sorted(set("ABQR").symmetric_difference(value))
        if odd:
            wrong = "missing" if odd[0] in "ABQR" else "unknown"
            raise SettingError(f"{odd[0]!r} is {wrong}: an instance has A, B, Q and R, each a list of rows.")
        return Problem(**value)

    def save(self, path: str | Path) -> None:
        write_json(Path(path), self.to_dict())

    @staticmethod
    def load(path: str | Path) -> "Problem":
        """Read a JSON file with A, B, Q and R."""
        try:
            return Problem.from_dict(read_json(Path(path)))
        except SettingError as error:
            raise FileError(f"{path} is not an LQR instance: {error}") from error


def spectral_radius(F: FloatArray) -> float:
    """rho(F); infinite if F is not finite."""
    return float(np.abs(np.linalg.eigvals(F)).max()) if np.isfinite(F).all() else np.inf


def solve_riccati(A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray) -> FloatArray | None:
    """P = Q + A'PA − A'PB (R + B'PB)^-1 B'PA, or None if no solution is found."""
    from scipy.linalg import solve_discrete_are

    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        return None
    try:
        with np.errstate(all="ignore"):  # estimates can be many orders of magnitude apart
            P: FloatArray = solve_discrete_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError):  # depending on the step that fails
        return None
    return P if np.isfinite(P).all() else None


def gain(A: FloatArray, B: FloatArray, R: FloatArray, P: FloatArray) -> FloatArray:
    """K = −(R + B'PB)^-1 B'PA."""
    return np.asarray(-np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)


def _sum_of_powers(F: FloatArray, S: FloatArray) -> FloatArray:
    """Σ_t F'^t S F^t, the solution of the discrete Lyapunov equation X = S + F'XF; each pass doubles the terms.

    All terms are positive semidefinite, so this stays accurate for rho(F) near 1, where a linear solver does not.
    """
    for _ in range(MOST_DOUBLINGS):
        before, S = S, S + F.T @ S @ F
        F = F @ F
        if np.array_equal(S, before):
            break
    return S


def _matrix(name: str, value: Any) -> FloatArray:
    """A read-only copy as float64, or SettingError."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise SettingError(f"{name} is not a matrix: its rows must be lists of equal length.") from None
    if given.ndim != 2 or given.size == 0:
        raise SettingError(f"{name} has the shape {given.shape}: a matrix with at least one row is needed.")
    if given.dtype.kind not in "iuf":
        raise SettingError(f"{name} has entries that are not numbers.")
    matrix = given.astype(np.float64, order="C")  # a copy
    if not np.isfinite(matrix).all():
        raise SettingError(f"{name} has entries that are not finite.")
    matrix.setflags(write=False)
    return matrix


def _semidefinite(name: str, S: FloatArray, *, strictly: bool) -> FloatArray:
    """S made exactly symmetric, or SettingError if it is not symmetric positive (semi)definite."""
    scale = float(np.abs(S).max())
    if not np.abs(S - S.T).max() <= ROUNDING * scale:
        raise SettingError(f"{name} is not symmetric.")
    S = (S + S.T) / 2
    least = float(np.linalg.eigvalsh(S).min())
    if strictly and not least > ROUNDING * scale:
        raise SettingError(f"{name} must be positive definite: its smallest eigenvalue is {least:.3g}.")
    if least < -ROUNDING * scale:
        raise SettingError(f"{name} must be positive semidefinite: its smallest eigenvalue is {least:.3g}.")
    S.setflags(write=False)
    return S


def _check_stabilisable(A: FloatArray, B: FloatArray) -> None:
    """The Hautus test: [lambda I − A, B] must have full rank at every unstable eigenvalue."""
    n = len(A)
    for eigenvalue in np.linalg.eigvals(A):
        if abs(eigenvalue) >= 1 and np.linalg.matrix_rank(np.hstack([eigenvalue * np.eye(n) - A, B])) < n:
            raise SettingError(
                f"No controller stabilises this A and B: u does not affect the mode of A with the eigenvalue "
                f"{eigenvalue:.4g}."
            )


def _size(matrix: FloatArray) -> str:
    return f"{matrix.shape[0]} × {matrix.shape[1]}"
