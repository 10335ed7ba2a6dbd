"""What is going on. Training: a live table on a terminal, plain lines elsewhere, JSON for programs. Evaluations and
films: a bar on a terminal. The phase of a training ("training", "evaluating, 100 rollouts") comes from its loop."""

import json
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ars.config import Config
from ars.notes import advice
from ars.records import Evaluation, Observer, Record
from ars.stopping import Stop
from ars.timing import SpeedMeter, duration, length_text

SECONDS_BETWEEN_LINES = 1.0  # at evaluations
SECONDS_WITHOUT_LINES = 10.0  # at most, with or without evaluations
WIDTH = 40  # of the learning curve, in characters
BARS = "▁▂▃▄▅▆▇█"
COMPILING, COMPILED = "compiling, once", "ars.compiled"
LEAST_SHARE = 0.02  # done before the time left is estimated


def time_left(seconds: float, stop: Stop) -> str:
    """ "2 min left", or "2 min left at most" if a reward goal may end the run earlier."""
    return f"{duration(seconds)} left" + (" at most" if stop.until is not None else "")


def sparkline(values: list[float], width: int = WIDTH) -> str:
    """The last values as bars."""
    shown = values[-width:]
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in shown)


def spread(evaluation: Evaluation | None) -> tuple[str, str]:
    """Standard deviation and minimum of an evaluation as text: " ± 12.3" and "min 840.1"; empty without rewards."""
    if evaluation is None or not evaluation.rewards.size:
        return "", ""
    summary = evaluation.summary()
    return f" ± {summary['std']:.1f}", f"min {summary['min']:z.1f}"


def verdict(record: Record, stop: Stop) -> str:
    """The result of a confirmation as text of about 40 characters; empty without one."""
    if record.confirmation is None:
        return ""
    mean, rollouts = record.best_known_mean, f"{record.confirmation.steps.size} rollouts"
    text = "no finite reward" if mean is None else f"mean {mean:z.1f}"
    return f"confirmed by {rollouts}: {text}" if stop.is_goal(mean) else f"not confirmed, {rollouts}: {text}"


def duel_text(record: Record) -> str:
    """What a record says of a duel; empty outside one."""
    if record.fresh_won is None:
        return f"fresh start {record.duel}" if record.duel else ""
    return f"fresh start {record.duel} {'was better and goes on' if record.fresh_won else 'was no better'}"


class Display(Observer, Protocol):
    """An observer that also hears of the phases of a training, and of compilation."""

    def phase(self, what: str) -> None: ...

    def compiling(self, begins: bool) -> None: ...


class _Quiet:
    def record(self, record: Record) -> None:
        pass

    def phase(self, what: str) -> None:
        pass

    def compiling(self, begins: bool) -> None:
        pass


class _Json(_Quiet):
    def record(self, record: Record) -> None:
        print(json.dumps(record.to_dict(), allow_nan=False), flush=True)


class _Lines(_Quiet):
    """One line per evaluation, at most one per second and at least one every ten seconds."""

    def __init__(self, console: Console, config: Config, stop: Stop) -> None:
        self._console, self._config, self._stop, self._speed = console, config, stop, SpeedMeter()
        self._printed_at = -SECONDS_WITHOUT_LINES
        self._evaluated = self._compiled = False
        self._first_length = 0.0

    def compiling(self, begins: bool) -> None:
        if not self._compiled:
            self._console.print(COMPILING, highlight=False)
        self._compiled = True

    def record(self, record: Record) -> None:
        self._line(record)
        for note in advice(record.to_dict(), self._config):
            self._console.print(f"Note at iteration {record.iteration}: {note}.", highlight=False, soft_wrap=True)

    def _line(self, record: Record) -> None:
        speed = self._speed.add(record)
        self._first_length = self._first_length or record.length_mean
        now = time.monotonic()
        pause = SECONDS_WITHOUT_LINES if record.evaluation is None else SECONDS_BETWEEN_LINES
        judged = verdict(record, self._stop)
        first = record.evaluation is not None and (not self._evaluated or bool(judged))
        if not first and record.fresh_won is None and now - self._printed_at < pause:
            return
        self._evaluated = self._evaluated or first
        self._printed_at = now
        mean, (std, low) = record.eval_mean, spread(record.evaluation)
        reward = f"training reward {record.reward_mean:z.1f}" if mean is None else f"reward {mean:z.1f}{std}, {low}"
        left = self._stop.seconds_left(record)
        parts = [
            f"iteration {record.iteration}",
            reward,
            *(text for text in (judged, duel_text(record)) if text),
            f"length {length_text(record.length_mean, self._first_length)}",
            f"{record.episodes} episodes",
            f"{record.timesteps} timesteps",
            *([] if speed is None else [f"{speed:,.0f} steps/s"]),
            f"{duration(record.seconds)} elapsed",
        ]
        parts += [time_left(left, self._stop)] if left is not None else []
        parts += [f"{record.dropped} directions dropped"] if record.dropped else []
        parts += [f"{name} {value:z.4g}" for name, value in _shown_measures(record)]
        self._console.print(" | ".join(parts), highlight=False, soft_wrap=True)


def _shown_measures(record: Record) -> list[tuple[str, float]]:
    """What a task measures, if it is one number; the terms of a robot's reward are on the page."""
    return list(record.measures.items()) if len(record.measures) == 1 else []


