"""Files that are never left half-written and never execute code when read."""

import contextlib
import errno
import io
import json
import math
import os
import stat
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ars.errors import FileError, printable

LARGEST_FILE = 256 * 2**20  # bytes, unpacked; a policy for 10 000 observations and 1000 actions is 80 MB
LARGEST_JSON = 16 * 2**20  # bytes; as Python objects JSON can take thirty times as much
LARGEST_TASK = 4 * 2**20  # bytes of JSON that describe a task; it holds the bounds of 50 000 actions
LONGEST_NAME = 150  # letters of a task in a file name
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes, and what can be unpacked piece by piece


def one_line(error: BaseException) -> str:
    """An exception's message as one short printable line: NumPy, Ray and environments write paragraphs."""
    try:
        said = str(error)
    except BaseException:  # an exception of user code, whose own words fail
        said = ""
    line = " ".join(said.split()) or type(error).__name__
    text = printable(line[:1000])
    return text if len(text) <= 300 else f"{text[:297]}..."


def safe_name(text: str) -> str:
    """Text, such as a task's name, made safe for a file name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text[:LONGEST_NAME])


def is_file(path: Path) -> bool:
    """Whether there is such a file; FileError if its name or a folder does not allow to look for it."""
    try:
        return path.is_file()
    except OSError as error:  # in Python 3.11, of a name that is too long
        raise FileError(f"Cannot read {path}: {_reason(error)}.") from error


def is_folder(path: Path) -> bool:
    """The same for a folder."""
    try:
        return path.is_dir()
    except OSError as error:
        raise FileError(f"Cannot read {path}: {_reason(error)}.") from error


def _reason(error: OSError | ValueError) -> str:
    """Why a call about a file failed; ValueError is for a name with a null character or invalid Unicode."""
    return error.strerror or str(error) if isinstance(error, OSError) else "no file can have this name"


def make_folder(path: Path) -> None:
    """Create a writable folder and its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot create the folder {path}: {_reason(error)}.") from error
    if not os.access(path, os.W_OK):
        raise FileError(f"Cannot write into the folder {path}: choose another, or change its permissions.")


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file as a whole: after a crash at any moment, it has the old content or the new. A link is followed,
    and a pipe or a device, or whatever standard output is, is written to."""
    try:
        target, mode = _target(path)
        if isinstance(target, int):
            with os.fdopen(target, "wb", buffering=0) as stream:
                _let_go(target)
                while content:
                    content = content[stream.write(content) :]
        else:
            _replace(target, content, mode)
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot write {path}: {_reason(error)}.") from error


def check_writable(path: Path) -> None:
    """Raise the error of `write_atomic` early, where it can be known without writing."""
    try:
        target, _ = _target(path)
        if isinstance(target, int):
            _let_go(target)
            if stat.S_ISFIFO(os.fstat(target).st_mode):
                _held[_identity(target)] = target
            else:
                os.close(target)
        elif not target.parent.is_dir():
            raise FileError(f"Cannot write {path}: there is no folder {target.parent}.")
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot write {path}: {_reason(error)}.") from error


_held: dict[tuple[int, int], int] = {}  # pipes between check and writing: for their readers, closing is the end


def _let_go(descriptor: int) -> None:
    """Close what a check of the same pipe has opened, now that it is open again."""
    pipe = _identity(descriptor)
    with contextlib.suppress(OSError):  # an environment has closed it
        if (held := _held.pop(pipe, None)) is not None and _identity(held) == pipe:
            os.close(held)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def is_stream(path: Path) -> bool:
    """Whether `write_atomic` wrote to a pipe, a device or standard output, which then has no place for messages."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(found.st_mode) or _standard(found) is not None


