"""checkpoint.npz of a run folder: all that the next iteration depends on, and what the other files must agree with.

It may be from anyone: everything in it is checked against the run's configuration, and nothing is executed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.config import Config
from ars.errors import FileError, SettingError
from ars.files import LARGEST_FILE, one_line, read_npz, write_npz
from ars.layers import hidden_layers
from ars.moments import Moments
from ars.network import AnyPolicy, checked_network
from ars.policy import LinearPolicy, check_policy_arrays
from ars.records import LARGEST_COUNT, LONGEST_LINE, NO_EVALUATIONS, Age, Evaluations, State, parse_line
from ars.saved_config import FORMAT, run_identity

PARAM = "param."  # prefix of the names of the search's arrays
WHOLE = ("format", "j", "episodes", "timesteps", "seconds", "last_line", "best_iteration", "best_mean", "best_M",
         "best_mu", "best_sigma")  # fmt: skip
FORMAT_1 = ("M", "count", "mean", "m2")
HASHES = ("run", "records_size", "records_sha256")  # since format 2
# Only of the frugal protocol, with an average, with least_timesteps, and of steady policies.
EVALUATIONS, AVERAGE, LENGTH, MU = "evaluations", "average", "length", "mu"
NO_HASH = -1, ""
ENTRY = 1024  # bytes that an array's name and shape take at most, in an .npz file
LARGEST_REST = 2**20  # bytes of everything in a checkpoint whose size does not depend on M
DUEL, SCORE, WAITING = "duel", "score", "waiting."  # only with duels; a prefix of the names of the start that waits

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Best:
    """The policy of the best evaluation so far; the mean is that of its confirmation, if it has one."""

    iteration: int
    mean: float
    policy: AnyPolicy


@dataclass(frozen=True)
class Checkpoint:
    """A run after state.j iterations."""

    state: State
    seconds: float  # that the run has taken
    best: Best | None
    last_line: str  # of records.jsonl, that of iteration j; empty before the first
    records: tuple[int, str]  # size and SHA-256 of the lines before; NO_HASH of format 1


def initial_state(config: Config, definition: Mapping[str, Any]) -> State:
    """The state before the first iteration."""
    return State.initial(config.search, definition["p"], definition["n"], hidden=config.hidden, seed=config.seed)


def largest_checkpoint(config: Config, state: State) -> int:
    """The bytes that a checkpoint of a run with this initial state may have. Searches differ in how many matrices they
    keep, and a duel doubles them."""
    start = sum(array.nbytes + ENTRY for array in _arrays_of(config, state).values())
    best = state.M.nbytes + 2 * state.moments.mean.nbytes
    return (2 if config.duel else 1) * start + best + LARGEST_REST


def check_checkpoint_size(config: Config, state: State) -> None:
    """Refuse a run whose checkpoint could not be read back."""
    size = largest_checkpoint(config, state)
    if size > LARGEST_FILE:
        raise SettingError(
            f"The checkpoint of this run would have {size} bytes, and our files have at most {LARGEST_FILE}: "
            f"observe less{', set duel = 0' if config.duel else ''}, or choose a search that keeps fewer matrices."
        )


# -- writing ----------------------------------------------------------------------------------------------------------


def write_checkpoint(path: Path, config: Config, identity: str, saved: Checkpoint) -> None:
    """Replace the file at once: a kill leaves the old one or the new one. `identity` is that of the run."""
    state, best, nothing = saved.state, saved.best, np.zeros(0)
    size, sha256 = saved.records
    waiting = {} if state.waiting is None else _arrays_of(config, state.waiting)
    write_npz(
        path,
        {
            "format": np.array(FORMAT),
            "run": np.array(identity),
            "j": np.array(state.j),
            **_arrays_of(config, state),
            **{f"{WAITING}{name}": array for name, array in waiting.items()},
            **_arrays_of_run(config, state),
            "episodes": np.array(state.episodes),
            "timesteps": np.array(state.timesteps),
            "seconds": np.array(saved.seconds),
            "records_size": np.array(size),
            "records_sha256": np.array(sha256),
            "last_line": np.array(saved.last_line),
            "best_iteration": np.array(best.iteration if best else 0),
            "best_mean": np.array(best.mean if best else np.nan),
            "best_M": best.policy.M if best else nothing,
            "best_mu": best.policy.mu if best else nothing,
            "best_sigma": best.policy.sigma if best else nothing,
        },
    )


def _arrays_of_run(config: Config, state: State) -> Arrays:
    """What only some configurations have, of the run as a whole."""
    return {EVALUATIONS: np.array(state.evaluations, dtype=np.int64)} if config.protocol == "frugal" else {}


def _arrays_of(config: Config, state: State) -> Arrays:
    """The arrays of a start: all that a duel exchanges."""
    arrays: Arrays = {f"{PARAM}{name}": array for name, array in state.params.items()}
    arrays |= {"count": state.moments.count, "mean": state.moments.mean, "m2": state.moments.m2}
    if config.average:
        arrays[AVERAGE] = state.M if state.average is None else state.average
    if config.least_timesteps:
        arrays[LENGTH] = np.array(state.length)
    if config.steady:
        arrays[MU] = np.zeros_like(state.moments.mean) if state.mu is None else state.mu
    if config.duel:
        arrays[DUEL] = np.array([*state.age, state.duels], dtype=np.int64)
        arrays[SCORE] = np.array(state.score)
    return arrays


# -- reading ----------------------------------------------------------------------------------------------------------


def read_checkpoint(path: Path, config: Config, definition: dict[str, Any]) -> Checkpoint:
    """The checkpoint of a run of this configuration, or FileError."""
    initial = initial_state(config, definition)
    start = _arrays_of(config, initial)
    names = (*WHOLE, *HASHES, *start, *_arrays_of_run(config, initial))
    duel = [(*names, *(f"{WAITING}{name}" for name in start))] if config.duel else []
    try:
        arrays = read_npz(path, (*WHOLE, *FORMAT_1), *duel, names)
        version = _single(arrays, "format", "iu")
        if version not in (1, FORMAT):
            raise ValueError(f"format {version} is unknown to this version of ars, which reads {FORMAT} and 1")
        if ("run" in arrays) != (version == FORMAT):
            raise ValueError(f"its arrays are not those of format {version}")
        if version == FORMAT and _single(arrays, "run", "U") != run_identity(config, definition):
            raise FileError(f"{path} is from another run than its config.json: this run cannot be continued.")
        if version == 1 and (set(initial.params) != {"M"} or config.duel):
            raise ValueError("format 1 has no search other than ars, and no duels")
        return _Reader(path, config, definition, version).checkpoint(arrays, initial)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> FileError:
    return FileError(f"{path} is damaged: {one_line(error)}.")


@dataclass(frozen=True)
class _Reader:
    """What the arrays of one file are checked against. Its methods raise ValueError, or FileError for a policy."""

    path: Path
    config: Config
    definition: dict[str, Any]
    version: int

    def checkpoint(self, arrays: Arrays, initial: State) -> Checkpoint:
        j, episodes, timesteps = counts = [_single(arrays, name, "iu") for name in ("j", "episodes", "timesteps")]
        if min(counts) < 0 or max(counts) > LARGEST_COUNT or bool(episodes) != bool(j):
            raise ValueError("its counts are impossible for this run")
        evaluations = _evaluations(arrays, j)
        run = replace(initial, j=j, episodes=episodes, timesteps=timesteps, evaluations=evaluations)
        inner = {name.removeprefix(WAITING): array for name, array in arrays.items() if name.startswith(WAITING)}
        waiting = self.start(inner, run) if inner else None
        state = replace(self.start(arrays, run), waiting=waiting)
        seconds, last_line = _single(arrays, "seconds", "f"), _single(arrays, "last_line", "U")
        if not (np.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"seconds = {seconds}")
        best = self.best(arrays, j)
        _check_last_line(state, last_line)
        records = NO_HASH
        if self.version == FORMAT:
            records = _single(arrays, "records_size", "iu"), _single(arrays, "records_sha256", "U")
            if (records[0] > 0) != (j > 1):
                raise ValueError("records_size does not fit its iterations")
        return Checkpoint(state, seconds, best, last_line, records)

    def start(self, arrays: Arrays, run: State) -> State:
        """What `_arrays_of` wrote, with the counts of the run. Format 1 has no prefix, and only M and moments."""
        n, p = self.definition["n"], self.definition["p"]
        params = {name: arrays[f"{PARAM}{name}" if self.version == FORMAT else name] for name in run.params}
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
        self.policy(params["M"], mean, np.ones(n))
        average, mu = arrays.get(AVERAGE), arrays.get(MU)
        if average is not None:
            if average.shape != params["M"].shape:
                raise ValueError(f"average {average.shape} does not fit M {params['M'].shape}")
            self.policy(average, mean, np.ones(n))
        length = _single(arrays, LENGTH, "f") if LENGTH in arrays else 0.0
        if not 0.0 <= length <= LARGEST_COUNT:
            raise ValueError(f"length = {length}")
        if mu is not None:
            check_policy_arrays(self.path, params["M"], mu, np.ones(n))
        start = replace(
            run, params=params, moments=Moments(np.asarray(count, dtype=np.int64), mean, m2), average=average,
            length=length, mu=mu, age=Age(run.j, run.timesteps),
        )  # fmt: skip
        return _with_duel(arrays, start) if self.config.duel else start

    def best(self, arrays: Arrays, j: int) -> Best | None:
        iteration = _single(arrays, "best_iteration", "iu")
        if not 0 <= iteration <= j:
            raise ValueError("its counts are impossible for this run")
        if not iteration:
            return None
        M, mean = arrays["best_M"], _single(arrays, "best_mean", "f")
        policy = self.policy(M, arrays["best_mu"], arrays["best_sigma"])
        if (policy.p, policy.n) != (self.definition["p"], self.definition["n"]) or not np.isfinite(mean):
            raise ValueError(f"best_M {M.shape} or best_mean {mean} does not fit this run")
        return Best(iteration, mean, policy)

    def policy(self, M: NDArray[Any], mu: NDArray[Any], sigma: NDArray[Any]) -> AnyPolicy:
        """A policy of this run, or FileError."""
        if self.config.hidden:
            return checked_network(self.path, M, mu, sigma, hidden_layers(self.config.hidden))
        check_policy_arrays(self.path, M, mu, sigma)
        return LinearPolicy(M, mu, sigma)


def _evaluations(arrays: Arrays, j: int) -> Evaluations:
    given = arrays.get(EVALUATIONS)
    if given is None:
        return NO_EVALUATIONS
    if given.shape != (len(NO_EVALUATIONS),) or given.dtype != np.int64 or given.min() < 0 or given[2] > j:
        raise ValueError("its evaluations are impossible for this run")
    return Evaluations(*given.tolist())


def _with_duel(arrays: Arrays, start: State) -> State:
    """The start with its age and score; without duels it is as old as its run."""
    counts, score = arrays[DUEL], _single(arrays, SCORE, "f")
    if counts.shape != (3,) or counts.dtype != np.int64 or counts.min() < 0 or not np.isfinite(score):
        raise ValueError("its duel is impossible for this run")
    age, duels = Age(*counts[:2].tolist()), int(counts[2])
    if age.j > start.j or age.timesteps > start.timesteps:
        raise ValueError("its duel is impossible for this run")
    return replace(start, age=age, duels=duels, score=score)


def _check_last_line(state: State, line: str) -> None:
    """Check the record of iteration j, which the checkpoint holds too."""
    if not state.j and not line:
        return
    record = parse_line(line)
    for name, value in (("iteration", state.j), ("episodes", state.episodes), ("timesteps", state.timesteps)):
        if record[name] != value:
            raise ValueError(f"its last record is not that of iteration {state.j}")


def _single(arrays: Arrays, name: str, kinds: str) -> Any:
    """A single number or text, of one of these NumPy kinds."""
    array = arrays[name]
    if array.ndim != 0 or array.dtype.kind not in kinds or array.dtype.itemsize > 4 * LONGEST_LINE:
        raise ValueError(f"{name} has the wrong type")
    return array.item()
