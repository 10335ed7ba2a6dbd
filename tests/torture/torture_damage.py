"""Damaged files without end, each a function of a number, and what reading one of them may do.

`Damage` makes the bytes: of any file, of zip archives with a right checksum around wrong contents, and of JSON.
`READERS` read them as the commands do. Run as a script, it measures memory in a process of its own:
torture_damage.py KIND FIRST LAST prints a JSON object.
"""

import io
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [entry for entry in (str(HERE), str(HERE.parent)) if entry not in sys.path]

import numpy as np  # noqa: E402
from torture_runs import contents, peak_memory  # noqa: E402

from ars.errors import ArsError  # noqa: E402
from ars.policy import LinearPolicy  # noqa: E402
from ars.sessions import resume_session  # noqa: E402

FOLDER = HERE.parent / "fixtures" / "format1"
FILES = {"policy": "best.npz", "checkpoint": "checkpoint.npz", "config": "config.json", "records": "records.jsonl"}
LONGEST = 20  # seconds for a case

ODD_VALUES = [
    None, True, False, 0, -1, 1, 2, 7, 10**9, 10**18, -(10**18), 10**400, 0.5, -0.0, 1e308, 5e-324, "", " ", "lqr", "x",
    "../../x", "/etc/passwd", "$(touch x)", "os:system", "small_envs:Drift", "\n", "\x1b[31m", "\ud800", "雪",
    "V1", "NaN", [], {}, [[]], [None], [1, 2], {"n": 1}, {"shape": [3]}, [[[[[[1]]]]]], "a" * 5000, list(range(1000)),
]  # fmt: skip
ODD_TEXTS = [
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "1" + "0" * 100_000, "[" * 3000, '{"a":' * 900 + "1",
    "[" * 300 + "]" * 300, '"\\ud800"', "'x'", "tru", "1.", "01", "//", '{"a": 1, "a": 2}', "[]," * 50_000,
]  # fmt: skip
ODD_ARRAYS: list[Callable[[Any], Any]] = [
    lambda a: a.astype(np.float32) if a.dtype.kind == "f" else a.astype("S"),
    lambda a: np.zeros(a.shape, dtype=np.int64),
    lambda a: np.zeros(a.shape, dtype=bool),
    lambda a: np.full(a.shape, 1 + 2j),
    lambda a: np.full(a.shape, "text"),
    lambda a: np.full(a.shape, b"text"),
    lambda a: np.zeros(a.shape, dtype="V8"),
    lambda a: np.zeros(a.shape, dtype=[("x", "f8"), ("y", "i4")]),
    lambda a: np.zeros(a.shape, dtype="M8[s]"),
    lambda a: np.full(a.shape, np.nan),
    lambda a: np.full(a.shape, np.inf),
    lambda a: np.full(a.shape, -1.0),
    lambda a: np.full(a.shape, 1e308),
    lambda a: np.full(a.shape, 5e-324),
    lambda a: np.full(a.shape, -1),
    lambda a: np.full(a.shape, 2**62),
    lambda a: np.full(a.shape, 2**64 - 1, dtype=np.uint64),
    lambda a: np.zeros(0),
    lambda a: np.zeros((0, 3)),
    lambda a: np.zeros(()),
    lambda a: a[None],
    lambda a: np.resize(a, (a.size + 1,)) if a.dtype.kind == "f" else np.array([a, a]).reshape(-1),
    lambda a: np.zeros((1,) * 40),
    lambda a: a.astype(a.dtype.newbyteorder(">")),
    lambda a: np.asfortranarray(a),
    lambda a: np.zeros(200_000),
    lambda a: np.array("U" * 50_000),
    lambda a: np.array(json.dumps({"format": 1})),
    lambda a: np.array(7),
]
ODD_ENTRIES = [b"", b"PK", b"\x93NUMPY", b"hello", b"\x80\x04]\x94.", b"cos\nsystem\n(S'touch x'\ntR.", bytes(1000)]


