"""Durations and speeds, by hand."""

import pytest

from ars.timing import duration, mean_speed, steps_per_second, training_spent


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (0.01234, "0.0123 s"), (45.25, "45.2 s"), (59.4, "59.4 s"), (59.6, "1 min"), (61, "1 min 1 s"),
        (123, "2 min 3 s"), (3599.4, "59 min 59 s"), (3599.6, "1 h"), (3723, "1 h 2 min"), (12600, "3 h 30 min"),
        (86399, "1 d"), (90000, "1 d 1 h"), (6 * 86400, "6 d"), (400 * 86400, "400 d"),
    ],
)  # fmt: skip
def test_durations_have_their_two_largest_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def record(timesteps: int, seconds: float, **more: float | None) -> dict[str, float | None]:
    return {"timesteps": timesteps, "seconds": seconds, **more}


def test_speed_by_train_seconds() -> None:
    """Format 2: an evaluation is no part of train_seconds, so every iteration after the first counts."""
    records = [
        record(100, 9.0, train_seconds=9.0),  # compiles
        record(200, 10.0, train_seconds=1.0),
        record(400, 20.0, train_seconds=2.0, eval_seconds=8.0, eval_mean=5.0),
    ]
    assert [spent[1:] for spent in training_spent(records)] == [(100, 1.0), (200, 2.0)]
    assert mean_speed(records) == 100.0


def test_speed_of_records_without_train_seconds_leaves_evaluations_out() -> None:
    records = [record(100, 1.0), record(200, 2.0), record(300, 12.0, eval_mean=5.0), record(500, 13.0)]
    assert [spent[1:] for spent in training_spent(records)] == [(100, 1.0), (200, 1.0)]
    assert mean_speed(records) == 150.0
    every = [record(100, 1.0, eval_mean=1.0), record(200, 3.0, eval_mean=1.0)]  # nothing else to go by
    assert mean_speed(every) == 50.0
    assert mean_speed([record(0, 0.0), record(100, 1.0, train_seconds=None)]) == 100.0


def test_speed_is_unknown_without_time() -> None:
    assert mean_speed([]) is mean_speed([record(1, 1.0)]) is mean_speed([record(1, 1.0), record(2, 1.0)]) is None
    assert steps_per_second(10, 0.0) is None
