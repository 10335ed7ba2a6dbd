"""The run folder: config.json, records.jsonl, checkpoint.npz, policy.npz, best.npz.

The checkpoint is authoritative. Records are appended before it is written, and the policies are written from it;
opening a run truncates the records to the checkpoint and rewrites the policies, so that the files agree after a kill at
any moment. A kernel lock, released when its process ends, keeps other processes out. Reading a folder, whoever wrote
it, executes no code and touches nothing outside of it.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ars.config import Config
from ars.errors import FileError
from ars.files import (
    append_whole,
    is_file,
    make_folder,
    one_line,
    read_bytes,
    read_npz,
    safe_name,
    write_json,
    write_npz,
)
from ars.layers import hidden_layers
from ars.moments import Moments
from ars.network import AnyPolicy, checked_network
from ars.policy import LinearPolicy, check_policy_arrays
from ars.records import (
    LARGEST_COUNT,
    LONGEST_LINE,
    NO_EVALUATIONS,
    Age,
    Evaluations,
    Record,
    State,
    parse_line,
    parse_lines,
    policy_task,
)
from ars.saved_config import FORMAT, SavedConfig, check_size, read_config, run_identity, this_session
from ars.stopping import Stop
from ars.tasks.user_code import needs_object, task_flag

FloatArray = NDArray[np.float64]

SECONDS_BETWEEN_CHECKPOINTS = 0.5  # a kill loses at most this or the current iteration, whichever is longer
TOLD = "told.jsonl"  # results of ask and tell that are not in a checkpoint yet
ASKED = "asked"  # the default folder of candidate files
MEASURED_ELSEWHERE = "measured_elsewhere"  # marks a task that only ask and tell can run
NAMES = ("config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz")
PARAM = "param."  # prefix of the names of the search's arrays in checkpoint.npz
WHOLE = ("format", "j", "episodes", "timesteps", "seconds", "last_line", "best_iteration", "best_mean", "best_M",
         "best_mu", "best_sigma")  # fmt: skip
FORMAT_1 = ("M", "count", "mean", "m2")
HASHES = ("run", "records_size", "records_sha256")  # since format 2
# Only of the frugal protocol, with an average, with least_timesteps, and of steady policies.
EVALUATIONS, AVERAGE, LENGTH, MU = "evaluations", "average", "length", "mu"
DUEL, SCORE, WAITING = "duel", "score", "waiting."  # only with duels; a prefix of the names of the start that waits
MOST_SESSIONS = 1000  # kept in config.json


@dataclass(frozen=True)
class Best:
    """The policy of the best evaluation so far; the mean is that of its confirmation, if it has one."""

    iteration: int
    mean: float
    policy: AnyPolicy


class Run:
    """An open, locked run folder. Use `create` or `open`, and close it or use it in a with statement."""

    def __init__(self, path: Path, lock: FileLock, saved: "SavedConfig", state: State) -> None:
        self.path, self.config, self.definition, self.stop = path, saved.config, saved.definition, saved.stop
        self.sessions, self.notes = saved.sessions, saved.notes
        self.state = state
        self._identity = run_identity(saved.config, saved.definition)
        self.seconds = 0.0
        self.best: Best | None = None
        self._lock = lock
        self._last_line = ""
        self._saved_at = time.monotonic()
        self._saved_j = -1
        self._saved_best = 0  # the iteration of best.npz, if known
        self._whole = _Digest()  # of iterations 1 … j − 1 in records.jsonl
        self._file: BinaryIO | None = None

    # -- making and opening ---------------------------------------------------------------------------------------

    @staticmethod
    def create(path: Path, config: Config, definition: dict[str, Any], stop: Stop, state: State | None = None) -> "Run":
        """Create a run in a folder that has no files of a run; `state` is its initial state, if not the search's."""
        check_size(config, definition)
        new = [folder for folder in (path, *path.parents) if not _exists(folder)]
        make_folder(path)
        _refuse_links(path)
        lock = _lock(path)
        try:
            there = [name for name in (*NAMES, TOLD, ASKED) if (path / name).exists()]
            if there:
                again = f"`ars resume {path}{task_flag(config.task)}`"
                if needs_object(config.task):  # which the command line does not have
                    again = "ars.resume with the same task"
                raise FileError(
                    f"{path} already holds {there[0]} of a run: {again} continues it, another --out starts a new one."
                )
            saved = SavedConfig(config, definition, stop, [this_session(0)], [])
            run = Run(path, lock, saved, state or initial_state(config, definition))
            _clear_leftovers(path)
            run._write_config()
            run.save()
            run._records().close()
            return run
        except BaseException:
            _remove_empty(path, new)
            lock.release()
            raise

    @staticmethod
    def check(path: Path, saved: "SavedConfig") -> None:
        """Check that the checkpoint and the records, if there are any, belong to this configuration; nothing is locked
        or changed, and the run may be in progress."""
        if (path / "checkpoint.npz").exists():
            initial = initial_state(saved.config, saved.definition)
            Run(path, FileLock(path / ".lock"), saved, initial)._load()

    @staticmethod
    def open(path: Path, *, mend: bool = True) -> "Run":
        """Open a run at its last checkpoint. Everything is checked before anything is changed; with mend=False, nothing
        is changed until `mend` is called."""
        if not is_file(path / "config.json"):
            raise FileError(f"{path} is not a run folder: it has no config.json.")
        _refuse_links(path)
        lock = _lock(path)
        try:
            saved = read_config(path)
            run = Run(path, lock, saved, initial_state(saved.config, saved.definition))
            if (path / "checkpoint.npz").exists():
                run._load()
            elif (path / "records.jsonl").exists():
                raise FileError(f"{path} has lost its checkpoint.npz: this run cannot be continued.")
            elif saved.config.start:  # the policy that it starts from had not been saved
                raise FileError(f"{path} was killed before it began: remove it and start again.")
            if mend:
                run.mend()
            return run
        except BaseException:
            lock.release()
            raise

    def mend(self) -> None:
        """Make the folder agree with the checkpoint: delete what a kill left behind and rewrite the policies."""
        _clear_leftovers(self.path)
        if self._saved_j < 0:  # killed before its first checkpoint, which must exist before any record
            self.save()
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
                "sessions": self.sessions,
            },
        )

    def set_stop(self, stop: Stop) -> None:
        """Replace the stopping rules."""
        self.stop = stop
        self._write_config()

    def begin_session(self) -> None:
        """Record that this process continues the run, with its machine and versions."""
        session = this_session(self.state.j)
        if _without_iteration(session) != _without_iteration(self.sessions[-1]):
            self.sessions = [*self.sessions, session][-MOST_SESSIONS:]
            self._write_config()

    # -- iterations -----------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Append an iteration; it is safe once the next checkpoint is written, at most half a second later."""
        line = json.dumps(record.to_dict(), allow_nan=False)
        mean, best = record.best_known_mean, self.best
        if mean is not None and (best is None or mean > best.mean):
            best = Best(record.iteration, mean, record.policy)
        self._write_line(line)
        whole = self._whole.plus(self._last_line)
        # One statement without calls: Ctrl-C, after which we save, cannot interrupt it.
        self.state, self.seconds, self.best, self._whole, self._last_line = (
            record.state, record.seconds, best, whole, line,
        )  # fmt: skip
        if time.monotonic() - self._saved_at >= SECONDS_BETWEEN_CHECKPOINTS:
            self.save()

    def _write_line(self, line: str) -> None:
        if self._file is None:
            self._file = self._records()
        try:
            append_whole(self._file, line.encode() + b"\n")
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> FileError:
        return FileError(f"Cannot write {self.path / 'records.jsonl'}: {error.strerror or error}.")

    def policy(self) -> AnyPolicy:
        """The policy of the last iteration: exactly the one that was evaluated, if it was."""
        task, config = policy_task(self.definition), self.config
        return self.state.policy(normalised=config.normalise, task=task, hidden=config.hidden)

    def goal_mean(self) -> tuple[float | None, int | None]:
        """What `until` is compared with: the mean of the best evaluation or, by the frugal protocol, that of the last
        iteration's confirmation with its number of rollouts."""
        if self.config.protocol == "paper":
            return self.best.mean if self.best else None, None
        return confirmed(parse_line(self._last_line) if self._last_line else {})

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the checkpoint and the policies."""
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._cannot_write(error) from error
        state, best = self.state, self.best
        nothing = np.zeros(0)
        waiting = {} if state.waiting is None else self._start(state.waiting)
        write_npz(
            self.path / "checkpoint.npz",
            {
                "format": np.array(FORMAT),
                "run": np.array(self._identity),
                "j": np.array(state.j),
                **self._start(state),
                **{f"{WAITING}{name}": array for name, array in waiting.items()},
                **self._extra(),
                "episodes": np.array(state.episodes),
                "timesteps": np.array(state.timesteps),
                "seconds": np.array(self.seconds),
                "records_size": np.array(self._whole.size),
                "records_sha256": np.array(self._whole.hex()),
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

    def _extra(self) -> dict[str, NDArray[Any]]:
        """What only some configurations have, of the run as a whole."""
        if self.config.protocol != "frugal":
            return {}
        return {EVALUATIONS: np.array(self.state.evaluations, dtype=np.int64)}

    def _start(self, state: State) -> dict[str, NDArray[Any]]:
        """The arrays of a start: all that a duel exchanges."""
        arrays: dict[str, NDArray[Any]] = {f"{PARAM}{name}": array for name, array in state.params.items()}
        arrays |= {"count": state.moments.count, "mean": state.moments.mean, "m2": state.moments.m2}
        if self.config.average:
            arrays[AVERAGE] = state.M if state.average is None else state.average
        if self.config.least_timesteps:
            arrays[LENGTH] = np.array(state.length)
        if self.config.steady:
            arrays[MU] = np.zeros(self.definition["n"]) if state.mu is None else state.mu
        if self.config.duel:
            arrays[DUEL] = np.array([*state.age, state.duels], dtype=np.int64)
            arrays[SCORE] = np.array(state.score)
        return arrays

    def _write_policies(self) -> None:
        self.policy().save(self.path / "policy.npz")
        if self.best and self._saved_best != self.best.iteration:
            task = {
                **policy_task(self.definition),
                "iteration": self.best.iteration,
                "eval_mean": self.best.mean,
            }
            replace(self.best.policy, task=task).save(self.path / "best.npz")
            self._saved_best = self.best.iteration

    def _load(self) -> None:
        path = self.path / "checkpoint.npz"
        try:
            start = self._start(self.state)
            names = (*WHOLE, *HASHES, *start, *self._extra())
            duel = [(*names, *(f"{WAITING}{name}" for name in start))] if self.config.duel else []
            arrays = read_npz(path, (*WHOLE, *FORMAT_1), *duel, names)
            version = _single(arrays, "format", "iu")
            if version not in (1, FORMAT):
                raise ValueError(f"format {version} is unknown to this version of ars, which reads {FORMAT} and 1")
            if ("run" in arrays) != (version == FORMAT):
                raise ValueError(f"its arrays are not those of format {version}")
            self._take(path, arrays, version)
            self._check_last_line()
            if version == FORMAT:
                self._check_digest(_single(arrays, "records_size", "iu"), _single(arrays, "records_sha256", "U"))
            else:
                self._check_records()
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FileError(f"{path} is damaged: {one_line(error)}.") from error

    def _take(self, path: Path, arrays: dict[str, NDArray[Any]], version: int) -> None:
        if version == FORMAT and _single(arrays, "run", "U") != self._identity:
            raise FileError(f"{path} is from another run than its config.json: this run cannot be continued.")
        n, p = self.definition["n"], self.definition["p"]
        if version == 1 and set(self.state.params) != {"M"}:
            raise ValueError("format 1 has no search other than ars")
        names = ("j", "episodes", "timesteps", "best_iteration")
        j, episodes, timesteps, best_iteration = counts = [_single(arrays, name, "iu") for name in names]
        if min(counts) < 0 or max(counts) > LARGEST_COUNT or best_iteration > j or bool(episodes) != bool(j):
            raise ValueError("its counts are impossible for this run")
        evaluations = NO_EVALUATIONS
        if (given := arrays.get(EVALUATIONS)) is not None:
            if given.shape != (len(evaluations),) or given.dtype != np.int64 or given.min() < 0 or given[2] > j:
                raise ValueError("its evaluations are impossible for this run")
            evaluations = Evaluations(*given.tolist())
        run = replace(self.state, j=j, episodes=episodes, timesteps=timesteps, evaluations=evaluations)
        inner = {name.removeprefix(WAITING): array for name, array in arrays.items() if name.startswith(WAITING)}
        waiting = self._take_start(path, inner, run, version) if inner else None
        self.state = replace(self._take_start(path, arrays, run, version), waiting=waiting)
        self.seconds = _single(arrays, "seconds", "f")
        if not (np.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"seconds = {self.seconds}")
        self._last_line = _single(arrays, "last_line", "U")
        self._saved_j = j
        if best_iteration:
            best = arrays["best_M"], arrays["best_mu"], arrays["best_sigma"]
            best_mean = _single(arrays, "best_mean", "f")
            policy = self._checked(path, *best)
            if (policy.p, policy.n) != (p, n) or not np.isfinite(best_mean):
                raise ValueError(f"best_M {best[0].shape} or best_mean {best_mean} does not fit this run")
            self.best = Best(best_iteration, best_mean, policy)

    def _checked(self, path: Path, M: NDArray[Any], mu: NDArray[Any], sigma: NDArray[Any]) -> AnyPolicy:
        """A policy of this run from the arrays of a file, or FileError."""
        if self.config.hidden:
            return checked_network(path, M, mu, sigma, hidden_layers(self.config.hidden))
        check_policy_arrays(path, M, mu, sigma)
        return LinearPolicy(M, mu, sigma)

    def _take_start(self, path: Path, arrays: dict[str, NDArray[Any]], run: State, version: int) -> State:
        """What `_start` wrote, with the counts of the run. Format 1 has no prefix, and nothing but M and moments."""
        n, p = self.definition["n"], self.definition["p"]
        params = {name: arrays[f"{PARAM}{name}" if version == FORMAT else name] for name in run.params}
        for name, expected in run.params.items():
            array = params[name]
            if array.shape != expected.shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} {array.shape} does not fit a task with n = {n} and p = {p}")
        mean, m2, count = arrays["mean"], arrays["m2"], _single(arrays, "count", "iu")
        if mean.shape != (n,) or m2.shape != (n,):
            raise ValueError(f"mean {mean.shape} does not fit a task with n = {n} and p = {p}")
        if not 0 <= count <= LARGEST_COUNT:
            raise ValueError("its counts are impossible for this run")
        if m2.dtype != np.float64 or not (m2 >= 0).all() or not np.isfinite(m2).all():
            raise ValueError("variances are finite and not negative")
        self._checked(path, params["M"], mean, np.ones(n))
        average, mu = arrays.get(AVERAGE), arrays.get(MU)
        if average is not None:
            if average.shape != params["M"].shape:
                raise ValueError(f"average {average.shape} does not fit M {params['M'].shape}")
            self._checked(path, average, mean, np.ones(n))
        length = _single(arrays, LENGTH, "f") if LENGTH in arrays else 0.0
        if not 0.0 <= length <= LARGEST_COUNT:
            raise ValueError(f"length = {length}")
        if mu is not None:
            check_policy_arrays(path, params["M"], mu, np.ones(n))
        start = replace(
            run, params=params, moments=Moments(np.asarray(count, dtype=np.int64), mean, m2), average=average,
            length=length, mu=mu, age=Age(run.j, run.timesteps),
        )  # fmt: skip
        return _take_duel(arrays, start) if self.config.duel else start

    def _check_last_line(self) -> None:
        """Check the record of iteration j, which the checkpoint holds too."""
        state, line = self.state, self._last_line
        if not state.j and not line:
            return
        record = parse_line(line)
        for name, value in (("iteration", state.j), ("episodes", state.episodes), ("timesteps", state.timesteps)):
            if record[name] != value:
                raise ValueError(f"its last record is not that of iteration {state.j}")

    # -- records --------------------------------------------------------------------------------------------------

    def _check_digest(self, size: int, sha256: str) -> None:
        """Check that iterations 1 … j − 1 in records.jsonl are those that preceded the checkpoint. It holds iteration j
        itself, and later lines do not count."""
        path, left = self.path / "records.jsonl", size
        digest = _Digest()
        if (size > 0) != (self.state.j > 1):
            raise ValueError("records_size does not fit its iterations")
        if not size:
            return
        try:
            with path.open("rb") as file:
                while left and (content := file.read(min(left, 2**20))):
                    digest, left = digest.plus_bytes(content), left - len(content)
        except OSError as error:
            raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error
        if left:
            raise FileError(f"{path} has lost iterations: it has {size - left} bytes of {size}.")
        if digest.hex() != sha256:
            raise FileError(f"{path} is damaged, or belongs to another run: it does not match the checkpoint.")
        self._whole = digest

    def _check_records(self) -> None:
        """The same for a checkpoint of format 1, which has no hash: check what its configuration determines."""
        path, state, search = self.path / "records.jsonl", self.state, self.config.search
        *lines, _ = (read_bytes(path) if path.exists() else b"").split(b"\n")
        if len(lines) < state.j - 1:
            raise FileError(f"{path} has lost iterations: {len(lines)} lines for {state.j} iterations.")
        before, last = lines[: max(0, state.j - 1)], self._last_line.encode()
        rows = list(parse_lines(path, [*before, last] if state.j else before))
        every, rollouts = self.config.eval_every, len(search.signs) * search.size({})
        for j, row in enumerate(rows, 1):
            evaluated = bool(every) and j % every == 0
            if row["episodes"] != rollouts * j or row.get("eval_episodes") != (
                self.config.eval_episodes if evaluated else None
            ):
                raise FileError(f"{path} belongs to another run: iteration {j} does not match config.json.")
        if self.best and rows[self.best.iteration - 1].get("eval_mean") != self.best.mean:
            raise FileError(f"{path} belongs to another run: it does not have the best evaluation of the checkpoint.")
        with suppress(ValueError, RecursionError):  # a line j that is damaged will be replaced
            there = b"".join(lines[state.j - 1 : state.j]) if state.j else b""
            if there != last and parse_line(there.decode("ascii"))["iteration"] == state.j:
                raise FileError(f"{path} belongs to another run: iteration {state.j} does not match the checkpoint.")
        for line in before:
            self._whole = self._whole.plus_bytes(line + b"\n")

    def _cut_records(self) -> None:
        """Keep iterations 1 … j. If this is killed halfway, line j is missing, but the checkpoint still has it."""
        end = self._last_line.encode() + b"\n" if self.state.j else b""
        try:
            with os.fdopen(os.open(self.path / "records.jsonl", os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
                file.seek(self._whole.size)
                if file.read(len(end)) == end:
                    file.truncate(self._whole.size + len(end))
                else:
                    file.truncate(self._whole.size)
                    file.seek(self._whole.size)
                    file.write(end)
        except OSError as error:
            raise self._cannot_write(error) from error

    def _records(self) -> BinaryIO:
        """records.jsonl, opened to append; unbuffered, so that a kill leaves whole lines."""
        try:
            return (self.path / "records.jsonl").open("ab", buffering=0)
        except OSError as error:
            raise self._cannot_write(error) from error

    # -- ending ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Save what is not saved yet, and release the lock."""
        try:
            if self._saved_j != self.state.j:
                self.save()
        finally:
            self.release()

    def release(self) -> None:
        """Release the lock without saving anything."""
        file, self._file = self._file, None
        with suppress(OSError):  # an environment has closed all files of this process
            if file is not None:
                file.close()
        with suppress(OSError):
            self._lock.release()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Digest:
    """Size and SHA-256 of the first part of a file; immutable."""

    def __init__(self) -> None:
        self.size, self._hash = 0, hashlib.sha256()

    def plus(self, line: str) -> "_Digest":
        return self.plus_bytes(line.encode() + b"\n") if line else self

    def plus_bytes(self, content: bytes) -> "_Digest":
        longer = _Digest()
        longer.size, longer._hash = self.size + len(content), self._hash.copy()
        longer._hash.update(content)
        return longer

    def hex(self) -> str:
        return self._hash.hexdigest()


