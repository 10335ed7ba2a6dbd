"""Beyond Algorithm 2: steady policies, whose statistics change alone; more directions while episodes are short; short
horizons at first."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import ars
from ars.errors import SettingError
from ars.mirror import Mirror
from ars.moments import Moments
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.searches import SEARCHES
from ars.steady import orthonormal, scale, steady_mean


def moments_of(x):
    return Moments(np.asarray(len(x), dtype=np.int64), x.mean(0), ((x - x.mean(0)) ** 2).sum(0))


def restated(M, mu, before, after, mirror=None):
    M = M * scale(before, after)
    return M, steady_mean(M, mu, after, mirror)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 9))
def test_the_policy_stays_the_same(seed, p, n):
    rng = np.random.default_rng(seed)
    M, mu, x = rng.normal(size=(p, n)), rng.normal(size=n), 3.0 * rng.normal(size=(20, n)) + 1.0
    before, after = moments_of(3.0 * rng.normal(size=(50, n))), moments_of(x)
    assume(scale(before, after).max() < 2.0)
    new, moved = restated(M, mu, before, after)
    old = [LinearPolicy(M, mu, before.freeze()[1], {}).act(state) for state in x]
    assert np.allclose(old, [LinearPolicy(new, moved, after.freeze()[1], {}).act(state) for state in x], atol=1e-9)


def test_by_hand():
    """One action that sees the first of two entries: its mean stays, the other's moves; the gain 3 / 1 stays 6 / 2."""
    before = Moments(np.asarray(4), np.array([1.0, 1.0]), np.array([4.0, 4.0]))  # sigma = 1, 1
    after = Moments(np.asarray(4), np.array([5.0, 7.0]), np.array([16.0, 9.0]))  # sigma = 2, 1.5
    M, mu = restated(np.array([[3.0, 0.0]]), np.array([1.0, 1.0]), before, after)
    assert M.tolist() == [[6.0, 0.0]]
    assert mu.tolist() == [1.0, 7.0]


def test_what_unknown_statistics_led_to_is_not_kept_whole():
    """A deviation that grows tenfold takes M along twofold, unless there were no statistics before, only sigma = 1."""
    one, ten = (Moments(np.asarray(4), np.zeros(2), np.array([4.0, 4.0 * s * s])) for s in (1.0, 10.0))
    assert scale(one, ten).tolist() == [1.0, 2.0]
    assert scale(ten, one).tolist() == [1.0, 0.1]
    assert scale(Moments.empty(2), ten).tolist() == [1.0, 10.0]


def test_without_a_policy_the_mean_is_that_of_the_states():
    after = moments_of(np.random.default_rng(1).normal(size=(9, 3)))
    assert steady_mean(np.zeros((2, 3)), np.ones(3), after).tolist() == after.mean.tolist()


def test_what_is_ignored_has_no_effect():
    """The second coordinate was constant, and M is free there: it starts again from 0."""
    before = Moments(np.asarray(4), np.zeros(2), np.array([4.0, 0.0]))
    after = Moments(np.asarray(4), np.ones(2), np.array([4.0, 4.0]))
    M, mu = restated(np.array([[1.0, 99.0]]), np.zeros(2), before, after)
    assert M.tolist() == [[1.0, 0.0]]
    assert mu.tolist() == [0.0, 1.0]


def test_dependent_rows_count_once():
    row = np.array([1.0, 2.0, 3.0])
    assert len(orthonormal(np.array([row, 2 * row, np.zeros(3), row + np.array([0.0, 1.0, 0.0])]))) == 2


def test_a_mirror_stays_exact():
    mirror = Mirror((2, 1, -3), (2, 1))
    rng = np.random.default_rng(4)
    M = mirror.project(rng.normal(size=(2, 3)))
    order, signs = mirror.states
    after = moments_of(rng.normal(size=(30, 3))).symmetric(order, signs)
    mu = steady_mean(M, rng.normal(size=3), after, mirror)
    assert mu.tolist() == (signs * mu[order]).tolist()


