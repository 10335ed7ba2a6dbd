"""Opening a policy by its file, run folder or name; the trained policies in this folder come with the package.

TASK.npz is the best one found for a task, TASK-WORD.npz another gait. README.md in this folder documents their origin
and rewards; `ars evaluate TASK` measures the rewards again.
"""

from pathlib import Path
from typing import Any

from ars.errors import FileError, SettingError
from ars.files import one_line, read_json
from ars.interop.formats import foreign_format
from ars.network import AnyPolicy, load_policy
from ars.policy import LinearPolicy

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names of all policies that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def evaluations() -> dict[str, dict[str, Any]]:
    """The task and the measured rewards (mean, std, min, max) of each policy that comes with the package."""
    there = names()
    measured = read_json(FOLDER / "evaluations.json") if there else {}
    return {name: {"task": one["task"], **one["evaluation"]} for name, one in measured.items() if name in there}


def shipped(name: str) -> Path:
    """The file of a policy that comes with the package, such as `Hopper-v1` or `Swimmer-v1-seed237`."""
    there = names()
    if name in there:
        return FOLDER / f"{name}.npz"
    if "/" in name or Path(name).suffix in (".npz", ".zip"):
        raise FileError(f"There is no file {name}.")
    raise FileError(
        f"There is no file or run folder {name!r}, and no policy of that name comes with ars: "
        f"{', '.join(there) or 'none'} {'does' if len(there) < 2 else 'do'}."
    )


def open_policy(what: str | Path, task: str | None = None, *, statistics: str | Path | None = None) -> LinearPolicy:
    """A policy from our .npz, a run folder (its best), the authors' .npz, sb3-contrib's .zip, or the name of one that
    comes with ars. `task` is the task of a foreign policy; `statistics` is the VecNormalize file of a .zip."""
    path = policy_file(what)
    if foreign_format(path):
        from ars.interop.imports import import_policy  # not needed for our own files

        return import_policy(path, task, statistics=statistics)
    if statistics is not None:
        raise SettingError(f"statistics = {statistics} cannot be used with {what}, which contains its own: omit it.")
    return LinearPolicy.load(path)


def open_any_policy(what: str | Path, task: str | None = None) -> AnyPolicy:
    """The same, or a network."""
    path = policy_file(what)
    return open_policy(what, task) if foreign_format(path) else load_policy(path)


def notes_of(policy: AnyPolicy) -> list[str]:
    """How an imported policy differs from the original; empty for our own policies."""
    imported = policy.task.get("imported")
    notes = imported.get("notes") if isinstance(imported, dict) else None
    return [one_line(Exception(note)) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def policy_file(what: str | Path) -> Path:
    """The file of a policy."""
    path = Path(what)
    try:
        if path.is_dir():
            return _of_run(path)
        if path.exists():
            return path
    except OSError:  # not a valid file name
        pass
    return shipped(str(what))


def _of_run(folder: Path) -> Path:
    for name in ("best.npz", "policy.npz"):
        if (folder / name).is_file():
            return folder / name
    raise FileError(f"The folder {folder} has neither best.npz nor policy.npz: name a run folder or a policy file.")
