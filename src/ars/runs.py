"""The run folder: config.json, records.jsonl, checkpoint.npz, policy.npz, best.npz.

The checkpoint is the truth. Records are appended before it is written, policy.npz and best.npz are made from it;
opening a run cuts the records back to the checkpoint and makes the two policies anew, so a kill at any moment leaves
nothing that disagrees. A kernel lock keeps a second process out and dies with its process.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ars.config import Config
from ars.errors import ArsError, FileError
from ars.files import read_json, read_npz, write_atomic, write_json, write_npz
from ars.moments import Moments
from ars.noise import check_table_size
from ars.policy import LinearPolicy, check_policy_arrays
from ars.records import Record, State
from ars.stopping import Stop
from ars.versions import versions

FORMAT = 1
SECONDS_BETWEEN_CHECKPOINTS = 0.5  # a kill loses the iteration in flight or this much, whichever is longer
ADDED = {"noise": "counter", "table_size": 0, "stats_every": 1}  # settings that older files of this format lack
NAMES = ("config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz")


@dataclass(frozen=True)
class Best:
    """The policy of the best evaluation so far."""

    iteration: int
    mean: float
    policy: LinearPolicy


class Run:
    """An open run folder, locked. Use `create` or `open`; close it, or use it in a with statement."""

    def __init__(self, path: Path, lock: FileLock, config: Config, definition: dict[str, Any], stop: Stop) -> None:
        self.path, self.config, self.definition, self.stop = path, config, definition, stop
        self.state = State.initial(definition["p"], definition["n"])
        self.seconds = 0.0
        self.best: Best | None = None
        self.notes: list[str] = []
        self._lock = lock
        self._last_line = ""
        self._saved_at = time.monotonic()
        self._saved_j = -1
        self._file: BinaryIO | None = None

    # -- making and opening ---------------------------------------------------------------------------------------

    @staticmethod
    def create(path: Path, config: Config, definition: dict[str, Any], stop: Stop) -> "Run":
        """A new run in a new folder, or in one that holds no files of a run."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"Cannot make the folder {path}: {error.strerror or error}.") from error
        lock = _lock(path)
        try:
            there = [name for name in NAMES if (path / name).exists()]
            if there:
                raise FileError(
                    f"{path} already holds {there[0]} of a run: `ars resume {path}` continues it, "
                    "another --out starts a new one."
                )
            run = Run(path, lock, config, definition, stop)
            run._write_config()
            run._save()
            run._records().close()
            return run
        except BaseException:
            lock.release()
            raise

    @staticmethod
    def open(path: Path) -> "Run":
        """A run as its last checkpoint has it."""
        if not (path / "config.json").is_file():
            raise FileError(f"{path} is not a run folder: it has no config.json.")
        lock = _lock(path)
        try:
            saved = read_config(path)
            run = Run(path, lock, saved.config, saved.definition, saved.stop)
            run.notes = saved.notes
            for leftover in path.glob(".*.tmp"):  # of a write that was killed
                leftover.unlink(missing_ok=True)
            if (path / "checkpoint.npz").exists():
                run._load()
            elif (path / "records.jsonl").exists():
                raise FileError(f"{path} has lost its checkpoint.npz: this run cannot be continued.")
            run._cut_records()
            run._write_policies()
            return run
        except BaseException:
            lock.release()
            raise

    def _write_config(self) -> None:
        write_json(
            self.path / "config.json",
            {
                "format": FORMAT,
                "config": self.config.to_dict(),
                "task": self.definition,
                "stop": self.stop.to_dict(),
                "versions": versions(),
            },
        )

    def set_stop(self, stop: Stop) -> None:
        """Other stopping rules from now on; everything else of the run is as it was."""
        self.stop = stop
        saved = read_json(self.path / "config.json")
        write_json(self.path / "config.json", {**saved, "stop": stop.to_dict()})

    # -- iterations -----------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Take an iteration in; it is safe once the next checkpoint is written, half a second later at the most."""
        line = json.dumps(record.to_dict(), allow_nan=False)
        self._write_line(line)
        self._last_line = line
        self.state, self.seconds = record.state, record.seconds
        mean = record.eval_mean
        if mean is not None and (self.best is None or mean > self.best.mean):
            self.best = Best(record.iteration, mean, record.policy)
        if time.monotonic() - self._saved_at >= SECONDS_BETWEEN_CHECKPOINTS:
            self._save()

    def _write_line(self, line: str) -> None:
        if self._file is None:
            self._file = self._records()
        try:
            self._file.write(line.encode() + b"\n")
        except OSError as error:
            raise FileError(f"Cannot write {self.path / 'records.jsonl'}: {error.strerror or error}.") from error

    def policy(self) -> LinearPolicy:
        """The latest policy: exactly what was evaluated, if the last iteration was."""
        normalised = self.config.features.normalised
        return self.state.policy(normalised=normalised, task=policy_task(self.definition))

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def _save(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
        state, best = self.state, self.best
        nothing = np.zeros(0)
        write_npz(
            self.path / "checkpoint.npz",
            {
                "format": np.array(FORMAT),
                "j": np.array(state.j),
                "M": state.M,
                "count": state.moments.count,
                "mean": state.moments.mean,
                "m2": state.moments.m2,
                "episodes": np.array(state.episodes),
                "timesteps": np.array(state.timesteps),
                "seconds": np.array(self.seconds),
                "last_line": np.array(self._last_line),
                "best_iteration": np.array(best.iteration if best else 0),
                "best_mean": np.array(best.mean if best else np.nan),
                "best_M": best.policy.M if best else nothing,
                "best_mu": best.policy.mu if best else nothing,
                "best_sigma": best.policy.sigma if best else nothing,
            },
        )
        self._write_policies()
        self._saved_at, self._saved_j = time.monotonic(), state.j

    def _write_policies(self) -> None:
        self.policy().save(self.path / "policy.npz")
        if self.best and self._best_on_disk() != self.best.iteration:
            task = {
                **policy_task(self.definition),
                "iteration": self.best.iteration,
                "eval_mean": self.best.mean,
            }
            policy = self.best.policy
            LinearPolicy(policy.M, policy.mu, policy.sigma, task).save(self.path / "best.npz")

    def _best_on_disk(self) -> int | None:
        try:
            return LinearPolicy.load(self.path / "best.npz").task.get("iteration")
        except ArsError:
            return None

    def _load(self) -> None:
        path = self.path / "checkpoint.npz"
        names = ("format", "j", "M", "count", "mean", "m2", "episodes", "timesteps", "seconds", "last_line",
                 "best_iteration", "best_mean", "best_M", "best_mu", "best_sigma")  # fmt: skip
        arrays = read_npz(path, names)
        try:
            self._take(path, arrays)
        except (ValueError, TypeError, OverflowError) as error:
            raise FileError(f"{path} is damaged: {error}.") from error

    def _take(self, path: Path, arrays: dict[str, NDArray[Any]]) -> None:
        if int(arrays["format"]) != FORMAT:
            raise ValueError(f"format {int(arrays['format'])} is unknown to this version of ars")
        n, p = self.definition["n"], self.definition["p"]
        M, mean, m2 = arrays["M"], arrays["mean"], arrays["m2"]
        counts = {name: int(arrays[name]) for name in ("j", "count", "episodes", "timesteps", "best_iteration")}
        if M.shape != (p, n) or mean.shape != (n,) or m2.shape != (n,):
            raise ValueError(f"M {M.shape} is not of a task with n = {n} and p = {p}")
        if min(counts.values()) < 0 or not (m2 >= 0).all() or not np.isfinite(m2).all():
            raise ValueError("counts and variances cannot be negative")
        check_policy_arrays(path, M, mean, np.ones(n))
        self.state = State(
            counts["j"], M, Moments(np.asarray(counts["count"], dtype=np.int64), mean, m2),
            counts["episodes"], counts["timesteps"],
        )  # fmt: skip
        self.seconds = float(arrays["seconds"])
        if not (np.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"seconds = {self.seconds}")
        self._last_line = str(arrays["last_line"])
        self._saved_j = self.state.j
        if counts["best_iteration"]:
            best, best_mean = (arrays["best_M"], arrays["best_mu"], arrays["best_sigma"]), float(arrays["best_mean"])
            check_policy_arrays(path, *best)
            if best[0].shape != (p, n) or not np.isfinite(best_mean):
                raise ValueError(f"best_M {best[0].shape} or best_mean {best_mean} cannot be of this run")
            self.best = Best(counts["best_iteration"], best_mean, LinearPolicy(*best))

    # -- records --------------------------------------------------------------------------------------------------

    def _cut_records(self) -> None:
        """Keep the lines of iterations 1 … j; the last of them is also in the checkpoint, so damage to it is mended."""
        path = self.path / "records.jsonl"
        content = path.read_bytes() if path.exists() else b""
        lines = content.split(b"\n")[:-1]
        j = self.state.j
        if len(lines) < j - 1:
            raise FileError(f"{path} has lost iterations: {len(lines)} lines for {j} iterations.")
        kept = b"".join(line + b"\n" for line in lines[: max(j - 1, 0)])
        if j:
            kept += self._last_line.encode() + b"\n"
        if content != kept:
            if content.startswith(kept):
                os.truncate(path, len(kept))
            else:
                write_atomic(path, kept)

    def _records(self) -> BinaryIO:
        """records.jsonl, open to append; unbuffered, so that a kill leaves whole lines."""
        try:
            return (self.path / "records.jsonl").open("ab", buffering=0)
        except OSError as error:
            raise FileError(f"Cannot write {self.path / 'records.jsonl'}: {error.strerror or error}.") from error

    # -- ending ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Save what is not saved yet, and let others in."""
        try:
            if self._saved_j != self.state.j:
                self._save()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None
            self._lock.release()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class SavedConfig:
    """config.json, checked; `notes` say where this machine differs from the one that wrote it."""

    config: Config
    definition: dict[str, Any]
    stop: Stop
    notes: list[str]


def read_config(path: Path) -> SavedConfig:
    """The configuration of a run folder."""
    file = path / "config.json"
    saved = read_json(file)
    try:
        if saved.get("format") != FORMAT:
            raise ValueError(f"format {saved.get('format')!r} is unknown to this version of ars, which reads {FORMAT}")
        definition = saved["task"]
        if not all(isinstance(definition[name], int) and 0 < definition[name] < 10**7 for name in ("n", "p")):
            raise ValueError("n and p of the task are not sizes")
        config, stop = Config.from_dict({**ADDED, **saved["config"]}), Stop(**saved["stop"])
        check_table_size(config.table_size, definition["p"], definition["n"])
        then, now = dict(saved["versions"]), versions()
    except (ArsError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{file} is damaged: {error}") from error
    notes = [
        f"{name} was {then[name]} and is {now.get(name)} now: the bits may differ from an uninterrupted run."
        for name in then
        if then[name] != now.get(name)
    ]
    return SavedConfig(config, definition, stop, notes)


def free_folder(config: Config) -> Path:
    """runs/TASK-VARIANT-seedS, numbered if there is one already."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in config.task)
    first = Path("runs") / f"{safe}-{config.variant}-seed{config.seed}"
    folder, number = first, 1
    while folder.exists():
        number += 1
        folder = first.with_name(f"{first.name}-{number}")
    return folder


def policy_task(definition: dict[str, Any]) -> dict[str, Any]:
    """What a policy file says of its task."""
    return {**definition, "versions": versions()}


def _lock(path: Path) -> FileLock:
    lock = FileLock(path / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise FileError(f"{path} is in use by another process: wait for it, or choose another folder.") from error
    except OSError as error:
        raise FileError(f"Cannot lock {path}: {error.strerror or error}.") from error
    return lock
