"""`module:attribute`: the user's own code, which only the user can name; a file cannot choose what is imported."""

import importlib
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

from ars.errors import SettingError, TaskError
from ars.files import one_line

LONGEST_NAME = 200  # characters that a message repeats


def load(name: str) -> Any:
    """The attribute, or None if the module does not have it (it may have registered a Gymnasium id)."""
    module_name, _, attribute = name.rpartition(":")
    if (here := str(Path.cwd())) not in sys.path:  # a console script does not search the current folder
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module_name), attribute, None)
    except BaseException as error:  # anything that the user's module raises
        if is_interrupt(error):
            raise
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise TaskError(f"Cannot import {module_name!r} of {name}: {reason}") from error


def is_interrupt(error: BaseException) -> bool:
    """Whether a signal interrupted the user's code, as opposed to a KeyboardInterrupt of its own: the handlers of the
    command line and of workers add the signal's number; with Python's own handler nobody can tell."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    return bool(error.args) or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def confirmed(name: Any, task: str | None, what: str) -> str:
    """The task's name: `task` if the user gave one, otherwise the `name` in the file, unless it would import code.
    `what` is the subject of the message, such as "This policy"."""
    if task is not None:
        return task
    if not isinstance(name, str):
        raise SettingError(f"{what} does not name its task: name it with --task.")
    if ":" in name and not (name.isprintable() and len(name) < LONGEST_NAME):  # not safe to print
        raise SettingError(f"{what} is for code of your own whose name cannot be shown: name the task with --task.")
    if ":" in name:
        raise SettingError(f"{what} is for {name}, code of your own: confirm it with{task_flag(name)}.")
    return name


def task_flag(name: str) -> str:
    """The flag that a command on a file of this task needs: ` --task module:factory`, quoted for the shell, or ""."""
    if ":" not in name:
        return ""
    return f" --task{'=' if name.startswith('-') else ' '}{shlex.quote(name)}"
