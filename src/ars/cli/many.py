"""What the commands for many runs share: flags for how to run them, seeds, and the report of failures."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ars.cli.common import OTHER, Address, Quiet, Where, Whole, how_many, whole
from ars.errors import SettingError

if TYPE_CHECKING:
    from ars.experiments.engine import Job, Outcome
    from ars.experiments.run_specs import RunSpec


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Many:
    """How many runs at a time, and where."""

    jobs: Annotated[Whole, Parameter(group=OTHER, help="Runs at a time, one core each; default: all cores.")] = None
    executor: Where = "local"
    address: Address = None
    quiet: Quiet = False

    def cores(self) -> int:
        from ars.settings import whole_number

        return whole_number("jobs", how_many(self.jobs, self.address), 1, 4096)

    def check(self, minutes: float | None = None) -> None:
        from ars.settings import finite_number

        self.cores()
        if self.address is not None and self.executor != "ray":
            raise SettingError(f"address = {self.address} needs --executor ray: give both or neither.")
        if minutes is not None:
            if self.executor == "ray":
                raise SettingError("--minutes is not supported with Ray: press Ctrl-C instead, progress is saved.")
            if not finite_number("minutes", minutes) > 0:
                raise SettingError(f"minutes = {minutes:g} must be larger than 0.")

    def run(
        self, jobs: "Sequence[Job]", *, minutes: float | None = None, known: "Mapping[RunSpec, float] | None" = None
    ) -> "list[Outcome]":
        from ars.experiments.display import run_with_display

        return run_with_display(
            jobs, workers=self.cores(), executor=self.executor, address=self.address, minutes=minutes, known=known,
            quiet=self.quiet,
        )  # fmt: skip


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Draw:
    """Which seeds, where a command takes several."""

    seed_list: Annotated[str | None, Parameter(help="The seeds, for example 237,759,959.")] = None
    below: Annotated[int, Parameter(converter=whole, help="Seeds are drawn from 0 up to this, exclusive.")] = 10_000
    master_seed: Annotated[int, Parameter(converter=whole, help="Determines which seeds are drawn.")] = 2018

    def seeds(self, count: int | None, default: int, given: "Mapping[str, Any]") -> tuple[int, ...]:
        """The listed seeds, or `count` drawn ones; `given` are the settings, which must not have a seed."""
        if "seed" in given:
            raise SettingError(f"seed = {given['seed']} applies to a single run: give --seeds or --seed-list instead.")
        count = default if count is None and self.seed_list is None else count
        return read_seeds(count, self.seed_list, self.below, self.master_seed) or ()

    def said(self, seeds: Sequence[int]) -> str:
        drawn = f", drawn from [0, {self.below}) by master seed {self.master_seed}" if self.seed_list is None else ""
        return f"Seeds {', '.join(map(str, seeds))}{drawn}."


def read_seeds(
    count: int | None, listed: str | None, below: int = 10_000, master: int | None = None
) -> tuple[int, ...] | None:
    """The requested seeds, drawn or listed; None if neither was requested."""
    from ars.experiments.seeds import MASTER_SEED, draw_seeds

    if count is not None and listed is not None:
        raise SettingError("seeds and seed_list contradict each other: give the number of seeds, or the seeds.")
    if count is not None:
        return draw_seeds(count, below=below, master=MASTER_SEED if master is None else master)
    if listed is None:
        return None
    try:
        seeds = tuple(int(part) for part in listed.split(","))
    except ValueError as error:
        raise SettingError(f"seed_list = {listed!r} must be whole numbers separated by commas.") from error
    if len(set(seeds)) != len(seeds):
        raise SettingError(f"seed_list = {listed!r} names a seed twice.")
    return seeds


def print_left_out(problems: Sequence[str]) -> None:
    for problem in problems:
        print(f"Left out: {problem}", file=sys.stderr)


def report_failures(outcomes: "Sequence[Outcome]", *, quiet: bool) -> int:
    """Report failed runs, which are not fatal; returns the exit code."""
    from ars.experiments.display import sentence

    failed = [outcome for outcome in outcomes if outcome.curve is None]
    for outcome in failed if quiet else ():  # otherwise the display has reported them
        print(sentence(outcome))
    if failed:
        again = "the same command tries them again (if one is damaged, remove its folder first)"
        print(f"{len(failed)} of {len(outcomes)} runs failed; {again}.")
    return 1 if failed else 0
