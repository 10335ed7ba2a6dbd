"""Each statistic against an answer worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ars.statistics import (
    first_reach,
    mean_of_all,
    median_interval,
    percentile,
    performance_profile,
    probability_of_chance,
    probability_of_improvement,
    r_max,
    resample,
    success_interval,
    success_rate,
)


def test_first_reach_takes_the_first_evaluation_at_the_threshold() -> None:
    assert first_reach([160, 320, 480], [1.0, 5.0, 9.0], 5.0) == 320  # equal counts
    assert first_reach([160, 320, 480], [6.0, 1.0, 9.0], 5.0) == 160  # even if it falls again


def test_never_reached_is_infinite_and_stays_so() -> None:
    assert first_reach([160, 320], [1.0, 2.0], 5.0) == np.inf
    assert first_reach([], [], 5.0) == np.inf
    assert mean_of_all([100.0, np.inf, 200.0]) == np.inf
    assert mean_of_all([100.0, 300.0, 200.0]) == 200.0


def test_success_rate() -> None:
    assert success_rate([100, 200, np.inf, 400]) == 0.75


def test_success_interval_is_wilsons() -> None:
    z, n, k = 1.959963984540054, 20, 15  # (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)
    p, middle = k / n, k / n + z**2 / (2 * n)
    width = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = (middle - width) / (1 + z**2 / n), (middle + width) / (1 + z**2 / n)
    assert success_interval([1.0] * 15 + [np.inf] * 5) == pytest.approx(expected)


def test_percentiles_never_interpolate_towards_infinity() -> None:
    values = [4.0, 1.0, np.inf, 3.0, 2.0]  # sorted: 1 2 3 4 inf
    assert percentile(values, 50) == 3.0
    assert percentile(values, 20) == 1.0
    assert percentile(values, 80) == 4.0
    assert percentile(values, 81) == np.inf
    np.testing.assert_array_equal(percentile([[1, 5], [2, 6], [3, 7]], [50, 100]), [[2, 6], [3, 7]])


def test_r_max_by_hand() -> None:
    rewards = [[1, 5, 2, 9], [3, 1, 6, 9], [2, 3, 4, 9]]  # mean curve: 2, 3, 4, 9
    timesteps = [[10, 20, 30, 40], [10, 25, 35, 45], [10, 20, 30, 40]]
    assert r_max(rewards, timesteps, 25) == 3.0  # the second seed spent 25 at i = 1: max(2, 3)
    assert r_max(rewards, timesteps, 26) == 4.0  # i = 2
    assert r_max(rewards, timesteps, 45) == 9.0
    assert r_max(rewards, timesteps, 46) is None  # nobody has spent it: unknown


def test_r_max_is_the_maximum_of_the_mean_and_not_the_mean_of_maxima() -> None:
    assert r_max([[10, 0], [0, 10]], [[1, 2], [1, 2]], 2) == 5.0


def test_performance_profile_by_hand() -> None:
    np.testing.assert_allclose(performance_profile([1, 2, 3, 4], [0, 1, 2.5, 4]), [1, 0.75, 0.5, 0])


def test_probability_of_improvement_by_hand() -> None:
    assert probability_of_improvement([3, 4], [1, 2]) == 1.0
    assert probability_of_improvement([1, 4], [2, 3]) == 0.5  # 4 beats both, 1 none
    assert probability_of_improvement([1, 2], [1, 2]) == 0.5  # one win, two ties, one loss


def test_probability_of_chance_by_hand() -> None:
    """U = 4 of 4, its mean 2 and variance 2 · 2 · 5 / 12; half a point for continuity: z = 1.5 / 1.291 = 1.162."""
    assert (
        probability_of_chance([3, 4], [1, 2])
        == probability_of_chance([1, 2], [3, 4])
        == pytest.approx(0.2453, abs=1e-4)
    )
    assert probability_of_chance([1, 4], [2, 3]) == 1.0
    assert probability_of_chance([5, 5], [5]) == 1.0  # no statistic


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_improvement_is_antisymmetric(x: list[float], y: list[float]) -> None:
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1.0)


def test_resample_takes_the_latest_evaluation() -> None:
    found = resample([10, 20], [1.0, 2.0], [5, 10, 15, 20, 25])
    np.testing.assert_array_equal(found, [np.nan, 1, 1, 2, 2])
    np.testing.assert_array_equal(resample([], [], [25]), [np.nan])


def test_interval_of_the_median_by_order_statistics() -> None:
    """Of 20 values the 6th and the 15th: P(6 <= Binomial(20, 1/2) <= 14) = 0.959; of 5 there is none at 95%."""
    values = [*range(1, 15), *[np.inf] * 6]
    assert median_interval(values) == (6.0, np.inf)
    assert median_interval(range(1, 7)) == (1.0, 6.0)
    assert all(map(np.isnan, median_interval([1.0] * 5)))
