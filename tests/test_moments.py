"""Moments against NumPy, and the tree that lets workers merge their own blocks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ars.moments import Moments, merge_tree, stack


def of(x: Any) -> Moments:
    """The moments of the rows of x, two-pass, by NumPy."""
    x = np.asarray(x, dtype=np.float64)
    return Moments(np.asarray(len(x)), x.mean(axis=0), ((x - x.mean(axis=0)) ** 2).sum(axis=0))


def same_bits(a: Moments, b: Moments) -> bool:
    return bool(a.count == b.count) and a.mean.tobytes() == b.mean.tobytes() and a.m2.tobytes() == b.m2.tobytes()


def test_two_halves_by_hand() -> None:
    """{1, 3} and {5}: mean 3, deviations 4 + 0 + 4."""
    merged = of([[1.0], [3.0]]).merge(of([[5.0]]))
    assert (merged.count, merged.mean.tolist(), merged.m2.tolist()) == (3, [3.0], [8.0])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(0, 10**6))
def test_parts_merged_equal_numpy_on_all(sizes: list[int], seed: int) -> None:
    """Population mean and variance of all rows, however they were cut."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((size, 3)) * [1.0, 1e-3, 1e6] + [0.0, 5.0, -1e6] for size in sizes]
    total = merge_tree(stack([of(part) for part in parts]))
    rows = np.concatenate(parts)
    assert total.count == len(rows)
    np.testing.assert_allclose(total.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total.m2 / total.count, rows.var(axis=0), rtol=1e-9, atol=1e-25)


def test_large_offsets_do_not_cancel() -> None:
    """1e8 ± 1e-3: with Σx² − (Σx)²/n nothing of the variance would be left."""
    rng = np.random.default_rng(0)
    x = 1e8 + 1e-3 * rng.choice([-1.0, 1.0], size=(4096, 1))
    parts = [
        Moments.from_sums(64, block[0], (block - block[0]).sum(axis=0), ((block - block[0]) ** 2).sum(axis=0))
        for block in np.split(x, 64)
    ]
    total = merge_tree(stack(parts))
    assert total.mean[0] == pytest.approx(x.mean(), abs=2e-8)
    assert total.m2[0] / 4096 == pytest.approx(1e-6, rel=1e-3)