class _Live(_Quiet):
    """A small table that changes in place; Rich draws it several times per second, so the clock also runs during an
    evaluation."""

    def __init__(self, config: Config, stop: Stop, seconds: float) -> None:
        self._config, self._stop, self._speed = config, stop, SpeedMeter()
        self._rewards: deque[float] = deque(maxlen=WIDTH)  # a run may last for weeks
        self._best = -math.inf
        self._spread, self._verdict, self._duel = ("", ""), "", ""
        self._first_length = 0.0
        self._phase, self._compiles = "", False
        self._notes: list[str] = []
        self._latest: tuple[Record | None, float | None, float, float] = None, None, seconds, time.monotonic()

    def phase(self, what: str) -> None:
        self._phase = what

    def compiling(self, begins: bool) -> None:
        self._compiles = begins

    def record(self, record: Record) -> None:
        if record.eval_mean is not None:
            self._rewards.append(record.eval_mean)
            self._best = max(self._best, -math.inf if record.best_known_mean is None else record.best_known_mean)
            self._spread, self._verdict = spread(record.evaluation), verdict(record, self._stop)
        self._duel = self._duel if record.fresh_won is None else duel_text(record)
        self._first_length = self._first_length or record.length_mean
        self._notes += [f"iteration {record.iteration}: {note}" for note in advice(record.to_dict(), self._config)]
        self._latest = record, self._speed.add(record), record.seconds, time.monotonic()

    def __rich__(self) -> Group:
        return Group(self._table(), *(Text(note, "yellow") for note in self._notes))

    def _table(self) -> Table:
        record, speed, seconds, at = self._latest
        since = time.monotonic() - at if self._phase else 0.0
        left = self._stop.seconds_left(record) if record else None
        std, low = self._spread
        latest = f"{self._rewards[-1]:z.1f}" if self._rewards else "not evaluated yet"
        table = Table.grid(padding=(0, 2))  # at most 80 columns for usual numbers
        table.add_column(min_width=24)  # the longest phase: the others must not move it
        table.add_row(
            f"[bold]{escape(self._config.task)}[/] {self._config.label} seed {self._config.seed}",
            f"iteration {record.iteration if record else 0}",
            f"{duration(round(seconds + since, 1))} elapsed",
            time_left(max(0.0, round(left - since, 1)), self._stop) if left is not None else "",
        )
        table.add_row(
            f"reward [bold green]{latest}[/]{std}",
            low,
            f"best {self._best:z.1f}" if self._rewards else "",
            f"length {length_text(record.length_mean, self._first_length)}" if record else "",
        )
        table.add_row(
            COMPILING if self._compiles else self._phase,
            f"{record.episodes if record else 0} episodes",
            f"{record.timesteps if record else 0:,} timesteps",
            "" if speed is None else f"{speed:,.0f} steps/s",
        )
        if record and record.dropped:
            table.add_row(f"{record.dropped} directions dropped")
        for text in filter(None, (self._verdict, self._duel)):
            table.add_row(text)
        for name, value in _shown_measures(record) if record else ():
            table.add_row(f"{name} {value:z.4g}")
        if len(self._rewards) > 1:
            table.add_row(f"[green]{sparkline(list(self._rewards))}[/]")
        return table


@contextmanager
def display(
    config: Config,
    stop: Stop,
    *,
    seconds: float = 0.0,
    as_json: bool = False,
    quiet: bool = False,
    console: Console | None = None,
) -> Iterator[Display]:
    """The display that suits the kind of output; `seconds` is the time that the run has already taken."""
    console = console or Console()
    if as_json:
        yield _Json()
    elif quiet:
        yield _Quiet()
    elif console.is_terminal:
        live = _Live(config, stop, seconds)
        with Live(live, console=console, refresh_per_second=8), name_compilation(live.compiling):
            try:
                yield live
            finally:
                live.phase("")
    else:
        lines = _Lines(console, config, stop)
        with name_compilation(lines.compiling):
            yield lines


@contextmanager
def name_compilation(said: Callable[[bool], None]) -> Iterator[None]:
    """Report when Numba compiles, if its code is loaded already: its import alone takes half a second."""
    if COMPILED not in sys.modules:
        yield
        return
    from ars.compiled import compiling

    with compiling(said):
        yield


# -- evaluations and films --------------------------------------------------------------------------------------------


class Bar:
    """Shows nothing, and the methods of those that do."""

    def at(self, what: str, share: float) -> None:
        """What is being done, and which share of everything is done."""

    def say(self, text: str) -> None:
        """A message in between."""


class _PlainBar(Bar):
    """For a log file: one line when something new begins."""

    _what = ""

    def at(self, what: str, share: float) -> None:
        if what != self._what:
            self.say(f"{what} …")
            self._what = what

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _RichBar(Bar):
    def __init__(self, progress: Progress, stack: ExitStack) -> None:
        self._progress, self._stack, self._listens, self._started = progress, stack, False, time.monotonic()
        self._task = progress.add_task("", total=1.0, note="")

    def at(self, what: str, share: float) -> None:
        if not self._listens and COMPILED in sys.modules:
            self._listens = True
            self._stack.enter_context(name_compilation(self.compiling))
        seconds = time.monotonic() - self._started
        left = duration(round(seconds * (1 - share) / share, 1)) if share > LEAST_SHARE else "…"
        self._progress.update(self._task, description=what, completed=share, note=f"about {left} left")

    def compiling(self, begins: bool) -> None:
        self.at(COMPILING if begins else "", 0.0)
        self._started = time.monotonic()  # the estimate is of the rest

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


@contextmanager
def bar(*, quiet: bool) -> Iterator[Bar]:
    """A bar with the time left on the terminal of stderr, plain lines elsewhere."""
    console = Console(stderr=True)
    if quiet:
        yield Bar()
    elif not console.is_terminal:
        yield _PlainBar()
    else:
        columns = TextColumn("{task.description}", markup=False), BarColumn(20), TextColumn("{task.fields[note]}")
        with Progress(*columns, console=console, transient=True) as progress, ExitStack() as stack:
            yield _RichBar(progress, stack)
