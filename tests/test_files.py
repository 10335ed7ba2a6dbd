"""Files: atomic, and never anything but FileError for damaged ones."""

import contextlib
import io
import json
import os
import socket
import stat
import subprocess
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars import files
from ars.errors import FileError
from ars.files import check_writable, read_json, read_npz, write_atomic, write_json, write_npz

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array("text"), "c": np.array(7)}


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    write_npz(tmp_path / "file.npz", ARRAYS)
    return tmp_path / "file.npz"


# -- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["fsync", "replace", "write", "interrupt"])
def test_a_failed_write_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A full disk, a crash between writing and renaming, Ctrl-C: the old file is whole, no rubbish beside it."""
    path = tmp_path / "file.bin"
    write_atomic(path, b"old")

    def fail(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt if failing == "interrupt" else OSError(28, "No space left on device")

    content: Any = b"new"
    if failing in ("fsync", "interrupt"):
        monkeypatch.setattr(files.os, "fsync", fail)
    elif failing == "replace":
        monkeypatch.setattr(Path, "replace", fail)
    else:
        real_open = Path.open

        def broken_open(self: Path, *args: Any, **kwargs: Any) -> Any:
            file = real_open(self, *args, **kwargs)
            file.close()
            return os.fdopen(os.open(os.devnull, os.O_RDONLY), "wb")  # writing to it fails

        monkeypatch.setattr(Path, "open", broken_open)
    with pytest.raises(KeyboardInterrupt if failing == "interrupt" else FileError) as error:
        write_atomic(path, content)
    monkeypatch.undo()
    if failing in ("fsync", "replace"):
        assert "No space left" in str(error.value)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]


def test_writing_replaces_as_a_whole(tmp_path: Path) -> None:
    """A reader that has the old file open keeps it; the new one is another file."""
    path = tmp_path / "file.bin"
    write_atomic(path, b"old")
    with path.open("rb") as reader:
        write_atomic(path, b"new content")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new content"


@pytest.mark.parametrize("where", ["missing/file.bin", "file/file.bin"])
def test_unwritable_places_are_a_sentence(tmp_path: Path, where: str) -> None:
    """A folder that is not there, a file where a folder should be."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match=r"Cannot write .*file\.bin"):
        write_atomic(tmp_path / where, b"")


@pytest.mark.parametrize("link", ["link", "link of a link"])
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path, link: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file.bin")
    (tmp_path / "link of a link").symlink_to("link")
    for content in (b"first", b"second"):  # at first the file does not exist
        write_atomic(tmp_path / link, content)
        assert (tmp_path / "there" / "file.bin").read_bytes() == content
    assert (tmp_path / link).is_symlink()
    assert [entry.name for entry in (tmp_path / "there").iterdir()] == ["file.bin"]


