"""What a display shows of lengths, spread, phases and compilation, and the bars of evaluations and films."""

import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import ars
from ars import progress
from ars.config import Config
from ars.records import Evaluation, Record
from ars.searches.ars import ARS
from ars.sessions import evaluate, new_session
from ars.stopping import Stop
from small_runs import small_policy

CONFIG = Config(task="Humanoid-v5", search=ARS(), H=1000, shift=5.0, seed=1234)
STOP = Stop(iterations=1000)


def record(iteration: int, length: float, rewards: list[float] | None = None) -> Record:
    evaluation = None if rewards is None else Evaluation(np.array(rewards), np.ones(len(rewards), dtype=np.int64), 0)
    return Record(
        iteration=iteration, episodes=460 * iteration, timesteps=9000 * iteration, seconds=3.0 * iteration,
        train_seconds=2.0, reward_mean=-0.04, reward_max=1.0, length_mean=length, dropped=0, evaluation=evaluation,
        state=None, policy=None,
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as a list of one number to set."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_have_length_and_spread(clock: list[float]) -> None:
    text = io.StringIO()
    with progress.display(CONFIG, STOP, console=Console(file=text, width=80)) as shown:
        for j, (length, rewards) in enumerate([(1000.0, None), (610.0, [840.0, 860.0]), (15.0, [-0.01, 0.0])], 1):
            shown.phase("evaluating, 2 rollouts")  # no line of its own
            shown.record(record(j, length, rewards))
            clock[0] += 60
    first, second, third = text.getvalue().splitlines()
    assert "| training reward 0.0 | length 1000 |" in first
    assert "| reward 850.0 ± 10.0, min 840.0 | length 610 (-39%) |" in second
    assert "| reward 0.0 ± 0.0, min 0.0 | length 15 (-98%) |" in third


def test_a_confirmation_is_shown(clock: list[float]) -> None:
    """At once, however short the time since the last line, and in the live table, both ways."""
    text, stop = io.StringIO(), Stop(until=3430.0)
    seems = record(2, 1000.0, [3500.0])
    confirmed = Evaluation(np.full(100, 3456.0), np.ones(100, dtype=np.int64), 0)
    refused = Evaluation(np.full(100, 3380.0), np.ones(100, dtype=np.int64), 0)
    live = progress._Live(CONFIG, stop, seconds=0.0)
    with progress.display(CONFIG, stop, console=Console(file=text, width=80)) as shown:
        shown.record(record(1, 1000.0, [1.0]))
        for confirmation in (refused, confirmed):
            shown.record(replace(seems, confirmation=confirmation))
            live.record(replace(seems, confirmation=confirmation))
    _, second, third = text.getvalue().splitlines()
    assert "| reward 3500.0 ± 0.0, min 3500.0 | not confirmed, 100 rollouts: mean 3380.0 |" in second
    assert "| confirmed by 100 rollouts: mean 3456.0 |" in third
    with (console := Console(file=io.StringIO(), width=200)).capture() as captured:
        console.print(live)
    assert "confirmed by 100 rollouts: mean 3456.0" in captured.get()
    assert "best 3456.0" in captured.get()


def test_the_end_of_a_duel_is_shown(clock: list[float]) -> None:
    """At once, too, and it stays in the live table."""
    text, live = io.StringIO(), progress._Live(CONFIG, STOP, seconds=0.0)
    records = [
        record(1, 1000.0, [1.0]),
        *(replace(record(j, 1000.0, None), duel=1) for j in (2, 3)),
        record(4, 9.0, None),
    ]
    records[2] = replace(records[2], fresh_won=True)
    with progress.display(CONFIG, STOP, console=Console(file=text, width=80)) as shown:
        for one in records:
            shown.record(one)
            live.record(one)
    assert [line.split(" | ")[2] for line in text.getvalue().splitlines()[1:]] == [
        "fresh start 1 was better and goes on"
    ]
    with (console := Console(file=io.StringIO(), width=200)).capture() as captured:
        console.print(live)
    assert "fresh start 1 was better and goes on" in captured.get()


def test_the_table_fits_and_its_clock_runs_during_an_evaluation(clock: list[float]) -> None:
    live = progress._Live(CONFIG, STOP, seconds=7.0)

    def table() -> str:
        console = Console(file=io.StringIO(), width=200)
        with console.capture() as captured:
            console.print(live)
        return captured.get()

    assert "7 s elapsed" in table()
    live.phase("training")
    clock[0] += 2
    assert "9 s elapsed" in table()  # before the first record
    for j in (1, 2):
        live.record(record(j, 800.0 / j, [4321.0, 4567.8]))
    live.phase("evaluating, 100 rollouts")
    clock[0] += 12.5
    shown = table()
    for part in ("evaluating, 100 rollouts", "18.5 s elapsed", "± 123.4", "min 4321.0", "length 400 (-50%)"):
        assert part in shown
    live.compiling(True)
    assert "compiling, once" in table()
    assert "evaluating" not in table()
    live.compiling(False)
    assert max(map(len, table().splitlines())) <= 80
    live.phase("")
    assert "6 s elapsed" in table()  # the end is that of the records


def test_phases_come_from_the_loop_and_change_nothing() -> None:
    settings = {"N": 2, "H": 5, "protocol": "paper", "eval_every": 2, "eval_episodes": 3}
    session = new_session("small_envs:Drift", settings, workers=1, stop=Stop(iterations=4))
    phases: list[str] = []
    heard = [one.state.M for one in session.records(phases.append)]
    assert phases == 2 * ["training", "training", "evaluating, 3 rollouts"]
    plain = [one.state.M for one in ars.train("small_envs:Drift", iterations=4, **settings)]  # type: ignore[arg-type]
    np.testing.assert_array_equal(heard, plain)


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[bool], None]]:
    """Those who listen to compilations; ours takes seconds."""
    listeners: list[Callable[[bool], None]] = []

    @contextmanager
    def compiling(said: Callable[[bool], None]) -> Iterator[None]:
        listeners.append(said)
        yield
        listeners.remove(said)

    monkeypatch.setitem(sys.modules, "ars.compiled", SimpleNamespace(compiling=compiling))  # type: ignore[arg-type]
    return listeners