def confirmed(line: Mapping[str, Any]) -> tuple[float | None, int | None]:
    """The mean reward of a record's confirmation, and its number of rollouts."""
    return line.get("confirm_mean"), line.get("confirm_episodes")


def _take_duel(arrays: dict[str, NDArray[Any]], start: State) -> State:
    """The start with its age and score; without duels it is as old as its run."""
    counts, score = arrays[DUEL], _single(arrays, SCORE, "f")
    if counts.shape != (3,) or counts.dtype != np.int64 or counts.min() < 0 or not np.isfinite(score):
        raise ValueError("its duel is impossible for this run")
    age, duels = Age(*counts[:2].tolist()), int(counts[2])
    if age.j > start.j or age.timesteps > start.timesteps:
        raise ValueError("its duel is impossible for this run")
    return replace(start, age=age, duels=duels, score=score)


def initial_state(config: Config, definition: Mapping[str, Any]) -> State:
    """The state before the first iteration."""
    return State.initial(config.search, definition["p"], definition["n"], hidden=config.hidden, seed=config.seed)


def _without_iteration(session: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in session.items() if name != "iteration"}


def free_folder(config: Config) -> Path:
    """runs/TASK-SEARCH-seedS, with a number if it exists already."""
    safe = safe_name(config.task)
    first = Path("runs") / f"{safe}-{config.label}-seed{config.seed}"
    folder, number = first, 1
    while folder.exists():
        number += 1
        folder = first.with_name(f"{first.name}-{number}")
    return folder


