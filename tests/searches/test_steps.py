"""One step of every search by hand, and of the covariance searches beside an independent implementation."""

import math
from typing import Any

import cmaes
import numpy as np
import pytest

from ars.errors import SettingError
from ars.noise import Directions
from ars.searches import ranking
from ars.searches.cem import CEM
from ars.searches.clipup import ClipUp
from ars.searches.cma import CMA, SepCMA, learning_rates, square_root
from ars.searches.csa import CSA
from ars.searches.es import ES
from ars.searches.ranking import centred_ranks

TWO = [np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])]  # deltas of shape (p, n) = (1, 2)


def test_weights_and_norms() -> None:
    w = ranking.log_weights(2)
    np.testing.assert_allclose(w, [0.8041628, 0.1958372], atol=1e-7)  # ln 2.5 and ln 1.25, over their sum
    assert ranking.log_weights(1).tolist() == [1.0]
    assert ranking.expected_norm(2) == pytest.approx(1.2543, abs=1e-4)
    assert [ranking.default_pairs(d) for d in (16, 102, 888)] == [7, 9, 13]  # ⌈(4 + 3 ln d)/2⌉
    assert [CSA().size(CSA().initial((1, d))) for d in (16, 33, 102, 888)] == [5, 5, 6, 9]  # ⌈(4 + 3 ln d)/3⌉


def test_of_each_pair_the_better_is_kept_and_ties_go_to_plus() -> None:
    rewards = np.array([[1.0, 3.0], [5.0, 5.0], [np.nan, 9.0], [2.0, 0.0]])
    best = ranking.best_of_pairs(rewards, 2)
    assert best.ks.tolist() == [1, 0]
    assert best.signs.tolist() == [1.0, -1.0]
    assert best.mueff == pytest.approx(1.0 / (0.8041628**2 + 0.1958372**2), rel=1e-6)


def test_csa() -> None:
    search = CSA(nu=0.5, N=2, share=0.5, both=False, stride=1.0)  # the best of the two pairs, mueff = 1
    params, telemetry = search.step(search.initial((1, 2)), TWO, np.array([[1.0, 3.0], [2.0, 0.0]]))
    np.testing.assert_allclose(params["M"], [[-0.5, 0.0]])  # −nu δ_0
    length = math.sqrt(0.375 * 1.625)  # c = (1 + 2) / (2 + 1 + 5)
    np.testing.assert_allclose(params["path"], [[-length, 0.0]])
    expected = math.sqrt(2.0) * (1.0 - 1.0 / 8.0 + 1.0 / 84.0)
    assert float(params["nu"]) == pytest.approx(0.5 * math.exp(0.375 / 1.375 * (length / expected - 1.0)))
    assert telemetry["nu_now"] == 0.5
    assert telemetry["update_norm"] == pytest.approx(0.5)


def test_csa_grows_as_it_shrinks() -> None:
    search = CSA(nu=0.5, N=8, growth=1.0, N_most=18)
    assert search.grown(8.0, 0.5, 0.32, 8.0) == pytest.approx((12.5, 0.4))  # r = 16/25: N takes 25/16, nu 4/5
    assert search.grown(12.5, 0.4, 0.625, 8.0) == pytest.approx((8.0, 0.5))  # and back
    assert search.grown(16.0, 0.5, 0.32, 8.0) == pytest.approx((18.0, 0.32 * math.sqrt(18.0 / 16.0)))  # nu: the rest
    assert search.grown(8.0, 0.5, 0.6, 8.0) == pytest.approx((8.0, 0.6))
    assert CSA(nu=0.5, growth=0.0).grown(8.0, 0.5, 0.4, 8.0) == (8.0, 0.4)


def test_csa_calms_down() -> None:
    """The bound on nu: 2 nu_0 for `calm` steps, then as 1/j², and a third of it at last."""
    search = CSA(nu=0.5, N=2, calm=4)
    assert [search.bound(j) for j in (1.0, 4.0, 5.0, 1000.0)] == [1.0, 1.0, pytest.approx(0.64), pytest.approx(1 / 3)]
    assert CSA(nu=0.5, calm=0).bound(1e9) == 1.0
    rewards = np.array([[1.0, 3.0], [2.0, 0.0]])
    params = {**search.initial((1, 2)), "path": np.array([[-9.0, 9.0]])}  # so long that nu would grow
    seen = []
    for _ in range(8):
        params = {**search.step(params, TWO, rewards)[0], "path": params["path"]}
        seen.append(float(params["nu"]))
    assert seen == pytest.approx([1.0] * 4 + [16.0 / 25.0, 16.0 / 36.0, 1.0 / 3.0, 1.0 / 3.0])


