"""The run folder: config.json, records.jsonl, checkpoint.npz, policy.npz, best.npz.

The checkpoint is the truth. Records are appended before it is written, policy.npz and best.npz are made from it;
opening a run cuts the records back to the checkpoint and makes the two policies anew, so a kill at any moment leaves
nothing that disagrees. A kernel lock keeps a second process out and dies with its process. Whoever wrote the folder,
reading it runs nothing and touches nothing outside of it.
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
from ars.errors import ArsError, FileError, SettingError
from ars.files import make_folder, one_line, parse_json, read_json, read_npz, safe_name, write_json, write_npz
from ars.moments import Moments
from ars.noise import check_table_size
from ars.policy import LARGEST_M, LinearPolicy, check_policy_arrays
from ars.records import Record, State
from ars.stopping import Stop
from ars.versions import versions

FORMAT = 1
SECONDS_BETWEEN_CHECKPOINTS = 0.5  # a kill loses the iteration in flight or this much, whichever is longer
ADDED = {"noise": "counter", "table_size": 0, "stats_every": 1}  # settings that older files of this format lack
NAMES = ("config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz")
LARGEST_COUNT = 2**53  # of iterations, episodes or timesteps
LONGEST_LINE = 2**20  # bytes of records.jsonl; ours have a few hundred


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
        self._saved_best = 0  # the iteration that best.npz is of, as far as we know
        self._whole = 0  # bytes of records.jsonl that hold iterations 1 … j − 1 when a run is opened
        self._file: BinaryIO | None = None

    # -- making and opening ---------------------------------------------------------------------------------------

    @staticmethod
    def create(path: Path, config: Config, definition: dict[str, Any], stop: Stop) -> "Run":
        """A new run in a new folder, or in one that holds no files of a run."""
        make_folder(path)
        _check_size(definition)
        _refuse_links(path)
        lock = _lock(path)
        try:
            there = [name for name in NAMES if (path / name).exists()]
            if there:
                raise FileError(
                    f"{path} already holds {there[0]} of a run: `ars resume {path}` continues it, "
                    "another --out starts a new one."
                )
            run = Run(path, lock, config, definition, stop)
            _clear_leftovers(path)
            run._write_config()
            run._save()
            run._records().close()
            return run
        except BaseException:
            lock.release()
            raise

    @staticmethod
    def open(path: Path, *, mend: bool = True) -> "Run":
        """A run as its last checkpoint has it. All is read and checked before anything is changed; with mend=False
        nothing is changed before `mend` is called."""
        if not (path / "config.json").is_file():
            raise FileError(f"{path} is not a run folder: it has no config.json.")
        _refuse_links(path)
        lock = _lock(path)
        try:
            saved = read_config(path)
            run = Run(path, lock, saved.config, saved.definition, saved.stop)
            run.notes = saved.notes
            if (path / "checkpoint.npz").exists():
                run._load()
            elif (path / "records.jsonl").exists():
                raise FileError(f"{path} has lost its checkpoint.npz: this run cannot be continued.")
            run._whole = run._check_records()
            if mend:
                run.mend()
            return run
        except BaseException:
            lock.release()
            raise

    def mend(self) -> None:
        """Make the folder agree with the checkpoint: what a kill left behind goes, the policies are made anew."""
        _clear_leftovers(self.path)
        if self._saved_j < 0:  # killed before its first checkpoint, which must be there before any record
            self._save()
        self._cut_records()
        self._saved_best = 0
        self._write_policies()

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
        mean, best = record.eval_mean, self.best
        if mean is not None and (best is None or mean > best.mean):
            best = Best(record.iteration, mean, record.policy)
        self._write_line(line)
        # In one statement without a call: Ctrl-C, after which we save, cannot come in between.
        self.state, self.seconds, self.best, self._last_line = record.state, record.seconds, best, line
        if time.monotonic() - self._saved_at >= SECONDS_BETWEEN_CHECKPOINTS:
            self._save()

    def _write_line(self, line: str) -> None:
        if self._file is None:
            self._file = self._records()
        content = line.encode() + b"\n"
        try:
            while content:  # a disk that is about to be full takes a part of it without an error
                content = content[self._file.write(content) :]
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> FileError:
        return FileError(f"Cannot write {self.path / 'records.jsonl'}: {error.strerror or error}.")

    def policy(self) -> LinearPolicy:
        """The latest policy: exactly what was evaluated, if the last iteration was."""
        normalised = self.config.features.normalised
        return self.state.policy(normalised=normalised, task=policy_task(self.definition))

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def _save(self) -> None:
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._cannot_write(error) from error
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
        if self.best and self._saved_best != self.best.iteration:
            task = {
                **policy_task(self.definition),
                "iteration": self.best.iteration,
                "eval_mean": self.best.mean,
            }
            policy = self.best.policy
            LinearPolicy(policy.M, policy.mu, policy.sigma, task).save(self.path / "best.npz")
            self._saved_best = self.best.iteration

    def _load(self) -> None:
        path = self.path / "checkpoint.npz"
        names = ("format", "j", "M", "count", "mean", "m2", "episodes", "timesteps", "seconds", "last_line",
                 "best_iteration", "best_mean", "best_M", "best_mu", "best_sigma")  # fmt: skip
        arrays = read_npz(path, names)
        try:
            self._take(path, arrays)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FileError(f"{path} is damaged: {one_line(error)}.") from error

    def _take(self, path: Path, arrays: dict[str, NDArray[Any]]) -> None:
        if (version := _single(arrays, "format", "iu")) != FORMAT:
            raise ValueError(f"format {version} is unknown to this version of ars, which reads {FORMAT}")
        n, p = self.definition["n"], self.definition["p"]
        M, mean, m2 = arrays["M"], arrays["mean"], arrays["m2"]
        names = ("j", "count", "episodes", "timesteps", "best_iteration")
        j, count, episodes, timesteps, best_iteration = counts = [_single(arrays, name, "iu") for name in names]
        if M.shape != (p, n) or mean.shape != (n,) or m2.shape != (n,):
            raise ValueError(f"M {M.shape} is not of a task with n = {n} and p = {p}")
        if min(counts) < 0 or max(counts) > LARGEST_COUNT or best_iteration > j or episodes != 2 * self.config.N * j:
            raise ValueError("its counts cannot be of this run")
        if m2.dtype != np.float64 or not (m2 >= 0).all() or not np.isfinite(m2).all():
            raise ValueError("variances are finite and not negative")
        check_policy_arrays(path, M, mean, np.ones(n))
        moments = Moments(np.asarray(count, dtype=np.int64), mean, m2)
        self.state = State(j, M, moments, episodes, timesteps)
        self.seconds = _single(arrays, "seconds", "f")
        if not (np.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"seconds = {self.seconds}")
        self._last_line = _single(arrays, "last_line", "U")
        self._check_last_line()
        self._saved_j = j
        if best_iteration:
            best = arrays["best_M"], arrays["best_mu"], arrays["best_sigma"]
            best_mean = _single(arrays, "best_mean", "f")
            check_policy_arrays(path, *best)
            if best[0].shape != (p, n) or not np.isfinite(best_mean):
                raise ValueError(f"best_M {best[0].shape} or best_mean {best_mean} cannot be of this run")
            self.best = Best(best_iteration, best_mean, LinearPolicy(*best))

    def _check_last_line(self) -> None:
        """The record of iteration j, as records.jsonl has it."""
        state, line = self.state, self._last_line
        if not state.j and not line:
            return
        record = _parse_record(line)
        for name, value in (("iteration", state.j), ("episodes", state.episodes), ("timesteps", state.timesteps)):
            if record.get(name) != value:
                raise ValueError(f"its last record is not of iteration {state.j}")

    # -- records --------------------------------------------------------------------------------------------------

    def _check_records(self) -> int:
        """The bytes of iterations 1 … j − 1. The last one is in the checkpoint too, and what follows does not count."""
        path, j, size = self.path / "records.jsonl", self.state.j, 0
        if j <= 1:
            return 0
        try:
            with path.open("rb") as file:
                for number in range(1, j):
                    line = file.readline(LONGEST_LINE)
                    if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                        raise FileError(f"{path} has lost iterations: {number - 1} lines for {j} iterations.")
                    if _parse_record(line[:-1].decode("ascii")).get("iteration") != number:
                        raise FileError(f"{path} is damaged: line {number} is not of iteration {number}.")
                    size += len(line)
        except OSError as error:
            raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path} is damaged in line {number}: {one_line(error)}.") from error
        return size

    def _cut_records(self) -> None:
        """Keep iterations 1 … j. Killed in between, line j is missing, and the checkpoint has it still."""
        end = self._last_line.encode() + b"\n" if self.state.j else b""
        try:
            with os.fdopen(os.open(self.path / "records.jsonl", os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
                file.seek(self._whole)
                found = file.read(len(end) + 1)
                if found.startswith(end):
                    file.truncate(self._whole + len(end))
                else:
                    file.truncate(self._whole)
                    file.seek(self._whole)
                    file.write(end)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _records(self) -> BinaryIO:
        """records.jsonl, open to append; unbuffered, so that a kill leaves whole lines."""
        try:
            return (self.path / "records.jsonl").open("ab", buffering=0)
        except OSError as error:
            raise self._cannot_write(error) from error

    # -- ending ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Save what is not saved yet, and let others in."""
        try:
            if self._saved_j != self.state.j:
                self._save()
        finally:
            self.release()

    def release(self) -> None:
        """Let others in, without saving anything."""
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
        if (version := saved.get("format")) != FORMAT:
            raise ValueError(f"format {version!r:.50} is unknown to this version of ars, which reads {FORMAT}")
        definition = saved["task"]
        if not all(type(definition[name]) is int and definition[name] > 0 for name in ("n", "p")):
            raise ValueError("n and p of the task are not sizes")
        _check_size(definition)
        config, stop = Config.from_dict({**ADDED, **saved["config"]}), Stop(**saved["stop"])
        check_table_size(config.table_size, definition["p"], definition["n"])
        then, now = dict(saved["versions"]), versions()
        if not all(_is_word(word) for pair in then.items() for word in pair):
            raise ValueError("its versions are not words")
    except (ArsError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FileError(f"{file} is damaged: {one_line(error)}") from error
    notes = [
        f"{name} was {then[name]} and is {now.get(name)} now: the bits may differ from an uninterrupted run."
        for name in then
        if then[name] != now.get(name)
    ]
    return SavedConfig(config, definition, stop, notes)


def free_folder(config: Config) -> Path:
    """runs/TASK-VARIANT-seedS, numbered if there is one already."""
    safe = safe_name(config.task)
    first = Path("runs") / f"{safe}-{config.variant}-seed{config.seed}"
    folder, number = first, 1
    while folder.exists():
        number += 1
        folder = first.with_name(f"{first.name}-{number}")
    return folder


def policy_task(definition: dict[str, Any]) -> dict[str, Any]:
    """What a policy file says of its task."""
    return {**definition, "versions": versions()}


def _check_size(definition: dict[str, Any]) -> None:
    """What is saved must be readable again."""
    p, n = definition["p"], definition["n"]
    if p * n > LARGEST_M:
        raise SettingError(f"M would be {p} × {n}: a run folder holds matrices of at most {LARGEST_M} numbers.")


def _is_word(word: Any) -> bool:
    """Fit to be shown: a file must not write to the terminal what it likes."""
    return isinstance(word, str) and word.isprintable() and len(word) < 200


def _single(arrays: dict[str, NDArray[Any]], name: str, kinds: str) -> Any:
    """A number or text that stands for itself, in one of NumPy's kinds."""
    array = arrays[name]
    if array.ndim != 0 or array.dtype.kind not in kinds or array.dtype.itemsize > 4 * LONGEST_LINE:
        raise ValueError(f"{name} has the wrong type")
    return array.item()


def _parse_record(line: str) -> dict[str, Any]:
    """A line of records.jsonl, or ValueError; a letter that ends a line for some reader would not be ours."""
    if not (line.isascii() and line.isprintable() and len(line) < LONGEST_LINE):
        raise ValueError("the record is not a line of text")
    return parse_json(line)


def _refuse_links(path: Path) -> None:
    """A folder that someone else made could lead our writes to any file of the user's."""
    for name in (*NAMES, ".lock"):
        file = path / name
        if file.is_symlink() or (file.exists() and not file.is_file()):
            raise FileError(f"{file} is not a plain file: a run keeps its files in its own folder.")


def _clear_leftovers(path: Path) -> None:
    """Temporary files of writes that were killed."""
    for name in NAMES:
        for leftover in path.glob(f".{name}.*.tmp"):
            try:
                leftover.unlink(missing_ok=True)
            except OSError as error:
                raise FileError(f"Cannot delete {leftover}: {error.strerror or error}.") from error


def _lock(path: Path) -> FileLock:
    lock = FileLock(path / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise FileError(f"{path} is in use by another process: wait for it, or choose another folder.") from error
    except OSError as error:
        raise FileError(f"Cannot lock {path}: {error.strerror or error}.") from error
    return lock
