"""ars lqr, sweep, reproduce: the paper's experiments."""

import signal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Quiet, Workers, app, examples, how_many, signals, whole


@app.command(
    help_epilogue=examples(
        "ars lqr", "ars lqr --extensions", "ars lqr --trials 20 --budget 1e5 --instance mine.json --out runs/mine"
    )
)
def lqr(
    *,
    trials: Annotated[int, Parameter(converter=whole, help="Trials of each method.")] = 100,
    budget: Annotated[int, Parameter(converter=whole, help="Timesteps of each trial.")] = 1_000_000,
    instance: Annotated[Path | None, Parameter(help="A JSON file with A, B, Q, R; default: the paper's.")] = None,
    seed: Annotated[int, Parameter(converter=whole, help="Decides all random numbers.")] = 0,
    extensions: Annotated[bool, Parameter(help="Also what the paper does not have, labelled so.")] = False,
    out: Annotated[
        Path | None, Parameter(group=OTHER, help="The folder; default: in runs/, named by the seed.")
    ] = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> int:
    """Compare nominal control, LSPI and ARS on the linear quadratic regulator.

    Writes lqr.csv, table.md and the paper's two plots, and prints the table. The same command continues where an
    interrupted one stopped.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ars.lqr import Problem
    from ars.lqr.comparison import compare

    problem = Problem.load(instance) if instance else Problem.paper()
    folder = out or Path("runs") / f"lqr-seed{seed}"
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with signals(), Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        shown = bar.add_task("LQR", total=None)
        try:
            done = compare(
                problem,
                out=folder,
                trials=trials,
                budget=budget,
                seed=seed,
                with_extensions=extensions,
                workers=how_many(workers),
                progress=lambda step: bar.update(shown, description=step.label, completed=step.done, total=step.total),
            )
        except KeyboardInterrupt as interrupt:
            bar.console.print(f"Interrupted: finished blocks are in {folder}; the same command goes on.")
            return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    print(done.table)
    if not quiet:
        print(f"The numbers and plots are in {folder}.")
    return 0
