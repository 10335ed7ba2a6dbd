"""The command line: parse → call → print. Heavy packages load inside the commands, so that help is instant."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Group, Parameter, Token

from ars.errors import ArsError, SettingError

if TYPE_CHECKING:
    from ars.stopping import Stop
    from ars.training import Session

DEFAULT_ITERATIONS = 1000  # where no stopping rule is given


def _examples(*commands: str) -> str:
    return "\n\n".join(["Examples:", *(f"`{command}`" for command in commands)])


app = App(
    name="ars",
    help="Augmented Random Search: static linear policies for continuous control, trained by random search.",
    help_epilogue=_examples(
        "ars train Swimmer-v5 --minutes 1",
        "ars evaluate runs/Swimmer-v5-V1-seed0/best.npz",
        "ars COMMAND --help",
    )
    + "\n\nAny command takes --debug to show the traceback of a mistake.",
    help_format="markdown",
    default_parameter=Parameter(negative=""),
    name_transform=lambda name: name.strip("_").replace("_", "-"),
    version_flags=["--version"],
)

_PAPER = Group("The paper's hyperparameters (default: the task's preset)", sort_key=1)
_STOP = Group("When to stop (whichever comes first; all count from the start of the run)", sort_key=2)
_EVALUATION = Group("Evaluation", sort_key=3)
_OTHER = Group("Other", sort_key=4)


def _whole(_kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number, also as 1e6; the library's own converter would round 3.5."""
    text = tokens[0].value
    try:
        value = float(text) if not text.lstrip("+-").isdigit() else int(text)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")) or value != int(value):
        raise ValueError(f"{text!r} is not a whole number.")
    return int(value)


