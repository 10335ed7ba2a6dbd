"""Notes in a run that does not learn: when each symptom is seen, the sentences, and that a resumed run has the same."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import ars
from ars import notes, progress
from ars.config import Config
from ars.page.report import report_data
from ars.policy import LinearPolicy
from ars.records import SYMPTOMS, Record
from ars.run_files import read_run
from ars.searches.ars import ARS
from ars.searches.csa import CSA
from ars.stopping import Stop
from test_observe import DRIFT, rows
from test_progress import record

CONFIG = Config(task="Walker2d-v1", search=ARS(), H=1000, shift=1.0)
PLAIN = Config(task="Pendulum-v1", search=ARS(), H=200, shift=0.0, protocol="paper")
BONUS: dict[str, Any] = {"survival_bonus": 1.0}
TORQUE: dict[str, Any] = {"survival_bonus": 0.0, "actions": {"low": [-2.0], "high": [2.0]}}


def test_the_columns_are_those_of_records() -> None:
    assert tuple(notes.SYMPTOMS) == SYMPTOMS


def lengths_seen(config: Config, definition: dict[str, Any], lengths: list[float]) -> list[float | None]:
    watch = notes.Watch(config, definition)
    return [watch.add(record(j, length)).length_first for j, length in enumerate(lengths, 1)]


def test_it_speaks_once_after_many_short_iterations_in_a_row() -> None:
    lengths = [100.0, *[69.0] * 19, 71.0, *[69.0] * 21, 100.0]
    seen = lengths_seen(CONFIG, BONUS, lengths)
    assert seen == [*[None] * 40, 100.0, None, None]
    assert lengths_seen(replace(CONFIG, shift=0.0), BONUS, lengths) == seen
    assert not any(lengths_seen(replace(CONFIG, shift=0.0), {"survival_bonus": 0.0}, lengths))  # shorter may be better


def trained(j: int, mean: float, best: float, evaluation: float | None = None) -> Record:
    rewards = None if evaluation is None else [evaluation]
    return replace(record(j, 200.0, rewards), reward_mean=mean, reward_max=best)


def first_seen(name: str, records: list[Record], config: Config = PLAIN) -> tuple[int, float] | None:
    watch = notes.Watch(config, TORQUE)
    seen = [
        (one.iteration, getattr(added, name)) for one in records if getattr(added := watch.add(one), name) is not None
    ]
    assert len(seen) <= 1
    return seen[0] if seen else None


def test_evaluations_that_stay_where_they_were() -> None:
    def run(evaluations: list[float], later: float = -1200.0) -> list[Record]:
        return [trained(j, later if j > 1 else -1250.0, -900.0, mean) for j, mean in enumerate(evaluations, 1)]

    stays = [-1200.0, -1000.0, -1300.0, *[-1200.0, -1100.0] * 12]
    assert first_seen("flat_at", run(stays)) == (21, -1000.0)
    assert first_seen("flat_at", run(stays, later=-400.0)) is None  # training is better than at the start
    rises = [-1000.0, *np.linspace(-1400.0, -1010.0, 29)]  # after a lucky evaluation
    assert first_seen("flat_at", run(rises)) is None
    better = [-1200.0] * 5 + [-1100.0] * 25
    assert first_seen("flat_at", run(better)) is None


def test_rewards_that_are_all_the_same() -> None:
    never = [trained(j, -200.0, -200.0) for j in range(1, 30)]
    assert first_seen("reward_spread", never) == (20, 0.0)
    nearly = [trained(j, -200.0, -199.9) for j in range(1, 30)]
    assert first_seen("reward_spread", nearly) == (20, pytest.approx(5e-4))
    assert first_seen("reward_spread", [trained(j, -200.0, -199.0) for j in range(1, 30)]) is None
    for best in (30.0, 500.0):
        solved = [trained(1, 20.0, best, 100.0), *(trained(j, 499.9, 500.0, 500.0) for j in range(2, 60))]
        assert first_seen("reward_spread", solved) is None
        assert first_seen("flat_at", solved) is None


def test_actions_beyond_their_limits() -> None:
    def run(M: list[float], later: float = -1200.0) -> list[Record]:
        policy = LinearPolicy(np.array([M]), np.zeros(2), np.array([1.0, np.inf]), {})
        first = trained(1, -1250.0, -1000.0)
        return [replace(one, policy=policy) for one in (first, *(trained(j, later, 0.0) for j in range(2, 50)))]

    assert first_seen("saturation", run([4.0, 9.0])) == (40, pytest.approx(0.6170750774519738))  # P(|z| > 2/4)
    assert first_seen("saturation", run([2.0, 9.0])) is None  # the second entry is not used
    assert first_seen("saturation", run([4.0, 9.0], later=-100.0)) is None
    assert first_seen("saturation", run([4.0, 9.0]), replace(PLAIN, normalise=False)) is None  # states' sizes unknown


def test_what_it_says() -> None:
    short = replace(record(30, 23.2), length_first=69.4)
    assert notes.advice(record(30, 23.2).to_dict(), CONFIG) == []
    assert notes.advice(short.to_dict(), CONFIG) == [
        "episodes have become shorter than at the start (23 instead of 69 steps): the policy learns to fall; "
        "try --shift 0, a smaller nu or more directions (docs/choosing.md)"
    ]
    assert "--shift" not in notes.advice(short.to_dict(), replace(CONFIG, shift=0.0))[0]
    others = replace(record(30, 200.0), flat_at=-1010.3, reward_spread=1e-4, saturation=0.617).to_dict()
    flat, alike, saturated = notes.advice(others, PLAIN)
    assert "the first 5 (-1010.3); try a larger nu, more directions or another search" in flat
    assert "nearly the same reward" in alike
    assert "about 62% of the actions" in saturated
    assert "try a smaller alpha or a smaller nu" in saturated
    assert "try a smaller nu (docs" in notes.advice(others, replace(PLAIN, search=CSA()))[2]
    for terminal in (False, True):
        text = io.StringIO()
        console = Console(file=text, width=400, force_terminal=terminal)
        with progress.display(CONFIG, Stop(iterations=99), console=console) as shown:
            shown.record(record(29, 23.2, [1.0]))
            shown.record(short)  # right after a line: the note does not wait for the next
        assert "the policy learns to fall; try --shift 0" in text.getvalue()


def test_a_resumed_run_has_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "SHORTER", 10.0)
    monkeypatch.setattr(notes, "ITERATIONS", 3)
    settings: dict[str, Any] = {"N": 2, "eval_every": 0, "shift": 0.5, "workers": 1}
    list(ars.train(DRIFT, **settings, iterations=6, out=tmp_path / "one"))
    for end in (2, 4, 6):
        again = ars.train(DRIFT, **settings, iterations=2, out=tmp_path / "two") if end == 2 else None
        list(again or ars.resume(tmp_path / "two", iterations=end, workers=1, task=DRIFT))
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
    first = rows(tmp_path / "one")[0]["length_mean"]
    assert [row.get("length_first") for row in rows(tmp_path / "one")] == [None, None, first, None, None, None]
    data = report_data([read_run(tmp_path / "two")], task=None, seconds=0)
    assert [text[:22] for text in data["runs"][0]["notes"]] == ["Iteration 3: episodes "]
