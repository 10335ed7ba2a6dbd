"""ars train, resume, evaluate, tasks."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import (
    OTHER,
    STOP,
    Address,
    Json,
    Quiet,
    TaskName,
    Where,
    Whole,
    Workers,
    app,
    examples,
    how_many,
    print_json,
    set_fields,
    typed,
    whole,
)
from ars.cli.process import interrupt_code
from ars.cli.settings import Settings
from ars.errors import OutputError

if TYPE_CHECKING:
    from ars.sessions import Session
    from ars.stopping import Stop

DEFAULT_ITERATIONS = 1000  # without a stopping rule
StepTimeout = Annotated[
    float | None,
    Parameter(group=OTHER, help="Replace a worker whose environment takes longer for one step; in seconds."),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StopRules:
    """The stopping rules."""

    iterations: Annotated[Whole, Parameter(group=STOP, help="Iterations.")] = None
    episodes: Annotated[Whole, Parameter(group=STOP, help="Training rollouts.")] = None
    timesteps: Annotated[Whole, Parameter(group=STOP, help="Training timesteps.")] = None
    minutes: Annotated[float | None, Parameter(group=STOP, help="Minutes of the whole run.")] = None
    until: Annotated[float | None, Parameter(group=STOP, help="Mean reward of an evaluation.")] = None

    def stop(self) -> "Stop":
        from ars.stopping import Stop

        return Stop(**set_fields(self))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Dashboards:
    """Where else to send the records."""

    tensorboard: Annotated[
        bool, Parameter(group=OTHER, help="Write TensorBoard event files to the run folder (extra: tensorboard).")
    ] = False
    wandb: Annotated[bool, Parameter(group=OTHER, help="Log to Weights & Biases (extra: wandb).")] = False

    def names(self) -> list[str]:
        """The requested dashboards, which are all installed."""
        from ars.dashboards import check_installed

        names = [f.name for f in fields(self) if getattr(self, f.name)]
        check_installed(names)
        return names


@app.command(
    help_epilogue=examples(
        "ars train HalfCheetah-v5 --until 3430 --minutes 10",
        "ars train Hopper-v1 --variant V1 --alpha 0.02 --nu 0.02 --N 16 --seed 7",
        "ars train my_module:make_env --iterations 200",
    )
)
def train(
    task: str,
    /,
    *,
    out: Annotated[Path | None, Parameter(group=OTHER, help="Run folder; default: a new one in runs/.")] = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    start: Annotated[
        str | None,
        Parameter(name="--from", group=OTHER, help="Start from this policy (as in ars evaluate) instead of M = 0."),
    ] = None,
    start_weight: Annotated[
        Whole,
        Parameter(name="--from-weight", group=OTHER, help="How many states its statistics count for; 0: fresh ones."),
    ] = None,
    rules: StopRules = StopRules(),
    dashboards: Dashboards = Dashboards(),
    workers: Workers = None,
    executor: Where = "local",
    address: Address = None,
    step_timeout: StepTimeout = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Train a policy.

    TASK is one of the six robots (`ars tasks`), any Gymnasium id, or `module:factory` for your own environment.
    Without a stopping rule it trains for 1000 iterations. Ctrl-C saves the run; `ars resume` continues it.
    A robot has the paper's settings, any other task those that `ars tasks` names; the run prints them as it begins.
    """
    from ars.runs import free_folder
    from ars.sessions import new_session
    from ars.stopping import Stop
    from ars.warm_start import warm_start_of

    names = dashboards.names()
    session = new_session(
        task,
        settings.given(),
        workers=how_many(workers, address),
        stop=rules.stop() or Stop(iterations=DEFAULT_ITERATIONS),
        out=free_folder if out is None else out,
        executor=executor,
        address=address,
        start=warm_start_of(start, start_weight, task),
        step_timeout=step_timeout,
    )
    if out is None and session.run:
        out = Path("runs") / session.run.path.name
    return run_session(session, out or Path(), as_json=json, quiet=quiet, dashboards=names)


