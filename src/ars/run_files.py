"""Reading a run folder without locking or changing it; its run may be in progress."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ars.errors import FileError
from ars.files import each_line, is_file
from ars.policy import LinearPolicy
from ars.records import LONGEST_LINE, best_known, parse_line, parse_lines
from ars.runs import Run
from ars.saved_config import SavedConfig, read_config


@dataclass(frozen=True)
class RunFiles(SavedConfig):
    """The current content of a run folder."""

    path: Path
    records: list[dict[str, Any]]
    policy: LinearPolicy | None  # None also if it is a network
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
    """The run in a folder; its policy is best.npz if there is one, otherwise policy.npz.

    The order matters for a run in progress: the records are at least as new as what is read before them.
    """
    if not is_file(path / "config.json"):
        raise FileError(f"{path} is not a run folder: it has no config.json.")
    saved = read_config(path)
    try:
        Run.check(path, saved)
    except FileError:
        read_records(path / "records.jsonl")  # raises a more exact error, if it can name the line
        raise
    file = next((name for name in ("best.npz", "policy.npz") if with_policy and (path / name).is_file()), "")
    policy = LinearPolicy.load(path / file) if file and not saved.config.hidden else None
    n, p = saved.definition["n"], saved.definition["p"]
    if policy is not None and (policy.n, policy.p) != (n, p):
        raise FileError(f"{path / file} is damaged: it is {policy.p} × {policy.n}, and its task needs {p} × {n}.")
    records = read_records(path / "records.jsonl")
    if policy is not None and file == "best.npz":
        _check_best(path / file, policy, records)
    return RunFiles(
        saved.config, saved.definition, saved.stop, saved.sessions, saved.notes, path, records, policy, file
    )


def read_records(path: Path) -> list[dict[str, Any]]:
    """The lines of records.jsonl, without an incomplete last line, which is being written."""
    return list(each_record(path))


def each_record(path: Path) -> Iterator[dict[str, Any]]:
    """The same, one by one: a run of weeks has millions."""
    return parse_lines(path, each_line(path, LONGEST_LINE) if path.exists() else ())


def _check_best(path: Path, policy: LinearPolicy, records: list[dict[str, Any]]) -> None:
    """Refuse the best policy of another run: the evaluation that it names is not in the records."""
    iteration, mean = policy.task.get("iteration"), policy.task.get("eval_mean")
    if type(iteration) is not int or mean is None:  # not written by a run
        return
    if not 1 <= iteration <= len(records) or best_known(records[iteration - 1]) != mean:
        raise FileError(f"{path} is from another run than its records.jsonl, which has no such evaluation.")


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
        alone = is_file(path / "config.json") or not path.is_dir()
        inside = [] if alone else sorted(file.parent for file in path.glob("*/config.json"))
        if not alone and not inside:
            inside = sorted(file.parent for file in path.glob("runs/*/config.json"))  # of a sweep
        folders += inside or [path]
    return list(dict.fromkeys(folders))
