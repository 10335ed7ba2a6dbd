"""One contract for every search: pure, complete in its arrays, and described by its settings."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import ars
from ars.config import shared_settings
from ars.errors import SettingError
from ars.records import SHARED
from ars.searches import SEARCHES, make_search, search_class, search_name, search_settings
from ars.settings import own_fields

SHAPE = (2, 3)


@pytest.fixture(params=list(SEARCHES))
def search(request: pytest.FixtureRequest) -> Any:
    return search_class(request.param)()


def rollouts(search: Any, params: Any, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    size = search.size(params)
    return rng.standard_normal((size, *SHAPE)), rng.standard_normal((size, len(search.signs)))


def bits(params: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in params.items()}


def test_settings_are_declared_frozen_and_round_trip(search: Any) -> None:
    assert [f.name for f in own_fields(search)] == [f.name for f in fields(search)]
    assert not set(search_settings(search)) & set(shared_settings())
    assert make_search(search_name(search), search_settings(search)) == search
    assert hash(search) == hash(make_search(search_name(search), search_settings(search)))
    with pytest.raises(FrozenInstanceError):
        setattr(search, fields(search)[0].name, 1)
    with pytest.raises(SettingError, match="missing or unknown"):
        make_search(search_name(search), {})


def test_parameters_are_named_float64_arrays_that_keep_their_shapes(search: Any) -> None:
    params = search.initial(SHAPE)
    assert params["M"].shape == SHAPE
    shapes = {name: (array.shape, array.dtype) for name, array in params.items()}
    assert all(dtype == np.float64 for _, dtype in shapes.values())
    for seed in range(3):
        deltas, rewards = rollouts(search, params, seed)
        params, telemetry = search.step(params, deltas, rewards)
        assert {name: (array.shape, array.dtype) for name, array in params.items()} == shapes
        assert not set(telemetry) & set(SHARED)
        assert all(np.isfinite(value) for value in telemetry.values())


def test_candidates_and_steps_are_pure(search: Any) -> None:
    """The same arguments give the same bits, and are left as they were: any worker can make any candidate."""
    params = search.initial(SHAPE)
    deltas, rewards = rollouts(search, params)
    before = bits(params), deltas.tobytes(), rewards.tobytes()
    once, again = (search.step(params, deltas, rewards) for _ in range(2))
    assert (bits(once[0]), once[1]) == (bits(again[0]), again[1])
    for sign in search.signs:
        made = [search.candidate(params, deltas[0], sign) for _ in range(2)]
        assert made[0].tobytes() == made[1].tobytes()
        assert made[0].shape == SHAPE
        assert made[0].any()
    assert (bits(params), deltas.tobytes(), rewards.tobytes()) == before


def test_a_direction_that_was_not_finite_does_not_count(search: Any) -> None:
    """D3."""
    params = search.initial(SHAPE)
    deltas, rewards = rollouts(search, params)
    rewards[0, 0] = np.nan
    changed = deltas.copy()
    changed[0] = 1e6
    assert bits(search.step(params, deltas, rewards)[0]) == bits(search.step(params, changed, rewards)[0])


def test_it_approaches_the_optimum_of_lqr(search: Any) -> None:
    *_, last = ars.train("lqr", search=search_name(search), iterations=300, seed=1, eval_every=0)
    assert last.relative_cost < 0.5


def test_an_unregistered_search_is_one_sentence() -> None:
    class Other:
        pass

    with pytest.raises(SettingError, match="not registered"):
        search_name(Other())  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="search = 'other' is unknown: choose ars"):
        search_class("other")
