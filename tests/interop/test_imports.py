"""Policies from elsewhere: what is read, what is refused, and that nothing in a file is ever executed."""

import codecs
import io
import json
import os
import pickle
import shutil
import struct
import sys
import tracemalloc
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ars.errors import ArsError, FileError, SettingError
from ars.interop.imports import import_policy, read_foreign
from ars.interop.pickles import MOST_OPCODES, PickleError, read_pickle
from ars.policies import open_policy
from ars.policy import LinearPolicy
from ars.tasks.locomotion import silence_mujoco
from ars.versions import versions

FIXTURES = Path(__file__).parents[1] / "fixtures"
CASES = int(os.environ.get("ARS_FUZZ_CASES", "300"))
rng = np.random.default_rng(0)
M, MU, STD = rng.standard_normal((3, 11)), rng.standard_normal(11), np.r_[1e-8, rng.uniform(0.1, 2.0, 10)]  # Hopper


def objects(*parts: Any) -> np.ndarray:
    """The object array [M, mean, std] as the authors' code made it."""
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    return array


def write_npz(
    path: Path, pickled: bytes, header: str = "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"
) -> Path:
    """An .npz whose arr_0 is this pickle."""
    padded = header.encode() + b" " * (117 - len(header)) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arr_0.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + pickled)
    return path


class Python2:
    """Writes pickles as Python 2 did, opcode by opcode, in protocol 0 or 2."""

    def __init__(self, protocol: int) -> None:
        self.protocol, self.memo = protocol, 0
        self.out = b"\x80\x02" if protocol == 2 else b""

    def put(self) -> None:
        self.out += b"q" + bytes([self.memo]) if self.protocol == 2 else b"p%d\n" % self.memo
        self.memo += 1

    def name(self, module: str, name: str) -> None:
        self.out += f"c{module}\n{name}\n".encode()
        self.put()

    def string(self, content: bytes) -> None:
        if self.protocol == 0:
            self.out += b"S" + repr(content)[1:].encode() + b"\n"
        else:
            short = len(content) < 256
            self.out += (b"U" + bytes([len(content)]) if short else b"T" + struct.pack("<i", len(content))) + content
        self.put()

    def number(self, value: int) -> None:
        text = b"I%d\n" % value
        if self.protocol == 2:
            text = b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)
        self.out += text

    def real(self, value: float) -> None:
        self.out += b"G" + struct.pack(">d", value) if self.protocol == 2 else b"F" + repr(value).encode() + b"\n"

    def flag(self, value: bool) -> None:
        self.out += (b"\x88" if value else b"\x89") if self.protocol == 2 else (b"I01\n" if value else b"I00\n")

    def begin_array(self, shape: tuple[int, ...], dtype: str, order: str, *, fortran: bool) -> None:
        """Up to where the content comes."""
        self.name("numpy.core.multiarray", "_reconstruct")
        self.out += b"("
        self.name("numpy", "ndarray")
        self.out += b"("
        self.number(0)
        self.out += b"t"
        self.string(b"b")
        self.out += b"tR"
        self.put()
        self.out += b"("
        self.number(1)
        self.out += b"("
        for size in shape:
            self.number(size)
        self.out += b"t"
        self.name("numpy", "dtype")
        self.out += b"("
        self.string(dtype.encode())
        self.number(0)
        self.number(1)
        self.out += b"tR("
        self.number(3)
        self.string(order.encode())
        self.out += b"NNN"
        for value in (-1, -1, 63 if dtype == "O8" else 0):
            self.number(value)
        self.out += b"tb"
        self.flag(fortran)

    def end_array(self) -> None:
        self.out += b"tb"

    def array(self, value: np.ndarray) -> None:
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        self.begin_array(value.shape, "f8", "<", fortran=fortran)
        self.string(value.tobytes("F" if fortran else "C"))
        self.end_array()

    def row(self, *parts: Any) -> bytes:
        """The whole pickle of an object array."""
        self.begin_array((len(parts),), "O8", "|", fortran=False)
        self.out += b"(l" if self.protocol == 0 else b"]"
        for part in parts:
            if isinstance(part, np.ndarray):
                self.array(part)
            elif isinstance(part, int):
                self.number(part)
            else:
                self.real(part)
            self.out += b"a"
        self.end_array()
        return self.out + b"."


