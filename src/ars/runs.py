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
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from ars.checkpoint import (
    NO_HASH,
    Best,
    Checkpoint,
    check_checkpoint_size,
    damaged,
    initial_state,
    read_checkpoint,
    write_checkpoint,
)
from ars.config import Config
from ars.errors import FileError
from ars.files import append_whole, is_file, make_folder, read_bytes, safe_name, write_json
from ars.folder import ASKED, NAMES, TOLD, Lock, clear_leftovers, lock, missing_folders, refuse_links, remove_empty
from ars.network import AnyPolicy
from ars.records import Record, State, parse_line, parse_lines, policy_task
from ars.saved_config import FORMAT, SavedConfig, check_size, read_config, run_identity, this_session
from ars.stopping import Stop
from ars.tasks.user_code import needs_object, task_flag

SECONDS_BETWEEN_CHECKPOINTS = 0.5  # a kill loses at most this or the current iteration, whichever is longer
MEASURED_ELSEWHERE = "measured_elsewhere"  # marks a task that only ask and tell can run
MOST_SESSIONS = 1000  # kept in config.json


class Run:
    """An open, locked run folder. Use `create` or `open`, and close it or use it in a with statement."""

    def __init__(self, path: Path, held: Lock, saved: "SavedConfig", state: State) -> None:
        self.path, self.config, self.definition, self.stop = path, saved.config, saved.definition, saved.stop
        self.sessions, self.notes = saved.sessions, saved.notes
        self.state = state
        self._identity = run_identity(saved.config, saved.definition)
        self.seconds = 0.0
        self.best: Best | None = None
        self._lock = held
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
        state = state or initial_state(config, definition)
        check_checkpoint_size(config, state)
        new = missing_folders(path)
        make_folder(path)
        refuse_links(path)
        held = lock(path)
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
            run = Run(path, held, saved, state)
            clear_leftovers(path)
            run._write_config()
            run.save()
            run._records().close()
            return run
        except BaseException:
            remove_empty(path, new)
            held.release()
            raise

    @staticmethod
    def check(path: Path, saved: "SavedConfig") -> None:
        """Check that the checkpoint and the records, if there are any, belong to this configuration; nothing is locked
        or changed, and the run may be in progress."""
        if (path / "checkpoint.npz").exists():
            initial = initial_state(saved.config, saved.definition)
            Run(path, Lock(path / ".lock"), saved, initial)._load()

    @staticmethod
    def open(path: Path, *, mend: bool = True) -> "Run":
        """Open a run at its last checkpoint. Everything is checked before anything is changed; with mend=False, nothing
        is changed until `mend` is called."""
        if not is_file(path / "config.json"):
            raise FileError(f"{path} is not a run folder: it has no config.json.")
        refuse_links(path)
        held = lock(path)
        try:
            saved = read_config(path)
            run = Run(path, held, saved, initial_state(saved.config, saved.definition))
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
            held.release()
            raise

    def mend(self) -> None:
        """Make the folder agree with the checkpoint: delete what a kill left behind and rewrite the policies."""
        clear_leftovers(self.path)
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
        records = self._whole.size, self._whole.hex()
        saved = Checkpoint(self.state, self.seconds, self.best, self._last_line, records)
        write_checkpoint(self.path / "checkpoint.npz", self.config, self._identity, saved)
        self._write_policies()
        self._saved_at, self._saved_j = time.monotonic(), self.state.j

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
        saved = read_checkpoint(path, self.config, self.definition)
        self.state, self.seconds, self.best, self._last_line = saved.state, saved.seconds, saved.best, saved.last_line
        self._saved_j = saved.state.j
        try:
            if saved.records == NO_HASH:
                self._check_records()
            else:
                self._check_digest(*saved.records)
        except (ValueError, RecursionError) as error:
            raise damaged(path, error) from error

    # -- records --------------------------------------------------------------------------------------------------

    def _check_digest(self, size: int, sha256: str) -> None:
        """Check that iterations 1 … j − 1 in records.jsonl are those that preceded the checkpoint. It holds iteration j
        itself, and later lines do not count."""
        path, left = self.path / "records.jsonl", size
        digest = _Digest()
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
