"""ars lqr, sweep: the paper's experiments."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Quiet, Whole, Workers, app, examples, how_many, print_table, typed, whole
from ars.cli.many import Draw, Many, print_left_out, report_failures
from ars.cli.process import interrupt_code
from ars.cli.settings import Settings

if TYPE_CHECKING:
    from ars.experiments.sweep import Row

BEST = "best mean reward, mean over seeds"  # a run's best evaluation, which is the mean of its rollouts


@app.command(
    help_epilogue=examples(
        "ars lqr", "ars lqr --extensions", "ars lqr --trials 20 --budget 1e5 --instance mine.json --out runs/mine"
    )
)
def lqr(
    *,
    trials: Annotated[int, Parameter(converter=whole, help="Trials per method.")] = 100,
    budget: Annotated[int, Parameter(converter=whole, help="Timesteps per trial.")] = 1_000_000,
    instance: Annotated[Path | None, Parameter(help="A JSON file with A, B, Q, R; default: the paper's.")] = None,
    seed: Annotated[int, Parameter(converter=whole, help="Random seed; it fully determines the results.")] = 0,
    extensions: Annotated[bool, Parameter(help="Add methods that are not in the paper, labelled as such.")] = False,
    out: Annotated[Path | None, Parameter(group=OTHER, help="Output folder; default: runs/lqr-seedSEED.")] = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> int:
    """Compare nominal control, LSPI and ARS on the linear quadratic regulator.

    Writes lqr.csv, table.md and the paper's two plots, and prints the table. The same command continues after an
    interruption.
    """
    from ars.experiments.lqr.comparison import compare
    from ars.lqr import Problem
    from ars.progress import bar

    problem = Problem.load(instance) if instance else Problem.paper()
    folder = out or Path("runs") / f"lqr-seed{seed}"
    with bar(quiet=quiet or not sys.stderr.isatty()) as shown:
        try:
            done = compare(
                problem,
                out=folder,
                trials=trials,
                budget=budget,
                seed=seed,
                with_extensions=extensions,
                workers=how_many(workers),
                progress=lambda step: shown.at(step.label, step.done / step.total),
            )
        except KeyboardInterrupt:
            print(f"Interrupted: finished blocks are in {folder}; the same command continues.", file=sys.stderr)
            return interrupt_code()
    print(done.table)
    if not quiet:
        print(f"The numbers and plots are in {folder}.")
    return 0


@app.command(
    help_epilogue=examples(
        "ars sweep Swimmer-v1 --seeds 20",
        "ars sweep Hopper-v5 --seed-list 237,759,959 --grid alpha=0.01,0.02 --grid nu=0.02,0.03 --final-seeds 10",
        "ars sweep CartPole-v1 --seeds 10 --episodes 400 --threshold 475 --out runs/cartpole",
    )
)
def sweep(
    task: str,
    /,
    *,
    seeds: Annotated[Whole, Parameter(help="Number of seeds, drawn without repetition [default: 3].")] = None,
    draw: Draw = Draw(),  # noqa: B008 (frozen)
    grid: Annotated[
        list[str] | None,
        Parameter(consume_multiple=False, help="alpha=0.01,0.02, once per setting that varies; paper: its grid."),
    ] = None,
    final_seeds: Annotated[
        Whole, Parameter(help="Then train the chosen point on this many new seeds, and report both costs.")
    ] = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    episodes: Annotated[Whole, Parameter(help="Episode cap of each run; default: that of ars reproduce.")] = None,
    threshold: Annotated[float | None, Parameter(help="Reward threshold; default: the paper's.")] = None,
    until_threshold: Annotated[bool, Parameter(help="End each run when it reaches the threshold.")] = False,
    out: Annotated[Path | None, Parameter(group=OTHER, help="Output folder; default: runs/sweep-TASK.")] = None,
    many: Many = Many(),  # noqa: B008 (frozen)
) -> int:
    """Train on many seeds, and over a grid of settings, one single-threaded run per core.

    The same command continues after an interruption; finished runs are skipped. With a grid it chooses the point with
    the fewest mean episodes to the threshold, as table 1 does, and counts the rollouts that tuning took.
    """
    from ars.commands import file_words, train_words
    from ars.experiments.seeds import draw_seeds
    from ars.experiments.sweep import make_sweep, run_sweep
    from ars.settings import whole_number

    many.check()
    given = settings.given()
    chosen = draw.seeds(seeds, 3, given)
    others: tuple[int, ...] = ()
    if final_seeds is not None:
        other = whole_number("final_seeds", final_seeds, 1, draw.below)
        others = draw_seeds(other, below=draw.below, master=draw.master_seed, but=chosen)
    tuning = make_sweep(
        task, seeds=chosen, axes=grid or (), episodes=episodes, threshold=threshold, until_threshold=until_threshold,
        out=out, **given,
    )  # fmt: skip
    try:
        print(draw.said(chosen))
        tuned = run_sweep(tuning, many.run)
        print_left_out(tuned.problems)
        _print_ranking(tuned.rows, tuning.goal)
        spent = tuned.spent
        print(f"Rollouts: {spent[0]} of training, {spent[1]} of evaluation. The table is {tuning.folder}/sweep.csv.")
        outcomes = list(tuned.outcomes)
        if others and any(tuned.spent):  # a run that failed counts as one that never reached the threshold
            final = run_sweep(tuning.final(tuned.rows[0], others), many.run, name="final.csv")
            outcomes += final.outcomes
            print(f"The chosen point on seeds that tuning has not seen, {', '.join(map(str, others))} (final.csv):")
            _print_ranking(final.rows, tuning.goal)
            used = final.spent
            print(f"Rollouts: {used[0]} of training, {used[1]} of evaluation, besides {sum(spent)} for tuning.")
        if any(tuned.spent) and not many.quiet:
            best = tuning.chosen(tuned.rows[0])
            print("What to type next:")
            print(f"  {typed(train_words(best.config, best.stop))}")
            print(f"  {typed(file_words('report', tuning.folder, task))}")
    except KeyboardInterrupt:
        print(f"Interrupted: everything is saved in {tuning.folder}; the same command continues.")
        return interrupt_code()
    return report_failures(outcomes, quiet=many.quiet)


def _print_ranking(rows: "Sequence[Row]", goal: float | None) -> None:
    arrivals = () if goal is None else ("reached", f"episodes to {goal:g}")
    cells = []
    for row in rows:
        none = "not by all" if row.reached else "never"
        mean = none if math.isinf(row.mean_episodes) else f"{row.mean_episodes:.0f}"
        best = "–" if math.isinf(row.mean_best) else f"{row.mean_best:z.1f}"
        point = (f"{value:g}" for value in row.point.values())
        cells.append([*point, str(row.seeds), *(() if goal is None else (str(row.reached), mean)), best])
    print_table([*rows[0].point, "seeds", *arrivals, BEST], cells)
