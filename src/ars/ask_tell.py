"""Ask and tell: training with rewards measured elsewhere, on a real robot or in another simulator.

`ask` returns the rollouts that the run still needs; `tell` takes their results in any order, in parts, and ignores
repeats. Results are kept in told.jsonl in the run folder until their iteration is complete. Everything else follows
from that file and the checkpoint, so a kill at any moment loses no result for which `tell` has returned.
"""

import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars import notes, subset
from ars.checkpoint import initial_state
from ars.config import Config
from ars.duel import duel_columns
from ars.errors import ArsError, FileError, SettingError
from ars.executors import Batch, Rollouts, assemble
from ars.files import append_whole, make_folder, one_line, parse_json, read_bytes, write_atomic, write_json
from ars.folder import ASKED, TOLD
from ars.mirror import Mirror
from ars.moments import Moments
from ars.noise import Key, check_table_size, environment_seed
from ars.policy import LARGEST_M, Actions, LinearPolicy
from ars.presets import make_config
from ars.records import Record, State, policy_task
from ars.run_files import each_record
from ars.runs import MEASURED_ELSEWHERE, Run, free_folder
from ars.saved_config import check_size
from ars.settings import finite_number, shown, whole_number
from ars.stopping import Stop
from ars.tasks import Rollout, TaskLike, factory
from ars.tasks.user_code import name_of
from ars.training import count_evaluation, evaluated, is_due, make_record, state_evaluation, training_batch, update
from ars.warm_start import warm_start_of

FloatArray = NDArray[np.float64]

KEY = re.compile(r"i([1-9]\d{0,14})-(?:k\d{1,15}-(?:plus|minus)|e\d{1,15})")
DEFAULT_H = 1000  # for tasks that are not built in


@dataclass(frozen=True)
class Candidate:
    """A rollout to run: one episode of `policy` with at most H steps; `seed` is for a simulator's initial state.

    In training, `shift` (the survival bonus) is subtracted from the reward of each step. If `states` is true, the
    result must include the states that the policy acted on, or their moments.
    """

    key: str  # i12-k3-plus: iteration 12, direction 3, M + nu delta; i12-e5: episode 5 of the evaluation after it
    policy: LinearPolicy
    H: int
    shift: float
    seed: int
    states: bool
    unit: Key  # identifies the random numbers of the same rollout in `ars train`, for built-in tasks

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key, "H": self.H, "shift": self.shift, "seed": self.seed, "states": self.states}


