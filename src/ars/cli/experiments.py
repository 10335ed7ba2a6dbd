"""ars lqr, sweep, reproduce: the paper's experiments."""

import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ars.cli.common import OTHER, Address, Quiet, Where, Whole, Workers, app, examples, how_many, signals, whole
from ars.errors import SettingError

if TYPE_CHECKING:
    from ars.experiments.crew import Order, Outcome
    from ars.experiments.sweep import Row


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Crew:
    """Who runs many runs."""

    jobs: Annotated[Whole, Parameter(group=OTHER, help="Runs at a time, one core each; default: all cores.")] = None
    executor: Where = "local"
    address: Address = None
    quiet: Quiet = False

    def cores(self) -> int:
        from ars.config import whole_number

        return whole_number("jobs", how_many(self.jobs, self.address), 1, 4096)

    def run(self, orders: "Sequence[Order]", *, minutes: float | None = None) -> "list[Outcome]":
        """Run what is not done yet, with a display; an interruption leaves everything saved."""
        from ars.config import finite_number
        from ars.experiments.cost import costs
        from ars.experiments.crew import run_all, run_all_on_ray, to_do
        from ars.experiments.display import display

        jobs = self.cores()
        if minutes is not None:
            if self.executor == "ray":
                raise SettingError("minutes cannot be kept with --executor ray: interrupt it, everything is saved.")
            if not finite_number("minutes", minutes) > 0:
                raise SettingError(f"minutes = {minutes:g} must be larger than 0.")
        orders = to_do(orders)
        if not orders:
            return []
        outcomes = []
        with signals(), display(costs(order.plan for order in orders), quiet=self.quiet) as shown:
            if self.executor == "ray":
                ended = run_all_on_ray(orders, jobs=self.jobs, address=self.address)
            else:
                ended = run_all(orders, jobs=jobs, watch=shown.watch, minutes=minutes)
            with closing(ended):
                for outcome in ended:
                    outcomes.append(outcome)
                    shown.ended(outcome)
        return outcomes


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
    with signals(), Progress(*columns, console=Console(stderr=True), disable=quiet or not sys.stderr.isatty()) as bar:
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
    seeds: Annotated[Whole, Parameter(help="How many seeds, drawn without repetition [default: 3].")] = None,
    seed_list: Annotated[str | None, Parameter(help="The seeds themselves: 237,759,959.")] = None,
    below: Annotated[int, Parameter(converter=whole, help="Seeds are drawn from 0 to this, exclusive.")] = 10_000,
    master_seed: Annotated[int, Parameter(converter=whole, help="Decides which seeds are drawn.")] = 2018,
    grid: Annotated[
        list[str] | None,
        Parameter(consume_multiple=False, help="alpha=0.01,0.02, for each that varies; paper: its whole grid."),
    ] = None,
    final_seeds: Annotated[
        Whole, Parameter(help="Then train the chosen point on this many other seeds, and report both costs.")
    ] = None,
    variant: Annotated[
        Literal["BRS", "V1", "V1-t", "V2", "V2-t"] | None, Parameter(help="Default: the task's.")
    ] = None,
    episodes: Annotated[Whole, Parameter(help="The cap of each run; default: the reproduction's.")] = None,
    eval_episodes: Annotated[int, Parameter(converter=whole, help="Rollouts of an evaluation.")] = 100,
    threshold: Annotated[float | None, Parameter(help="The goal; default: the paper's.")] = None,
    until_threshold: Annotated[bool, Parameter(help="End each run when it gets there.")] = False,
    out: Annotated[Path | None, Parameter(group=OTHER, help="Default: runs/sweep-TASK.")] = None,
    crew: Crew = Crew(),  # noqa: B008 (frozen)
) -> int:
    """Train on many seeds, and over a grid of hyperparameters, one single-threaded run a core.

    The same command continues where an interrupted one stopped; finished runs are skipped. With a grid it chooses the
    point as table 1 does, by the least mean episodes to the threshold, and counts the rollouts that tuning took.
    """
    from ars.experiments.seeds import draw_seeds
    from ars.experiments.sweep import ranking, rollouts, study, table
    from ars.files import write_atomic

    count = 3 if seeds is None and seed_list is None else seeds
    chosen = _seeds(count, seed_list, below, master_seed) or ()
    others = () if final_seeds is None else draw_seeds(final_seeds, below=below, master=master_seed, but=chosen)
    tuning = study(
        task, seeds=chosen, variant=variant, axes=grid or (), episodes=episodes, eval_episodes=eval_episodes,
        threshold=threshold, until_threshold=until_threshold, out=out,
    )  # fmt: skip
    try:
        print(f"Seeds {', '.join(map(str, chosen))}.")
        outcomes = crew.run(tuning.orders())
        rows, spent = ranking(tuning.curves(), tuning.goal, len(chosen)), rollouts(tuning.curves())
        write_atomic(tuning.folder / "sweep.csv", table(rows).encode())
        _print_ranking(rows, tuning.goal)
        print(f"Rollouts: {spent[0]} of training, {spent[1]} of evaluation. The table is {tuning.folder}/sweep.csv.")
        if others and rows and not any(outcome.failure for outcome in outcomes):
            final = tuning.final(rows[0].point, others)
            outcomes += crew.run(final.orders())
            print(f"The chosen point on {final_seeds} seeds that tuning has not seen:")
            _print_ranking(ranking(final.curves(), tuning.goal, len(others)), tuning.goal)
            print(f"Training rollouts: {spent[0]} for tuning, {rollouts(final.curves())[0]} for the final runs.")
    except KeyboardInterrupt as interrupt:
        print(f"Interrupted: everything is saved in {tuning.folder}; the same command goes on.")
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    return _report_failures(outcomes)


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
    seeds: Annotated[Whole, Parameter(help="Run only the first so many of figure 3's 100 seeds.")] = None,
    minutes: Annotated[float | None, Parameter(help="Stop running after this long, and draw what is there.")] = None,
    dry_run: Annotated[bool, Parameter(help="Say what would run and what it costs; nothing else.")] = False,
    draw: Annotated[bool, Parameter(help="Run nothing: draw from the results that are there.")] = False,
    to_cap: Annotated[bool, Parameter(help="Go on to the cap where a run would end at its threshold.")] = False,
    out: Annotated[Path, Parameter(group=OTHER, help="The results.")] = Path("results"),
    runs: Annotated[Path, Parameter(group=OTHER, help="The run folders, from which runs go on.")] = Path("runs/paper"),
    crew: Crew = Crew(),  # noqa: B008 (frozen)
) -> int:
    """Make a table or figure of the paper again: table1 … table7, figure1 … figure5, or all.

    It says what the missing runs cost on this machine, runs them, and draws what is there with the published values
    beside. Runs that are in the results already are not repeated; another --out starts afresh.
    """
    from ars.experiments import reproduce as again
    from ars.experiments.cost import costs, in_words
    from ars.experiments.crew import Order, collect, keep_unfinished

    request = again.Request(
        again.names(target), out, ",".join(tasks).split(",") if tasks else None, _seeds(seeds, seed_list), to_cap,
        own_seeds=seed_list is not None,
    )  # fmt: skip
    if dry_run and draw:
        raise SettingError("dry_run and draw contradict each other: give one of them.")
    if not (dry_run or draw):
        for problem in collect(runs, out / "runs"):
            print(f"Left out: {problem}", file=sys.stderr)
    todo = [] if draw else request.to_do()
    lqr_to_do = "figure5" in request.names and not draw and not again.lqr_is_there(out)
    if not draw:
        cores = crew.cores()
        found = costs(todo)
        for name in request.names:
            plans = request.plans(name)
            mine = [plan for plan in dict.fromkeys(plans) if plan in found]
            spent = sum(found[plan] for plan in mine)
            need = (
                f"at most {in_words(spent)} of one core, {in_words(spent / cores)} on {cores}"
                if mine
                else "nothing to run"
            )
            if name == "figure5":
                need = "about 10 min of one core (ars lqr)" if lqr_to_do else "nothing to run"
            print(f"{name:8} {len(set(plans))} runs, {len(set(plans)) - len(mine)} there: {need}")
        if dry_run:
            return 0
    outcomes: list[Outcome] = []
    try:
        orders = [Order(plan, runs, out / "runs") for plan in todo]
        outcomes = crew.run(orders, minutes=minutes)
        keep_unfinished(runs, out / "runs")
    except KeyboardInterrupt as interrupt:
        print("Interrupted: everything is saved; the same command goes on, and --draw shows what is there.")
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    if lqr_to_do and minutes is None:  # it has no limit of its own
        code = lqr(
            trials=again.LQR_TRIALS, budget=again.LQR_BUDGET, seed=again.LQR_SEED, out=out / "lqr", quiet=crew.quiet
        )
        if code:
            return code
    for name in request.names:
        for path in again.draw(request, name):
            print(path)
    print(again.write_index(out))
    return _report_failures(outcomes)


def _seeds(
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


def _print_ranking(rows: "Sequence[Row]", goal: float | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    to = f"episodes to {goal:g}" if goal is not None else "episodes"
    table = Table("alpha", "nu", "N", "b", "seeds", "reached", to, "best reward", box=SIMPLE_HEAD, padding=0)
    for row in rows:
        mean = "never" if row.mean_episodes == float("inf") else f"{row.mean_episodes:.0f}"
        cells = (f"{value:g}" for value in row.point)
        table.add_row(*cells, str(row.seeds), str(row.reached), mean, f"{row.mean_best:.1f}")
    Console().print(table)


def _report_failures(outcomes: "Sequence[Outcome]") -> int:
    """A failed run is reported and not fatal; the exit code tells scripts."""
    from ars.experiments.display import sentence

    failed = [outcome for outcome in outcomes if outcome.curve is None]
    for outcome in failed:
        print(sentence(outcome))
    if failed:
        print(f"{len(failed)} of {len(outcomes)} runs failed; the same command tries them again.")
    return 1 if failed else 0
