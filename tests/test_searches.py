"""One contract for every search: pure, complete in its arrays, and described by its settings."""

from dataclasses import FrozenInstanceError, fields, make_dataclass
from typing import Any

import numpy as np
import pytest

import ars
from ars import searches
from ars.config import Config, shared_settings
from ars.errors import SearchError, SettingError
from ars.records import SHARED
from ars.searches import SEARCHES, make_search, search_class, search_name, search_settings
from ars.settings import own_fields, setting

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


def test_it_learns_cartpole(search: Any) -> None:
    """M = 0 lasts some 10 steps of 500."""
    settings: dict[str, Any] = {"protocol": "paper", "eval_every": 1, "eval_episodes": 3, "seed": 1, "workers": 1}
    *_, last = ars.train("CartPole-v1", search=search_name(search), **settings, until=400.0, iterations=20)
    assert last.eval_mean is not None
    assert last.eval_mean >= 400.0


def test_an_unregistered_search_is_one_sentence() -> None:
    class Other:
        pass

    with pytest.raises(SettingError, match="not registered"):
        search_name(Other())  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="search = 'other' is unknown: choose ars"):
        search_class("other")


# -- what a search must keep to --------------------------------------------------------------------------------------


def broken(**members: Any) -> Any:
    """ARS with other members, under the name of ARS."""
    return type("Broken", (search_class("ars"),), members)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"size": lambda self, params: 0}, "size returned 0"),
        ({"size": lambda self, params: 2.0}, "size returned 2.0"),
        ({"initial": lambda self, shape: {"M": np.zeros(3)}}, r"no float64 array M of shape \(2, 3\)"),
        ({"initial": lambda self, shape: {"M": np.zeros(shape), "x": np.array(-np.inf)}}, "not finite"),
        ({"step": lambda self, *_: ({"M": np.zeros((2, 3), int)}, {})}, "no float64 array M"),
        ({"step": lambda self, *_: ({"M": np.zeros((2, 4))}, {})}, "no float64 array M"),
        ({"step": lambda self, *_: ({"M": np.zeros((2, 3)), "more": np.zeros(1)}, {})}, "more"),
        ({"step": lambda self, *_: ({"M": np.zeros((2, 3))}, {"x": np.int64(1)})}, "telemetry is a float"),
        ({"step": lambda self, *_: ({"M": np.zeros((2, 3))}, {"seconds": 1.0})}, "reports seconds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_search_that_breaks_the_contract_is_named_at_once(
    members: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when its checkpoint cannot be read."""
    made = broken(**members)
    monkeypatch.setattr(searches, "_load", lambda name: made)
    with pytest.raises(SearchError, match=words):
        list(ars.train("small_envs:Drift", search=made(N=2), iterations=2, eval_every=0))


def test_telemetry_may_have_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN is null in the records."""
    made = broken(step=lambda self, *_: ({"M": np.zeros((2, 3))}, {"x": float("nan")}))
    monkeypatch.setattr(searches, "_load", lambda name: made)
    [record] = ars.train("small_envs:Drift", search=made(N=2), iterations=1, eval_every=0)
    assert record.to_dict()["x"] is None


@pytest.mark.parametrize(
    ("kind", "default", "rules", "words"),
    [
        ("int", 1, {"least": 1}, "must be an int"),  # as `from __future__ import annotations` leaves it
        (list, 1, {}, "must be an int"),
        (int, 1, {}, "needs the least value"),
    ],
)
def test_settings_that_no_flag_can_be_made_of_are_named(
    kind: Any, default: Any, rules: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x", "H", "name"):
        given = setting(default, help="A number.", **(rules if name == "x" else {"least": 1}))
        cls = make_dataclass("Made", [(name, kind if name == "x" else int, given)], frozen=True, kw_only=True)
        monkeypatch.setitem(SEARCHES, "made", "ars:Made")
        monkeypatch.setattr("ars.searches.ars.Made", cls, raising=False)
        with pytest.raises(SearchError, match=words if name == "x" else "name that the configuration needs"):
            search_class("made")


def test_the_names_of_the_configuration_are_reserved() -> None:
    assert {f.name for f in fields(Config)} <= set(searches.RESERVED)


def test_what_is_no_search_is_one_sentence() -> None:
    for wrong in (search_class("ars"), ["x"], 5, object()):
        with pytest.raises(SettingError, match="search"):
            ars.train("small_envs:Drift", search=wrong, iterations=1)