class AskTell:
    """A run that is told its rewards. Use `create` to start one or `open` to continue one, and close it when done.

    with AskTell.create("runs/arm", "arm", n=14, p=7, N=4) as run:
        for candidate in run.ask():
            reward, steps, states = measure(candidate.policy)
            run.tell([{"key": candidate.key, "reward": reward, "steps": steps, "states": states}])
    """

    def __init__(self, run: Run) -> None:
        _refuse_network(run.config)
        self.run, self._mirror = run, Mirror.of(run.definition)
        self._path = run.path / TOLD
        self._told: dict[str, Rollout] = {}
        self._began = time.monotonic() - run.seconds
        before = each_record(run.path / "records.jsonl") if run.state.j else ()
        self._watch = notes.Watch(run.config, run.definition, before)

    # -- making and opening -----------------------------------------------------------------------------------------

    @staticmethod
    def create(
        out: str | Path | None = None,
        task: TaskLike = "robot",
        *,
        n: int | None = None,
        p: int | None = None,
        H: int | None = None,
        shift: float | None = None,
        start: str | Path | LinearPolicy | None = None,
        start_weight: int | None = None,
        **settings: Any,
    ) -> "AskTell":
        """Create a run folder. `task` is a task that `ars.train` takes or, with the sizes n and p, any name."""
        definition = _definition(task, n, p, H, settings.get("observe"), settings.get("mirror"))
        settings["observe"] = definition.get("observe", subset.ALL)
        name = definition["name"]
        if n is not None and settings.get("eval_every") is None:  # a robot's episodes are expensive
            settings["eval_every"] = 0
        warm = warm_start_of(start, start_weight, name)
        settings["start"] = warm.name if warm else None
        config = make_config(  # without the shape: ARS, which asks for no more than 2N episodes an iteration
            name, H=definition["H"] if H is None else H,
            shift=definition["survival_bonus"] if shift is None else shift, **settings,
        )  # fmt: skip
        _refuse_network(config)
        check_size(config, definition)
        check_table_size(config.table_size, definition["p"], definition["n"])
        state = initial_state(config, definition)
        if warm is not None:
            state = warm.apply(config, state, Mirror.of(definition))
        folder = free_folder(config) if out is None else Path(out)
        return AskTell(Run.create(folder, config, definition, Stop(), state))

    @staticmethod
    def open(out: str | Path) -> "AskTell":
        """Open a run with everything that it has been told."""
        run = Run.open(Path(out))
        try:
            made = AskTell(run)
            made._read()
            made._advance()
            return made
        except BaseException:
            run.release()
            raise

    def close(self) -> None:
        self.run.close()

    def __enter__(self) -> "AskTell":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- asking -----------------------------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        return self.run.config

    @property
    def state(self) -> State:
        return self.run.state

    @property
    def policy(self) -> LinearPolicy:
        """The policy of the last complete iteration."""
        policy = self.run.policy()
        assert isinstance(policy, LinearPolicy)
        return policy

    def ask(self) -> list[Candidate]:
        """The rollouts that the current iteration still needs; never empty."""
        batch = self._batch()
        return [self._candidate(batch, k, sign) for k, sign in batch.units() if _key(batch, k, sign) not in self._told]

    @property
    def asked(self) -> int:
        """How many results the current stage of the iteration needs in total."""
        return len(self._batch().units())

    def write_asked(self, folder: str | Path | None = None) -> list[Path]:
        """Write the candidates as files: KEY.npz for each, readable by NumPy, and asked.json, which lists them. Files
        of earlier iterations are deleted."""
        folder = self.run.path / ASKED if folder is None else Path(folder)
        make_folder(folder)
        candidates = self.ask()
        files = [folder / f"{candidate.key}.npz" for candidate in candidates]
        for file, candidate in zip(files, candidates, strict=True):
            candidate.policy.save(file)
        listed = [{**candidate.to_dict(), "file": file.name} for candidate, file in zip(candidates, files, strict=True)]
        write_json(folder / "asked.json", {"candidates": listed})
        for old in set(folder.glob("i*.npz")) - set(files):
            if KEY.fullmatch(old.stem):
                old.unlink()
        return files

    def _batch(self) -> Batch:
        """The training rollouts of the next iteration or, once these have been told, its evaluation."""
        batch = training_batch(self.config, self.state, self._mirror)
        if not self._is_complete(batch):
            return batch
        after, _ = update(self.config, self.state, self._assemble(batch), self._mirror)
        return self._evaluation(after)

    def _evaluation(self, after: State) -> Batch:
        policy = after.policy(normalised=self.config.normalise, task={})
        return state_evaluation(self.config, after, self.run.definition["H"], policy)

    def _candidate(self, batch: Batch, k: int, sign: int) -> Candidate:
        unit, policy = Key(batch.seed, batch.stream, batch.j, k, sign), batch.candidate(k, sign)
        named = LinearPolicy(policy.M, policy.mu, policy.sigma, policy_task(self.run.definition))
        seed = environment_seed(unit)
        return Candidate(_key(batch, k, sign), named, batch.H, batch.shift, seed, batch.gather, unit)

    # -- telling ----------------------------------------------------------------------------------------------------

    def tell(self, results: Iterable[Mapping[str, Any]]) -> list[Record]:
        """Take results, each with `key`, `reward` (None if the rollout was not finite), `steps` and, if the candidate's
        `states` is true, the `states` acted on, (steps, n), or their `moments`: count, mean and m2.

        Returns the records of the iterations that became complete. If any result is invalid, none is taken. A result
        that was told before is ignored.
        """
        batch = self._batch()
        asked = {_key(batch, k, sign) for k, sign in batch.units()}
        new: dict[str, Rollout] = {}
        for result in results:
            key = _key_of(result)
            if key in self._told or key in new or _iteration(key) <= self.state.j:
                continue
            if key not in asked:
                raise SettingError(f"key = {shown(key)} is not one of the candidates that are asked for now.")
            new[key] = _rollout(key, result, batch)
        together = self._told | new
        if batch.search is not None and self._is_complete(batch, together):
            # DivergedError: none is taken
            update(self.config, self.state, self._assemble(batch, together), self._mirror)
        self._append(new)
        self._told = together
        return self._advance()

    def _is_complete(self, batch: Batch, told: Mapping[str, Rollout] | None = None) -> bool:
        told = self._told if told is None else told
        return all(_key(batch, k, sign) in told for k, sign in batch.units())

    def _assemble(self, batch: Batch, told: Mapping[str, Rollout] | None = None) -> Rollouts:
        told = self._told if told is None else told
        return assemble(batch, [told[_key(batch, k, sign)] for k, sign in batch.units()])

    def _advance(self) -> list[Record]:
        """Complete every iteration that can be completed: write its checkpoint first, then drop its results."""
        records = []
        while self._is_complete(batch := training_batch(self.config, self.state, self._mirror)):
            rollouts = self._assemble(batch)
            after, telemetry = update(self.config, self.state, rollouts, self._mirror)
            evaluation = None
            if is_due(self.config, after, rollouts):
                if not self._is_complete(evaluating := self._evaluation(after)):
                    break
                evaluation = evaluated(self._assemble(evaluating))
                after = count_evaluation(self.config, after, evaluation)
            seconds = time.monotonic() - self._began
            made = make_record(
                self.config, self.run.definition, after, telemetry, rollouts, evaluation=evaluation, seconds=seconds,
                train_seconds=seconds - self.run.seconds, **duel_columns(self.state, after),
            )  # fmt: skip
            record = self._watch.add(made)
            self.run.begin_session()
            self.run.append(record)
            self.run.save()
            self._told.clear()
            self._rewrite()
            records.append(record)
        return records

    # -- told.jsonl -------------------------------------------------------------------------------------------------

    def _append(self, results: Mapping[str, Rollout]) -> None:
        """Add results to told.jsonl; they are on disk when this returns."""
        content = "".join(_line(key, rollout) for key, rollout in results.items()).encode()
        try:
            with self._path.open("ab", buffering=0) as file:
                append_whole(file, content)
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"Cannot write {self._path}: {error.strerror or error}.") from error

    def _rewrite(self) -> None:
        write_atomic(self._path, "".join(_line(key, rollout) for key, rollout in self._told.items()).encode())

    def _read(self) -> None:
        """Read the results of the current iteration; drop an incomplete last line and results already checkpointed."""
        if not self._path.exists():
            return
        *lines, _ = read_bytes(self._path).split(b"\n")
        training = training_batch(self.config, self.state, self._mirror)
        evaluating = replace(training, search=None, H=self.run.definition["H"], gather=False)
        for number, line in enumerate(lines, 1):
            try:
                result = parse_json(line)
                key = _key_of(result)
                if key in self._told:
                    raise ValueError(f"{key} is told twice")
                if _iteration(key) == self.state.j + 1:
                    self._told[key] = _rollout(key, result, training if "-k" in key else evaluating)
            except (ArsError, ValueError, RecursionError) as error:
                raise FileError(f"{self._path} is damaged in line {number}: {one_line(error).rstrip('.')}.") from error
        self._rewrite()


