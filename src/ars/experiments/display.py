"""One display for many runs: how many are done, what each is doing, and the time left."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from ars.experiments.cost import costs
from ars.experiments.engine import Job, Outcome, run_all, to_do
from ars.experiments.run_specs import RunSpec
from ars.searches import search_settings
from ars.timing import duration

COLUMNS = (  # in a narrow terminal the end of a name goes first, and the time left never
    TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    BarColumn(bar_width=14),
    TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True)),
)


class Display(Protocol):
    def watch(self, shares: dict[RunSpec, float]) -> None: ...

    def ended(self, outcome: Outcome) -> None: ...


class _Progress:
    """How much is done, weighted by what the runs cost, and how long the rest will take at the speed so far."""

    def __init__(self, costs: Mapping[RunSpec, float]) -> None:
        self.costs, self.started = costs, time.monotonic()
        self.ended: set[RunSpec] = set()
        self.first: dict[RunSpec, float] = {}  # what a run that continues had done before

    def left(self, shares: Mapping[RunSpec, float]) -> tuple[float, str]:
        """(share of all, time left in words)."""
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


class _Lines:
    """For a log file: a line for each run that ends."""

    def __init__(self, work: _Progress, console: Console) -> None:
        self._work, self._console = work, console
        self._shares: dict[RunSpec, float] = {}

    def watch(self, shares: dict[RunSpec, float]) -> None:
        self._shares = shares
        self._work.left(shares)  # so that it sees how far each run was in the beginning

    def ended(self, outcome: Outcome) -> None:
        self._work.ended.add(outcome.spec)
        count, left = f"{len(self._work.ended)} of {len(self._work.costs)}", self._work.left(self._shares)[1]
        _say(self._console, f"{count}: {sentence(outcome)} ({left})")


class _Bars:
    """For a terminal: a bar for all, and one for each run under way."""

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
            self._bars.update(self._each[spec], completed=done, note=f"{done * spec.episodes:.0f} episodes")

    def ended(self, outcome: Outcome) -> None:
        self._work.ended.add(outcome.spec)
        if outcome.spec in self._each:
            self._bars.remove_task(self._each.pop(outcome.spec))
        self.watch({spec: share for spec, share in self._shares.items() if spec != outcome.spec})
        _say(self._bars.console, sentence(outcome))


class _Quiet:
    def watch(self, shares: dict[RunSpec, float]) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        pass


def _label(spec: RunSpec) -> str:
    """Most telling first."""
    config = spec.config
    values = ", ".join(f"{name} {value:g}" for name, value in search_settings(config.search).items())
    return f"{config.task} {config.label} {config.seed}: {values}"


def _say(console: Console, text: str) -> None:
    """As it is: an environment's error may hold what Rich takes for markup."""
    console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


def sentence(outcome: Outcome) -> str:
    """What became of a run, in one line."""
    if outcome.curve is None:
        return f"{outcome.spec.name}: FAILED: {outcome.failure}"
    curve = outcome.curve
    best = f"best {curve.best:.1f}" if curve.rewards.size else "not evaluated"
    return f"{outcome.spec.name}: {curve.status.rstrip('.')}, {best}, {curve.episodes} episodes"


@contextmanager
def display(costs: Mapping[RunSpec, float], *, quiet: bool = False) -> Iterator[Display]:
    """The display that suits where the output goes."""
    console = Console(stderr=True)
    work = _Progress(costs)
    if quiet:
        yield _Quiet()
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
    """Run what is not done yet, and show it; an interruption leaves everything saved. `known` are the costs, if they
    were measured before."""
    todo = to_do(jobs)
    if not todo:
        return []
    specs = [job.spec for job in todo]
    weights = costs(specs) if known is None else {spec: known[spec] for spec in specs}
    outcomes = []
    with display(weights, quiet=quiet) as shown:
        watch = shown.watch if executor == "local" else None  # Ray does not tell which of them wait for a CPU
        ended = run_all(todo, workers=workers, executor=executor, address=address, watch=watch, minutes=minutes)
        with closing(ended):
            for outcome in ended:
                outcomes.append(outcome)
                shown.ended(outcome)
    return outcomes
