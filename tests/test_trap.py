"""The watch for episodes that shrink: when it speaks, what it says, and that a resumed run has the same records."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import ars
from ars import progress, trap
from ars.config import Config
from ars.searches.ars import ARS
from ars.stopping import Stop
from test_observe import DRIFT, rows
from test_progress import record

CONFIG = Config(task="Walker2d-v1", search=ARS(), H=1000, shift=1.0)
BONUS = {"survival_bonus": 1.0}


def lengths_seen(config: Config, definition: dict[str, Any], lengths: list[float]) -> list[float | None]:
    watch = trap.Watch(config, definition)
    return [watch.add(record(j, length)).length_first for j, length in enumerate(lengths, 1)]


def test_it_speaks_after_many_short_iterations_in_a_row() -> None:
    lengths = [100.0, *[69.0] * 19, 71.0, *[69.0] * 21, 100.0]
    seen = lengths_seen(CONFIG, BONUS, lengths)
    assert seen == [*[None] * 40, 100.0, 100.0, None]
    assert lengths_seen(replace(CONFIG, shift=0.0), BONUS, lengths) == seen
    assert not any(lengths_seen(replace(CONFIG, shift=0.0), {"survival_bonus": 0.0}, lengths))  # shorter may be better


def test_what_it_says() -> None:
    short = replace(record(30, 23.2), length_first=69.4)
    assert trap.advice(record(30, 23.2), CONFIG) == ""
    assert trap.advice(short, CONFIG) == (
        "episodes have become shorter than at the start (23 instead of 69 steps): the policy learns to fall; "
        "try --shift 0, a smaller nu or more directions"
    )
    assert "--shift" not in trap.advice(short, replace(CONFIG, shift=0.0))
    for terminal in (False, True):
        text = io.StringIO()
        console = Console(file=text, width=400, force_terminal=terminal)
        with progress.display(CONFIG, Stop(iterations=99), console=console) as shown:
            shown.record(short)
        assert "the policy learns to fall; try --shift 0" in text.getvalue()


def test_a_resumed_run_has_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trap, "SHARE", 10.0)
    monkeypatch.setattr(trap, "ITERATIONS", 3)
    settings: dict[str, Any] = {"N": 2, "eval_every": 0, "shift": 0.5, "workers": 1}
    list(ars.train(DRIFT, **settings, iterations=5, out=tmp_path / "one"))
    list(ars.train(DRIFT, **settings, iterations=2, out=tmp_path / "two"))
    list(ars.resume(tmp_path / "two", iterations=5, workers=1, task=DRIFT))
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
    first = rows(tmp_path / "one")[0]["length_mean"]
    assert [row.get("length_first") for row in rows(tmp_path / "one")] == [None, None, first, first, first]