@pytest.mark.parametrize("average", [0, 3])
def test_in_training_each_iteration_starts_from_the_policy_that_the_step_chose(average):
    """With a step of nothing (alpha → 0) the policy must not move although the statistics do."""
    tiny = {"alpha": 1e-300, "variant": "V2", "nu": 0.3, "N": 2}
    states = np.random.default_rng(0).normal(size=(5, 11))
    start = ars.LinearPolicy(np.random.default_rng(1).normal(size=(3, 11)), np.zeros(11), np.ones(11), {})
    for steady in (True, False):
        records = list(
            ars.train("Hopper-v1", **tiny, steady=steady, start=start, start_weight=10, average=average, iterations=3,
                      workers=1, eval_every=0)
        )  # fmt: skip
        actions = [[record.policy.act(x) for x in states] for record in records]
        assert records[0].state.moments.count < records[-1].state.moments.count
        assert np.allclose(actions[0], actions[-1], rtol=1e-9) == steady


def test_all_but_the_papers_search_are_steady_unless_told_otherwise():
    for name in SEARCHES:
        config = make_config("Hopper-v1", H=1000, shift=1.0, search=name, variant="V2" if name == "ars" else None)
        assert config.steady == (name != "ars")
        other = replace(config, steady=not config.steady)
        assert other.label == f"{config.label}-{'steady' if name == 'ars' else 'running'}"
    assert not make_config("lqr", H=100, shift=0.0, search="csa").steady


def test_it_needs_statistics():
    with pytest.raises(SettingError, match="steady = True needs statistics, and V1-steady has none"):
        next(ars.train("Hopper-v1", variant="V1", steady=True, iterations=1))


def test_a_run_resumes_to_the_bit(tmp_path):
    settings = {"search": "csa", "N": 3, "average": 2, "workers": 1, "seed": 3, "least_timesteps": 300}
    whole = list(ars.train("Hopper-v1", **settings, iterations=4))[-1]
    list(ars.train("Hopper-v1", **settings, iterations=2, out=tmp_path / "run"))
    resumed = list(ars.resume(tmp_path / "run", iterations=4, workers=1))[-1]
    assert resumed.state.mu.tobytes() == whole.state.mu.tobytes()
    assert resumed.policy.to_bytes() == whole.policy.to_bytes()


def test_short_episodes_get_more_directions(tmp_path):
    """An iteration takes at least so many timesteps, judged by the episodes of the one before, also after a resume."""
    settings = {"search": "csa", "N": 3, "growth": 0.0, "seed": 3, "workers": 1, "eval_every": 0}
    records = list(ars.train("Hopper-v1", **settings, least_timesteps=2000, iterations=4))
    sizes = [int(record.N_now) for record in records]
    wanted = [math.ceil(2000 / (2 * record.length_mean)) for record in records[:-1]]
    assert sizes == [3, *(max(3, size) for size in wanted)]
    assert max(sizes) > 3
    assert records[-1].episodes == 2 * sum(sizes)
    list(ars.train("Hopper-v1", **settings, least_timesteps=2000, iterations=2, out=tmp_path / "run"))
    resumed = list(ars.resume(tmp_path / "run", iterations=4, workers=1))[-1]
    assert resumed.policy.to_bytes() == records[-1].policy.to_bytes()
    plain = list(ars.train("Hopper-v1", **settings, least_timesteps=0, iterations=2))
    assert [int(record.N_now) for record in plain] == [3, 3]


def test_a_horizon_that_grows(tmp_path):
    """H = 80 and a ramp of 3 whole episodes: 20 steps at first, 80 from 240 timesteps on; 2 · 2 rollouts each."""
    settings = {"search": "csa", "N": 2, "H": 80, "ramp": 3, "least_timesteps": 0, "seed": 3, "workers": 1}
    settings |= {"eval_every": 0}
    records = list(ars.train("HalfCheetah-v1", **settings, iterations=4))
    assert [int(record.length_mean) for record in records] == [20, 40, 80, 80]  # after 0, 80, 240 and 560 timesteps
    list(ars.train("HalfCheetah-v1", **settings, iterations=1, out=tmp_path / "run"))
    resumed = list(ars.resume(tmp_path / "run", iterations=4, workers=1))[-1]
    assert resumed.policy.to_bytes() == records[-1].policy.to_bytes()
    config = make_config("HalfCheetah-v1", H=80, shift=0.0, search="csa")
    assert config.ramp == 0
    assert "ramp" not in config.to_dict()  # older files stay as they are


def test_searches_that_rank_take_whole_episodes_at_least():
    assert make_config("Hopper-v1", H=200, shift=1.0, search="csa").least_timesteps == 1000
    assert make_config("Hopper-v1", H=200, shift=1.0).least_timesteps == 0
    assert make_config("Hopper-v1", H=200, shift=1.0, search="es").least_timesteps == 0
