"""The command line: parse → call → print. Commands import heavy packages themselves, so that help is instant."""

import io
import logging
import os
import sys

from cyclopts import CycloptsError

from ars.cli import ask_tell, convert, experiments, reproduce, training, view  # noqa: F401 (they add their commands)
from ars.cli.common import app
from ars.errors import ArsError, sentence


def main(arguments: list[str] | None = None) -> None:
    """The entry point; an error prints one sentence and exits with 2."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # without a home, one note on folders is enough: ours
    arguments = [argument for argument in arguments if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name need not be valid Unicode
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (ArsError, CycloptsError) as error:
        if debug:
            raise
        print(f"ars: {sentence(error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `ars … | head` closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(code or 0)