class Damage:
    """The damage of one number: the same on every machine."""

    def __init__(self, number: int, good: bytes, others: list[bytes]) -> None:
        self.random, self.good, self.others = random.Random(f"damage {number}"), good, others

    def bytes(self) -> bytes:
        """Any file, without knowing what it is."""
        r, good = self.random, self.good
        at, length = r.randrange(len(good) + 1), r.choice([1, 2, 4, 8, 16, 64, 300, 5000])
        other = r.choice(self.others)
        return r.choice(
            [
                lambda: good[:at],
                lambda: good[at:],
                lambda: self._flipped(1),
                lambda: self._flipped(1),
                lambda: self._flipped(r.randint(2, 40)),
                lambda: good[:at] + r.randbytes(length) + good[at + length :],
                lambda: good[:at] + bytes(length) + good[at + length :],
                lambda: good[:at] + b"\xff" * length + good[at + length :],
                lambda: good[:at] + good[at + length :],
                lambda: good[:at] + r.randbytes(length) + good[at:],
                lambda: good[:at] + good[:at] + good[at:],
                lambda: good + r.randbytes(length),
                lambda: r.randbytes(length) + good,
                lambda: good[:at] + other[r.randrange(len(other)) :],
                lambda: other,
                lambda: good + other,
                lambda: b"",
                lambda: r.randbytes(r.choice([1, 10, 1000, 100_000])),
                lambda: good.replace(b"1", r.choice([b"", b"2", b"-1", b"1" * 40, b"NaN"]), r.randint(1, 50)),
            ]
        )()

    def _flipped(self, bits: int) -> bytes:
        damaged = bytearray(self.good)
        for _ in range(bits):
            damaged[self.random.randrange(len(damaged))] ^= 1 << self.random.randrange(8)
        return bytes(damaged)

    def archive(self) -> bytes:
        """A zip archive that is whole, with something wrong inside."""
        r = self.random
        with zipfile.ZipFile(io.BytesIO(self.good)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        name = r.choice(list(entries))
        packing = r.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
        doubled, more, note = False, [], b""
        match r.randrange(8):
            case 0 | 1:
                entries[name] = self._array(entries[name])
            case 2:
                entries[name] = Damage(r.randrange(2**40), entries[name], list(entries.values())).bytes()
            case 3:
                entries[name] = r.choice(ODD_ENTRIES)
            case 4:
                del entries[name]
                if r.random() < 0.5:
                    entries[r.choice(["x", "M", "../../x.npy", "/tmp/x.npy", "x" * 300])] = b"new"
            case 5 if "task.npy" in entries:
                text = str(np.load(io.BytesIO(entries["task.npy"]), allow_pickle=False))
                entries["task.npy"] = _npy(np.array(self.json(text)))
            case 5 if "last_line.npy" in entries:
                text = str(np.load(io.BytesIO(entries["last_line.npy"]), allow_pickle=False))
                entries["last_line.npy"] = _npy(np.array(self.json(text)))
            case 6:
                doubled = r.random() < 0.3
                other = r.choice(list(entries))
                entries[name], entries[other] = entries[other], entries[name]
            case _:
                more = [(r.choice([name, "x.npy"]), r.choice([self._array(entries[name]), entries[name]]))]
                more, note = (more, b"") if r.random() < 0.7 else ([], b"a comment")
        buffer = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", packing) as archive:
            warnings.simplefilter("ignore")  # about a name given twice
            for entry, content in [*entries.items(), *more]:
                archive.writestr(entry, content)
            archive.comment = note
        content = buffer.getvalue()
        return content + content if doubled else content

    def _array(self, content: bytes) -> bytes:
        """Another array in its place, or one that is damaged in one number."""
        array = np.load(io.BytesIO(content), allow_pickle=False)
        r = self.random
        if array.dtype.kind == "f" and array.size and r.random() < 0.4:
            array = array.copy()
            array.flat[r.randrange(array.size)] = r.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 5e-324])
            return _npy(array)
        try:
            return _npy(r.choice(ODD_ARRAYS)(array))
        except (TypeError, ValueError):
            return _npy(np.array(r.choice([1, "x", 2.5])))

    def json(self, text: str) -> str:
        """JSON with one thing changed somewhere, or with odd text in its place."""
        r = self.random
        value = json.loads(text)
        places = list(_places(value))
        for _ in range(r.choice([1, 1, 1, 2, 5])):
            holder, key = r.choice(places)
            try:
                match r.randrange(6):
                    case 0 | 1 | 2:
                        holder[key] = r.choice(ODD_VALUES)
                    case 3:
                        del holder[key]
                    case 4:
                        holder[key] = "@@@"
                    case _ if isinstance(holder, dict):
                        holder[r.choice(["x", "format", "task", "N", "__class__", "../x"])] = r.choice(ODD_VALUES)
            except (KeyError, IndexError):  # it is gone already
                pass
        return json.dumps(value).replace('"@@@"', r.choice(ODD_TEXTS))

    def lines(self) -> bytes:
        """A file of JSON lines, with one of them changed, missing or doubled."""
        r, lines = self.random, self.good.decode().splitlines()
        at = r.randrange(len(lines))
        lines[at : at + 1] = r.choice(
            [
                [],
                [lines[at]] * 2,
                [self.json(lines[at])],
                [self.json(lines[at])],
                [r.choice(ODD_TEXTS)],
                [""],
                ["\0" * 40],
            ]
        )
        return ("\n".join(lines) + r.choice(["\n", "\n", "", "\n\n", "\n{"])).encode(errors="surrogatepass")

    def of(self, kind: str) -> bytes:
        """A damaged file of a kind."""
        if self.random.random() < 0.5:
            return self.bytes()
        if kind in ("policy", "checkpoint"):
            return self.archive()
        return self.json(self.good.decode()).encode(errors="surrogatepass") if kind == "config" else self.lines()


