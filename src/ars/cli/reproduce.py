"""ars reproduce: the paper's tables and figures."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Whole, app, examples
from ars.cli.experiments import lqr
from ars.cli.many import Many, read_seeds, report_failures
from ars.cli.process import interrupt_code
from ars.errors import SettingError

if TYPE_CHECKING:
    from ars.experiments.engine import Outcome
    from ars.paper.reproduce import Asked

Minutes = Annotated[float | None, Parameter(help="Stop after this long, and draw the available results.")]
DryRun = Annotated[bool, Parameter(help="Only print what would run and what it costs.")]
Draw = Annotated[bool, Parameter(help="Run nothing: draw from the available results.")]


@app.command(
    help_epilogue=examples(
        "ars reproduce table1 --tasks Swimmer-v1",
        "ars reproduce figure3 --tasks Hopper-v1 --seeds 20 --minutes 60",
        "ars reproduce all --dry-run",
        "ars reproduce all --draw",
    )
)
def reproduce(
    target: str,
    /,
    *,
    tasks: Annotated[
        list[str] | None, Parameter(consume_multiple=True, help="Only these tasks: Swimmer-v1 Hopper-v1.")
    ] = None,
    seed_list: Annotated[str | None, Parameter(help="Seeds instead of the paper's: 1,2,3.")] = None,
    seeds: Annotated[Whole, Parameter(help="Run only this many of the 100 seeds (figure 3, tables 6 and 7).")] = None,
    minutes: Minutes = None,
    dry_run: DryRun = False,
    draw: Draw = False,
    to_cap: Annotated[bool, Parameter(help="Continue to the cap where a run would end at its threshold.")] = False,
    out: Annotated[Path, Parameter(group=OTHER, help="Folder of the results.")] = Path("results"),
    runs: Annotated[Path, Parameter(group=OTHER, help="Folder of the run folders.")] = Path("runs/paper"),
    many: Many = Many(),  # noqa: B008 (frozen)
) -> int:
    """Reproduce a table or figure of the paper: table1 … table7, figure1 … figure5, or all.

    Beyond the paper: ablation (one augmentation at a time), caps (failed seeds go on to 1000 iterations), selection (a
    point chosen on three seeds, measured on fresh ones).

    It prints what the missing runs cost on this machine, runs them, and draws the available results next to the
    published values. Runs that are in the results already are not repeated; a new --out with a new --runs starts anew.
    """
    from ars.paper.reproduce import Request, draw_all, names

    listed = None if seed_list is None else read_seeds(seeds, seed_list)
    request = Request(names(target), out, some("tasks", tasks, "Swimmer-v1"), listed, seeds, to_cap)
    request.check()
    return run_or_draw(request, draw_all, many, minutes=minutes, dry_run=dry_run, draw=draw, runs=runs)


def some(name: str, given: list[str] | None, example: str) -> list[str] | None:
    """The values of a flag that takes several, separated by spaces or commas; None if it is not given."""
    if given is not None and not given:
        raise SettingError(f"{name} is empty: name some, for example --{name} {example}, or omit it for all.")
    return ",".join(given).split(",") if given else None


def run_or_draw(
    request: "Asked", draw_all: Callable[..., None], many: Many, *, minutes: float | None, dry_run: bool, draw: bool,
    runs: Path,
) -> int:  # fmt: skip
    """Run what is missing, unless only its cost or only a drawing was requested, and draw."""
    from ars.files import is_folder
    from ars.paper import figure5
    from ars.paper.reproduce import run_missing, say_costs

    if dry_run and draw:
        raise SettingError("dry_run and draw contradict each other: give one of them.")
    many.check(minutes)
    if draw and not is_folder(request.out):
        raise SettingError(
            f"out = {request.out} is not a folder: give the folder of the results, or run this beside results/."
        )
    if dry_run:
        say_costs(request, many.cores())
        return 0

    def compare(results: Path) -> None:
        code = lqr(
            trials=figure5.TRIALS, budget=figure5.BUDGET, seed=figure5.SEED, out=results / "lqr", workers=many.jobs,
            quiet=many.quiet,
        )  # fmt: skip
        if code:
            sys.exit(code)

    outcomes: list[Outcome] = []
    if not draw:
        try:
            outcomes = run_missing(
                request, cores=many.cores(), runs=runs, minutes=minutes, compare=compare, warn=_warn,
                run=lambda jobs, seconds: many.run(jobs, minutes=minutes, known=seconds),
            )  # fmt: skip
        except KeyboardInterrupt:
            print("Interrupted: everything is saved; the same command continues, and --draw draws what there is.")
            return interrupt_code()
    draw_all(request, warn=_warn)
    return report_failures(outcomes, quiet=many.quiet)


def _warn(text: str) -> None:
    print(text, file=sys.stderr)
