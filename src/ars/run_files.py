"""A run folder as a reader sees it: nothing is locked, changed or mended, and it may still be being written."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ars.errors import FileError
from ars.files import one_line, read_bytes
from ars.policy import LinearPolicy
from ars.records import LONGEST_LINE, parse_line
from ars.runs import SavedConfig, read_config


@dataclass(frozen=True)
class RunFiles(SavedConfig):
    """What a run folder holds at this moment."""

    path: Path
    records: list[dict[str, Any]]
    policy: LinearPolicy | None
    policy_file: str  # which of best.npz and policy.npz it is; empty without one

    @property
    def versions(self) -> dict[str, str]:
        """Those that trained last."""
        return dict(self.sessions[-1]["versions"])

    @property
    def machine(self) -> str:
        """Those that trained, in their order."""
        return "; then ".join(dict.fromkeys(session["machine"] for session in self.sessions))


def read_run(path: Path, *, with_policy: bool = True) -> RunFiles:
    """The run in a folder; its policy is best.npz where there is one, else policy.npz."""
    if not (path / "config.json").is_file():
        raise FileError(f"{path} is not a run folder: it has no config.json.")
    saved = read_config(path)
    file = next((name for name in ("best.npz", "policy.npz") if with_policy and (path / name).is_file()), "")
    policy = LinearPolicy.load(path / file) if file else None
    n, p = saved.definition["n"], saved.definition["p"]
    if policy is not None and (policy.n, policy.p) != (n, p):
        raise FileError(f"{path / file} is damaged: {policy.p} × {policy.n} is no policy of a task with {p} × {n}.")
    records = read_records(path / "records.jsonl")
    return RunFiles(
        saved.config, saved.definition, saved.stop, saved.sessions, saved.notes, path, records, policy, file
    )


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl, of iterations 1, 2, …; a last line without its end is still being written, and left
    out."""
    if not path.exists():
        return []
    *lines, _unfinished = read_bytes(path).split(b"\n")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_line(line.decode("ascii"))
            if record["iteration"] != number:
                raise ValueError(f"it is not of iteration {number}")
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path} is damaged in line {number}: {one_line(error).rstrip('.')}.") from error
        records.append(record)
    return records


def last_record(path: Path) -> dict[str, Any] | None:
    """The last whole line of records.jsonl, without reading the others; None if there is none."""
    with suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - LONGEST_LINE))
        lines = file.read().split(b"\n")
        return parse_line(lines[-2].decode("ascii")) if len(lines) > 1 else None
    return None


def run_folders(paths: list[Path]) -> list[Path]:
    """The folders given; one that is no run but holds runs stands for these. Each counts once."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(folder.parent for folder in path.glob("*/config.json")) if path.is_dir() else []
        found += [path] if (path / "config.json").is_file() or not inside else inside
    return list(dict.fromkeys(found))