def test_csa_takes_more_pairs_than_it_asked_for() -> None:
    search = CSA(nu=0.5, N=2, share=0.5, both=False, stride=1.0)
    deltas = [*TWO, np.array([[0.0, -2.0]]), np.array([[3.0, 0.0]])]
    rewards = np.array([[1.0, 3.0], [2.0, 0.0], [0.0, 0.0], [0.0, 4.0]])
    params, telemetry = search.step(search.initial((1, 2)), deltas, rewards)  # half: pairs 3 and 0, both minus
    np.testing.assert_allclose(params["M"], [[-0.5 * (0.8041628 * 3.0 + 0.1958372), 0.0]], rtol=1e-6)
    assert telemetry["N_now"] == 4.0
    with pytest.raises(SettingError, match=r"share = 1\.5 must not be larger than 1"):
        CSA(share=1.5)


def test_csa_with_both_halves() -> None:
    """Ranks of [[1, 3], [2, 0]] are [[−1/6, ½], [1/6, −½]]: both differ by 2/3, the better half of pair 0 is best."""
    best = ranking.both_halves(np.array([[1.0, 3.0], [2.0, 0.0]]), 2)
    assert (best.ks.tolist(), best.signs.tolist(), best.mueff) == ([0, 1], [-1.0, 1.0], pytest.approx(2.0))
    np.testing.assert_allclose(best.weights, [0.5, 0.5])
    assert ranking.both_halves(np.array([[1.0, 3.0], [2.0, 0.0]]), 1).ks.tolist() == [0]
    same = ranking.both_halves(np.array([[5.0, 5.0], [2.0, 0.0]]), 1)
    assert (same.weights.tolist(), same.mueff) == ([0.0], math.inf)
    search = CSA(nu=0.5, N=2, stride=3.0)  # all pairs: −½ δ_0 and ½ δ_1
    params, _ = search.step(search.initial((1, 2)), TWO, np.array([[1.0, 3.0], [2.0, 0.0]]))
    np.testing.assert_allclose(params["M"], [[-0.75, 1.5]])
    search = CSA(nu=0.5, N=2, stride=3.0, share=0.5)
    params, _ = search.step(search.initial((1, 2)), TWO, np.array([[1.0, 3.0], [5.0, 5.0]]))
    assert params["M"].tolist() == [[0.0, 0.0]]  # the best pair says nothing
    params, _ = search.step(search.initial((1, 2)), TWO, np.array([[1.0, 9.0], [5.0, 5.0]]))
    np.testing.assert_allclose(params["M"], [[-1.5, 0.0]])  # −stride nu δ_0


def test_clipup() -> None:
    search = ClipUp(nu=0.5, N=2, speed=0.1)
    g = np.array([[-2.0, 4.0]])  # (1 − 3) δ_0 + (2 − 0) δ_1
    v_max = 0.1 * 0.5 * math.sqrt(2.0)
    rewards = np.array([[1.0, 3.0], [2.0, 0.0]])
    first, _ = search.step(search.initial((1, 2)), TWO, rewards)
    np.testing.assert_allclose(first["M"], 0.5 * v_max * g / math.sqrt(20.0))
    second, _ = search.step(first, TWO, rewards)  # 0.9 · ½ + ½ of v_max is not clipped
    np.testing.assert_allclose(second["velocity"], 0.95 * v_max * g / math.sqrt(20.0))
    third, telemetry = search.step(second, TWO, rewards)  # 0.9 · 0.95 + ½ is
    np.testing.assert_allclose(third["velocity"], v_max * g / math.sqrt(20.0))
    assert telemetry["update_norm"] == pytest.approx(v_max)


