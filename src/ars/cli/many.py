"""What the commands for many runs share: the flags for who runs them, seeds, and what is printed of failures."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Address, Quiet, Where, Whole, how_many, signals
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
            raise SettingError(f"address = {self.address} is for --executor ray: give both, or neither.")
        if minutes is not None:
            if self.executor == "ray":
                raise SettingError("--minutes is not supported with Ray: press Ctrl-C instead, progress is saved.")
            if not finite_number("minutes", minutes) > 0:
                raise SettingError(f"minutes = {minutes:g} must be larger than 0.")

    def run(
        self, jobs: "Sequence[Job]", *, minutes: float | None = None, known: "Mapping[RunSpec, float] | None" = None
    ) -> "list[Outcome]":
        from ars.experiments.display import run_with_display

        with signals():
            return run_with_display(
                jobs, workers=self.cores(), executor=self.executor, address=self.address, minutes=minutes, known=known,
                quiet=self.quiet,
            )  # fmt: skip


def read_seeds(
    count: int | None, listed: str | None, below: int = 10_000, master: int | None = None
) -> tuple[int, ...] | None:
    """The seeds asked for, drawn or given; None where neither was."""
    from ars.experiments.seeds import MASTER_SEED, draw_seeds

    if count is not None and listed is not None:
        raise SettingError("seeds and seed_list contradict each other: give the number of seeds, or the seeds.")
    if count is not None:
        return draw_seeds(count, below=below, master=MASTER_SEED if master is None else master)
    if listed is None:
        return None
    try:
        found = tuple(int(part) for part in listed.split(","))
    except ValueError as error:
        raise SettingError(f"seed_list = {listed!r} must be whole numbers with commas between them.") from error
    if len(set(found)) != len(found):
        raise SettingError(f"seed_list = {listed!r} names a seed twice.")
    return found


def print_left_out(problems: Sequence[str]) -> None:
    for problem in problems:
        print(f"Left out: {problem}", file=sys.stderr)


def report_failures(outcomes: "Sequence[Outcome]", *, quiet: bool) -> int:
    """A failed run is reported and not fatal; the exit code tells scripts."""
    from ars.experiments.display import sentence

    failed = [outcome for outcome in outcomes if outcome.curve is None]
    for outcome in failed if quiet else ():  # else the display has said so
        print(sentence(outcome))
    if failed:
        again = "the same command tries them again (a damaged one: first remove its folder)"
        print(f"{len(failed)} of {len(outcomes)} runs failed; {again}.")
    return 1 if failed else 0