def _target(path: Path) -> tuple[Path | int, int | None]:
    """The file to replace and its mode, if it exists; or an open descriptor to write to."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return Path(os.path.realpath(path)), None
    standard = _standard(found)
    if standard is not None:  # /dev/stdout may be a file that the shell opened, and its owner someone else
        return os.dup(standard), None
    if stat.S_ISREG(found.st_mode):
        return Path(os.path.realpath(path)), stat.S_IMODE(found.st_mode) & 0o777
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"Cannot write {path}: it is a folder.")
    if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        raise FileError(f"Cannot write {path}: it is neither a file nor a pipe.")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)  # not to wait for a reader
    except OSError as error:
        if stat.S_ISFIFO(found.st_mode) and error.errno == errno.ENXIO:
            raise FileError(f"Cannot write {path}: no program reads from this pipe.") from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor, None


def _standard(found: os.stat_result) -> int | None:
    """The standard output or error that this is, if it is one of them."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # it may be closed
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _replace(path: Path, content: bytes, mode: int | None) -> None:
    short = path.name if len(os.fsencode(path.name)) < 200 else path.name[:40]
    temporary = path.with_name(f".{short}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:  # a new file, never the target of a link
            file.write(content)
            file.flush()
            if mode is not None and stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
                with contextlib.suppress(OSError):  # not every file system has modes
                    os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.replace(path)
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


def read_bytes(path: Path, most: int = LARGEST_FILE) -> bytes:
    """The content of a file of acceptable size."""
    try:
        if not is_file(path):
            raise FileError(f"There is no file {path}.")
        if path.stat().st_size > most:
            raise FileError(f"{path} is larger than {most} bytes: this is not one of our files.")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read {path}: {_reason(error)}.") from error


def each_line(path: Path, longest: int) -> Iterator[bytes]:
    """The complete lines of a file, without their ends; a longer line than `longest` bytes comes in pieces."""
    try:
        if not is_file(path):
            raise FileError(f"There is no file {path}.")
        with path.open("rb") as file:
            while line := file.readline(longest):
                if not line.endswith(b"\n") and len(line) < longest:
                    return
                yield line.removesuffix(b"\n")
    except OSError as error:
        raise FileError(f"Cannot read {path}: {_reason(error)}.") from error


def read_npz(path: Path, *choices: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file that has exactly the names of one of the choices, never unpickling anything."""
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_whole(content, archive)
            entries = archive.infolist()
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > LARGEST_FILE:
            raise FileError(f"{path} unpacks to {unpacked} bytes, more than the {LARGEST_FILE} we accept.")
        if any(entry.compress_type not in PLAIN for entry in entries):
            raise ValueError("it is packed in a way that NumPy does not use")
        names = _names(path, [entry.filename for entry in entries], choices)
        with warnings.catch_warnings(), np.load(io.BytesIO(content), allow_pickle=False) as archive:
            warnings.simplefilter("error")  # our own files give no warnings
            arrays = {name: archive[name] for name in names}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):  # NumPy returns bytes for other entries
            raise ValueError("an entry is not an array")
        return arrays
    except FileError:
        raise
    except Exception as error:  # zipfile and NumPy raise many kinds of errors for damaged bytes
        reason = one_line(error)
        raise FileError(f"{path} is damaged or not an .npz file without pickled objects ({reason}).") from error


def _check_whole(content: bytes, archive: zipfile.ZipFile) -> None:
    """Refuse anything before, between or behind the entries, such as another archive: readers differ in which of two
    they take."""
    at = 0
    for entry in archive.infolist():
        if entry.header_offset != at or entry.comment:
            raise ValueError("it has bytes that belong to no entry")
        sizes = (int.from_bytes(content[at + 26 + i : at + 28 + i], "little") for i in (0, 2))  # of name and extra
        at += 30 + sum(sizes) + entry.compress_size
    if archive.start_dir != at or content[-22:-18] != b"PK\5\6" or content[-2:] != b"\0\0":
        raise ValueError("it has bytes that belong to no entry")


def _names(path: Path, members: list[str], choices: Sequence[Sequence[str]]) -> Sequence[str]:
    """The choice that the members of an archive are."""
    there = [member.removesuffix(".npy") for member in members]
    for names in choices:
        if sorted(names) == sorted(there) and len(set(members)) == len(there):
            return names
    missing = [name for name in choices[-1] if name not in there]
    if missing:
        raise FileError(f"{path} has no array {missing[0]!r}: it is not the kind of file expected here.")
    odd = next(name for name in there if name not in choices[-1] or there.count(name) > 1)
    raise FileError(f"{path} is damaged: it has {'two arrays' if odd in choices[-1] else 'an array'} {odd!r:.100}.")


def read_json(path: Path, most: int = LARGEST_JSON) -> dict[str, Any]:
    """A JSON object in a file of acceptable size."""
    content = read_bytes(path, most)
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {one_line(error)}.") from error


def parse_json(text: str | bytes) -> dict[str, Any]:
    """A JSON object; ValueError or RecursionError for anything else, including NaN, infinity and a name given twice."""
    if len(text) > LARGEST_JSON:
        raise ValueError(f"it is larger than {LARGEST_JSON} bytes")
    value = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=each_once)
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names differ; json.loads takes the last of two."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in value if names.count(name) > 1)
        raise ValueError(f"{twice!r:.100} is given twice")
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