def test_compilation_is_one_line(numba: list[Any]) -> None:
    text = io.StringIO()
    with progress.display(CONFIG, STOP, console=Console(file=text)):
        for begins in (True, False, True, False):
            numba[0](begins)
    assert text.getvalue() == "compiling, once\n"
    assert numba == []
    for hidden in ({"quiet": True}, {"as_json": True}):
        with progress.display(CONFIG, STOP, console=Console(file=text), **hidden):
            assert numba == []


def test_numba_is_not_imported_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ars.compiled", raising=False)
    with progress.display(CONFIG, STOP, console=Console(file=io.StringIO())):
        assert "ars.compiled" not in sys.modules


def test_bars(numba: list[Any], clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(sys, "stderr", text)
    with progress.bar(quiet=True) as shown:
        shown.at("Filming a", 0.5)
        shown.say("No film.")
    assert text.getvalue() == ""
    with progress.bar(quiet=False) as shown:
        for what, share in (("Filming a", 0.0), ("Filming a", 0.4), ("Filming b", 0.5)):
            shown.at(what, share)
        shown.say("No film.")
    assert text.getvalue() == "Filming a …\nFilming b …\nNo film.\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.bar(quiet=False) as shown:
        shown.at("evaluating, 100 rollouts", 0.0)  # the code may be loaded after the bar is shown
        numba[0](True)
        clock[0] += 50
        numba[0](False)
        clock[0] += 6
        shown.at("evaluating, 100 rollouts", 0.25)
        (task,) = shown._progress.tasks  # type: ignore[attr-defined]
        note = task.fields["note"]
    assert (task.description, task.completed, note) == ("evaluating, 100 rollouts", 0.25, "about 18 s left")


@pytest.mark.parametrize(("task", "workers"), [("lqr", 1), ("lqr", 2), ("small_envs:Drift", 2)])
def test_an_evaluation_counts_its_rollouts(task: str, workers: int) -> None:
    policy, counted = small_policy(task, size=0.01), list[int]()
    told = evaluate(policy, task, episodes=7, workers=workers, progress=counted.append)
    assert counted == list(range(8))
    np.testing.assert_array_equal(told.rewards, evaluate(policy, task, episodes=7).rewards)


def test_no_number_is_minus_zero() -> None:
    """Python's option z; a bare `.1f` would write a small negative reward or speed as -0.0."""
    folder = Path(ars.__file__).parent
    signed = re.compile(r"reward|best|'(mean|min|max)'|\w\.speed")
    for part in ("progress.py", "video", "page", "cli", "experiments/display.py"):
        for file in [folder / part] if part.endswith(".py") else (folder / part).glob("*.py"):
            for shown in re.findall(r"\{([^{}]+):[+,]?\d*\.\d[fg]\}", file.read_text()):
                assert not signed.search(shown), f"{file.name} shows {shown} without z"