def test_the_mode_of_a_file_is_kept(tmp_path: Path) -> None:
    """A new file has what the umask leaves."""
    path = tmp_path / "file.bin"
    before = os.umask(0o027)
    try:
        write_atomic(path, b"new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_atomic(path, b"newer")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """More than it holds at once; it stays a pipe."""
    pipe, content, read = tmp_path / "pipe", os.urandom(300_000), bytearray()
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def take() -> None:
        while len(read) < len(content):
            with contextlib.suppress(BlockingIOError):  # nothing yet
                read.extend(os.read(descriptor, 2**16))

    reader = threading.Thread(target=take, daemon=True)
    reader.start()
    write_atomic(pipe, content)
    reader.join(timeout=60)
    os.close(descriptor)
    assert bytes(read) == content
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_check_is_not_the_end_for_the_reader_of_a_pipe(tmp_path: Path) -> None:
    """As in `cat pipe & ars export … --out pipe`: the check opens the pipe, and closing it would end `cat`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        until = time.monotonic() + 60
        while True:
            try:
                check_writable(pipe)
                break
            except FileError:  # it does not read yet
                assert time.monotonic() < until
                time.sleep(0.01)
        check_writable(pipe)
        time.sleep(0.2)  # for `cat` to see the end, if there is one
        before = len(list(Path("/proc/self/fd").iterdir()))
        write_atomic(pipe, b"content")
        assert len(list(Path("/proc/self/fd").iterdir())) == before - 1
        assert reader.communicate(timeout=60)[0] == b"content"


def test_standard_output_that_is_a_file_is_continued(tmp_path: Path) -> None:
    """`ars … --out /dev/stdout >> log`: replacing the log would lose its beginning."""
    log = tmp_path / "log"
    kept = os.dup(1)
    try:
        with log.open("ab") as file:
            file.write(b"before ")
            file.flush()
            os.dup2(file.fileno(), 1)
            write_atomic(tmp_path / "log", b"content")
            os.write(1, b" after")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert log.read_bytes() == b"before content after"


@pytest.mark.parametrize(
    "kind", ["folder", "socket", "pipe without a reader", "loop", "link to nowhere", ".", "long", "nul"]
)
def test_what_cannot_be_written_to_is_a_sentence(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays what it is, and is refused early where that is asked for."""
    monkeypatch.chdir(tmp_path)
    path = Path({"long": "x" * 300, "nul": "a\0b", ".": "."}.get(kind, "odd"))
    with socket.socket(socket.AF_UNIX) as server:
        match kind:
            case "folder":
                path.mkdir()
            case "socket":
                server.bind("odd")
            case "pipe without a reader":
                os.mkfifo(path)
            case "loop":
                path.symlink_to(path)
            case "link to nowhere":
                path.symlink_to("missing/file")
        before = [(entry.name, entry.lstat().st_mode) for entry in tmp_path.iterdir()]
        for refuse in (lambda: write_atomic(path, b"content"), lambda: check_writable(path)):
            with pytest.raises(FileError, match="Cannot write"):
                refuse()
        assert [(entry.name, entry.lstat().st_mode) for entry in tmp_path.iterdir()] == before


def test_a_full_device_is_a_sentence(tmp_path: Path) -> None:
    """A node like /dev/full below our own folder, which a fault in the code could replace."""
    path = tmp_path / "full"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        path.open("wb").close()
    except OSError:
        pytest.skip("Making a device node needs root.")
    with pytest.raises(FileError, match=r"Cannot write .*full: No space left"):
        write_atomic(path, b"content")
    assert stat.S_ISCHR(path.stat().st_mode)


def test_a_name_as_long_as_the_system_allows_is_written(tmp_path: Path) -> None:
    """Its temporary name is shorter."""
    path = tmp_path / ("x" * 255)
    write_atomic(path, b"content")
    assert path.read_bytes() == b"content"


def test_npz_round_trip(npz: Path) -> None:
    for name, array in read_npz(npz, tuple(ARRAYS)).items():
        assert array.dtype == ARRAYS[name].dtype
        assert array.tobytes() == ARRAYS[name].tobytes()


def test_objects_cannot_be_written(tmp_path: Path) -> None:
    """Not even by mistake of ours."""
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(tmp_path / "file.npz", {"a": np.array([object()], dtype=object)})
    assert list(tmp_path.iterdir()) == []


def test_json_round_trip_and_no_nan(tmp_path: Path) -> None:
    """NaN is not JSON: other readers would refuse the file."""
    write_json(tmp_path / "file.json", {"a": [1, 2.5, None]})
    assert read_json(tmp_path / "file.json") == {"a": [1, 2.5, None]}
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "file.json", {"a": float("nan")})
    assert read_json(tmp_path / "file.json") == {"a": [1, 2.5, None]}


# -- reading ---------------------------------------------------------------------------------------------------------


def outcome(path: Path) -> bool:
    """Whether the file is read; anything but a FileError with the path escapes."""
    message = str(path)
    try:
        read_npz(path, tuple(ARRAYS))
    except FileError as error:
        message = str(error)
    else:
        return True
    assert str(path) in message
    return False


def test_every_truncation_is_refused(npz: Path) -> None:
    """A copy that was cut off, at any byte."""
    content = npz.read_bytes()
    for size in range(len(content)):
        npz.write_bytes(content[:size])
        assert not outcome(npz)


@pytest.mark.filterwarnings("ignore")  # NumPy and zipfile may warn about what they meet
def test_flipped_bits_are_refused_or_harmless(npz: Path) -> None:
    """Each bit of the file in turn: a FileError, or (in a date, say) the same arrays."""
    content = npz.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        npz.write_bytes(damaged)
        if outcome(npz):
            for name, array in read_npz(npz, tuple(ARRAYS)).items():
                assert array.tobytes() == ARRAYS[name].tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_refused_or_harmless(npz: Path, seed: int) -> None:
    """Blocks of random bytes, zeros and missing parts."""
    rng = np.random.default_rng(seed)
    content = npz.read_bytes()
    for _ in range(200):
        start, size = rng.integers(len(content)), rng.integers(1, 60)
        middle = [rng.bytes(size), bytes(size), b""][rng.integers(3)]
        npz.write_bytes(content[:start] + middle + content[start + size :])
        outcome(npz)


@pytest.mark.parametrize("content", [b"", b"\0", b"PK", b"PK\x03\x04", b"hello\n" * 100, b"\x93NUMPY", b"\x80\x05."])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, text, a bare .npy header, a pickle."""
    path = tmp_path / "file.npz"
    path.write_bytes(content)
    assert not outcome(path)


def test_a_plain_npy_is_refused(tmp_path: Path) -> None:
    """np.load reads it, but it is no archive."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    (tmp_path / "file.npz").write_bytes(buffer.getvalue())
    assert not outcome(tmp_path / "file.npz")


def test_zip_bombs_are_refused(tmp_path: Path) -> None:
    """Few bytes that unpack to gigabytes must not fill the memory."""
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w", force_zip64=True) as entry,
    ):
        for _ in range(300):
            entry.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(FileError, match="unpacks to"):
        read_npz(path, ("a",))


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    """The sizes in the directory are the attacker's own words."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        array = io.BytesIO()
        np.save(array, np.zeros(2**20))
        archive.writestr("a.npy", array.getvalue())
    content = buffer.getvalue()
    true_size = len(array.getvalue()).to_bytes(4, "little")
    assert content.count(true_size) == 2
    (tmp_path / "bomb.npz").write_bytes(content.replace(true_size, (64).to_bytes(4, "little")))
    with pytest.raises(FileError):
        read_npz(tmp_path / "bomb.npz", ("a",))


def test_a_header_that_claims_terabytes_is_refused(tmp_path: Path) -> None:
    """The shape in the .npy header must not be allocated before the data is there."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    claimed = buffer.getvalue().replace(b"(3,), }" + b" " * 13, b"(99999999999999,), }")
    assert claimed != buffer.getvalue()
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.writestr("a.npy", claimed)
    with pytest.raises(FileError):
        read_npz(tmp_path / "file.npz", ("a",))


def test_an_enormous_file_is_not_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte."""
    path = tmp_path / "file.npz"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileError, match="larger than"):
        read_npz(path, ("a",))
    with pytest.raises(FileError, match="larger than"):
        read_json(path)


def _commented(content: bytes, comment: bytes) -> bytes:
    return content[:-2] + len(comment).to_bytes(2, "little") + comment


def _added(content: bytes, name: str, array: Any) -> bytes:
    buffer, entry = io.BytesIO(content), io.BytesIO()
    np.save(entry, array)
    with (
        zipfile.ZipFile(buffer, "a") as archive,
        pytest.warns() if f"{name}.npy" in archive.namelist() else contextlib.nullcontext(),
    ):
        archive.writestr(f"{name}.npy", entry.getvalue())
    return buffer.getvalue()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda good, other: good + other,
        lambda good, other: other + good,
        lambda good, other: good + b"x",
        lambda good, other: b"x" + good,
        lambda good, other: good + bytes(22),
        lambda good, other: _commented(good, b"hello"),
        lambda good, other: _commented(good, other),
        lambda good, other: _added(good, "a", np.zeros((2, 3))),
        lambda good, other: _added(good, "d", np.zeros(3)),
        lambda good, other: _added(other + good, "d", np.zeros(3)),
    ],
)
def test_an_archive_has_its_arrays_once_and_nothing_else(npz: Path, spoil: Any) -> None:
    """Otherwise two readers may read two different things."""
    good = npz.read_bytes()
    write_npz(npz, {**ARRAYS, "a": np.zeros((2, 3))})
    npz.write_bytes(spoil(good, npz.read_bytes()))
    assert not outcome(npz)