WRITERS = {
    **{f"python3-protocol{p}": lambda *parts, p=p: pickle.dumps(objects(*parts), protocol=p) for p in range(6)},
    **{f"python2-protocol{p}": lambda *parts, p=p: Python2(p).row(*parts) for p in (0, 2)},
}


# -- the authors' files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("transposed", [False, True])
def test_the_authors_files_of_any_pickle(writer: str, transposed: bool, tmp_path: Path) -> None:
    """M, mean and std come in to the bit, from Python 2 and 3; NumPy's own unpickling is the oracle."""
    matrix = np.asfortranarray(M) if transposed else M
    pickled = WRITERS[writer](matrix, MU, STD)
    for ours, theirs in zip((M, MU, STD), pickle.loads(pickled, encoding="latin1"), strict=True):
        assert np.array_equal(ours, theirs)
    policy = open_policy(write_npz(tmp_path / "lin_policy_plus.npz", pickled), "Hopper-v1")
    assert policy.M.tobytes() == M.tobytes()
    assert policy.mu.tobytes() == MU.tobytes()
    assert policy.sigma.tobytes() == np.r_[np.inf, STD[1:]].tobytes()
    assert policy.task["name"] == "Hopper-v1"
    assert policy.task["imported"]["file"] == "lin_policy_plus.npz"


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("one", [1, 1.0])
def test_v1_has_the_numbers_0_and_1(writer: str, one: float, tmp_path: Path) -> None:
    path = write_npz(tmp_path / "v1.npz", WRITERS[writer](M, 0 * one, one))
    policy = open_policy(path, "Hopper-v1")
    assert (policy.mu.tolist(), policy.sigma.tolist()) == ([0.0] * 11, [1.0] * 11)
    assert policy.W.tobytes() == M.tobytes()


def test_what_numpy_writes_today(tmp_path: Path) -> None:
    """np.savez of the list, with NumPy's scalars, big-endian numbers and float32 inside."""
    np.savez(tmp_path / "a.npz", objects(M.astype(">f8"), np.float64(0.0), np.float32(1.0)))
    assert open_policy(tmp_path / "a.npz", "Hopper-v1").M.tobytes() == M.tobytes()
    np.savez(tmp_path / "b.npz", objects(M.astype(np.float32), np.array(0), np.array(1.0)))
    assert open_policy(tmp_path / "b.npz", "Hopper-v1").M.tobytes() == M.astype(np.float32).astype(np.float64).tobytes()


def test_headers_of_python_2_are_read_without_a_warning(tmp_path: Path) -> None:
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (3L,), }"
    assert read_foreign(write_npz(tmp_path / "a.npz", Python2(2).row(M, MU, STD), header)).M.shape == (3, 11)


def test_an_ignored_coordinate_does_not_act(tmp_path: Path) -> None:
    """std below 1e-7 marks a constant coordinate: sigma is infinite and its weight 0 (the authors' own rule)."""
    std = np.r_[9e-8, 1.1e-7, np.inf, np.ones(8)]
    np.savez(tmp_path / "a.npz", objects(M, MU, std))
    policy = open_policy(tmp_path / "a.npz", "Hopper-v1")
    assert policy.sigma.tolist() == [np.inf, 1.1e-7, np.inf, *[1.0] * 8]
    assert policy.W[:, [0, 2]].tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize(("task", "p", "n"), [("Ant-v1", 8, 111), ("Humanoid-v1", 17, 376), ("Walker2d-v1", 6, 17)])
