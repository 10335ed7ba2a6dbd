"""The mirror of left and right: projected directions, moments, and policies that every search keeps symmetric."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars.errors import SettingError
from ars.mirror import Mirror
from ars.moments import Moments
from ars.noise import Directions, direction
from ars.policy import LinearPolicy
from ars.searches import SEARCHES
from ars.training import training_batch
from test_observe import rows

SMALL: dict[str, Any] = {"N": 4, "eval_every": 0, "seed": 5, "H": 30, "workers": 1}
BOTH = Mirror((2, 1, -3), (2, 1))  # two legs that swap, and a lateral coordinate


def image(axis: tuple[int, ...], x: Any) -> Any:
    order = np.abs(axis) - 1
    return np.sign(axis) * x[..., order]


def test_directions_by_hand() -> None:
    delta = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_allclose(BOTH.image(delta), [[5.0, 4.0, -6.0], [2.0, 1.0, -3.0]])
    root = np.sqrt(2.0)
    np.testing.assert_allclose(BOTH.project(delta), np.array([[6.0, 6.0, -3.0], [6.0, 6.0, 3.0]]) / root)
    alone = Mirror((1, -2), (1, -2)).project(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(alone, [[1.0, 0.0], [0.0, 4.0]])  # its own image, or the negative of it


def test_directions_are_symmetric_and_standard_normal() -> None:
    drawn = Directions(1, 0, 4000, (2, 3), mirror=BOTH)
    deltas = np.stack([drawn[k] for k in range(4000)])
    np.testing.assert_array_equal(BOTH.image(deltas), deltas)
    np.testing.assert_allclose(deltas.std(axis=0), 1.0, atol=0.05)
    np.testing.assert_array_equal(drawn[3], BOTH.project(direction(1, 0, 3, 2, 3)))


def test_moments_are_those_of_states_and_images() -> None:
    states = np.random.default_rng(2).standard_normal((50, 3)) + 1.0
    both = np.concatenate([states, image(BOTH.observation, states)])
    alone = Moments(np.asarray(50), states.mean(axis=0), 50 * states.var(axis=0))
    made = alone.symmetric(*BOTH.states)
    np.testing.assert_allclose(made.mean, both.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(made.m2 / 50, both.var(axis=0))
    assert made.count == 50


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_keeps_it(search: str) -> None:
    *_, record = ars.train("Walker2d-v1", search=search, mirror=True, iterations=4, **SMALL)
    policy = record.policy
    mirror = Mirror.of(policy.task)
    assert mirror is not None
    assert mirror.keeps(policy.M, policy.mu, policy.sigma)
    if search != "cma":  # which multiplies by a matrix: symmetric up to rounding
        np.testing.assert_array_equal(mirror.image(policy.M), policy.M)
    assert np.abs(policy.M).max() > 0.0
    x = np.random.default_rng(1).standard_normal((9, 17))
    np.testing.assert_allclose(policy.act(image(mirror.observation, x)), image(mirror.action, policy.act(x)), rtol=1e-9)


def test_with_a_subset_and_resumed(tmp_path: Path) -> None:
    settings = {**SMALL, "mirror": True, "observe": "qpos,qvel", "noise": "table", "table_size": 5000}
    list(ars.train("Ant-v1", **settings, iterations=3, out=tmp_path / "one"))
    list(ars.train("Ant-v1", **{**settings, "workers": 2}, iterations=1, out=tmp_path / "two"))
    list(ars.resume(tmp_path / "two", iterations=3, workers=1))
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
    assert (tmp_path / "one/policy.npz").read_bytes() == (tmp_path / "two/policy.npz").read_bytes()
    policy = LinearPolicy.load(tmp_path / "one/policy.npz")
    mirror = Mirror.of(policy.task)
    assert mirror is not None
    assert mirror.shape == (8, 27)
    np.testing.assert_array_equal(mirror.image(policy.M), policy.M)
    with pytest.raises(SettingError, match="it has 5 without 11, its mirror image"):
        ars.train("Ant-v1", **{**settings, "observe": "0-5"})


def test_sep_cma_does_not_adapt_what_the_mirror_keeps_at_zero() -> None:
    """Otherwise its variance would shrink without end, and axis_ratio grow to infinity."""
    *_, record = ars.train("Humanoid-v1", **SMALL, search="sep-cma", mirror=True, observe="qpos,qvel", iterations=3)
    M, C = record.state.params["M"], record.state.params["C"]
    kept = M == 0.0
    assert 0 < kept.sum() < M.size
    assert (C[kept] == 1.0).all()
    assert (C[~kept] != 1.0).all()


def test_a_start_must_be_symmetric() -> None:
    *_, record = ars.train("Walker2d-v1", iterations=1, **SMALL)
    with pytest.raises(SettingError, match="is not symmetric"):
        ars.train("Walker2d-v1", **SMALL, mirror=True, start=record.policy)
    *_, record = ars.train("Walker2d-v1", iterations=2, mirror=True, **SMALL)
    list(ars.train("Walker2d-v1", **SMALL, mirror=True, iterations=1, start=record.policy))


def test_what_is_not_a_mirror_is_refused() -> None:
    for axis in ((1, 1), (0, 1), (2, 3, 1), (-2, 1), (1.0, 2)):
        with pytest.raises(ValueError, match="mirror"):
            Mirror(axis, (1,))  # type: ignore[arg-type]
    session = ars.sessions.new_session("Walker2d-v1", {"mirror": True}, workers=1, stop=ars.stopping.Stop(iterations=1))
    with pytest.raises(SettingError, match="contradict"):  # it is not forgotten in silence
        training_batch(session.config, session.state)
    session.close_executor()
