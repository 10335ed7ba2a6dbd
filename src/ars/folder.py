"""Keeping a run folder to itself: one process at a time, no links to elsewhere, nothing that a kill left behind."""

from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ars.errors import FileError

NAMES = ("config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz")
TOLD = "told.jsonl"  # results of ask and tell that are not in a checkpoint yet
ASKED = "asked"  # the default folder of candidate files
Lock = FileLock


def lock(path: Path) -> Lock:
    """Take the kernel's lock of this folder, which is released when its process ends, however it ends."""
    made = Lock(path / ".lock", timeout=0)
    try:
        made.acquire()
    except Timeout as error:
        raise FileError(f"{path} is in use by another process: wait for it, or choose another folder.") from error
    except OSError as error:
        raise FileError(f"Cannot lock {path}: {error.strerror or error}.") from error
    return made


def refuse_links(path: Path) -> None:
    """Refuse links: a folder from someone else could redirect our writes to any file, and training a copy made of hard
    links would change the original."""
    asked = path / ASKED
    files = [path / name for name in (*NAMES, TOLD, ".lock", "wandb-id")]
    if asked.is_symlink() or (asked.exists() and not asked.is_dir()):
        files.append(asked)
    elif asked.exists():
        files += asked.iterdir()
    for file in files:
        if file.is_symlink() or (file.exists() and not file.is_file()) or file == asked:
            raise FileError(f"{file} is not a plain file: a run keeps its files in its own folder.")
        if file.exists() and file.stat().st_nlink > 1:
            raise FileError(f"{file} is shared with another folder by a hard link: copy the run by `cp -a`, not -al.")


def clear_leftovers(path: Path) -> None:
    """Delete temporary files of writes that were killed."""
    for name in (*NAMES, TOLD):
        for leftover in path.glob(f".{name}.*.tmp"):
            try:
                leftover.unlink(missing_ok=True)
            except OSError as error:
                raise FileError(f"Cannot delete {leftover}: {error.strerror or error}.") from error


def missing_folders(path: Path) -> list[Path]:
    """This folder and those above it that do not exist, the deepest first."""
    return [folder for folder in (path, *path.parents) if not _exists(folder)]


def remove_empty(path: Path, new: list[Path]) -> None:
    """After a refusal: remove the folders that were created, the deepest first, unless something was saved in them."""
    with suppress(OSError):
        if path in new and [entry.name for entry in path.iterdir()] == [".lock"]:
            (path / ".lock").unlink()
        for folder in new:
            folder.rmdir()


def _exists(path: Path) -> bool:
    """Whether it exists; False for an invalid name."""
    with suppress(OSError):
        return path.exists()
    return False
