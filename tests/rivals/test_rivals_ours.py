"""Our searches as rivals: the training of `ars train`, and evaluations that touch nothing."""

from typing import Any

import pytest

from ars import train
from ars.noise import Key, Stream
from ars.rivals import ours
from ars.rivals.curve import Point
from ars.rivals.roster import Spec
from ars.tasks import make


def points_of(spec: Spec) -> tuple[list[Point], Any]:
    points: list[Point] = []
    return points, ours.learn(spec, points.append)


def test_the_policy_is_that_of_ars_train(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the same timesteps, and its evaluations are ten episodes of the stream TEST, by the task's own reward."""
    monkeypatch.setattr(ours, "EVERY", 4000)
    spec = Spec("ars", "Swimmer-v1", 5, 10_000)
    points, ending = points_of(spec)
    assert [point.timesteps for point in points] == [4000, 8000, 10_000]  # two rollouts of 1000 an iteration
    assert [point.episodes for point in points] == [4, 8, 10]
    *_, last = train("Swimmer-v1", variant="V1", seed=5, timesteps=10_000, eval_every=0, workers=1)
    task = make("Swimmer-v1")
    keys = [Key(5, Stream.TEST, 3, k) for k in range(10)]
    expected = [task.rollout(last.policy, key, H=1000, shift=0.0, gather=False).reward for key in keys]
    assert list(points[-1].rewards) == expected
    assert points[-1].mean == pytest.approx(sum(expected) / 10)
    assert points[0].cpu_seconds < points[-1].cpu_seconds
    assert ending.measures["parameters"] == 16
    assert ending.measures["bytes"] == 8 * (16 + 2 * 8)
    assert ending.measures["microseconds"] > 0
    assert ending.settings["alpha"] == 0.01  # V1
    assert "eval_every" not in ending.settings


def test_a_long_iteration_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration of ES, 20 rollouts, passes many marks; the next mark is beyond them all."""
    monkeypatch.setattr(ours, "EVERY", 1000)
    monkeypatch.setattr(ours, "EPISODES", 1)
    points, _ = points_of(Spec("es", "Swimmer-v1", 5, 30_000))
    assert [point.timesteps for point in points] == [20_000, 40_000]
