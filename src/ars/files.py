"""Files that are never half-written and never execute code when they are read."""

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import FileError

LARGEST_FILE = 256 * 2**20  # bytes, unpacked; a policy for 10 000 observations and 1000 actions is 80 MB


def write_atomic(path: Path, content: bytes) -> None:
    """Replace path as a whole: a reader, or a crash at any moment, sees the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """An uncompressed .npz without pickled objects; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomic(path, buffer.getvalue())


def read_bytes(path: Path) -> bytes:
    """The whole file, or a sentence why not."""
    try:
        if not path.is_file():
            raise FileError(f"There is no file {path}.")
        if path.stat().st_size > LARGEST_FILE:
            raise FileError(f"{path} is larger than {LARGEST_FILE} bytes: this is not one of our files.")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error


def read_npz(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The named arrays of an .npz file, never unpickling anything."""
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > LARGEST_FILE:
            raise FileError(f"{path} unpacks to {unpacked} bytes, more than the {LARGEST_FILE} we accept.")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise FileError(f"{path} has no array {missing[0]!r}: it is not the kind of file expected here.")
            return {name: archive[name] for name in names}
    except FileError:
        raise
    except Exception as error:  # zipfile and NumPy raise many kinds for damaged bytes
        raise FileError(f"{path} is damaged or not an .npz file without pickled objects ({error}).") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    content = read_bytes(path)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise FileError(f"{path} is damaged: a JSON object was expected.")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomic(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())