def _refuse_network(config: Config) -> None:
    if config.hidden:
        raise SettingError(f"hidden = {config.hidden} is a network, and ask and tell has linear policies only.")


def read_results(path: Path) -> list[Any]:
    """The results in a JSON file: a list, or a list under "results"."""
    content = read_bytes(path)
    try:
        if not content.lstrip().startswith(b"["):
            content = json.dumps(parse_json(content)["results"]).encode()
        results = parse_json(b'{"results": ' + content + b"}")
        if set(results) != {"results"} or not isinstance(results["results"], list):
            raise ValueError("a list of results was expected")
        return list(results["results"])
    except (ValueError, KeyError, RecursionError) as error:
        raise FileError(f"{path} has no results: {one_line(error).rstrip('.')}.") from error


def _definition(
    task: TaskLike, n: int | None, p: int | None, H: int | None, observe: str | None, mirror: bool | None
) -> dict[str, Any]:
    """The definition of a task, or of a name with given sizes."""
    if n is None and p is None:
        with closing(factory(task, observe=observe, mirror=mirror)()) as made:
            if H is not None and made.time_limit is not None and made.time_limit < H:
                raise SettingError(f"H = {H} is longer than {made.name} lasts: choose H from 1 to {made.time_limit}.")
            return made.definition()
    if observe not in (None, subset.ALL) or mirror:
        raise SettingError("observe and mirror need a task that ars knows: with n and p, n is what the policy sees.")
    sizes = {"n": whole_number("n", n, 1, LARGEST_M), "p": whole_number("p", p, 1, LARGEST_M)}
    horizon = DEFAULT_H if H is None else whole_number("H", H, 1, 10**9)
    rest = {"observation": {"shape": [sizes["n"]]}, "actions": Actions().to_dict()}
    return {"name": name_of(task), **sizes, "H": horizon, "survival_bonus": 0.0, **rest, MEASURED_ELSEWHERE: True}