def test_the_v1_tasks_have_the_authors_shapes(task: str, p: int, n: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", objects(np.ones((p, n)), np.zeros(n), np.ones(n)))
    policy = open_policy(tmp_path / "a.npz", task)
    assert (policy.p, policy.n) == (p, n)
    with pytest.raises(FileError, match=rf"{p} × {n}, and Hopper-v1 needs 3 × 11"):
        open_policy(tmp_path / "a.npz", "Hopper-v1")


def test_the_task_must_be_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", objects(M, MU, STD))
    with pytest.raises(SettingError, match=r"3 × 11.*--task"):
        open_policy(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "parts",
    [
        (M, MU),
        (M, MU, STD, STD),
        (M[0], MU, STD),
        (M, MU[:3], STD),
        (M, MU, -STD),
        (M, MU, np.full(11, np.nan)),
        (np.full((3, 11), np.nan), MU, STD),
        (M, MU, "text"),
        (M, MU, None),
        (M, [1.0], STD),
        (M, MU, 10**400),
        (M.astype(complex), MU, STD),
        (M.astype(str), MU, STD),
        (M[:, :0], MU[:0], STD[:0]),
        (objects(M, MU, STD), MU, STD),
    ],
    ids=range(15),
)
def test_contents_that_are_no_policy_are_refused(parts: tuple[Any, ...], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", objects(*parts))
    with pytest.raises(FileError, match=r"a\.npz"):
        open_policy(tmp_path / "a.npz", "Hopper-v1")


def test_an_array_of_numbers_is_not_the_authors_format(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", M)
    with pytest.raises(FileError, match=r"float64 instead of the objects \[M, mean, std\]"):
        open_policy(tmp_path / "a.npz", "Hopper-v1")


# -- nothing is executed ---------------------------------------------------------------------------------------------


class Bomb:
    """Leaves a file behind when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def by_opcodes(path: Path) -> dict[str, bytes]:
    """Pickles that run a command, each by another way of calling."""
    text = f"touch {path}".encode()
    string = b"X" + struct.pack("<I", len(text)) + text
    inner = b"S" + repr(text)[1:].encode() + b"\n"
    return {
        "reduce": b"\x80\x02cos\nsystem\n" + string + b"\x85R.",
        "stack_global": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + string + b"\x85R.",
        "inst": b"(" + inner + b"ios\nsystem\n.",
        "obj": b"(cos\nsystem\n" + inner + b"o.",
        "newobj": b"\x80\x02csubprocess\nPopen\n(]" + string + b"a" + b"t\x81.",  # not of the known names
        "newobj_ex": b"\x80\x04csubprocess\nPopen\n)}\x8c\x04args]" + string + b"as\x92.",
        "build": b"\x80\x02cnumpy\nndarray\n)R}X\x03\x00\x00\x00abccos\nsystem\nsb.",
        "getattr": b"\x80\x02cbuiltins\neval\n" + string + b"\x85R.",
        "dotted": b"\x80\x04\x8c\x05numpy\x8c\x0bf2py.system\x93" + string + b"\x85R.",
    }


def test_bombs_are_armed(tmp_path: Path) -> None:
    """The pickles of the next tests do run a command when they are unpickled."""
    for name in ("reduce", "stack_global", "inst", "obj"):
        pickle.loads(by_opcodes(tmp_path / name)[name])
        assert (tmp_path / name).exists()
    for array in (objects(Bomb(tmp_path / "x"), 0, 1), objects(objects(Bomb(tmp_path / "y")), 0, 1)):
        pickle.loads(pickle.dumps(array))
    assert (tmp_path / "x").exists()
    assert (tmp_path / "y").exists()


def bombs(path: Path) -> dict[str, bytes]:
    whole = {f"object-{i}-{p}": pickle.dumps(objects(*[Bomb(path) if i == k else M for k in range(3)]), protocol=p)
             for i in range(3) for p in (0, 2, 4)}  # fmt: skip
    nested = pickle.dumps(objects(objects(M, objects(Bomb(path))), MU, STD))
    after = pickle.dumps(objects(M, MU, STD))[:-1] + b"0" + by_opcodes(path)["reduce"][2:]  # popped first
    return {**whole, **by_opcodes(path), "nested": nested, "instead": pickle.dumps(Bomb(path)), "after": after}


@pytest.mark.parametrize("kind", bombs(Path()))
def test_a_file_that_would_execute_code_is_refused_and_nothing_runs(kind: str, tmp_path: Path) -> None:
    path = write_npz(tmp_path / "bomb.npz", bombs(tmp_path / "executed")[kind])
    before = path.read_bytes()
    with forbidden(), pytest.raises(FileError, match=r"bomb\.npz cannot be imported: it "):
        open_policy(path, "Hopper-v1")
    assert not (tmp_path / "executed").exists()
    assert path.read_bytes() == before


def test_the_sentence_names_what_would_be_imported(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "bomb.npz", by_opcodes(tmp_path / "x")["stack_global"])
    with pytest.raises(FileError, match=r"would import os\.system, which is refused; nothing was run"):
        open_policy(path, "Hopper-v1")


def test_after_the_end_nothing_is_looked_at(tmp_path: Path) -> None:
    """As with pickle itself, what follows STOP does not exist."""
    pickled = pickle.dumps(objects(M, MU, STD)) + by_opcodes(tmp_path / "executed")["reduce"]
    with forbidden():
        assert read_foreign(write_npz(tmp_path / "a.npz", pickled)).M.tobytes() == M.tobytes()


FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "exec")
_watching = False
_seen: list[str] = []


def _audit(event: str, arguments: Any) -> None:
    if _watching and event in FORBIDDEN:
        _seen.append(f"{event} {arguments}")


sys.addaudithook(_audit)


@cache
def _warm_up() -> None:
    """Loading a module is executing code, too: what reading loads at its first use is loaded here,
    before any file is read."""
    import ars.runs  # noqa: F401
    from ars.tasks import make

    for task in ("Pendulum-v1", "CartPole-v1", "Hopper-v1"):
        make(task).close()
    versions()
    for codec in ("raw_unicode_escape", "cp437"):  # of pickles, and of names in a zip
        codecs.lookup(codec)


@contextmanager
def forbidden() -> Iterator[None]:
    """Python's own audit events say whether anything was unpickled or executed."""
    global _watching
    _warm_up()
    silence_mujoco()  # setting its handler executes a text of the bindings
    _watching = True
    try:
        yield
    finally:
        _watching = False
        seen = _seen.copy()
        _seen.clear()
    assert not seen


def test_the_watch_sees_unpickling() -> None:
    """Else the test above would show nothing."""
    with pytest.raises(AssertionError, match="find_class"), forbidden():
        pickle.loads(b"cbuiltins\nint\n.")


# -- bounds ----------------------------------------------------------------------------------------------------------


def peak_of(read: Any) -> int:
    """Bytes allocated at the most while reading, which must end in an error."""
    tracemalloc.start()
    try:
        with pytest.raises((ArsError, PickleError)):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def claimed(*shape: int) -> bytes:
    """An array that claims a shape and has eight bytes."""
    writer = Python2(2)
    writer.begin_array(shape, "f8", "<", fortran=False)
    writer.string(b"12345678")
    writer.end_array()
    return writer.out + b"."


@pytest.mark.parametrize(
    "pickled",
    [
        claimed(2**31 - 1, 2**31 - 1),
        claimed(*[2**31 - 1] * 60),
        claimed(0, 2**31 - 1, 2**31 - 1),
        claimed(-1),
        b"\x80\x04B\xff\xff\xff\x7f",  # BINBYTES of 2 GB
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f",  # BINBYTES8
        b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f",  # BYTEARRAY8
        b"\x80\x04X\xff\xff\xff\xff",  # BINUNICODE
        b"T\xff\xff\xff\x7f",  # BINSTRING
        b"\x80\x04\x95" + b"\xff" * 8 + b"\x8b\xff\xff\xff\x7f",  # FRAME, LONG4
        b"I" + b"9" * 10**6 + b"\n.",
        b"L" + b"9" * 10**6 + b"L\n.",
        b")" * (MOST_OPCODES + 1),
        b"(" * 10**6,
        b"]" + b"2" * 10**6,
        b"]" + b"\x85" * 10**6 + b".",  # a deep nest
        b")" + b"2\x86" * 40_000 + b"}q\x002h\x00s.",  # as a key: its hash would take for ever
        b"r\xff\xff\xff\xff" * 10,
    ],
    ids=range(18),
)
def test_claims_cost_nothing(pickled: bytes, tmp_path: Path) -> None:
    """A file may claim any size: no more is allocated than it has."""
    path = write_npz(tmp_path / "a.npz", pickled)
    assert peak_of(lambda: read_foreign(path)) < 10 * len(pickled) + 40 * 2**20


def test_unpacking_is_bounded(tmp_path: Path) -> None:
    """A few kB that unpack to a gigabyte are refused before they are unpacked."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("arr_0.npy", "w") as entry:
        for _ in range(64):
            entry.write(bytes(2**20))
    assert path.stat().st_size < 10**6
    assert peak_of(lambda: read_foreign(path)) < 20 * 2**20


def test_many_entries_are_refused(tmp_path: Path) -> None:
    """Before they become a million objects."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for i in range(1200):
            archive.writestr(f"{i}.npy", b"")
    with pytest.raises(FileError, match="more than 1000 entries"):
        open_policy(tmp_path / "a.npz", "Hopper-v1")


@pytest.mark.parametrize("name", ["data", "policy.pth"])
def test_two_entries_of_one_name_are_refused(name: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(FIXTURES / "sb3_pendulum.zip", tmp_path / "a.zip"))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(name, archive.read(name))
    with pytest.raises(FileError, match="two of its entries have the same name"):
        import_policy(path, "Pendulum-v1")


def test_a_name_given_twice_in_json_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(FIXTURES / "sb3_pendulum.zip") as archive:
        data = archive.read("data").replace(b"{", b'{"policy_kwargs": {}, ', 1)
    path = replaced(FIXTURES / "sb3_pendulum.zip", tmp_path / "a.zip", "data", data)
    with pytest.raises(FileError, match="given twice"):
        import_policy(path, "Pendulum-v1")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_unusual_packing_is_refused(method: int, tmp_path: Path) -> None:
    """LZMA asks for as much memory as the file says."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("arr_0.npy", b"x")
    with pytest.raises(FileError, match="unusual"):
        read_foreign(tmp_path / "a.npz")


# -- sb3-contrib -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sb3_pendulum", "sb3_cartpole"])
def test_sb3_files_act_as_in_stable_baselines3(name: str) -> None:
    """Real files (made by fixtures/make_sb3.py), against the actions that stable-baselines3 took, in float32."""
    expected = json.loads((FIXTURES / "sb3_expected.json").read_text())[name]
    with forbidden():
        policy = open_policy(FIXTURES / f"{name}.zip", expected["env"], statistics=str(FIXTURES / f"{name}.pkl"))
    actions, _ = policy.predict(np.array(expected["observations"]))
    np.testing.assert_allclose(actions, expected["actions"], rtol=1e-4, atol=1e-6)
    assert any("±10" in note for note in policy.task["imported"]["notes"])


def test_sb3_without_statistics_says_so() -> None:
    policy = open_policy(FIXTURES / "sb3_pendulum.zip", "Pendulum-v1")
    assert (policy.mu.tolist(), policy.sigma.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert any("No VecNormalize" in note for note in policy.task["imported"]["notes"])


@pytest.mark.parametrize(("name", "words"), [("bias", "bias"), ("squash", "tanh"), ("network", "one matrix")])
def test_what_a_linear_policy_cannot_express_is_refused(name: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        open_policy(FIXTURES / f"sb3_{name}.zip", "Pendulum-v1")


def test_statistics_of_another_shape_are_refused() -> None:
    with pytest.raises(FileError, match=r"shape \(4,\) for a policy of 3"):
        open_policy(FIXTURES / "sb3_pendulum.zip", "Pendulum-v1", statistics=FIXTURES / "sb3_cartpole.pkl")


def test_statistics_have_no_place_elsewhere(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", objects(M, MU, STD))
    LinearPolicy(M, MU, np.ones(11)).save(tmp_path / "b.npz")
    for name in ("a.npz", "b.npz"):
        with pytest.raises(SettingError, match=r"omit it"):
            open_policy(tmp_path / name, "Hopper-v1", statistics="s.pkl")


def replaced(source: Path, target: Path, entry: str, content: bytes) -> Path:
    """The zip file with one entry changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name == entry else old.read(name))
    return target


def test_bombs_in_sb3_files_do_not_run(tmp_path: Path) -> None:
    """In the tensors' pickle, in the statistics, and in what stable-baselines3 would unpickle from `data`."""
    import base64

    bomb = Bomb(tmp_path / "executed")
    with zipfile.ZipFile(FIXTURES / "sb3_pendulum.zip") as archive:
        (tmp_path / "policy.pth").write_bytes(archive.read("policy.pth"))
        data = json.loads(archive.read("data"))
    for pickled in (pickle.dumps(OrderedDict(weight=bomb), protocol=2), by_opcodes(tmp_path / "executed")["inst"]):
        inner = replaced(tmp_path / "policy.pth", tmp_path / "bomb.pth", "archive/data.pkl", pickled)
        path = replaced(FIXTURES / "sb3_pendulum.zip", tmp_path / "a.zip", "policy.pth", inner.read_bytes())
        with forbidden(), pytest.raises(FileError, match=r"a\.zip"):
            open_policy(path, "Pendulum-v1")
    (tmp_path / "s.pkl").write_bytes(pickle.dumps(bomb))
    with forbidden(), pytest.raises(FileError, match=r"s\.pkl.*would import"):
        open_policy(FIXTURES / "sb3_pendulum.zip", "Pendulum-v1", statistics=tmp_path / "s.pkl")
    data["policy_class"][":serialized:"] = base64.b64encode(pickle.dumps(bomb)).decode()
    path = replaced(FIXTURES / "sb3_pendulum.zip", tmp_path / "b.zip", "data", json.dumps(data).encode())
    with forbidden():
        open_policy(path, "Pendulum-v1")
    assert not (tmp_path / "executed").exists()


# -- the commands ----------------------------------------------------------------------------------------------------


def test_only_foreign_files_are_imported(tmp_path: Path) -> None:
    LinearPolicy(M, MU, np.ones(11)).save(tmp_path / "a.npz")
    for path in (tmp_path / "a.npz", tmp_path, tmp_path / "none.npz"):
        with pytest.raises(FileError):
            import_policy(path, "Hopper-v1")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """ars import writes a policy that ars evaluate takes; evaluate also takes the file itself, with the same result."""
    from ars.cli import main

    def run(*words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as exit_:
            main(list(words))
        assert exit_.value.code == code
        said = capsys.readouterr()
        return said.err if code else said.out

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["evaluate", str(FIXTURES / "sb3_pendulum.zip"), "--task", "Pendulum-v1", "--episodes", "1", "--json"])
    said = capsys.readouterr()
    assert json.loads(said.out)["episodes"] == 1
    assert "Note: No VecNormalize statistics were given" in said.err
    np.savez("lin_policy_plus.npz", objects(M * 0.1, MU, STD))
    assert "Wrote policy.npz: 3 × 11" in run("import", "lin_policy_plus.npz", "--task", "Hopper-v1")
    assert "--out" in run("import", "lin_policy_plus.npz", "--task", "Hopper-v1", code=2)
    words = run("import", "lin_policy_plus.npz", "--task", "Hopper-v1", "--out", "lin_policy_plus.npz", code=2)
    assert "is the input file" in words
    ours = run("evaluate", "policy.npz", "--episodes", "3", "--json")
    theirs = run("evaluate", "lin_policy_plus.npz", "--task", "Hopper-v1", "--episodes", "3", "--json")
    assert json.loads(ours) == json.loads(theirs)
    write_npz(Path("bomb.npz"), pickle.dumps(Bomb(tmp_path / "executed")))
    for words in (
        ["import", "bomb.npz", "--out", "x.npz"],
        ["evaluate", "bomb.npz"],
        ["export", "bomb.npz", "--to", "c"],
    ):
        said = run(*words, "--task", "Hopper-v1", code=2)
        assert said.count("\n") == 1
        assert "would import" in said
    assert not (tmp_path / "executed").exists()
    assert not Path("x.npz").exists()


# -- fuzz: ARS_FUZZ_CASES says how many ------------------------------------------------------------------------------


def seeds() -> dict[str, bytes]:
    """Good contents to damage, by where they go."""
    ours = io.BytesIO()
    task = np.array('{"format": 1, "name": "Hopper-v1"}')
    np.savez(ours, M=M, mu=MU, sigma=np.ones(11), task=task)
    good = {"ours": ours.getvalue(), "sb3": (FIXTURES / "sb3_pendulum.zip").read_bytes()}
    good["statistics"] = (FIXTURES / "sb3_pendulum.pkl").read_bytes()
    good |= {writer: make(M, MU, STD) for writer, make in WRITERS.items()}
    with zipfile.ZipFile(FIXTURES / "sb3_pendulum.zip") as archive:
        good["data"], good["policy.pth"] = archive.read("data"), archive.read("policy.pth")
    with zipfile.ZipFile(io.BytesIO(good["policy.pth"])) as archive:
        good["data.pkl"] = archive.read("archive/data.pkl")
    return good


def damage(content: bytes, random: np.random.Generator) -> bytes:
    """Cut it, flip bits, copy or remove a stretch, or write numbers that mean something to formats."""
    changed = bytearray(content)
    for _ in range(random.integers(1, 4)):
        kind, at = random.integers(5), int(random.integers(len(changed) + 1))
        length = int(random.integers(1, 30))
        if kind == 0:
            del changed[at:]
        elif kind == 1 and at < len(changed):
            changed[at] ^= 1 << int(random.integers(8))
        elif kind == 2:
            changed[at:at] = changed[at : at + length]
        elif kind == 3:
            del changed[at : at + length]
        else:
            changed[at : at + 4] = bytes(random.choice([0, 255, 127, 128, 1], 4).astype(np.uint8))
    return bytes(changed)


def place(name: str, content: bytes, folder: Path) -> tuple[Path, Path | None]:
    """The file to open, and its statistics: damage inside a zip gets a right checksum, so that it is reached."""
    whole, target = FIXTURES / "sb3_pendulum.zip", folder / "file"
    if name in ("ours", "sb3"):
        target.write_bytes(content)
        return target, None
    if name == "statistics":
        (folder / "statistics").write_bytes(content)
        return whole, folder / "statistics"
    if name in ("data", "policy.pth"):
        return replaced(whole, target, name, content), None
    if name == "data.pkl":
        with zipfile.ZipFile(whole) as archive:
            (folder / "inner").write_bytes(archive.read("policy.pth"))
        inner = replaced(folder / "inner", folder / "damaged", "archive/data.pkl", content)
        return replaced(whole, target, "policy.pth", inner.read_bytes()), None
    return write_npz(target, content), None


def test_damaged_files_are_a_sentence_or_a_policy(tmp_path: Path) -> None:
    """Byte-level fuzz: an ArsError or a sound policy, nothing executed, bounded memory, the file as it was."""
    good = seeds()
    refused = 0
    tracemalloc.start()
    try:
        for case in range(CASES):
            random = np.random.default_rng([case, 8])
            name = list(good)[case % len(good)]
            path, statistics = place(name, damage(good[name], random), tmp_path)
            before = path.read_bytes()
            task = (
                "Pendulum-v1" if path.name == "sb3_pendulum.zip" or name in ("sb3", "data", "data.pkl") else "Hopper-v1"
            )
            with forbidden():
                try:
                    policy = open_policy(path, task, statistics=statistics)
                except ArsError:
                    refused += 1
                else:
                    assert policy.act(np.zeros(policy.n)).shape == (policy.p,)
                    assert np.isfinite(policy.M).all()
            assert path.read_bytes() == before
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    assert refused > CASES / 3  # the damage does damage


def test_damaged_pickles_raise_one_kind_of_error() -> None:
    """The interpreter alone, without the net around it."""
    good = [content for name, content in seeds().items() if name.startswith("python") or name.endswith("pkl")]
    reached = 0
    for case in range(4 * CASES):
        random = np.random.default_rng([case, 9])
        try:
            read_pickle(damage(good[case % len(good)], random))
            reached += 1
        except PickleError:
            pass
    assert 0 < reached < 4 * CASES


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.just(os.system) | st.just(M),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.tuples(st.integers()), inner) | st.tuples(inner, inner)
    ),
)


@settings(max_examples=max(CASES // 3, 1))
@given(plain, st.integers(0, 5))
@example([1.0], 0)
def test_any_pickle_is_data_or_refused(value: Any, protocol: int) -> None:
    """What Python can pickle comes back as data, or PickleError says that it will not."""
    with forbidden():
        try:
            read = read_pickle(pickle.dumps(value, protocol=protocol))
        except PickleError:
            return
    if isinstance(value, int | float | str) and value == value:
        assert read == value


@settings(max_examples=max(CASES // 3, 1))
@given(st.lists(st.sampled_from([bytes([code]) for code in range(256)]) | st.binary(max_size=6), max_size=60))
def test_any_bytes_are_refused_or_data(pieces: list[bytes]) -> None:
    with forbidden(), suppress(PickleError):
        read_pickle(b"".join(pieces) + b".")
