"""Reading a run folder without locking or changing it; its run may be in progress."""

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
    """The current content of a run folder."""

    path: Path
    records: list[dict[str, Any]]
    policy: LinearPolicy | None
    policy_file: str  # which of best.npz and policy.npz it is; empty without one

    @property
    def versions(self) -> dict[str, str]:
        """The versions that trained last."""
        return dict(self.sessions[-1]["versions"])

    @property
    def machine(self) -> str:
        """The machines that trained, in order."""
        return "; then ".join(dict.fromkeys(session["machine"] for session in self.sessions))


def read_run(path: Path, *, with_policy: bool = True) -> RunFiles:
    """The run in a folder; its policy is best.npz if there is one, otherwise policy.npz."""
    if not (path / "config.json").is_file():
        raise FileError(f"{path} is not a run folder: it has no config.json.")
    saved = read_config(path)
    file = next((name for name in ("best.npz", "policy.npz") if with_policy and (path / name).is_file()), "")
    policy = LinearPolicy.load(path / file) if file else None
    n, p = saved.definition["n"], saved.definition["p"]
    if policy is not None and (policy.n, policy.p) != (n, p):
        raise FileError(f"{path / file} is damaged: it is {policy.p} × {policy.n}, and its task needs {p} × {n}.")
    records = read_records(path / "records.jsonl")
    return RunFiles(
        saved.config, saved.definition, saved.stop, saved.sessions, saved.notes, path, records, policy, file
    )


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl, for iterations 1, 2, …, without an incomplete last line, which is being written."""
    if not path.exists():
        return []
    *lines, _unfinished = read_bytes(path).split(b"\n")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_line(line.decode("ascii"))
            if record["iteration"] != number:
                raise ValueError(f"it is not that of iteration {number}")
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path} is damaged in line {number}: {one_line(error).rstrip('.')}.") from error
        records.append(record)
    return records


def last_record(path: Path) -> dict[str, Any] | None:
    """The last complete line of records.jsonl, without parsing the others; None if there is none."""
    with suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - LONGEST_LINE))
        lines = file.read().split(b"\n")
        return parse_line(lines[-2].decode("ascii")) if len(lines) > 1 else None
    return None


def run_folders(paths: list[Path]) -> list[Path]:
    """The given folders, each once; a folder that is not a run but contains runs, or is that of a sweep, is replaced by
    these."""
    folders: list[Path] = []
    for path in paths:
        inside = sorted(file.parent for file in path.glob("*/config.json")) if path.is_dir() else []
        inside = inside or sorted(file.parent for file in path.glob("runs/*/config.json"))  # of a sweep
        folders += [path] if (path / "config.json").is_file() or not inside else inside
    return list(dict.fromkeys(folders))
