"""What the commands share: the app, common flags, and functions for output."""

import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter, Token

from ars.errors import SettingError

try:
    STARTED_IN = Path.cwd()  # an environment may go elsewhere
except OSError:  # it is deleted
    STARTED_IN = Path()


def examples(*commands: str) -> str:
    return "\n\n".join(["Examples:", *(f"`{command}`" for command in commands)])


app = App(
    name="ars",
    help="Augmented Random Search: static linear policies for continuous control, trained by random search.",
    help_epilogue=examples(
        "ars train Swimmer-v5 --minutes 1",
        "ars evaluate runs/Swimmer-v5-V1-seed0/best.npz",
        "ars COMMAND --help",
    )
    + "\n\nAny command accepts --debug, which shows the traceback of an error.",
    help_format="markdown",
    default_parameter=Parameter(negative=""),
    name_transform=lambda name: name.strip("_").replace("_", "-"),
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # main knows which signal it was
)

PAPER = Group("The paper's hyperparameters (default: the task's preset)", sort_key=1)
STOP = Group("When to stop (whichever applies first; all count from the start of the run)", sort_key=2)
EVALUATION = Group("Evaluation", sort_key=3)
OTHER = Group("Other", sort_key=4)


def whole(_kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number, which may be written as 1e6; cyclopts' own converter would round 3.5."""
    text = tokens[0].value
    try:
        value = float(text) if not text.lstrip("+-").isdigit() else int(text)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")) or value != int(value):
        raise ValueError(f"{text!r} is not a whole number.")
    return int(value)


Whole = Annotated[int | None, Parameter(converter=whole)]
Workers = Annotated[Whole, Parameter(group=OTHER, help="Threads or processes; default: all cores.")]
Where = Annotated[
    Literal["local", "ray"],
    Parameter(group=OTHER, help="ray: the CPUs of a cluster (--address), or a private Ray on this machine."),
]
Address = Annotated[str | None, Parameter(group=OTHER, help="Address of a Ray cluster: host:port, or auto.")]
Json = Annotated[bool, Parameter(name="--json", group=OTHER, help="Machine-readable output.")]
Quiet = Annotated[bool, Parameter(group=OTHER, help="Print no progress.")]
TaskName = Annotated[
    str | None,
    Parameter(
        name="--task",
        group=OTHER,
        help="The task's name; required for your own code (module:factory).",
    ),
]


def set_fields(settings: Any) -> dict[str, Any]:
    return {f.name: value for f in fields(settings) if (value := getattr(settings, f.name)) is not None}


def command() -> str:
    """How the user can call us: `ars`, or its path if the environment is not activated."""
    import shutil

    here, on_path = STARTED_IN / sys.argv[0], shutil.which("ars")
    if here.name != "ars" or (on_path is not None and STARTED_IN / on_path == here):
        return "ars"
    return shell(here.relative_to(STARTED_IN) if here.is_relative_to(STARTED_IN) else here)


def typed(words: Sequence[str]) -> str:
    """A command of ars as the user types it; `words` are those of ars.commands."""
    import shlex

    return f"{command()} {shlex.join(words)}"


def shell(path: Path) -> str:
    import shlex

    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)  # otherwise it would be read as a flag


def how_many(workers: int | None, address: str | None = None) -> int:
    from ars.executors import cores

    if workers is not None and address is not None:
        raise SettingError(f"workers = {workers} is for this machine: omit it to use the cluster at {address}.")
    return cores() if workers is None else workers


def print_written(path: Path, text: str) -> None:
    """Print what was written; to standard error if it went to standard output, as with --out /dev/stdout."""
    from ars.files import is_stream

    print(text, file=sys.stderr if is_stream(path) else sys.stdout)


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(*heads, box=SIMPLE_HEAD, padding=0)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)
