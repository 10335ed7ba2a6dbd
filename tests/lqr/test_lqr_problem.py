"""The problem: by hand, by the constants of the paper's instance, by an oracle, and the sentences for mistakes."""

import contextlib
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_lyapunov

from ars.errors import ArsError, FileError, SettingError
from ars.lqr import Problem
from ars.lqr.problem import spectral_radius

GOLDEN = (1 + 5**0.5) / 2


@pytest.fixture(scope="module")
def scalar() -> Problem:
    return Problem([[1]], [[1]], [[1]], [[1]])


def test_scalar_riccati_by_hand(scalar: Problem) -> None:
    """P = 1 + P − P²/(1 + P) is P² = P + 1, and K = −P/(1 + P) = −1/P."""
    assert pytest.approx(np.array([[GOLDEN]])) == scalar.P
    assert scalar.K_star == pytest.approx(np.array([[-1 / GOLDEN]]))
    assert scalar.J_star == pytest.approx(GOLDEN)


def test_scalar_cost_by_hand(scalar: Problem) -> None:
    """x' = x/2 + w has the variance 4/3, and each step costs (1 + 1/4) x²."""
    assert scalar.cost([[-0.5]]) == pytest.approx(5 / 3)
    assert scalar.relative_cost([[-0.5]]) == pytest.approx(5 / 3 / GOLDEN - 1)
    assert scalar.relative_cost(scalar.K_star) == pytest.approx(0, abs=1e-12)


def test_cost_of_an_offset_by_hand(scalar: Problem) -> None:
    """u = −x/2 − 1/5 moves the mean of x to −2/5, where u is 0: the cost grows by (2/5)²."""
    assert scalar.cost([[-0.5]], [0.2]) == pytest.approx(5 / 3 + 0.16)
    assert scalar.cost([[-0.5]], [0.0]) == scalar.cost([[-0.5]])
    assert scalar.cost([[0.5]], [0.2]) == np.inf


@pytest.mark.parametrize("K", [0.0, -2.0, 0.1, 1e200, np.inf, np.nan])
def test_an_unstable_controller_costs_infinitely_much(scalar: Problem, K: float) -> None:
    assert not scalar.is_stabilising([[K]])
    assert scalar.cost([[K]]) == np.inf
    assert scalar.relative_cost([[K]]) == np.inf


def test_constants_of_the_paper(paper: Problem) -> None:
    assert paper.J_star == pytest.approx(0.137287166, abs=1e-6)
    assert spectral_radius(paper.A) == pytest.approx(1.0241421, abs=1e-6)
    assert spectral_radius(paper.A + paper.B @ paper.K_star) == pytest.approx(0.968547, abs=1e-6)
    K = paper.K_star
    assert np.diag(K) == pytest.approx([-0.04373, -0.04500, -0.04373], abs=5e-6)
    assert (K[0, 1], K[0, 2]) == pytest.approx((-0.01251, -0.00127), abs=5e-6)
    assert spectral_radius(paper.A - 0.1 * np.eye(3)) == pytest.approx(0.924, abs=1e-3)


@pytest.mark.parametrize(
    ("gamma", "bias"),
    [(0.95, 1.095), (0.96, 0.439), (0.97, 0.189), (0.98, 0.0695), (0.99, 0.0150), (0.995, 0.0035), (0.999, 0.00013)],
)
def test_discounted_optima(paper: Problem, gamma: float, bias: float) -> None:
    assert paper.relative_cost(paper.discounted_optimum(gamma)) == pytest.approx(bias, abs=1e-3)


def test_a_discount_of_1_is_none(paper: Problem) -> None:
    assert paper.discounted_optimum(1.0) == pytest.approx(paper.K_star)
    with pytest.raises(SettingError, match=r"gamma = 1\.5 must"):
        paper.discounted_optimum(1.5)


@pytest.mark.parametrize(("K0", "largest"), [(0.0, 0.9534), (-0.02, 0.9918)])
def test_discounts_that_an_initial_controller_admits(paper: Problem, K0: float, largest: float) -> None:
    assert spectral_radius(paper.A + K0 * np.eye(3)) ** -2 == pytest.approx(largest, abs=5e-5)


problems = st.builds(
    Problem.random,
    n=st.integers(1, 5),
    p=st.integers(1, 4),
    rho=st.floats(0.1, 1.5),
    seed=st.integers(0, 2**64 - 1),
)


@given(problems, st.floats(0.0, 0.9), st.integers(0, 100))
def test_cost_against_the_lyapunov_equation(problem: Problem, size: float, seed: int) -> None:
    """And no controller is better than the Riccati optimum."""
    K = problem.K_star + size * 0.1 * np.random.default_rng(seed).standard_normal((problem.p, problem.n))
    F = problem.A + problem.B @ K
    if not problem.is_stabilising(K):
        assert problem.cost(K) == np.inf
    elif spectral_radius(F) < 0.999:
        X = solve_discrete_lyapunov(F.T, problem.Q + K.T @ problem.R @ K)
        assert problem.cost(K) == pytest.approx(np.trace(X), rel=1e-6)
        assert problem.relative_cost(K) >= -1e-9


@given(problems)
def test_riccati_optimum(problem: Problem) -> None:
    A, B, Q, R, P, K = (getattr(problem, name) for name in ("A", "B", "Q", "R", "P", "K_star"))
    assert problem.is_stabilising(K)
    assert np.allclose(P, Q + K.T @ R @ K + (A + B @ K).T @ P @ (A + B @ K), rtol=1e-6, atol=1e-9 * P.max())
    assert problem.cost(K) == pytest.approx(problem.J_star, rel=1e-6)


