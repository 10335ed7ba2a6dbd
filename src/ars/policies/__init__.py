"""Trained policies that come with the package: TASK.npz is the best found, TASK-WORD.npz another gait of it.

Where they come from and what they reach stands in README.md beside them; `ars evaluate TASK` measures it again.
"""

from pathlib import Path

from ars.errors import FileError

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Every policy by name: a task's own first, then its other gaits."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def shipped(name: str) -> Path:
    """The file of a policy by its name, `Hopper-v1` or `Swimmer-v1-seed237`."""
    if name not in names():
        raise FileError(f"No policy comes with ars for {name!r}: there are {', '.join(names()) or 'none'}.")
    return FOLDER / f"{name}.npz"
