"""Algorithms 1 and 2, worked by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ars import executors, noise, training
from ars.algorithm import ars_step, brs_step, deviation, finite_directions, top_directions
from ars.executors import SerialExecutor
from ars.moments import Moments
from ars.records import State
from ars.tasks import Rollout
from batches import paper_config

# -- the update, with numbers for pencil and paper -------------------------------------------------------------------

# Two directions in R^(1×2), rewards with mean 2 and population standard deviation 2:
M = np.array([[1.0, 1.0]])
DELTAS = np.array([[[1.0, 0.0]], [[0.0, 2.0]]])
R_PLUS, R_MINUS = np.array([4.0, 0.0]), np.array([0.0, 4.0])
# Σ [r+ − r−] δ = 4·[1, 0] + (−4)·[0, 2] = [4, −8]

# A third direction, put first, that is worse than both (max{3, 1} = 3 < 4):
DELTAS3 = np.array([[[1.0, 1.0]], *DELTAS])
R_PLUS3, R_MINUS3 = np.array([3.0, *R_PLUS]), np.array([1.0, *R_MINUS])


def test_brs_by_hand() -> None:
    """Algorithm 1: alpha/N times the sum; no sigma_R."""
    step = brs_step(M, DELTAS, R_PLUS, R_MINUS, alpha=0.5)
    # (0.5 / 2)·[4, −8] = [1, −2]
    assert step.M.tolist() == [[2.0, -1.0]]
    assert step.used.tolist() == [0, 1]


def test_v1_by_hand() -> None:
    """Algorithm 2 with b = N: alpha/(b sigma_R) times the sum."""
    step = ars_step(M, DELTAS, R_PLUS, R_MINUS, alpha=0.5, b=2)
    # sigma_R of {4, 0, 0, 4} = 2;  0.5 / (2·2)·[4, −8] = [0.5, −1]
    assert step.sigma_R == 2.0
    assert step.M.tolist() == [[1.5, 0.0]]


def test_v1_t_by_hand() -> None:
    """Algorithm 2 with b < N: the worst direction enters neither the sum nor sigma_R, and the divisor is b."""
    step = ars_step(M, DELTAS3, R_PLUS3, R_MINUS3, alpha=0.5, b=2)
    assert step.used.tolist() == [1, 2]
    assert step.sigma_R == 2.0  # of {4, 0, 0, 4}; with 3 and 1 it would be √(16.8/6)
    assert step.M.tolist() == [[1.5, 0.0]]


class OneStep:
    """Episodes of one step from x = (4, 5), paid with the action."""

    name, n, p, H, survival_bonus, releases_gil = "one-step", 2, 1, 1, 0.0, False
    x = np.array([4.0, 5.0])

    def rollout(self, policy: Any, key: Any, *, H: int, shift: float, gather: bool) -> Rollout:
        moments = Moments.from_sums(1, self.x, np.zeros(2), np.zeros(2)) if gather else None
        return Rollout(float(policy.act(self.x)[0]) - shift, 1, moments, True)

    def close(self) -> None: ...


def _iteration(monkeypatch: pytest.MonkeyPatch, variant: str, deltas: list[list[float]], b: int) -> Any:
    """One iteration on OneStep from M = [1, 2] and two states (0, 0) and (2, 4) seen before."""

    def direction(seed: int, j: int, k: int, p: int, n: int, *, table_size: int, mirror: object) -> Any:
        return np.array([deltas[k]])

    monkeypatch.setattr(noise, "direction", direction)
    monkeypatch.setattr(executors.batch, "direction", direction)
    # seen: mu = (1, 2), Sigma_diag = (1, 4), sigma = (1, 2)
    seen = Moments(np.asarray(2), np.array([1.0, 2.0]), np.array([2.0, 8.0]))
    config = paper_config(variant, alpha=0.25, nu=0.5, N=len(deltas), b=b, H=1, shift=0.0, eval_every=0)
    state = State(3, {"M": np.array([[1.0, 2.0]])}, seen, 0, 0)
    records = training.iterate(config, state, SerialExecutor(OneStep), {"H": 1})
    return next(iter(records))


def test_v2_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """V2: the policies see (x − mu)/sigma, with mu and sigma of before; then the statistics take the states in."""
    record = _iteration(monkeypatch, "V2", [[2.0, -2.0]], b=1)
    # (x − mu)/sigma = ((4 − 1)/1, (5 − 2)/2) = (3, 1.5)
    # r+ = (M + 0.5 δ)(3, 1.5) = [2, 1]·(3, 1.5) = 7.5;  r− = [0, 3]·(3, 1.5) = 4.5
    # sigma_R = 1.5;  0.25 / (1·1.5)·3·[2, −2] = [1, −1]
    assert record.sigma_R == 1.5
    assert (record.reward_max, record.reward_mean) == (7.5, 6.0)
    assert record.state.M.tolist() == [[2.0, 1.0]]
    # states since the start: 0, 2, 4, 4 and 0, 4, 5, 5
    assert record.state.moments.count == 4
    assert record.state.moments.mean.tolist() == [2.5, 3.5]
    assert record.state.moments.m2.tolist() == [11.0, 17.0]
    # the policy that is evaluated and saved has the new statistics, of all states
    assert record.policy.mu.tolist() == [2.5, 3.5]
    assert record.policy.sigma.tolist() == [math.sqrt(11 / 4), math.sqrt(17 / 4)]


def test_v2_t_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """V2-t: a direction that is left out of the update still counts in the statistics (2NH states)."""
    record = _iteration(monkeypatch, "V2-t", [[0.0, 1.0], [2.0, -2.0]], b=1)
    # k = 0: [1, 2.5]·(3, 1.5) = 6.75 and [1, 1.5]·(3, 1.5) = 5.25: max 6.75 < 7.5, so k = 1 is used, as above
    assert record.sigma_R == 1.5
    assert record.state.M.tolist() == [[2.0, 1.0]]
    # states since the start: 0, 2, 4, 4, 4, 4 and 0, 4, 5, 5, 5, 5
    assert record.state.moments.count == 6
    assert record.state.moments.mean.tolist() == [3.0, 4.0]
    assert record.state.moments.m2.tolist() == [14.0, 20.0]


def test_v1_and_brs_do_not_normalise(monkeypatch: pytest.MonkeyPatch) -> None:
    """V1 and BRS act on x itself: r± = (M ± 0.5 δ) x."""
    for variant in ("V1", "BRS"):
        record = _iteration(monkeypatch, variant, [[2.0, -2.0]], b=1)
        # [2, 1]·(4, 5) = 13 and [0, 3]·(4, 5) = 15
        assert (record.reward_max, record.reward_mean) == (15.0, 14.0)
        assert record.policy.mu.tolist() == [0.0, 0.0]
        assert record.policy.sigma.tolist() == [1.0, 1.0]


# -- which directions ------------------------------------------------------------------------------------------------


def test_ties_go_to_the_lower_k_and_exactly_b_are_kept() -> None:
    """The reference's percentile cut keeps more or fewer than b directions on ties."""
    r_plus = np.array([1.0, 5.0, 5.0, 0.0, 5.0, 9.0])
    r_minus = np.array([0.0, 0.0, 1.0, 5.0, 5.0, 9.0])
    # maxima: 1, 5, 5, 5, 5, 9
    for b, expected in {1: [5], 2: [1, 5], 3: [1, 2, 5], 4: [1, 2, 3, 5], 6: [0, 1, 2, 3, 4, 5]}.items():
        assert top_directions(r_plus, r_minus, b).tolist() == expected


