"""`module:attribute`: the user's own code, named on the command line."""

import importlib
import sys
from pathlib import Path
from typing import Any

from ars.errors import TaskError
from ars.files import one_line


def load(name: str) -> Any:
    """The attribute, or None where the module has none of that name (it may have registered a Gymnasium id)."""
    module_name, _, attribute = name.rpartition(":")
    if (here := str(Path.cwd())) not in sys.path:  # a console script does not look where the user is
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module_name), attribute, None)
    except (Exception, SystemExit) as error:  # whatever the user's module raises while it is imported
        said = f"{type(error).__name__}: {one_line(error)}"
        raise TaskError(f"Cannot import {module_name!r} of {name}: {said}") from error
