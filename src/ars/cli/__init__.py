"""The command line: parse → call → print. Commands import heavy packages themselves, so that help is instant."""

import logging
import signal
import sys

from cyclopts import CycloptsError

from ars.cli import (  # noqa: F401 (they add their commands)
    ask_tell,
    convert,
    experiments,
    race,
    reproduce,
    rivals,
    robots,
    study,
    training,
    view,
)
from ars.cli.common import app
from ars.cli.process import flush_or_give_up, guard_output, interrupt_code, signals
from ars.errors import ArsError, OutputError, sentence


def main(arguments: list[str] | None = None) -> None:
    """The entry point; an error prints one sentence and exits with 2."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # without a home, one note on folders is enough: ours
    arguments = [argument for argument in arguments if argument != "--debug"]
    guard_output()
    try:
        with signals():
            code = _call(arguments)
            sys.stdout.flush()  # here, where an error is still a sentence
    except (ArsError, CycloptsError) as error:
        if debug:
            raise
        if isinstance(error, OutputError) and isinstance(error.__cause__, BrokenPipeError):
            code = 128 + signal.SIGPIPE  # `ars … | head` closed the pipe: nothing to say
        else:
            print(f"ars: {sentence(error)}", file=sys.stderr)
            code = 2
    except KeyboardInterrupt:
        code = interrupt_code()
    flush_or_give_up()
    sys.exit(code)


def _call(arguments: list[str]) -> int:
    try:
        return app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