def test_a_controller_at_the_edge_of_stability(paper: Problem) -> None:
    """rho = 1 − 1e-12 is stable: the cost is large and finite, without a warning."""
    edge = Problem([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    assert edge.cost([[-1e-12]]) == pytest.approx(1 / 2e-12, rel=1e-3)
    assert edge.cost([[0.0]]) == np.inf


@given(st.integers(1, 6), st.integers(1, 4), st.floats(0.0, 2.0), st.integers(0, 2**64 - 1))
def test_random_instances(n: int, p: int, rho: float, seed: int) -> None:
    one, again = Problem.random(n, p, rho, seed), Problem.random(n, p, rho, seed)
    assert one.to_dict() == again.to_dict()
    assert (one.n, one.p) == (n, p)
    assert spectral_radius(one.A) == pytest.approx(rho, rel=1e-9, abs=1e-12)


def test_random_instances_differ_by_seed() -> None:
    assert Problem.random(3, 2, 1.1, 0).to_dict() != Problem.random(3, 2, 1.1, 1).to_dict()


def test_arrays_are_copies_that_cannot_change() -> None:
    A = np.eye(2)
    problem = Problem(A, np.eye(2), np.eye(2), np.eye(2))
    A[0, 0] = 7
    assert problem.A[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.A[0, 0] = 7


def test_a_problem_survives_the_way_to_a_worker(paper: Problem) -> None:
    again = pickle.loads(pickle.dumps(paper))
    assert again.to_dict() == paper.to_dict()
    assert not again.A.flags.writeable


I2 = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"A": [[1.0, 0.0]]}, "A is 1 × 2, but B is 2 × 2: A must be 2 × 2"),
        ({"Q": [[1.0]]}, "Q is 1 × 1, but B is 2 × 2: Q must be 2 × 2"),
        ({"R": [[1.0]]}, "R is 1 × 1"),
        ({"A": [1.0, 2.0]}, r"A has the shape \(2,\)"),
        ({"A": [[1.0], [1.0, 2.0]]}, "A is not a matrix"),
        ({"A": []}, "A has the shape"),
        ({"A": None}, "A has the shape"),
        ({"A": [["1", "0"], ["0", "1"]]}, "A has entries that are not numbers"),
        ({"A": [[True, False], [False, True]]}, "A has entries that are not numbers"),
        ({"A": [[1.0, np.nan], [0.0, 1.0]]}, "A has entries that are not finite"),
        ({"B": [[np.inf, 0.0], [0.0, 1.0]]}, "B has entries that are not finite"),
        ({"Q": [[1.0, 0.5], [0.0, 1.0]]}, "Q is not symmetric"),
        ({"Q": [[-1.0, 0.0], [0.0, 1.0]]}, "Q must be positive semidefinite: its smallest eigenvalue is -1"),
        ({"R": [[0.0, 0.0], [0.0, 1.0]]}, "R must be positive definite: its smallest eigenvalue is 0"),
        ({"A": [[2.0, 0.0], [0.0, 1.0]], "B": [[0.0, 0.0], [0.0, 1.0]]}, "No controller stabilises.*eigenvalue 2"),
        ({"Q": [[0.0, 0.0], [0.0, 1.0]]}, "Riccati equation.*no stabilising solution"),
        ({"A": [[0.5, 0.0], [0.0, 0.5]], "Q": [[0.0, 0.0], [0.0, 0.0]]}, "optimal cost of 0"),
    ],
)
def test_mistakes_get_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        Problem(**({"A": I2, "B": I2, "Q": I2, "R": I2} | change))


def test_a_controller_of_another_shape(paper: Problem) -> None:
    with pytest.raises(SettingError, match=r"K has the shape \(2, 2\): this problem needs \(3, 3\)"):
        paper.cost(np.eye(2))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [((0, 1, 1.0), "n = 0"), ((1, True, 1.0), "p = True"), ((1, 1, np.inf), "rho = inf"), ((1, 1, -1.0), "rho = -1")],
)
def test_random_instances_that_cannot_be(settings: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        Problem.random(*settings, seed=0)


def test_save_and_load(tmp_path: Path) -> None:
    problem = Problem.random(3, 2, 1.1, seed=5)
    problem.save(tmp_path / "instance.json")
    assert Problem.load(tmp_path / "instance.json").to_dict() == problem.to_dict()
    assert set(json.loads((tmp_path / "instance.json").read_text())) == {"A", "B", "Q", "R"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "'A' is missing"),
        ("[1]", "a JSON object was expected"),
        ("{", "is damaged"),
        ('{"A": [[1]], "B": [[1]], "Q": [[1]], "R": [[1]], "S": 1}', "'S' is unknown"),
        ('{"A": [[1]], "B": [[1]], "Q": [[1]], "R": [[-1]]}', "is not an LQR instance: R must be positive definite"),
        ('{"A": [[1e999]], "B": [[1]], "Q": [[1]], "R": [[1]]}', "not finite"),
        ('{"A": {"x": 1}, "B": [[1]], "Q": [[1]], "R": [[1]]}', "is not an LQR instance: A"),
    ],
)
def test_files_that_are_no_instance(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "instance.json"
    path.write_text(content)
    with pytest.raises(FileError, match=sentence):
        Problem.load(path)


@given(st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=9))
def test_any_json_gives_a_problem_or_a_sentence(value: Any) -> None:
    for name in "ABQR":
        with contextlib.suppress(ArsError):
            Problem.from_dict({"A": [[1.0]], "B": [[1.0]], "Q": [[1.0]], "R": [[1.0]], name: value})


def test_importing_the_problem_loads_nothing_heavy() -> None:
    code = "import sys, ars.lqr; print([m for m in ('numba', 'matplotlib', 'scipy', 'gymnasium') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
