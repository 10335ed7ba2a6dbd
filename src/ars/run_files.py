"""A run folder as a reader sees it: nothing is locked, changed or mended, and it may still be being written."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ars.config import Config
from ars.errors import FileError
from ars.files import read_bytes, read_json
from ars.policy import LinearPolicy
from ars.runs import read_config
from ars.stopping import Stop

NUMBERS = ("iteration", "episodes", "timesteps", "seconds", "sigma_R")  # what every line of records.jsonl has
EVALUATION = ("eval_mean", "eval_std", "eval_min", "eval_max")


@dataclass(frozen=True)
class RunFiles:
    """What a run folder holds at this moment."""

    path: Path
    config: Config
    definition: dict[str, Any]
    stop: Stop
    versions: dict[str, Any]
    records: list[dict[str, Any]]
    policy: LinearPolicy | None
    policy_file: str  # which of best.npz and policy.npz it is; empty without one


def read_run(path: Path) -> RunFiles:
    """The run in a folder; best.npz where there is one, else policy.npz."""
    if not (path / "config.json").is_file():
        raise FileError(f"{path} is not a run folder: it has no config.json.")
    saved = read_config(path)
    versions = dict(read_json(path / "config.json")["versions"])
    file = next((name for name in ("best.npz", "policy.npz") if (path / name).is_file()), "")
    policy = LinearPolicy.load(path / file) if file else None
    n, p = saved.definition["n"], saved.definition["p"]
    if policy is not None and (policy.n, policy.p) != (n, p):
        raise FileError(f"{path / file} is damaged: {policy.p} × {policy.n} is no policy of a task with {p} × {n}.")
    records = read_records(path / "records.jsonl")
    return RunFiles(path, saved.config, saved.definition, saved.stop, versions, records, policy, file)


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl; a last line without its end is still being written, and left out."""
    if not path.exists():
        return []
    *lines, _unfinished = read_bytes(path).split(b"\n")
    return [_record(path, number, line) for number, line in enumerate(lines, 1)]


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ValueError("it is not a JSON object")
        for name in NUMBERS:
            if not _is_number(value.get(name)):
                raise ValueError(f"{name} is not a number")
        for name in EVALUATION:
            if value.get(name) is not None and not _is_number(value[name]):
                raise ValueError(f"{name} is not a number")
        return value
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged in line {number}: {error}.") from error


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
    )


def run_folders(paths: list[Path]) -> list[Path]:
    """The folders given; one that is no run but holds runs stands for these. Each counts once."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(folder.parent for folder in path.glob("*/config.json")) if path.is_dir() else []
        found += [path] if (path / "config.json").is_file() or not inside else inside
    return list(dict.fromkeys(found))
