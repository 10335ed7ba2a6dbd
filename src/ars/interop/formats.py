"""Which software wrote a policy file, by the names of its zip entries; nothing is unpacked."""

import io
import zipfile
from pathlib import Path

from ars.errors import ArsError, FileError
from ars.files import read_bytes

AUTHORS_ENTRY, SB3_ENTRY = "arr_0.npy", "policy.pth"
MOST_ENTRIES = 1000  # of a zip file: each takes ten times more memory than in the file


def foreign_format(path: Path) -> str:
    """authors or sb3; empty for any other file, which LinearPolicy.load reads or rejects."""
    content = read_bytes(path)
    try:
        with open_zip(path, content) as archive:
            inside = set(archive.namelist())
    except ArsError:
        raise
    except Exception:  # not a zip, or a damaged one, for which zipfile raises many kinds of errors
        return ""
    if AUTHORS_ENTRY in inside and "M.npy" not in inside:
        return "authors"
    return "sb3" if SB3_ENTRY in inside else ""


def open_zip(path: Path, content: bytes) -> zipfile.ZipFile:
    """A zip file with few entries, whose names differ: readers disagree on which of two entries counts."""
    if content.count(b"PK\x01\x02") > MOST_ENTRIES:
        raise FileError(f"{path} has more than {MOST_ENTRIES} entries: it is not a policy.")
    archive = zipfile.ZipFile(io.BytesIO(content))
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise FileError(f"{path} is damaged: two of its entries have the same name.")
    return archive
