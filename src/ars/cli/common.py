"""What the commands share: the app, flags that several take, and how a command meets its terminal."""

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter, Token

from ars.errors import SettingError


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
    + "\n\nAny command takes --debug to show the traceback of a mistake.",
    help_format="markdown",
    default_parameter=Parameter(negative=""),
    name_transform=lambda name: name.strip("_").replace("_", "-"),
    version_flags=["--version"],
)

PAPER = Group("The paper's hyperparameters (default: the task's preset)", sort_key=1)
STOP = Group("When to stop (whichever comes first; all count from the start of the run)", sort_key=2)
EVALUATION = Group("Evaluation", sort_key=3)
OTHER = Group("Other", sort_key=4)


def whole(_kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number, also as 1e6; the library's own converter would round 3.5."""
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
    Parameter(group=OTHER, help="ray: the CPUs of a cluster (--address), or of a Ray of its own."),
]
Address = Annotated[str | None, Parameter(group=OTHER, help="Of a Ray cluster: host:port, or auto.")]
Json = Annotated[bool, Parameter(name="--json", group=OTHER, help="Machine-readable output.")]
Quiet = Annotated[bool, Parameter(group=OTHER, help="No progress.")]
TaskName = Annotated[
    str | None,
    Parameter(
        name="--task",
        group=OTHER,
        help="The task's name again; needed for code of your own (module:factory).",
    ),
]


def set_fields(settings: Any) -> dict[str, Any]:
    return {f.name: value for f in fields(settings) if (value := getattr(settings, f.name)) is not None}


def command() -> str:
    """How the user can call us: `ars`, or by its path where the environment is not activated."""
    import shutil

    here, found = Path(sys.argv[0]).absolute(), shutil.which("ars")
    if here.name != "ars" or (found is not None and Path(found).absolute() == here):
        return "ars"
    return shell(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)


def shell(path: Path) -> str:
    import shlex

    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)  # else it would be read as a flag


def how_many(workers: int | None, address: str | None = None) -> int:
    from ars.executors import cores

    if workers is not None and address is not None:
        raise SettingError(f"workers = {workers} is for this machine: the cluster at {address} says what CPUs it has.")
    return cores() if workers is None else workers


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


@contextmanager
def signals() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: saved, and with a word on how to go on."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
