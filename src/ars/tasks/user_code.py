"""The user's own code: `module:attribute`, which only the user can name (a file cannot choose what is imported), or an
object, which gets such a name.

An object that Python can import under its name is found again by it: in worker processes, by `resume`, on the command
line. The name of any other object is `module:<…>`, and the object is needed wherever the task is.
"""

import importlib
import inspect
import shlex
import signal
import sys
from functools import reduce
from pathlib import Path
from typing import Any

from ars.errors import Interrupt, SettingError, TaskError
from ars.files import one_line
from ars.settings import shown
from ars.workers import is_guarded

LONGEST_NAME = 200  # characters that a message repeats
WANTED = "a name, a gymnasium.Env class, or a function without arguments that returns an environment"


def load(name: str) -> Any:
    """The attribute, or None if the module does not have it (it may have registered a Gymnasium id)."""
    name = importable(name)
    if needs_object(name):
        raise TaskError(f"{name} cannot be imported: only its program can train or evaluate it, with the object.")
    module_name, _, attribute = name.rpartition(":")
    if module_name == _main_name():  # importing it would run the script again
        return _find("__main__", attribute)
    if (here := str(Path.cwd())) not in sys.path:  # a console script does not search the current folder
        sys.path.insert(0, here)
    try:
        importlib.import_module(module_name)
        return _find(module_name, attribute)
    except BaseException as error:  # anything that the user's module raises
        if is_interrupt(error):
            raise
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise TaskError(f"Cannot import {module_name!r} of {name}: {reason}") from error


def importable(name: str) -> str:
    """FILE.py:NAME, as people type it, as `module:NAME`; any other name as it is."""
    file, _, attribute = name.rpartition(":")
    if not file.endswith(".py"):
        return name
    try:
        path = (Path.cwd() / file).resolve().relative_to(Path.cwd().resolve()).with_suffix("")
    except ValueError as error:
        raise TaskError(f"{shown(file)} is not below the current folder: change to the folder of the file.") from error
    return f"{'.'.join(path.parts)}:{attribute}"


def is_interrupt(error: BaseException) -> bool:
    """Whether a signal interrupted the user's code, as opposed to a KeyboardInterrupt of its own: the handlers of the
    command line and of workers raise an Interrupt; with Python's own handler nobody can tell."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    return isinstance(error, Interrupt) or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _find(module: str, path: str) -> Any:
    """What an imported module has under a path such as `Boat` or `Boat.Small`, or None."""
    return reduce(lambda found, part: getattr(found, part, None), path.split("."), sys.modules.get(module))


def _main_name() -> str | None:
    """The name under which the main script can be imported; None for a notebook, a console script and the like."""
    main = sys.modules["__main__"]
    if spec := getattr(main, "__spec__", None):  # python -m
        return None if spec.name.endswith("__main__") else str(spec.name)
    file = Path(getattr(main, "__file__", None) or "")
    return file.stem if file.suffix == ".py" and "." not in file.stem else None


def name_of(task: Any) -> str:
    """The name of a task that the user gave by its name or as an object; TaskError if it is neither."""
    from ars.tasks.robots import find

    if isinstance(task, str):
        return importable(task)
    if isinstance(task, find.AnyRobot):
        return find.name_of(task)
    _check_factory(task)
    made_by = task if hasattr(task, "__qualname__") else getattr(task, "func", type(task))  # func: functools.partial
    module, path = str(made_by.__module__), str(made_by.__qualname__)
    found = _find(module, path) is task
    if module in ("__main__", "__mp_main__"):  # __mp_main__: the same script in a worker process
        found = found and _main_name() is not None and not is_guarded(_line_of(task))
        module = _main_name() or "__main__"
    if found:
        return f"{module}:{path}"
    return f"{module}:<{path.replace('<locals>.', '').replace('<', '').replace('>', '')}>"


def _line_of(task: Any) -> int:
    """Where a class or function is defined in its file; 0 if that is unknown."""
    try:
        return inspect.getsourcelines(task)[1]
    except (OSError, TypeError):
        return 0


def needs_object(name: str) -> bool:
    """Whether a task of this name can only be made from the object that the name stands for."""
    return ":<" in name and name.endswith(">")


def _check_factory(task: Any) -> None:
    import gymnasium

    if isinstance(task, gymnasium.Env):
        raise TaskError(
            f"task = {shown(task)} is an environment, and every worker needs its own: give its name or class, or a "
            "function that makes it."
        )
    if not callable(task):
        raise TaskError(f"task = {shown(task)} is not a task: give {WANTED}.")
    if isinstance(task, type) and not issubclass(task, gymnasium.Env):
        raise TaskError(f"task = {shown(task)} is not a subclass of gymnasium.Env: give {WANTED}.")
    try:
        signature = inspect.signature(task)
    except (ValueError, TypeError):  # some callables in C have none
        return
    try:
        signature.bind()
    except TypeError as error:
        raise TaskError(f"task = {shown(task)} needs arguments ({error}): give a function without any.") from error


def confirmed(name: Any, task: str | None, what: str) -> str:
    """The task's name: `task` if the user gave one, otherwise the `name` in the file, unless it would import code.
    `what` is the subject of the message, such as "This policy"."""
    if task is not None:
        return task
    if not isinstance(name, str):
        raise SettingError(f"{what} does not name its task: name it with --task.")
    if ":" in name and not (name.isprintable() and len(name) < LONGEST_NAME):  # not safe to print
        raise SettingError(f"{what} is for code of your own whose name cannot be shown: name the task with --task.")
    if needs_object(name):
        raise SettingError(f"{what} is for {name}, an object of your program: give that object as `task`.")
    if ":" in name:
        raise SettingError(f"{what} is for {name}, code of your own: confirm it with{task_flag(name)}.")
    return name


def task_flag(name: str) -> str:
    """The flag that a command on a file of this task needs: ` --task module:factory`, quoted for the shell, or ""."""
    if ":" not in name:
        return ""
    return f" --task{'=' if name.startswith('-') else ' '}{shlex.quote(name)}"
