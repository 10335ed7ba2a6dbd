"""Files that are never left half-written and never execute code when read."""

import contextlib
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ars.errors import FileError

LARGEST_FILE = 256 * 2**20  # bytes, unpacked; a policy for 10 000 observations and 1000 actions is 80 MB
LARGEST_JSON = 16 * 2**20  # bytes; as Python objects JSON can take thirty times as much
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes, and what can be unpacked piece by piece


def one_line(error: BaseException) -> str:
    """An exception's message as one short printable line: NumPy, Ray and environments write paragraphs."""
    try:
        said = str(error)
    except Exception:  # an exception of user code, whose own words fail
        said = ""
    line = " ".join(said.split()) or type(error).__name__
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line[:1000])
    return text if len(text) <= 300 else f"{text[:297]}..."


def safe_name(text: str) -> str:
    """Text, such as a task's name, made safe for a file name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text)


def make_folder(path: Path) -> None:
    """Create a writable folder and its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot create the folder {path}: {error.strerror or error}.") from error
    if not os.access(path, os.W_OK):
        raise FileError(f"Cannot write into the folder {path}: choose another, or change its permissions.")


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file as a whole: after a crash at any moment, it has the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:  # a new file, never the target of a link
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def append_whole(file: BinaryIO, content: bytes) -> None:
    """Append all of `content` to an unbuffered file, or raise OSError and append nothing."""
    before = file.seek(0, os.SEEK_END)
    try:
        while content:  # a nearly full disk may accept only a part, without an error
            content = content[file.write(content) :]
    except OSError:
        with contextlib.suppress(OSError):
            file.truncate(before)
        raise


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """An uncompressed .npz without pickled objects."""
    write_atomic(path, npz_bytes(arrays))


def npz_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of such a file; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def read_bytes(path: Path) -> bytes:
    """The content of a file of acceptable size."""
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
            entries = archive.infolist()
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > LARGEST_FILE:
            raise FileError(f"{path} unpacks to {unpacked} bytes, more than the {LARGEST_FILE} we accept.")
        if any(entry.compress_type not in PLAIN for entry in entries):
            raise ValueError("it is packed in a way that NumPy does not use")
        with warnings.catch_warnings(), np.load(io.BytesIO(content), allow_pickle=False) as archive:
            warnings.simplefilter("error")  # our own files give no warnings
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise FileError(f"{path} has no array {missing[0]!r}: it is not the kind of file expected here.")
            arrays = {name: archive[name] for name in names}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):  # NumPy returns bytes for other entries
            raise ValueError("an entry is not an array")
        return arrays
    except FileError:
        raise
    except Exception as error:  # zipfile and NumPy raise many kinds of errors for damaged bytes
        reason = one_line(error)
        raise FileError(f"{path} is damaged or not an .npz file without pickled objects ({reason}).") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    content = read_bytes(path)
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {one_line(error)}.") from error


def parse_json(text: str | bytes) -> dict[str, Any]:
    """A JSON object; ValueError or RecursionError for anything else, including NaN and infinity."""
    if len(text) > LARGEST_JSON:
        raise ValueError(f"it is larger than {LARGEST_JSON} bytes")
    value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    """1e999 is JSON and would become infinity."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:20]} is not finite")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomic(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())
