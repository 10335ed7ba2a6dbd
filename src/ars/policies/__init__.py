"""Any policy by its file, its run folder or its name; the trained ones of this folder come with the package.

TASK.npz is the best found for a task, TASK-WORD.npz another gait. Where they come from and what they reach stands in
README.md beside them; `ars evaluate TASK` measures it again.
"""

from pathlib import Path

from ars.errors import FileError, SettingError
from ars.files import one_line
from ars.interop.formats import foreign_format
from ars.policy import LinearPolicy

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Every policy that comes with the package, by name: a task's own first, then its other gaits."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def shipped(name: str) -> Path:
    """The file of such a policy, `Hopper-v1` or `Swimmer-v1-seed237`."""
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
    """A policy of any origin: our .npz, a run folder (its best), the authors' .npz, sb3-contrib's .zip, or the name of
    one that comes with ars. `task` names what a foreign policy is for; `statistics` is a .zip's VecNormalize file."""
    path = policy_file(what)
    if foreign_format(path):
        from ars.interop.imports import import_policy  # only now: the reader of pickles is not needed for our own files

        return import_policy(path, task, statistics=statistics)
    if statistics is not None:
        raise SettingError(f"{statistics} cannot go with {what}, which has its statistics inside: leave it out.")
    return LinearPolicy.load(path)


def notes_of(policy: LinearPolicy) -> list[str]:
    """What differs from the original of an imported policy; nothing for one of our own."""
    imported = policy.task.get("imported")
    notes = imported.get("notes") if isinstance(imported, dict) else None
    return [one_line(Exception(note)) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def policy_file(what: str | Path) -> Path:
    """The file that is meant."""
    path = Path(what)
    try:
        if path.is_dir():
            return _of_run(path)
        if path.exists():
            return path
    except OSError:  # no name that a file can have
        pass
    return shipped(str(what))


def _of_run(folder: Path) -> Path:
    for name in ("best.npz", "policy.npz"):
        if (folder / name).is_file():
            return folder / name
    raise FileError(f"The folder {folder} has neither best.npz nor policy.npz: name a run folder or a policy file.")