def _key(batch: Batch, k: int, sign: int) -> str:
    if batch.search is None:
        return f"i{batch.j}-e{k}"
    return f"i{batch.j + 1}-k{k}-{'plus' if sign > 0 else 'minus'}"


def _key_of(result: Any) -> str:
    key = result.get("key") if isinstance(result, Mapping) else None
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise SettingError(f"key = {shown(key)} is not the key of a candidate, such as i1-k0-plus.")
    return key


def _iteration(key: str) -> int:
    return int(key[1:].partition("-")[0])


def _rollout(key: str, result: Mapping[str, Any], batch: Batch) -> Rollout:
    """A checked result, as a task would return it."""
    unknown = sorted(set(result) - {"key", "reward", "steps", "states", "moments"})
    if unknown:
        raise SettingError(f"{key} has {shown(unknown[0])}: a result has key, reward, steps and states or moments.")
    steps = whole_number(f"{key}: steps", result.get("steps"), 1, batch.H)
    if "reward" not in result:
        raise SettingError(f"{key} has no reward: give a number, or null if the rollout was not finite.")
    if result["reward"] is None:
        return Rollout(math.nan, steps, None, False)
    reward = finite_number(f"{key}: reward", result["reward"])
    return Rollout(reward, steps, _moments(key, result, batch.n, steps) if batch.gather else None, True)


def _moments(key: str, result: Mapping[str, Any], n: int, steps: int) -> Moments:
    """The moments of the states acted on, summed in step order as in the built-in tasks, so that the bits agree."""
    if ("states" in result) == ("moments" in result):
        raise SettingError(f"{key} needs either states or moments of the states, because this run normalises states.")
    if "states" in result:
        x = _array(f"{key}: states", result["states"], (steps, n))
        with np.errstate(over="ignore", invalid="ignore"):
            d = x - x[0]
            moments = Moments.from_sums(steps, x[0], np.add.accumulate(d)[-1], np.add.accumulate(d * d)[-1])
        if not np.isfinite(moments.m2).all():
            raise SettingError(f"{key}: states are too large for their variance to be a number.")
        return moments
    given = result["moments"]
    if not isinstance(given, Mapping) or set(given) != {"count", "mean", "m2"}:
        raise SettingError(f"{key}: moments must have count, mean and m2.")
    count = whole_number(f"{key}: count", given["count"], 1, steps)
    mean, m2 = (_array(f"{key}: {name}", given[name], (n,)) for name in ("mean", "m2"))
    if not (m2 >= 0).all():
        raise SettingError(f"{key}: m2, sums of squares, must not be negative.")
    return Moments(np.asarray(count, dtype=np.int64), mean, m2)


def _array(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    try:
        given = np.asarray(value)
        array = given.astype(np.float64) if given.dtype.kind in "iuf" else np.array(math.nan)
    except (ValueError, TypeError, OverflowError):
        array = np.array(math.nan)
    if array.shape != shape or not np.isfinite(array).all():
        raise SettingError(f"{name} must be finite numbers of shape {shape}.")
    return array


def _line(key: str, rollout: Rollout) -> str:
    """A line of told.jsonl; Python writes floats so that reading them restores the same bits."""
    result: dict[str, Any] = {"key": key, "reward": rollout.reward if rollout.finite else None, "steps": rollout.steps}
    if rollout.moments is not None:
        m = rollout.moments
        result["moments"] = {"count": int(m.count), "mean": m.mean.tolist(), "m2": m.m2.tolist()}
    return json.dumps(result, allow_nan=False) + "\n"