def test_es() -> None:
    assert centred_ranks(np.array([3.0, 1.0, 2.0])).tolist() == [0.5, -0.5, 0.0]
    assert centred_ranks(np.array([1.0, 1.0, 2.0])).tolist() == [-0.25, -0.25, 0.5]
    search = ES(alpha=0.1, nu=0.5, N=2, l2=0.0)
    # ranks of [[1, 3], [2, 0]] are [[−1/6, ½], [1/6, −½]]; g = (−2/3 δ_0 + 2/3 δ_1) / 4
    params, telemetry = search.step(search.initial((1, 2)), TWO, np.array([[1.0, 3.0], [2.0, 0.0]]))
    assert telemetry["gradient_norm"] == pytest.approx(math.hypot(1.0 / 6.0, 1.0 / 3.0))
    np.testing.assert_allclose(params["M"], [[-0.1, 0.1]], rtol=1e-5)  # Adam's first step is alpha along the signs


def test_cem() -> None:
    search = CEM(nu=2.0, N=3, b=2, extra=0.01, decay=0.5, extra_least=0.001)
    deltas = [*TWO, np.array([[3.0, 0.0]])]
    params, _ = search.step(search.initial((1, 2)), deltas, np.array([[5.0], [1.0], [4.0]]))
    np.testing.assert_allclose(params["M"], [[4.0, 0.0]])  # 2 · (1 + 3)/2
    np.testing.assert_allclose(params["variance"], [[4.0 * 1.0 + 0.01, 0.01]])
    assert float(params["extra"]) == 0.005


def quadratic(x: Any) -> float:
    return -float(np.sum(np.array([1.0, 4.0, 9.0, 16.0]) * (x.ravel() - 1.0) ** 2))


def tell(independent: Any, search: Any, params: Any, deltas: Any, rewards: Any) -> None:
    """The better candidate of each pair, as a population."""
    better = [
        (search.candidate(params, delta, 1 if plus >= minus else -1).ravel(), -max(plus, minus))
        for delta, (plus, minus) in zip(deltas, rewards, strict=True)
    ]
    independent.tell(better)


@pytest.mark.parametrize("make", [CMA, SepCMA])
def test_covariances_beside_an_independent_implementation(make: Any) -> None:
    """From the same samples: the same mean, step size and covariance for 30 iterations on a quadratic. cmaes is told
    the weights and, for the diagonal form, the learning rates, which it takes from another publication."""
    search, d, N = make(nu=0.3, N=8), 4, 8
    params = search.initial((2, 2))
    full = make is CMA
    other: Any = (cmaes.CMA if full else cmaes.SepCMA)(mean=np.zeros(d), sigma=0.3, population_size=N)
    weights = ranking.log_weights(N // 2)
    if full:
        other._weights[N // 2 :] = 0.0  # no negative weights
        np.testing.assert_allclose(other._weights[: N // 2], weights)
    else:
        mueff = 1.0 / float(np.sum(weights**2))
        c_c, c_1, c_mu = learning_rates(d, mueff)
        c_1 *= (d + 2.0) / 3.0
        other._weights, other._mu_eff, other._mu = weights, mueff, N // 2
        other._cc, other._c1, other._cmu = c_c, c_1, min(1.0 - c_1, c_mu * (d + 2.0) / 3.0)
        other._c_sigma = (mueff + 2.0) / (d + mueff + 5.0)
        other._d_sigma = 1.0 + other._c_sigma + 2.0 * max(0.0, math.sqrt((mueff - 1.0) / (d + 1.0)) - 1.0)
    for j in range(30):
        deltas = Directions(1, j, N, (2, 2))
        rewards = np.array([[quadratic(search.candidate(params, delta, sign)) for sign in (1, -1)] for delta in deltas])
        tell(other, search, params, deltas, rewards)
        params, _ = search.step(params, deltas, rewards)
        np.testing.assert_allclose(params["M"].ravel(), other._mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(params["nu"], other._sigma, rtol=1e-9)
        np.testing.assert_allclose(params["C"] if full else params["C"].ravel(), other._C, rtol=1e-8, atol=1e-12)
    assert quadratic(params["M"]) > -1e-2


def test_the_square_root_is_one() -> None:
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 5))
    C = B @ B.T
    A = square_root(C)
    np.testing.assert_allclose(A, A.T)
    np.testing.assert_allclose(A @ A, C)


@pytest.mark.parametrize("search", [CSA(N=3), CMA(N=3), SepCMA(N=3), CEM(N=3)])
def test_equal_rewards_change_nothing(search: Any) -> None:
    params = search.initial((1, 2))
    after, _ = search.step(params, [*TWO, TWO[0]], np.full((3, len(search.signs)), 7.0))
    assert all(after[name] is params[name] for name in params)