def test_a_name_given_twice_in_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text('{"a": {"b": 1, "c": 2, "b": 3}}')
    with pytest.raises(FileError, match="'b' is given twice"):
        read_json(tmp_path / "file.json")


@pytest.mark.parametrize("reader", [read_json, lambda path: read_npz(path, ("a",))])
def test_missing_files_and_folders_are_named(tmp_path: Path, reader: Any) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(FileError, match="There is no file"):
            reader(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"1", b"null", b'"a"', b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 100_000]
)
def test_damaged_json_is_refused(tmp_path: Path, content: bytes) -> None:
    """Cut off, of another kind, not text, nested beyond reason."""
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"file\.json is damaged"):
        read_json(path)


def test_json_with_any_flipped_byte_never_escapes(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    content = json.dumps({"format": 1, "config": {"alpha": 0.02, "task": "Hopper-v5"}}).encode()
    for position in range(len(content)):
        for flip in (1, 128):
            path.write_bytes(content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :])
            with contextlib.suppress(FileError):
                assert isinstance(read_json(path), dict)


class FullDisk(io.BytesIO):
    """Takes ten bytes more, the last of them with an error."""

    def write(self, content: Any) -> int:
        if self.tell() >= 15:
            raise OSError(28, "No space left on device")
        return super().write(content[:5])


def test_an_append_is_whole_or_nothing() -> None:
    file = FullDisk()
    files.append_whole(file, b"0123456789")
    assert file.getvalue() == b"0123456789"
    with pytest.raises(OSError, match="No space"):
        files.append_whole(file, b"abcdefghij")
    assert file.getvalue() == b"0123456789"