def _single(arrays: dict[str, NDArray[Any]], name: str, kinds: str) -> Any:
    """A single number or text, of one of these NumPy kinds."""
    array = arrays[name]
    if array.ndim != 0 or array.dtype.kind not in kinds or array.dtype.itemsize > 4 * LONGEST_LINE:
        raise ValueError(f"{name} has the wrong type")
    return array.item()


def _refuse_links(path: Path) -> None:
    """Refuse links: a folder from someone else could redirect our writes to any file, and training a copy made of hard
    links would change the original."""
    asked = path / ASKED
    files = [path / name for name in (*NAMES, TOLD, ".lock", "wandb-id")]
    if asked.is_symlink() or (asked.exists() and not asked.is_dir()):
        files.append(asked)
    elif asked.exists():
        files += asked.iterdir()
    for file in files:
        if file.is_symlink() or (file.exists() and not file.is_file()) or file == asked:
            raise FileError(f"{file} is not a plain file: a run keeps its files in its own folder.")
        if file.exists() and file.stat().st_nlink > 1:
            raise FileError(f"{file} is shared with another folder by a hard link: copy the run by `cp -a`, not -al.")


def _exists(path: Path) -> bool:
    """Whether it exists; False for an invalid name."""
    with suppress(OSError):
        return path.exists()
    return False


def _remove_empty(path: Path, new: list[Path]) -> None:
    """After a refusal: remove the folders that were created, the deepest first, unless something was saved in them."""
    with suppress(OSError):
        if path in new and [entry.name for entry in path.iterdir()] == [".lock"]:
            (path / ".lock").unlink()
        for folder in new:
            folder.rmdir()


def _clear_leftovers(path: Path) -> None:
    """Delete temporary files of writes that were killed."""
    for name in (*NAMES, TOLD):
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
