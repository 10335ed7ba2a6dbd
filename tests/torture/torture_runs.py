"""Runs for the torture tests: how they are started, compared and looked at."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ars.records import CLOCKS

FIGURES = os.environ.get("ARS_TORTURE")  # where the long form leaves its figures
ARS = str(Path(sys.executable).with_name("ars"))
TESTS = str(Path(__file__).parent.parent)
DRIFT = "small_envs:Drift"
SETTINGS: dict[str, Any] = {
    "variant": "V2-t", "alpha": 0.1, "nu": 0.3, "N": 4, "b": 2, "seed": 5, "protocol": "paper",
    "eval_every": 3, "eval_episodes": 3,
}  # fmt: skip
EAGER = "from ars import cli, runs; runs.SECONDS_BETWEEN_CHECKPOINTS = 0.0; cli.main()"  # hardly does but write
CHANGING = (*CLOCKS, "wire_bytes_out", "wire_bytes_in")  # all else of a record is a function of the configuration


def size(short: int, long: int) -> int:
    """How much of something: in the short form, in the long one."""
    return short if FIGURES is None else long


def keep_figure(name: str, **numbers: Any) -> None:
    """What a test measured, in the long form."""
    if FIGURES is not None:
        folder = Path(FIGURES)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(numbers))


def flags(settings: dict[str, Any]) -> list[str]:
    """Settings as the command line has them."""
    return [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def start(*words: str, cwd: Path, eager: bool = False, **more: Any) -> "subprocess.Popen[str]":
    """`ars` as a process of its own, which finds the environments of the tests; eager: it saves every iteration."""
    command = [sys.executable, "-c", EAGER] if eager else [ARS]
    path = os.pathsep.join((TESTS, str(Path(__file__).parent)))
    environment = {**os.environ, **more.pop("env", {}), "PYTHONPATH": path}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *words], cwd=cwd, env=environment, **{**pipes, **more})


def call(*words: str, cwd: Path, code: int = 0, **more: Any) -> tuple[str, str]:
    """What it prints on standard output and standard error; it ends with that code."""
    with start(*words, cwd=cwd, **more) as process:
        out, errors = process.communicate(timeout=300)
    assert process.returncode == code, (process.returncode, errors)
    return out, errors


def refused(*words: str, cwd: Path, **more: Any) -> str:
    """The one sentence of a mistake: exit code 2, nothing on standard output, no traceback."""
    out, errors = call(*words, cwd=cwd, code=2, **more)
    assert out == ""
    assert errors.startswith("ars: ")
    assert errors.endswith("\n")
    assert errors.count("\n") == 1
    return errors


def records(out: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl without what may differ."""
    lines = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in CHANGING} for line in lines]


def checkpoint(out: Path) -> dict[str, Any]:
    """The bits of checkpoint.npz without what may differ."""
    with np.load(out / "checkpoint.npz", allow_pickle=False) as arrays:
        bits = {name: (arrays[name].dtype, arrays[name].shape, arrays[name].tobytes()) for name in arrays.files}
        last = json.loads(str(arrays["last_line"])) if str(arrays["last_line"]) else {}
    for name in ("seconds", "records_size", "records_sha256"):  # the records have their clocks
        del bits[name]
    return bits | {"last_line": {name: value for name, value in last.items() if name not in CHANGING}}


def same(out: Path, other: Path) -> None:
    """Two folders hold the same run, to the bit, and nothing else but locks."""
    assert records(out) == records(other)
    assert checkpoint(out) == checkpoint(other)
    for file in ("policy.npz", "best.npz"):
        assert (out / file).read_bytes() == (other / file).read_bytes(), file
    names = {path.name for path in out.iterdir()} - {".lock"}
    assert names == {"config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def words_of(pid: int) -> str:
    """The command line of a process; empty if it is gone."""
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def peak_memory() -> float:
    """The most MB that this process has held; getrusage would also count what its parent held when it was started."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
