"""A display for many runs: how many are done, the progress of each, and the time left."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from ars.experiments.cost import costs
from ars.experiments.engine import Job, Outcome, run_all, to_do
from ars.experiments.run_specs import RunSpec
from ars.searches import search_settings
from ars.settings import in_words
from ars.timing import duration

COLUMNS = (  # a narrow terminal cuts off the ends of names, never the time left
    TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    BarColumn(bar_width=14),
    TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True)),
)


class Display:
    """A display that shows nothing, and the methods of those that do."""

    def watch(self, shares: dict[RunSpec, float]) -> None:
        """The share done of each run that is running."""

    def ended(self, outcome: Outcome) -> None:
        """A run has ended."""


class _Progress:
    """The share done, weighted by the costs of the runs, and the time left at the speed so far."""

    def __init__(self, costs: Mapping[RunSpec, float]) -> None:
        self.costs, self.started = costs, time.monotonic()
        self.ended: set[RunSpec] = set()
        self.first: dict[RunSpec, float] = {}  # what continued runs had done before

    def left(self, shares: Mapping[RunSpec, float]) -> tuple[float, str]:
        """(share done, time left as text)."""
        for spec, share in shares.items():
            self.first.setdefault(spec, share)
        running = {spec: share for spec, share in shares.items() if spec not in self.ended}
        total = sum(self.costs.values())
        done = sum(self.costs[spec] for spec in self.ended)
        done += sum(self.costs[spec] * share for spec, share in running.items())
        ours = done - sum(self.costs[spec] * share for spec, share in self.first.items())
        seconds = time.monotonic() - self.started
        left = duration((total - done) * seconds / ours) if ours > 0.002 * total else "…"
        return done / total if total else 1.0, f"about {left} left"


class _Lines(Display):
    """For a log file: one line per run that ends."""

    def __init__(self, work: _Progress, console: Console) -> None:
        self._work, self._console = work, console
        self._shares: dict[RunSpec, float] = {}

    def watch(self, shares: dict[RunSpec, float]) -> None:
        self._shares = shares
        self._work.left(shares)  # notes how far each run was at its start

    def ended(self, outcome: Outcome) -> None:
        self._work.ended.add(outcome.spec)
        count, left = f"{len(self._work.ended)} of {len(self._work.costs)}", self._work.left(self._shares)[1]
        _print(self._console, f"{count}: {sentence(outcome)} ({left})")


class _Bars(Display):
    """For a terminal: one bar for all runs, and one for each that is running."""

    def __init__(self, work: _Progress, bars: Progress) -> None:
        self._work, self._bars = work, bars
        self._all = bars.add_task("all runs", total=1.0, note="")
        self._each: dict[RunSpec, TaskID] = {}
        self._shares: dict[RunSpec, float] = {}

    def watch(self, shares: dict[RunSpec, float]) -> None:
        self._shares = shares
        share, left = self._work.left(shares)
        note = f"{len(self._work.ended)} of {len(self._work.costs)}, {left}"
        self._bars.update(self._all, completed=share, note=note)
        for spec, done in shares.items():
            if spec not in self._each:
                self._each[spec] = self._bars.add_task(_label(spec), total=1.0, note="")
            what, limit = spec.cap
            self._bars.update(self._each[spec], completed=done, note=f"{done * limit:.0f} {what}")

    def ended(self, outcome: Outcome) -> None:
        self._work.ended.add(outcome.spec)
        if outcome.spec in self._each:
            self._bars.remove_task(self._each.pop(outcome.spec))
        self.watch({spec: share for spec, share in self._shares.items() if spec != outcome.spec})
        _print(self._bars.console, sentence(outcome))


def _label(spec: RunSpec) -> str:
    """The most important part first."""
    config = spec.config
    values = ", ".join(f"{name} {in_words(value)}" for name, value in search_settings(config.search).items())
    return f"{config.task} {config.label} {config.seed}: {values}"


def _print(console: Console, text: str) -> None:
    """Verbatim: an environment's error may contain what Rich takes for markup."""
    console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


def sentence(outcome: Outcome) -> str:
    """The outcome of a run, on one line."""
    if outcome.curve is None:
        return f"{outcome.spec.name}: FAILED: {outcome.failure}"
    curve = outcome.curve
    best = f"best mean reward {curve.best:z.1f}" if curve.rewards.size else "not evaluated"
    return f"{outcome.spec.name}: {curve.status.rstrip('.')}, {best}, {curve.episodes} episodes"


@contextmanager
def display(costs: Mapping[RunSpec, float], *, quiet: bool = False) -> Iterator[Display]:
    """The display that suits the kind of output."""
    console = Console(stderr=True)
    work = _Progress(costs)
    if quiet:
        yield Display()
    elif console.is_terminal:
        with Progress(*COLUMNS, console=console, transient=True, expand=True) as bars:
            yield _Bars(work, bars)
    else:
        yield _Lines(work, console)


def run_with_display(
    jobs: Sequence[Job],
    *,
    workers: int,
    executor: str = "local",
    address: str | None = None,
    minutes: float | None = None,
    known: Mapping[RunSpec, float] | None = None,
    quiet: bool = False,
) -> list[Outcome]:
    """Run what is not done yet, and show the progress; an interruption saves everything. `known` are the costs, if they
    have been measured."""
    todo = to_do(jobs)
    if not todo:
        return []
    specs = [job.spec for job in todo]
    weights = costs(specs) if known is None else {spec: known[spec] for spec in specs}
    outcomes = []
    with display(weights, quiet=quiet) as shown:
        watch = shown.watch if executor == "local" else None  # Ray does not report which runs wait for a CPU
        ended = run_all(todo, workers=workers, executor=executor, address=address, watch=watch, minutes=minutes)
        with closing(ended):
            for outcome in ended:
                outcomes.append(outcome)
                shown.ended(outcome)
    return outcomes