def _places(value: Any) -> Any:
    """Every (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from _places(part)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


# -- reading ---------------------------------------------------------------------------------------------------------


def read_policy(path: Path) -> None:
    """As `ars evaluate` does; what is read must be of use."""
    policy = LinearPolicy.load(path)
    assert np.isfinite(policy.act(np.zeros(policy.n))).all()
    policy.predict(np.zeros((2, policy.n)) if "shape" in policy.task.get("observation", {"shape": 1}) else None)


def read_run(path: Path) -> None:
    """As `ars resume` does, up to the first iteration; what is read must be of use."""
    folder = path.parent
    session = resume_session(folder, workers=1, stop=_NONE)
    assert session.run is not None
    try:
        policy = session.run.policy()
        assert np.isfinite(policy.act(np.zeros(policy.n))).all()
        lines = (folder / "records.jsonl").read_bytes().splitlines()
        assert [json.loads(line)["iteration"] for line in lines] == list(range(1, session.state.j + 1))
        assert LinearPolicy.load(folder / "policy.npz").M.tobytes() == policy.M.tobytes()
    finally:
        session.run.release()
        session.executor.close()


def _none() -> Any:
    from ars.stopping import Stop

    return Stop()


_NONE = _none()


class Case:
    """A folder with a run whose file of one kind is damaged, again and again."""

    def __init__(self, kind: str, folder: Path, run: str = "lqr") -> None:
        self.kind, self._source, self._folder = kind, FOLDER / run, folder / "run"
        self.path = self._folder / FILES[kind]
        self.reads = 0
        self.good = (self._source / FILES[kind]).read_bytes()
        self._others = [(path / FILES[kind]).read_bytes() for path in sorted(FOLDER.iterdir()) if path.is_dir()]
        self._others += [(self._source / name).read_bytes() for name in FILES.values()]

    def make(self, number: int) -> None:
        """The folder as it was, with the damage of that number."""
        self.put(Damage(number, self.good, self._others).of(self.kind))

    def put(self, content: bytes) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._source, self._folder)
        self.path.write_bytes(content)

    def read(self) -> bool:
        """Whether the damaged file was refused: with one sentence that names a file, and without a change on disk."""
        self.reads += 1
        before = contents(self._folder)
        try:
            read_policy(self.path) if self.kind == "policy" else read_run(self.path)
        except ArsError as error:
            said = str(error)
        else:
            return False
        assert said, "an empty sentence"
        assert "\n" not in said, said
        assert len(said) < 1500, said
        assert contents(self._folder) == before, f"{said} and yet a file has changed"
        return True


def main(kind: str, first: int, last: int) -> None:
    """Read the cases; stop at the first that raises anything but our own errors, or takes too long."""

    def too_long(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"a case took more than {LONGEST} seconds")

    signal.signal(signal.SIGALRM, too_long)
    refused, slowest = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        case = Case(kind, Path(folder))
        case.put(case.good)
        if case.read():
            raise SystemExit("The undamaged file is refused.")
        for number in range(first, last):
            case.make(number)
            started = time.monotonic()
            signal.alarm(LONGEST)
            try:
                refused += case.read()
            except BaseException as error:
                raise SystemExit(f"{kind} {number}: {type(error).__name__}: {error}") from error
            finally:
                signal.alarm(0)
            slowest = max(slowest, time.monotonic() - started)
    print(json.dumps({"cases": last - first, "refused": refused, "slowest": slowest, "peak_MB": peak_memory()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