Whole = Annotated[int | None, Parameter(converter=_whole)]
Workers = Annotated[Whole, Parameter(group=_OTHER, help="Threads or processes; default: all cores.")]
Where = Annotated[
    Literal["local", "ray"],
    Parameter(group=_OTHER, help="ray: the CPUs of a cluster (--address), or of a Ray of its own."),
]
Address = Annotated[str | None, Parameter(group=_OTHER, help="Of a Ray cluster: host:port, or auto.")]
Json = Annotated[bool, Parameter(name="--json", group=_OTHER, help="Machine-readable output.")]
Quiet = Annotated[bool, Parameter(group=_OTHER, help="No progress.")]
TaskName = Annotated[
    str | None,
    Parameter(
        name="--task",
        group=_OTHER,
        help="The task's name again; needed for code of your own (module:factory).",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """Overrides of the preset, by the paper's symbols."""

    variant: Annotated[
        Literal["BRS", "V1", "V1-t", "V2", "V2-t"] | None,
        Parameter(group=_PAPER, help="Which algorithm; V1-t and V2-t use the b best directions."),
    ] = None
    alpha: Annotated[float | None, Parameter(group=_PAPER, help="Step-size.")] = None
    nu: Annotated[float | None, Parameter(group=_PAPER, help="Standard deviation of the exploration noise.")] = None
    N: Annotated[Whole, Parameter(name="--N", group=_PAPER, help="Directions sampled per iteration.")] = None
    b: Annotated[
        int | None,
        Parameter(name="--b", group=_PAPER, help="Top-performing directions used, for V1-t and V2-t."),
    ] = None
    H: Annotated[Whole, Parameter(name="--H", group=_PAPER, help="Horizon of training rollouts.")] = None
    shift: Annotated[
        float | None,
        Parameter(group=_PAPER, help="Taken off the reward of every training step: the survival bonus."),
    ] = None
    seed: Annotated[int, Parameter(group=_OTHER, converter=_whole, help="All random numbers are a function of it.")] = 0
    eval_every: Annotated[
        int | None,
        Parameter(group=_EVALUATION, help="Iterations between evaluations [default: 10]; 0: never."),
    ] = None
    eval_episodes: Annotated[Whole, Parameter(group=_EVALUATION, help="Rollouts of an evaluation [default: 100].")] = (
        None
    )
    noise: Annotated[
        Literal["counter", "table"] | None,
        Parameter(group=_OTHER, help="Directions from counters [default], or from a shared table of numbers."),
    ] = None
    table_size: Annotated[Whole, Parameter(group=_OTHER, help="Numbers in that table [default: 25000000].")] = None
    stats_every: Annotated[
        Whole, Parameter(group=_OTHER, help="Gather states every so many iterations only [default: 1].")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StopRules:
    """The stopping rules."""

    iterations: Annotated[Whole, Parameter(group=_STOP, help="Iterations.")] = None
    episodes: Annotated[Whole, Parameter(group=_STOP, help="Training rollouts.")] = None
    timesteps: Annotated[Whole, Parameter(group=_STOP, help="Training timesteps.")] = None
    minutes: Annotated[float | None, Parameter(group=_STOP, help="Minutes of the whole run.")] = None
    until: Annotated[float | None, Parameter(group=_STOP, help="Mean reward of an evaluation.")] = None

    def stop(self) -> "Stop":
        from ars.stopping import Stop

        return Stop(**_set_fields(self))


def _set_fields(settings: Any) -> dict[str, Any]:
    return {f.name: value for f in fields(settings) if (value := getattr(settings, f.name)) is not None}


@app.command(
    help_epilogue=_examples(
        "ars train HalfCheetah-v5 --until 3430 --minutes 10",
        "ars train Hopper-v1 --variant V1 --alpha 0.02 --nu 0.02 --N 16 --seed 7",
        "ars train my_module:make_env --iterations 200",
    )
)
def train(
    task: str,
    /,
    *,
    out: Annotated[Path | None, Parameter(group=_OTHER, help="The run folder; default: a new one in runs/.")] = None,
    hyperparameters: Hyperparameters = Hyperparameters(),  # noqa: B008 (frozen)
    rules: StopRules = StopRules(),  # noqa: B008
    workers: Workers = None,
    executor: Where = "local",
    address: Address = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Train a policy.

    TASK is one of the six robots (`ars tasks`), any Gymnasium id, or `module:factory` for an environment of your own.
    Without a stopping rule it trains for 1000 iterations. Ctrl-C saves; `ars resume` goes on.
    """
    from ars.runs import free_folder
    from ars.stopping import Stop
    from ars.training import new_session

    session = new_session(
        task,
        _set_fields(hyperparameters),
        workers=_workers(workers, address),
        stop=rules.stop() or Stop(iterations=DEFAULT_ITERATIONS),
        out=free_folder if out is None else out,
        executor=executor,
        address=address,
    )
    return _run(session, as_json=json, quiet=quiet)


@app.command(help_epilogue=_examples("ars resume runs/HalfCheetah-v5-V2-seed0 --minutes 20"))
def resume(
    run: Path,
    /,
    *,
    rules: StopRules = StopRules(),  # noqa: B008
    task: TaskName = None,
    workers: Workers = None,
    executor: Where = "local",
    address: Address = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Continue a run from its last checkpoint, to the bits of an uninterrupted one.

    Stopping rules given here replace those of the run; everything else stays as it was.
    """
    from ars.training import old_session

    session = old_session(
        run, workers=_workers(workers, address), stop=rules.stop(), task=task, executor=executor, address=address
    )
    for note in session.run.notes if session.run else ():
        print(f"Note: {note}", file=sys.stderr)
    return _run(session, as_json=json, quiet=quiet)


@app.command(help_epilogue=_examples("ars evaluate runs/HalfCheetah-v5-V2-seed0/best.npz --episodes 100"))
def evaluate(
    policy: Path,
    /,
    *,
    task: TaskName = None,
    episodes: Annotated[int, Parameter(group=_OTHER, converter=_whole, help="Rollouts.")] = 100,
    seed: Annotated[int, Parameter(group=_OTHER, converter=_whole, help="Of the initial states.")] = 0,
    workers: Workers = None,
    json: Json = False,
) -> int:
    """Measure a saved policy with the task's own reward and horizon."""
    from ars.policy import LinearPolicy
    from ars.training import evaluate

    result = evaluate(LinearPolicy.load(policy), task, episodes=episodes, seed=seed, workers=_workers(workers))
    summary = result.summary()
    if json:
        _print_json(summary)
    elif summary["mean"] is None:
        print(f"None of the {episodes} episodes stayed finite.")
    else:
        print(f"reward   mean {summary['mean']:.2f}   std {summary['std']:.2f}   "
              f"min {summary['min']:.2f}   max {summary['max']:.2f}")  # fmt: skip
        steps = result.steps
        print(f"length   mean {steps.mean():.1f}   min {steps.min()}   max {steps.max()}   over {episodes} episodes")
        if result.dropped:
            print(f"{result.dropped} episodes became non-finite and are not counted.")
    return 0


@app.command(help_epilogue=_examples("ars tasks", "ars tasks --json"))
def tasks(*, json: Json = False) -> int:
    """List the built-in tasks with the paper's presets.

    Any Gymnasium id works too (`ars train CartPole-v1`), and `module:factory` for an environment of your own.
    """
    from ars.tasks.listing import rows

    found = rows()
    if json:
        _print_json(found)
        return 0
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "task",
        "n",
        "p",
        "horizon",
        "bonus",
        "threshold",
        "variant",
        "alpha",
        "nu",
        "N",
        "b",
        box=SIMPLE_HEAD,
        padding=0,
    )
    for row in found:
        limit = "" if row["threshold"] is None else f"{row['threshold']:g}"
        sizes = (str(row[name]) for name in ("n", "p", "H"))
        values = (f"{value:g}" for value in row["preset"].values())
        table.add_row(row["task"], *sizes, f"{row['survival_bonus']:g}", limit, row["variant"], *values)
    Console().print(table)
    return 0


@app.command(
    help_epilogue=_examples(
        "ars lqr", "ars lqr --extensions", "ars lqr --trials 20 --budget 1e5 --instance mine.json --out runs/mine"
    )
)
def lqr(
    *,
    trials: Annotated[int, Parameter(converter=_whole, help="Trials of each method.")] = 100,
    budget: Annotated[int, Parameter(converter=_whole, help="Timesteps of each trial.")] = 1_000_000,
    instance: Annotated[Path | None, Parameter(help="A JSON file with A, B, Q, R; default: the paper's.")] = None,
    seed: Annotated[int, Parameter(converter=_whole, help="Decides all random numbers.")] = 0,
    extensions: Annotated[bool, Parameter(help="Also what the paper does not have, labelled so.")] = False,
    out: Annotated[
        Path | None, Parameter(group=_OTHER, help="The folder; default: in runs/, named by the seed.")
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
    with _signals(), Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        shown = bar.add_task("LQR", total=None)
        try:
            done = compare(
                problem,
                out=folder,
                trials=trials,
                budget=budget,
                seed=seed,
                with_extensions=extensions,
                workers=_workers(workers),
                progress=lambda step: bar.update(shown, description=step.label, completed=step.done, total=step.total),
            )
        except KeyboardInterrupt as interrupt:
            bar.console.print(f"Interrupted: finished blocks are in {folder}; the same command goes on.")
            return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    print(done.table)
    if not quiet:
        print(f"The numbers and plots are in {folder}.")
    return 0


def _run(session: "Session", *, as_json: bool, quiet: bool) -> int:
    """Train with a display, and say where things are."""
    from rich.console import Console

    from ars.progress import display

    out = Console(stderr=as_json, highlight=False, soft_wrap=True)
    folder = session.run.path if session.run else Path()
    again = f"{_command()} resume {_shell(folder)}" + (
        f" --task {session.config.task}" if ":" in session.config.task else ""
    )
    if not quiet:
        out.print(_headline(session))
    record = None
    with _signals():
        try:
            with display(session.config, session.stop, as_json=as_json, quiet=quiet) as shown:
                for record in session.records():
                    shown.show(record)
        except KeyboardInterrupt as interrupt:
            out.print(f"Interrupted: everything is saved. Continue with: {again}")
            return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    if quiet:
        return 0
    if record is None:
        out.print(f"Nothing to do: {session.already()}. Give a later rule, e.g. {again} --iterations "
                  f"{session.state.j + DEFAULT_ITERATIONS}")  # fmt: skip
        return 0
    out.print(f"Stopped: {session.stop.reached(record)}.")
    best = session.run.best if session.run else None
    if best:
        out.print(f"The latest policy is {folder}/policy.npz; the best, {best.mean:.1f} at iteration "
                  f"{best.iteration}, is {folder}/best.npz.")  # fmt: skip
    else:
        out.print(f"The policy is {folder}/policy.npz; no evaluation was due yet.")
    out.print("What to type next:")
    out.print(f"  {_command()} evaluate {_shell(folder / ('best.npz' if best else 'policy.npz'))}")
    out.print(f"  {again} --iterations {record.iteration + DEFAULT_ITERATIONS}")
    return 0


def _headline(session: "Session") -> str:
    config = session.config
    names = ("alpha", "nu", "N", "b", "H", "shift", "seed")
    settings = ", ".join(f"{name} {getattr(config, name):g}" for name in names)
    rules = ", ".join(f"{name} {value:g}" for name, value in session.stop.to_dict().items())
    where = session.run.path if session.run else ""
    return f"{config.task} with {config.variant}: {settings}\nstops at {rules}; run folder {where}"


def _command() -> str:
    """How the user can call us: `ars`, or by its path where the environment is not activated."""
    import shutil

    here, found = Path(sys.argv[0]).absolute(), shutil.which("ars")
    if here.name != "ars" or (found is not None and Path(found).absolute() == here):
        return "ars"
    return _shell(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)


def _shell(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _workers(workers: int | None, address: str | None = None) -> int:
    from ars.executors import cores

    if workers is not None and address is not None:
        raise SettingError(f"workers = {workers} is for this machine: the cluster at {address} says what CPUs it has.")
    return cores() if workers is None else workers


def _print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


@contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: saved, and with a word on how to go on."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: list[str] | None = None) -> None:
    """The entry point: mistakes are one sentence and exit code 2."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (ArsError, CycloptsError) as error:
        if debug:
            raise
        print(f"ars: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `ars … | head`: nobody is listening any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(code or 0)