def test_all_equal_rewards_keep_the_first_b() -> None:
    """A cut by value would keep all or none."""
    assert top_directions(np.ones(7), np.ones(7), 3).tolist() == [0, 1, 2]


def test_highest_maximum_is_kept_not_lowest_minimum() -> None:
    """EvoJAX keeps the directions with the lowest minimum: here that would be k = 0."""
    r_plus, r_minus = np.array([-100.0, 10.0, 3.0]), np.array([2.0, 9.0, 3.0])
    assert top_directions(r_plus, r_minus, 1).tolist() == [1]
    assert top_directions(r_plus, r_minus, 2).tolist() == [1, 2]


def test_a_direction_counts_by_its_better_side() -> None:
    """max{r+, r−}, neither the difference nor the mean."""
    r_plus, r_minus = np.array([6.0, 0.0]), np.array([6.0, 7.0])
    assert top_directions(r_plus, r_minus, 1).tolist() == [1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_directions_are_left_out(bad: float) -> None:
    """NaN from unstable physics must not spread, and +inf must not be the best direction."""
    r_plus, r_minus = np.array([4.0, bad, 0.0, 8.0]), np.array([0.0, 9.0, 4.0, bad])
    assert finite_directions(r_plus, r_minus).tolist() == [0, 2]
    deltas = np.stack([DELTAS[0], np.full((1, 2), 7.0), DELTAS[1], np.full((1, 2), 7.0)])
    for b in (2, 3, 4):  # what is left counts: the mean is over two directions
        step = ars_step(M, deltas, r_plus, r_minus, alpha=0.5, b=b)
        assert step.M.tolist() == [[1.5, 0.0]]
        assert step.used.tolist() == [0, 2]
    assert brs_step(M, deltas, r_plus, r_minus, alpha=0.5).M.tolist() == [[2.0, -1.0]]


# -- sigma_R ---------------------------------------------------------------------------------------------------------


def test_population_deviation_at_b_1() -> None:
    """With the sample deviation (stable-baselines3-contrib) the step at b = 1 would be 0.71 of the paper's."""
    step = ars_step(np.zeros((1, 1)), np.ones((1, 1, 1)), np.array([3.0]), np.array([1.0]), alpha=1.0, b=1)
    # sigma_R of {3, 1} = 1;  1/(1·1)·2 = 2
    assert step.sigma_R == 1.0
    assert step.M.tolist() == [[2.0]]


def test_sigma_R_zero_takes_no_step() -> None:
    """The reference divides by zero."""
    r = np.full(2, 0.1)  # the mean of 0.1s need not be 0.1 in floats
    step = ars_step(M, DELTAS, r, r, alpha=0.5, b=2)
    assert step.sigma_R == 0.0
    assert step.M.tolist() == M.tolist()


@pytest.mark.parametrize("value", [0.1, 1e-300, -3.7, 1e300])
@pytest.mark.parametrize("count", [2, 3, 7, 460])
def test_deviation_of_equal_rewards_is_exactly_zero(value: float, count: int) -> None:
    """A rounded mean would leave a tiny sigma_R, and a step divided by it."""
    assert deviation(np.full(count, value)) == 0.0


def test_sigma_R_is_of_the_rewards_used() -> None:
    """Not of all 2N: the left-out direction's enormous spread would stop all progress."""
    r_plus, r_minus = np.array([4.0, -1e9]), np.array([2.0, -2e9])
    assert ars_step(M, DELTAS, r_plus, r_minus, alpha=0.5, b=1).sigma_R == 1.0


def test_arguments_are_not_changed() -> None:
    """M of the record before must stay what it was."""
    arguments = M.copy(), DELTAS.copy(), R_PLUS.copy(), R_MINUS.copy()
    ars_step(*arguments, alpha=0.5, b=2)
    brs_step(*arguments, alpha=0.5)
    for argument, before in zip(arguments, (M, DELTAS, R_PLUS, R_MINUS), strict=True):
        assert np.array_equal(argument, before)


# -- properties ------------------------------------------------------------------------------------------------------

rewards = st.integers(-1000, 1000).map(float)


@st.composite
def directions(draw: st.DrawFn) -> tuple[Any, Any, Any, int]:
    """deltas, r_plus, r_minus, b with sigma_R > 0."""
    N, p, n = draw(st.integers(2, 9)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    deltas = np.random.default_rng(draw(st.integers(0, 10**6))).standard_normal((N, p, n))
    r_plus = np.array(draw(st.lists(rewards, min_size=N, max_size=N)))
    r_minus = r_plus + np.array(draw(st.lists(st.integers(1, 100), min_size=N, max_size=N)))
    r_plus[::2], r_minus[::2] = r_minus[::2], r_plus[::2].copy()
    return deltas, r_plus, r_minus, draw(st.integers(1, N))


def _step(deltas: Any, r_plus: Any, r_minus: Any, b: int) -> Any:
    return ars_step(np.zeros(deltas.shape[1:]), deltas, r_plus, r_minus, alpha=0.02, b=b).M


@given(directions())
def test_brs_and_v1_differ_exactly_by_sigma_R(case: Any) -> None:
    """Algorithm 2 with b = N is Algorithm 1 with its step divided by sigma_R, and nothing else."""
    deltas, r_plus, r_minus, _ = case
    zero = np.zeros(deltas.shape[1:])
    v1 = ars_step(zero, deltas, r_plus, r_minus, alpha=0.02, b=len(deltas))
    sigma_R = np.std([*r_plus, *r_minus])
    brs = brs_step(zero, deltas, r_plus, r_minus, alpha=0.02 / sigma_R)
    np.testing.assert_allclose(v1.M, brs.M, rtol=1e-12, atol=1e-15)
    assert v1.sigma_R == pytest.approx(sigma_R, rel=1e-13)
    assert v1.sigma_R == brs.sigma_R


@given(directions(), st.randoms(use_true_random=False))
def test_the_order_of_directions_does_not_matter(case: Any, random: Any) -> None:
    """If no maxima are tied: k is a name, nothing more."""
    deltas, r_plus, r_minus, b = case
    r_minus = r_minus + np.arange(len(r_minus)) / 64  # no ties: the integers stay apart by 1/64
    r_plus = np.minimum(r_plus, r_minus - 0.5)
    if len(set(r_minus)) < len(r_minus):
        return
    order = np.array(random.sample(range(len(r_plus)), len(r_plus)))
    np.testing.assert_allclose(
        _step(deltas, r_plus, r_minus, b),
        _step(deltas[order], r_plus[order], r_minus[order], b),
        rtol=1e-10,
        atol=1e-14,
    )


@given(directions(), st.integers(-20, 20))
def test_the_scale_of_rewards_does_not_matter(case: Any, exponent: int) -> None:
    """sigma_R undoes it; by a power of two, to the bit."""
    deltas, r_plus, r_minus, b = case
    scale = 2.0**exponent
    assert np.array_equal(_step(deltas, r_plus, r_minus, b), _step(deltas, scale * r_plus, scale * r_minus, b))


@given(directions(), st.integers(-(10**6), 10**6))
def test_a_constant_added_to_all_rewards_does_not_matter(case: Any, constant: int) -> None:
    """Differences and deviations do not see it, nor does the order of maxima."""
    deltas, r_plus, r_minus, b = case
    np.testing.assert_allclose(
        _step(deltas, r_plus, r_minus, b),
        _step(deltas, r_plus + constant, r_minus + constant, b),
        rtol=1e-7,
        atol=1e-12,
    )


@given(directions())
def test_plus_and_minus_can_be_exchanged(case: Any) -> None:
    """−delta_k is as good a name for the direction."""
    deltas, r_plus, r_minus, b = case
    np.testing.assert_allclose(
        _step(deltas, r_plus, r_minus, b), _step(-deltas, r_minus, r_plus, b), rtol=1e-13, atol=1e-16
    )


@given(directions())
def test_exactly_b_directions_none_worse_than_a_left_out_one(case: Any) -> None:
    """The definition of top directions, over random rewards with many ties."""
    _, r_plus, r_minus, b = case
    r_plus, r_minus = r_plus // 400, r_minus // 400
    used = top_directions(r_plus, r_minus, b)
    best = np.maximum(r_plus, r_minus)
    left_out = sorted(set(range(len(best))) - set(used.tolist()))
    assert len(used) == b
    for k in left_out:
        assert all((best[u], -u) > (best[k], -k) for u in used)
