"""The progress of training: a live table on a terminal, plain lines elsewhere, JSON for programs."""

import json
import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from ars.config import Config
from ars.records import Observer, Record
from ars.stopping import Stop
from ars.timing import SpeedMeter, duration

SECONDS_BETWEEN_LINES = 1.0  # at evaluations
SECONDS_WITHOUT_LINES = 10.0  # at most, with or without evaluations
WIDTH = 40  # of the learning curve, in characters
BARS = "▁▂▃▄▅▆▇█"


def time_left(seconds: float, stop: Stop) -> str:
    """ "2 min left", or "2 min left at most" if a reward goal may end the run earlier."""
    return f"{duration(seconds)} left" + (" at most" if stop.until is not None else "")


def sparkline(values: list[float], width: int = WIDTH) -> str:
    """The last values as bars."""
    shown = values[-width:]
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in shown)


class _Quiet:
    def record(self, record: Record) -> None:
        pass


class _Json:
    def record(self, record: Record) -> None:
        print(json.dumps(record.to_dict(), allow_nan=False), flush=True)


class _Lines:
    """One line per evaluation, at most one per second and at least one every ten seconds."""

    def __init__(self, console: Console, stop: Stop) -> None:
        self._console, self._stop, self._speed = console, stop, SpeedMeter()
        self._printed_at = -SECONDS_WITHOUT_LINES
        self._evaluated = False

    def record(self, record: Record) -> None:
        speed = self._speed.add(record)
        now = time.monotonic()
        pause = SECONDS_WITHOUT_LINES if record.evaluation is None else SECONDS_BETWEEN_LINES
        first = record.evaluation is not None and not self._evaluated
        if not first and now - self._printed_at < pause:
            return
        self._evaluated = self._evaluated or first
        self._printed_at = now
        mean = record.eval_mean
        reward = f"training reward {record.reward_mean:.1f}" if mean is None else f"reward {mean:.1f}"
        left = self._stop.seconds_left(record)
        parts = [
            f"iteration {record.iteration}",
            reward,
            f"{record.episodes} episodes",
            f"{record.timesteps} timesteps",
            *([] if speed is None else [f"{speed:,.0f} steps/s"]),
            f"{duration(record.seconds)} elapsed",
        ]
        parts += [time_left(left, self._stop)] if left is not None else []
        parts += [f"{record.dropped} directions dropped"] if record.dropped else []
        parts += [f"{name} {value:.4g}" for name, value in record.measures.items()]
        self._console.print(" | ".join(parts), highlight=False, soft_wrap=True)


class _Live:
    """A small table that changes in place."""

    def __init__(self, live: Live, config: Config, stop: Stop) -> None:
        self._live, self._config, self._stop, self._speed = live, config, stop, SpeedMeter()
        self._rewards: deque[float] = deque(maxlen=WIDTH)  # a run may last for weeks
        self._best = -math.inf

    def record(self, record: Record) -> None:
        if record.eval_mean is not None:
            self._rewards.append(record.eval_mean)
            self._best = max(self._best, record.eval_mean)
        self._live.update(self._table(record, self._speed.add(record)))

    def _table(self, record: Record, speed: float | None) -> Table:
        left = self._stop.seconds_left(record)
        table = Table.grid(padding=(0, 2))
        config = self._config
        table.add_row(
            f"[bold]{escape(config.task)}[/] {config.label} seed {config.seed}",
            f"iteration {record.iteration}",
            f"{record.episodes} episodes",
            f"{record.timesteps:,} timesteps",
            "" if speed is None else f"{speed:,.0f} steps/s",
        )
        latest = f"{self._rewards[-1]:.1f}" if self._rewards else "not evaluated yet"
        best = f"best {self._best:.1f}" if self._rewards else ""
        table.add_row(
            f"reward [bold green]{latest}[/]",
            best,
            f"{record.dropped} dropped" if record.dropped else "",
            f"{duration(record.seconds)} elapsed",
            time_left(left, self._stop) if left is not None else "",
        )
        for name, value in record.measures.items():
            table.add_row(f"{name} {value:.4g}")
        if len(self._rewards) > 1:
            table.add_row(f"[green]{sparkline(list(self._rewards))}[/]")
        return table


@contextmanager
def display(
    config: Config, stop: Stop, *, as_json: bool = False, quiet: bool = False, console: Console | None = None
) -> Iterator[Observer]:
    """The display that suits the kind of output."""
    console = console or Console()
    if as_json:
        yield _Json()
    elif quiet:
        yield _Quiet()
    elif console.is_terminal:
        with Live(console=console, refresh_per_second=8) as live:
            yield _Live(live, config, stop)
    else:
        yield _Lines(console, stop)
