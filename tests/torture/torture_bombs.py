"""Small or sparse files that would like to become gigabytes in memory; each is read in a process of its own.

Usage: torture_bombs.py NAME prints a JSON object with the sentence and the peak of memory; without a name, the names.
"""

import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from torture_damage import Case, read_policy, read_run
from torture_runs import peak_memory

from ars.errors import ArsError
from ars.files import LARGEST_FILE, LARGEST_TASK

HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"


def entry(descr: str, shape: str, size: int) -> tuple[bytes, int]:
    """The beginning of an array, and how many bytes follow."""
    header = (HEADER % (descr, shape)).ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header, size


def archive(entries: dict[str, tuple[bytes, int]], packing: int) -> bytes:
    """With the same byte again and again in the arrays, such that their numbers are small, positive and finite."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as made:
        for name, (start, size) in entries.items():
            with made.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(start)
                for _ in range(size // 2**20):
                    file.write(b"?" * 2**20)
                file.write(b"?" * (size % 2**20))
    return buffer.getvalue()


def policy_of(p: int, n: int, text: int, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A policy with so many numbers, and so many letters of task."""
    return archive(
        {
            "M": entry("<f8", f"({p}, {n})", 8 * p * n),
            "mu": entry("<f8", f"({n},)", 8 * n),
            "sigma": entry("<f8", f"({n},)", 8 * n),
            "task": entry(f"<U{text}", "()", 4 * text),
        },
        packing,
    )


def nested(size: int) -> str:
    """JSON that takes the most memory for its length."""
    return '{"format": 1, "x": [' + "[]," * (size // 3 - 10) + "0]}"


def policy_with_task(text: str) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, M=np.ones((1, 3)), mu=np.zeros(3), sigma=np.ones(3), task=np.array(text))
    return buffer.getvalue()


def sparse(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def write(make: Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(make())


BOMBS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a terabyte of zeros as a policy": ("policy", lambda path: sparse(path, 2**40)),
    "a terabyte of zeros as a checkpoint": ("checkpoint", lambda path: sparse(path, 2**40)),
    "a terabyte of zeros as a configuration": ("config", lambda path: sparse(path, 2**40)),
    "zeros up to the limit": ("policy", lambda path: sparse(path, LARGEST_FILE)),
    "zeros up to the limit for JSON": ("config", lambda path: sparse(path, LARGEST_TASK)),
    "an archive that unpacks to a gigabyte": ("policy", write(lambda: policy_of(1, 45_000_000, 10))),
    "an archive that unpacks to the limit": ("policy", write(lambda: policy_of(1, 10_000_000, 10))),
    "the same without compression": ("policy", write(lambda: policy_of(3, 6_000_000, 10, zipfile.ZIP_STORED))),
    "a matrix up to the limit": ("policy", write(lambda: policy_of(1, 9_999_000, 1_000_000))),
    "an archive packed by bzip2": ("policy", write(lambda: policy_of(1, 9_000_000, 10, zipfile.ZIP_BZIP2))),
    "an archive packed by lzma": ("checkpoint", write(lambda: policy_of(1, 9_000_000, 10, zipfile.ZIP_LZMA))),
    "a header that claims terabytes": (
        "policy",
        write(lambda: archive(dict.fromkeys(("M", "mu", "sigma", "task"), entry("<f8", "(1, 999999999999)", 100)), 0)),
    ),
    "millions of empty lists as a configuration": ("config", write(lambda: nested(LARGEST_TASK).encode())),
    "millions of empty lists as a task": ("policy", write(lambda: policy_with_task(nested(LARGEST_TASK)))),
    "a shape with millions of axes": (
        "policy",
        write(
            lambda: policy_with_task(
                '{"format": 1, "observation": {"shape": [' + "2147483647," * (LARGEST_TASK // 12) + "1]}}"
            )
        ),
    ),
    "one endless line of records": ("records", lambda path: path.write_bytes(b"x" * 50_000_000)),
    "sizes that no memory holds": (
        "config",
        lambda path: path.write_text(path.read_text().replace('"n": 3', '"n": 9999999').replace('"p": 3', '"p": 9999')),
    ),
}  # fmt: skip


def main(name: str) -> None:
    kind, make = BOMBS[name]
    with tempfile.TemporaryDirectory() as folder:
        case = Case(kind, Path(folder))
        case.put(case.good)
        make(case.path)
        size = case.path.stat().st_size
        made = peak_memory()
        said = "read"
        try:
            read_policy(case.path) if kind == "policy" else read_run(case.path)
        except ArsError as error:
            said = str(error)
        assert case.path.stat().st_size == size
    print(json.dumps({"said": said, "peak_MB": peak_memory(), "made_MB": made}))


if __name__ == "__main__":
    main(sys.argv[1])
