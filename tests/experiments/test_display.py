"""The display of many runs: what is done, and an estimate of the rest."""

import io

from rich.console import Console

from ars.experiments import display as shown
from ars.experiments.engine import Outcome
from curve_maker import curve
from specs import change, spec

ONE = spec("Hopper-v1", "V2-t", 0.01, 0.025, 8, 4, 237, episodes=320)
TWO = change(ONE, seed=2)


def test_time_left_by_hand(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    work = shown._Progress({ONE: 30.0, TWO: 10.0})
    assert work.left({ONE: 0.0}) == (0.0, "about … left")
    now[0] = 60.0  # a minute for half of the first: 15 of 40, so 100 s for the other 25
    assert work.left({ONE: 0.5}) == (0.375, "about 1 min 40 s left")


def test_what_a_run_had_done_before_is_not_counted_as_speed(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    work = shown._Progress({ONE: 100.0})
    work.left({ONE: 0.5})
    now[0] = 30.0
    assert work.left({ONE: 0.75})[1] == "about 30 s left"


def test_lines_say_what_became_of_each_run() -> None:
    text = io.StringIO()
    lines = shown._Lines(shown._Progress({ONE: 1.0, TWO: 1.0}), Console(file=text, width=200))
    lines.watch({ONE: 0.5})
    lines.ended(Outcome(ONE, curve([1.0, 2.0])))
    lines.ended(Outcome(TWO, None, "no such task."))
    first, second = text.getvalue().splitlines()
    assert first.startswith(f"1 of 2: {ONE.name}: finished, best mean reward 2.0, 320 episodes (about ")
    assert "FAILED: no such task." in second


def test_bars_follow_the_runs() -> None:
    from rich.progress import Progress

    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    with Progress(*shown.COLUMNS, console=console) as progress:
        bars = shown._Bars(shown._Progress({ONE: 1.0, TWO: 1.0}), progress)
        bars.watch({ONE: 0.25})
        assert [task.description[:21] for task in progress.tasks] == ["all runs", "Hopper-v1 V2-t 237: a"]
        assert progress.tasks[0].completed == 0.125
        bars.watch({ONE: 0.5, TWO: 0.5})
        bars.ended(Outcome(ONE, curve([1.0])))
        assert [task.description[:19] for task in progress.tasks] == ["all runs", "Hopper-v1 V2-t 2: a"]
        assert progress.tasks[0].completed == 0.75  # what the other has done still counts


def test_a_narrow_terminal_shows_the_time_left_and_the_seed(monkeypatch) -> None:
    monkeypatch.setattr(shown.time, "monotonic", lambda: 0.0)
    text = io.StringIO()
    other = change(ONE, task="HalfCheetah-v1")
    with shown.Progress(*shown.COLUMNS, console=Console(file=text, force_terminal=True, width=80), expand=True) as bars:
        shown._Bars(shown._Progress({other: 1.0}), bars).watch({other: 0.5})
        bars.refresh()
    assert "HalfCheetah-v1 V2-t 237" in text.getvalue()
    assert "0 of 1, about … left" in text.getvalue()
    assert "160 episodes" in text.getvalue()


def test_a_line_has_an_estimate_once_a_run_has_ended(monkeypatch) -> None:
    now, text = [0.0], io.StringIO()
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    lines = shown._Lines(shown._Progress({ONE: 10.0, TWO: 10.0}), Console(file=text, width=200))
    lines.watch({ONE: 0.0})
    now[0] = 50.0
    lines.watch({ONE: 1.0})
    lines.ended(Outcome(ONE, curve([1.0])))
    assert "(about 50 s left)" in text.getvalue()


def test_an_environments_words_are_not_markup() -> None:
    words = "config [/etc/robot.ini] of [knee] :smile:"
    text = io.StringIO()
    shown._Lines(shown._Progress({ONE: 1.0}), Console(file=text, width=200)).ended(Outcome(ONE, None, words))
    assert words in text.getvalue()


def test_a_run_without_an_evaluation_has_no_best() -> None:
    assert shown.sentence(Outcome(ONE, curve([], status="diverged: …"))).endswith(
        "diverged: …, not evaluated, 0 episodes"
    )
