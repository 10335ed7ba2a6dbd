"""Where a quantity is drawn: with the evaluations if only their records have it. Where fresh starts trained."""

from typing import Any

from ars.page.charts import fresh_starts, tables


def record(i: int, **more: Any) -> dict[str, Any]:
    shared = {"iteration": i, "episodes": 4 * i, "timesteps": 40 * i, "seconds": 1.0 * i, "train_seconds": 1.0}
    return {**shared, "reward_mean": 0.0, "length_mean": 10.0, "nu_now": 0.1, **more}


def test_terms_of_a_reward_are_curves_over_the_evaluations() -> None:
    records = [record(i, **({"eval_mean": 1.0, "reward_Forward": float(i)} if i % 3 == 1 else {})) for i in range(1, 8)]
    found = tables(records, 100)
    assert found["evaluations"]["columns"]["reward_Forward"] == [1.0, 4.0, 7.0]
    assert "reward_Forward" not in found["telemetry"]["columns"]
    assert found["telemetry"]["columns"]["nu_now"] == [0.1] * 7


def test_telemetry_stays_where_it_is_if_every_record_has_an_evaluation() -> None:
    found = tables([record(i, eval_mean=1.0) for i in range(1, 4)], 100)
    assert "nu_now" in found["telemetry"]["columns"]
    assert "nu_now" not in found["evaluations"]["columns"]


def test_fresh_starts_are_spans_from_the_record_before() -> None:
    duels = [None, None, 1, 1, None, None, 2, 2, 2]
    records = [record(i, **({"duel": duel} if duel else {})) for i, duel in enumerate(duels, 1)]
    found = fresh_starts(records)
    assert found["episodes"] == [[8, 16], [24, 36]]
    assert found["timesteps"] == [[80, 160], [240, 360]]
    assert fresh_starts(records[:2]) == {"episodes": [], "timesteps": [], "seconds": []}
