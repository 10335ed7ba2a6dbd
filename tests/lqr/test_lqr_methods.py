"""Nominal control, LSPI and ARS on the paper's instance: their equations without noise, and what they achieve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ars.executors import SerialExecutor
from ars.experiments.lqr.comparison import Method, extensions, methods
from ars.experiments.lqr.lspi import collect, features_of_next_state, improve, initial_controller, no_data, smat, svec
from ars.experiments.lqr.nominal import estimate_dynamics, nominal_controller
from ars.experiments.lqr.random_search import RandomSearch
from ars.experiments.lqr.statistics import stabilising
from ars.lqr import Problem, loops
from ars.lqr.problem import spectral_radius
from ars.lqr.streams import LqrStream, draw, trial_seed
from ars.records import State
from ars.statistics import percentile
from ars.tasks.lqr import LqrTask
from ars.training import iterate
from batches import paper_config

SEED = 20181


def methods_by_name(problem: Problem) -> dict[str, Method]:
    return {method.name: method for method in [*methods(problem), *extensions(problem)]}


def run(problem: Problem, name: str, timesteps: list[int], trials: int) -> tuple[np.ndarray, np.ndarray]:
    """Share stabilising and median relative cost at each checkpoint."""
    method = methods_by_name(problem)[name]
    spent = [t // method.unit * method.unit for t in timesteps]
    costs = np.array([method.run(problem, trial_seed(SEED, trial), spent) for trial in range(trials)])
    assert not np.isnan(costs).any()
    return stabilising(costs), percentile(costs, 50)


# -- nominal control ---------------------------------------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000))
def test_least_squares_without_noise_finds_the_dynamics(n: int, p: int, seed: int) -> None:
    problem = Problem.random(n, p, 1.1, seed)
    z = np.random.default_rng(seed).standard_normal((40, n + p))
    x_next = z[:, :n] @ problem.A.T + z[:, n:] @ problem.B.T
    estimates = estimate_dynamics(z.T @ z, z.T @ x_next)
    assert estimates is not None
    assert estimates[0] == pytest.approx(problem.A, abs=1e-8)
    assert estimates[1] == pytest.approx(problem.B, abs=1e-8)
    K = nominal_controller(problem, z.T @ z, z.T @ x_next)
    assert pytest.approx(problem.K_star, rel=1e-4, abs=1e-6) == K


def test_too_little_data_is_no_controller(paper: Problem) -> None:
    assert nominal_controller(paper, np.zeros((6, 6)), np.zeros((6, 3))) is None
    assert nominal_controller(paper, np.full((6, 6), np.inf), np.zeros((6, 3))) is None


@pytest.mark.parametrize(
    ("n", "p", "rho", "seed"),
    [(2, 2, 2.0, 1), (1, 3, 1.3, 14), (4, 1, 1.3, 1528), (4, 2, 1.3, 1560)],  # each fails at another step
)
def test_estimates_that_have_no_riccati_solution(n: int, p: int, rho: float, seed: int) -> None:
    problem = Problem.random(n, p, rho, seed)
    costs = methods_by_name(problem)["nominal-302"].run(problem, trial_seed(seed, 0), [302, 604, 1208])
    assert len(costs) == 3
    assert not np.isnan(costs).any()


def test_the_collected_sums_are_those_of_the_rollouts(paper: Problem) -> None:
    noise = draw(1, LqrStream.NOMINAL).standard_normal((2, 3 + 4 * 6))
    ZZ, ZX = np.zeros((6, 6)), np.zeros((6, 3))
    loops.nominal_sums(paper.A, paper.B, 0.5, 2.0, noise, ZZ, ZX)
    expected_ZZ, expected_ZX = np.zeros((6, 6)), np.zeros((6, 3))
    for episode in noise:
        x = 2.0 * episode[:3]
        for step in episode[3:].reshape(4, 6):
            z = np.concatenate([x, 0.5 * step[:3]])
            x = paper.A @ x + paper.B @ z[3:] + step[3:]
            expected_ZZ += np.outer(z, z)
            expected_ZX += np.outer(z, x)
    assert pytest.approx(expected_ZZ) == ZZ
    assert pytest.approx(expected_ZX) == ZX


# -- LSPI --------------------------------------------------------------------------------------------------------------

small_matrices = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000))


@given(small_matrices)
def test_svec_keeps_inner_products_and_smat_inverts_it(sizes: tuple[int, int, int]) -> None:
    size, _, seed = sizes
    X, Y = (Z + Z.T for Z in np.random.default_rng(seed).standard_normal((2, size, size)))
    assert svec(X) @ svec(Y) == pytest.approx(np.trace(X @ Y))
    assert smat(svec(X), size) == pytest.approx(X)


@given(small_matrices)
def test_compiled_svec(sizes: tuple[int, int, int]) -> None:
    v = np.random.default_rng(sizes[2]).standard_normal(sizes[0])
    out = np.empty(sizes[0] * (sizes[0] + 1) // 2)
    loops.svec(v, out)
    assert out == pytest.approx(svec(np.outer(v, v)))


@given(small_matrices)
def test_features_of_the_next_state_are_linear(sizes: tuple[int, int, int]) -> None:
    """psi = svec([I; K] x x' [I; K]') = M_K svec(x x')."""
    n, p, seed = sizes
    rng = np.random.default_rng(seed)
    K, x = rng.standard_normal((p, n)), rng.standard_normal(n)
    z = np.concatenate([x, K @ x])
    assert features_of_next_state(K) @ svec(np.outer(x, x)) == pytest.approx(svec(np.outer(z, z)))


def test_the_collected_sums_are_those_of_the_features(paper: Problem) -> None:
    K, S, expected = -0.1 * np.eye(3), no_data(paper), no_data(paper)
    collect(paper, K, draw(1, LqrStream.LSPI_V1), 2, S)
    for episode in draw(1, LqrStream.LSPI_V1).standard_normal((2, 3 + 100 * 6)):
        x = episode[:3]
        for step in episode[3:].reshape(100, 6):
            u = K @ x + step[:3]
            z = np.concatenate([x, u])
            cost = x @ paper.Q @ x + u @ paper.R @ u
            x = paper.A @ x + paper.B @ u + step[3:]
            zeta = [*svec(np.outer(z, z)), 1.0]
            expected += np.outer(zeta, [*zeta, *svec(np.outer(x, x)), cost])
    assert pytest.approx(expected) == S


@pytest.mark.parametrize("gamma", [0.9, 0.98, 1.0])
def test_without_noise_an_iteration_is_exact_policy_iteration(paper: Problem, gamma: float) -> None:
    """K+ = −(R + gamma B'P_K B)^-1 gamma B'P_K A, with P_K the cost-to-go under K."""
    K = -0.1 * np.eye(3)
    S = no_data(paper)
    for z in np.random.default_rng(0).standard_normal((60, 6)):
        x_next = paper.A @ z[:3] + paper.B @ z[3:]
        zeta = [*svec(np.outer(z, z)), 1.0]
        cost = z[:3] @ paper.Q @ z[:3] + z[3:] @ paper.R @ z[3:]
        S += np.outer(zeta, [*zeta, *svec(np.outer(x_next, x_next)), cost])
    P, F = np.zeros((3, 3)), paper.A + paper.B @ K
    for _ in range(2000):
        P = paper.Q + K.T @ paper.R @ K + gamma * F.T @ P @ F
    expected = -np.linalg.solve(paper.R + gamma * paper.B.T @ P @ paper.B, gamma * paper.B.T @ P @ paper.A)
    assert improve(K, S, gamma) == pytest.approx(expected, abs=1e-8)


def test_an_iteration_that_makes_no_sense_keeps_the_controller(paper: Problem) -> None:
    K, S = -0.1 * np.eye(3), no_data(paper)
    assert improve(K, S, 0.98) is K
    assert improve(K, np.full_like(S, np.inf), 0.98) is K
    assert improve(K, np.ones_like(S), 0.98) is K  # singular
    collect(paper, K, draw(1, LqrStream.LSPI_V1), 20, S)
    assert improve(K, S, 0.98, largest_K=1e-6) is K
    for largest in (1e-290, 1e300, 1.7e308):  # sums about to overflow
        assert np.isfinite(improve(K, largest / np.abs(S).max() * S, 0.98)).all()


def test_annealed_discount(paper: Problem) -> None:
    assert methods_by_name(paper)["lspi-v1"].gammas() == [0.98] * 10
    assert methods_by_name(paper)["lspi-v2-annealed"].gammas() == pytest.approx([0.98, 0.985, 0.99, 0.995, 1.0])


@pytest.mark.parametrize("gamma", [0.98, 1.0])
def test_initial_controllers_of_other_instances(gamma: float) -> None:
    for seed in range(20):
        problem = Problem.random(3, 2, 1.3, seed)
        K0 = initial_controller(problem, gamma)
        assert np.sqrt(gamma) * spectral_radius(problem.A + problem.B @ K0) < 1


def test_version_1_depends_on_its_data_not_on_the_other_checkpoints(paper: Problem) -> None:
    method = methods_by_name(paper)["lspi-v1"]
    assert method.run(paper, 1, [1000, 1500, 4000])[2] == method.run(paper, 1, [4000])[0]


# -- ARS ---------------------------------------------------------------------------------------------------------------


def test_the_decay_of_alpha() -> None:
    search = RandomSearch("", "", "V1", alpha=0.005, decay=10.0)
    assert (search.alpha_at(0), search.alpha_at(30)) == (0.005, 0.0025)
    assert RandomSearch("", "", "V1").alpha_at(1000) == 0.0025


@pytest.mark.parametrize("variant", ["V1", "V2"])
def test_ars_is_training_as_everywhere(paper: Problem, variant: str) -> None:
    search = RandomSearch("", "", variant, N=3, alpha=0.02)
    config = paper_config(variant, task="lqr", alpha=0.02, nu=0.01, N=3, H=302, shift=0.0, seed=9, eval_every=0)
    task = LqrTask(paper)
    records = iterate(config, State.initial(config.search, 3, 3), SerialExecutor(lambda: task), task.definition())
    expected = [task.measure(next(records).policy)["relative_cost"] for _ in range(8)]
    assert search.run(paper, 9, [search.unit * j for j in range(1, 9)]) == expected


def test_a_system_that_explodes_ends_a_trial_not_the_program() -> None:
    explosive = Problem.random(2, 1, 4.0, seed=0)
    for method in [*methods(explosive), *extensions(explosive)]:
        unit = method.unit
        costs = method.run(explosive, 3, [unit, 2 * unit])
        assert len(costs) == 2
        assert not np.isnan(costs).any()


# -- what the methods achieve: the figures that the project promises ---------------------------------------------------


def test_nominal_control_with_short_rollouts(paper: Problem) -> None:
    share, median = run(paper, "nominal-6", [600, 3000], trials=100)
    assert share[0] >= 0.85
    assert share[1] >= 0.98
    assert median[1] <= 0.10


def test_nominal_control_with_long_rollouts(paper: Problem) -> None:
    share, median = run(paper, "nominal-302", [604], trials=100)
    assert share[0] >= 0.98
    assert median[0] <= 0.02


def test_lspi_v1(paper: Problem) -> None:
    share, median = run(paper, "lspi-v1", [10_000, 30_000, 100_000], trials=100)
    assert share[0] >= 0.90
    assert share[1] >= 0.98
    assert 0.06 <= median[2] <= 0.085


def test_lspi_v2(paper: Problem) -> None:
    share, _ = run(paper, "lspi-v2", [30_000], trials=100)
    assert share[0] >= 0.90  # 94% over 1000 trials


def test_lspi_without_discount(paper: Problem) -> None:
    assert run(paper, "lspi-v1-undiscounted", [30_000], trials=50)[1] <= 0.02
    assert run(paper, "lspi-v2-undiscounted", [30_000], trials=50)[1] <= 0.035


def test_lspi_with_annealed_discount_has_no_bias_floor(paper: Problem) -> None:
    assert run(paper, "lspi-v1-annealed", [30_000], trials=20)[1] <= 0.02


def test_ars_v1(paper: Problem) -> None:
    share, median = run(paper, "ars-v1", [50_000, 100_000], trials=40)
    assert share[0] >= 0.90
    assert share[1] >= 0.97
    assert median[1] <= 0.10


def test_more_directions_level_off_lower(paper: Problem) -> None:
    few, many = (run(paper, name, [1_000_000], trials=10)[1][0] for name in ("ars-v1", "ars-v1-16"))
    assert many < few


def test_ars_v1_with_decaying_alpha(paper: Problem) -> None:
    share, median = run(paper, "ars-v1-decaying", [50_000, 200_000], trials=20)
    assert share[0] >= 0.90
    assert median[1] <= 0.06


def test_ars_v2_fails_quietly(paper: Problem) -> None:
    """The paper says it is impractical here; pytest turns warnings into errors."""
    share, median = run(paper, "ars-v2", [100_000, 480_000], trials=10)
    assert (share == 0).all()
    assert (median == np.inf).all()