@app.command(help_epilogue=examples("ars resume runs/HalfCheetah-v5-V2-seed0 --minutes 20"))
def resume(
    run: Path,
    /,
    *,
    rules: StopRules = StopRules(),
    dashboards: Dashboards = Dashboards(),
    task: TaskName = None,
    workers: Workers = None,
    executor: Where = "local",
    address: Address = None,
    step_timeout: StepTimeout = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Continue a run from its last checkpoint, with the same bits as if it had not been interrupted.

    Stopping rules given here replace those of the run; its other settings cannot be changed.
    """
    from ars.sessions import resume_session

    names = dashboards.names()
    session = resume_session(
        run, workers=how_many(workers, address), stop=rules.stop(), task=task, executor=executor, address=address,
        step_timeout=step_timeout,
    )  # fmt: skip
    for note in session.run.notes if session.run else ():
        print(f"Note: {note}", file=sys.stderr)
    return run_session(session, run, as_json=json, quiet=quiet, dashboards=names)


@app.command(
    help_epilogue=examples(
        "ars evaluate runs/HalfCheetah-v5-V2-seed0 --episodes 100",
        "ars evaluate Hopper-v1",
        "ars evaluate lin_policy_plus.npz --task Walker2d-v1",
    )
)
def evaluate(
    policy: str,
    /,
    *,
    task: TaskName = None,
    episodes: Annotated[int, Parameter(group=OTHER, converter=whole, help="Number of rollouts.")] = 100,
    seed: Annotated[int, Parameter(group=OTHER, converter=whole, help="Seed of the initial states.")] = 0,
    workers: Workers = None,
    json: Json = False,
) -> int:
    """Measure a saved policy with the task's own reward and horizon.

    POLICY is a file, a run folder (its best policy), the name of a policy that comes with ars, or, with `--task`, a
    file of the paper's authors or of sb3-contrib.
    """
    from ars.policies import notes_of, open_any_policy
    from ars.progress import bar
    from ars.sessions import evaluate

    opened = open_any_policy(policy, task)
    for note in notes_of(opened):
        print(f"Note: {note}", file=sys.stderr)
    with bar(quiet=json or not sys.stderr.isatty()) as shown:
        result = evaluate(
            opened, task, episodes=episodes, seed=seed, workers=how_many(workers),
            progress=lambda done: shown.at(f"evaluating, {episodes} rollouts", done / episodes),
        )  # fmt: skip
    summary = result.summary()
    if json:
        print_json(summary)
    elif summary["mean"] is None:
        print(f"None of the {episodes} episodes stayed finite.")
    else:
        print(f"reward   mean {summary['mean']:z.2f}   std {summary['std']:.2f}   "
              f"min {summary['min']:z.2f}   max {summary['max']:z.2f}")  # fmt: skip
        steps = result.steps
        print(f"length   mean {steps.mean():.1f}   min {steps.min()}   max {steps.max()}   over {episodes} episodes")
        if result.dropped:
            print(f"{result.dropped} episodes were not finite and are not counted.")
    return 0


@app.command(help_epilogue=examples("ars tasks", "ars tasks --json"))
def tasks(*, json: Json = False) -> int:
    """List the built-in tasks with the paper's presets, and the policies that come with ars.

    Any Gymnasium id works too (`ars train CartPole-v1`), and `module:factory` for your own environment.
    """
    from ars.catalogue import DEFINITIONS, rows
    from ars.policies import evaluations
    from ars.presets import suggested
    from ars.tasks.robots.find import OURS

    built_in, policies = rows(), evaluations()
    if json:
        for row in built_in:
            row["policies"] = {name: one["mean"] for name, one in policies.items() if one["task"] == row["task"]}
        print_json(built_in)
        return 0
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    columns = "task", "n", "p", "horizon", "bonus", "threshold", "variant", "alpha", "nu", "N", "b"
    table = Table(*columns, box=SIMPLE_HEAD, padding=0)
    for row in built_in:
        limit = "" if row["threshold"] is None else f"{row['threshold']:g}"
        sizes = (str(row[name]) for name in ("n", "p", "H"))
        values = (f"{value:g}" for value in row["preset"].values())
        table.add_row(row["task"], *sizes, f"{row['survival_bonus']:g}", limit, row["variant"], *values)
    out = Console(highlight=False, soft_wrap=True)
    out.print(table, soft_wrap=False)
    for name, text in DEFINITIONS.items():
        out.print(f"-{name}  {text}")
    n, p, H = (built_in[0][name] for name in ("n", "p", "H"))
    out.print(f"Robots that are described by terms (ars robot check NAME): {', '.join(OURS)}.")
    search, settings = suggested(n, p, H)
    chosen = ", ".join(f"{name} {value:g}" for name, value in settings.items())
    out.print(f"Any other task, for example of n {n}, p {p} and horizon {H}: the search {search} with {chosen}.")
    if policies:
        out.print("\nPolicies that come with ars (ars watch NAME), and their rewards in 100 episodes:")
    for name, one in policies.items():
        out.print(f"  {name:<24}{one['mean']:z8.1f} ± {one['std']:.1f}, min {one['min']:z.1f}")
    return 0


def run_session(session: "Session", folder: Path, *, as_json: bool, quiet: bool, dashboards: Sequence[str] = ()) -> int:
    """Train with a display, and print where the results are: in `folder`, as the user calls it."""
    from rich.console import Console

    from ars.commands import file_words
    from ars.dashboards import open_dashboards
    from ars.progress import display

    out = Console(stderr=as_json, highlight=False, markup=False, emoji=False, soft_wrap=True)
    task = session.config.task
    again = typed(file_words("resume", folder, task))
    record = None
    try:
        if not quiet:
            out.print(_headline(session, folder))
        with (
            open_dashboards(
                dashboards,
                session.run.path if session.run else folder,
                session.config,
                session.state,
                say=lambda note: print(note, file=sys.stderr),
            ) as sent,
            display(session.config, session.stop, seconds=session.seconds, as_json=as_json, quiet=quiet) as shown,
            closing(session.records(shown.phase)) as records,
            _sentence_at_exit(again),
        ):
            for record in records:
                shown.record(record)
                sent.record(record)
    except KeyboardInterrupt:
        out.print(f"Interrupted: everything is saved. Continue with: {again}")
        return interrupt_code()
    except OutputError as error:
        raise OutputError(f"{error} The run is saved: continue with {again}") from error.__cause__
    if quiet:
        return 0
    if record is None:
        out.print(f"Nothing to do: {session.already()}. Raise the limit, e.g. {again} --iterations "
                  f"{session.state.j + DEFAULT_ITERATIONS}")  # fmt: skip
        return 0
    out.print(f"Stopped: {session.stop.reached(record)}.")
    best = session.run.best if session.run else None
    if best:
        out.print(f"The latest policy is {folder}/policy.npz; the best, {best.mean:z.1f} at iteration "
                  f"{best.iteration}, is {folder}/best.npz.")  # fmt: skip
    else:
        out.print(f"The policy is {folder}/policy.npz; it has not been evaluated yet.")
    out.print("What to type next:")
    policy = folder / ("best.npz" if best else "policy.npz")
    for words in (file_words("evaluate", policy, task), file_words("watch", policy, task)):
        out.print(f"  {typed(words)}")
    out.print(f"  {typed(file_words('report', folder, task))}")
    out.print(f"  {again} --iterations {record.iteration + DEFAULT_ITERATIONS}")
    return 0


@contextmanager
def _sentence_at_exit(again: str) -> Iterator[None]:
    """Say a sentence if an environment in this process calls os._exit: otherwise its exit code, perhaps 0, would be all
    that the user gets."""
    leave, us = os._exit, os.getpid()

    def explain_and_leave(code: int) -> None:
        if os.getpid() != us:  # a child of the environment's own
            leave(code)
        words = f"ars: The environment ended this process by os._exit({code}). Continue with {again}\n"
        with suppress(OSError):
            os.write(2, words.encode(errors="replace"))
        leave(2)

    os._exit = explain_and_leave  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


def _headline(session: "Session", folder: Path) -> str:
    from ars.searches import search_settings

    config = session.config
    values = {**search_settings(config.search), "H": config.H, "shift": config.shift, "seed": config.seed}
    settings = ", ".join(f"{name} {value:g}" for name, value in values.items())
    rules = ", ".join(f"{name} {value:g}" for name, value in session.stop.to_dict().items())
    return f"{config.task} with {config.label}: {settings}\nstops at {rules}; run folder {folder}"
