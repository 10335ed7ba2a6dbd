"""ars reproduce: the paper's tables and figures."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Whole, app, examples
from ars.cli.experiments import lqr
from ars.cli.many import Many, read_seeds, report_failures
from ars.errors import SettingError

if TYPE_CHECKING:
    from ars.experiments.engine import Outcome


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
        list[str] | None, Parameter(consume_multiple=True, help="Some of the tasks: Swimmer-v1 Hopper-v1.")
    ] = None,
    seed_list: Annotated[str | None, Parameter(help="Other seeds than the paper's: 1,2,3.")] = None,
    seeds: Annotated[
        Whole, Parameter(help="Run only the first so many of the 100 seeds (figure 3, tables 6, 7).")
    ] = None,
    minutes: Annotated[float | None, Parameter(help="Stop running after this long, and draw what is there.")] = None,
    dry_run: Annotated[bool, Parameter(help="Print what would run and what it costs; nothing else.")] = False,
    draw: Annotated[bool, Parameter(help="Run nothing: draw from the results that are there.")] = False,
    to_cap: Annotated[bool, Parameter(help="Go on to the cap where a run would end at its threshold.")] = False,
    out: Annotated[Path, Parameter(group=OTHER, help="The results.")] = Path("results"),
    runs: Annotated[Path, Parameter(group=OTHER, help="The run folders, from which runs go on.")] = Path("runs/paper"),
    many: Many = Many(),  # noqa: B008 (frozen)
) -> int:
    """Make a table or figure of the paper again: table1 … table7, figure1 … figure5, or all.

    It prints what the missing runs cost on this machine, runs them, and draws what is there with the published values
    beside. Runs that are in the results already are not repeated; another --out with another --runs starts afresh.
    """
    from ars.paper import figure5
    from ars.paper.reproduce import Request, draw_all, names, run_missing, say_costs

    listed = None if seed_list is None else read_seeds(seeds, seed_list)
    if dry_run and draw:
        raise SettingError("dry_run and draw contradict each other: give one of them.")
    if tasks is not None and not tasks:
        raise SettingError("tasks names none: give some, for example --tasks Swimmer-v1, or leave it out for all.")
    many.check(minutes)
    request = Request(names(target), out, ",".join(tasks).split(",") if tasks else None, listed, seeds, to_cap)
    request.check()
    if draw and not out.is_dir():
        raise SettingError(f"out = {out} is no folder: give the one that has the results, or run this beside results/.")
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
        except KeyboardInterrupt as interrupt:
            print("Interrupted: everything is saved; the same command goes on, and --draw shows what is there.")
            return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    draw_all(request, warn=_warn)
    return report_failures(outcomes, quiet=many.quiet)


def _warn(text: str) -> None:
    print(text, file=sys.stderr)