def test_iteration_after_iteration_stays_accurate() -> None:
    """A thousand merges of small batches into a large total lose nothing that matters."""
    rng = np.random.default_rng(1)
    batches = rng.standard_normal((1000, 20, 2)) + 1e3
    total = Moments.empty(2)
    for batch in batches:
        total = total.merge(of(batch))
    rows = batches.reshape(-1, 2)
    np.testing.assert_allclose(total.mean, rows.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(total.m2 / total.count, rows.var(axis=0), rtol=1e-10)


def test_merge_with_nothing_is_exact() -> None:
    """A dropped direction contributes nothing, not even rounding; from either side."""
    some = of(np.random.default_rng(2).standard_normal((7, 4)) + 1e6 / 3)
    nothing = Moments.empty(4)
    assert same_bits(some.merge(nothing), some)
    assert same_bits(nothing.merge(some), some)
    assert same_bits(nothing.merge(nothing), nothing)


@given(st.integers(1, 70), st.integers(0, 6), st.integers(0, 10**6), st.floats(0.0, 0.9))
def test_any_aligned_blocks_give_the_same_bits(size: int, q: int, seed: int, empty: float) -> None:
    """A worker may merge its own block of 2**q directions first: the total does not change by a bit."""
    rng = np.random.default_rng(seed)
    parts = [
        Moments.empty(2) if rng.random() < empty else of(rng.standard_normal((rng.integers(1, 9), 2)) + 1e3)
        for _ in range(size)
    ]
    block = 2**q
    blocks = [merge_tree(stack(parts[start : start + block])) for start in range(0, size, block)]
    assert same_bits(merge_tree(stack(blocks)), merge_tree(stack(parts)))


def test_the_tree_is_the_documented_one() -> None:
    """Neighbours level by level, an odd last one moves up: ((0 1)(2 3)) 4, not (((0 1) 2) 3) 4."""
    rng = np.random.default_rng(3)
    p = [of(rng.standard_normal((3, 40))) for _ in range(5)]
    assert same_bits(merge_tree(stack(p)), p[0].merge(p[1]).merge(p[2].merge(p[3])).merge(p[4]))
    one_by_one = p[0].merge(p[1]).merge(p[2]).merge(p[3]).merge(p[4])
    assert not same_bits(merge_tree(stack(p)), one_by_one)  # so this test can tell them apart


def test_each_state_counts_once() -> None:
    """stable-baselines3-contrib merges whole histories again and subtracts only the count: mean and variance drift."""
    first, second, third = (of(np.random.default_rng(seed).standard_normal((50, 2)) + seed) for seed in (4, 5, 6))
    total = first.merge(second).merge(third)
    rows = np.concatenate([np.random.default_rng(s).standard_normal((50, 2)) + s for s in (4, 5, 6)])
    assert total.count == 150
    np.testing.assert_allclose(total.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(total.m2, 150 * rows.var(axis=0), rtol=1e-12)


# -- from_sums -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(0, 10**6), st.sampled_from([0.0, 1e3, -1e8]))
def test_from_sums_around_the_first_state(count: int, seed: int, offset: float) -> None:
    """Sums around one of the states themselves are safe with large offsets."""
    x = np.random.default_rng(seed).standard_normal((count, 2)) + offset
    d = x - x[0]
    moments = Moments.from_sums(count, x[0], d.sum(axis=0), (d * d).sum(axis=0))
    np.testing.assert_allclose(moments.mean, x.mean(axis=0), rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(moments.m2, count * x.var(axis=0), rtol=1e-6, atol=1e-9)
    assert (moments.m2 >= 0).all()


def test_from_sums_of_nothing_is_empty() -> None:
    """An episode that was not finite from the start has a NaN center: it must not get in."""
    moments = Moments.from_sums(0, np.array([np.nan, 1.0]), np.zeros(2), np.zeros(2))
    assert same_bits(moments, Moments.empty(2))


# -- freeze ----------------------------------------------------------------------------------------------------------


def test_before_any_state_mu_is_0_and_sigma_1() -> None:
    """Algorithm 2, line 2."""
    mu, sigma = Moments.empty(3).freeze()
    assert (mu.tolist(), sigma.tolist()) == ([0.0] * 3, [1.0] * 3)


def test_freeze_gives_population_deviations() -> None:
    """{1, 3}: sigma 1; the sample deviation would be √2."""
    mu, sigma = of([[1.0], [3.0]]).freeze()
    assert (mu.tolist(), sigma.tolist()) == ([2.0], [1.0])


def test_a_constant_coordinate_is_ignored() -> None:
    """0/0 reads as 0: sigma is infinite, also when the constant is large and after many merges."""
    rng = np.random.default_rng(7)
    parts = [of(np.column_stack([rng.standard_normal(9), np.full(9, 1234.5678)])) for _ in range(33)]
    _, sigma = merge_tree(stack(parts)).freeze()
    assert np.isfinite(sigma[0])
    assert sigma[1] == np.inf


@pytest.mark.parametrize(("variance", "ignored"), [(0.999e-8, True), (1.001e-8, False), (1e-8, False), (0.0, True)])
def test_the_footnote_s_bound(variance: float, ignored: bool) -> None:
    """Smaller than 1e-8 becomes infinite; 1e-8 itself is not smaller."""
    _, sigma = Moments(np.asarray(1), np.zeros(1), np.array([variance])).freeze()
    assert bool(np.isinf(sigma[0])) is ignored


def test_freeze_does_not_follow_later_merges() -> None:
    """The reference's frozen mean is a live alias of the running one."""
    moments = of([[1.0], [3.0]])
    mu, sigma = moments.freeze()
    moments.merge(of([[100.0], [200.0]]))
    assert (mu.tolist(), sigma.tolist()) == ([2.0], [1.0])
