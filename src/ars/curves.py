"""The learning curve of a run of any learner, from a run folder or from one small file.

The file is text of a few kB; `results/runs/` has one for every run of the reproduction. A curve does not depend on ARS:
it describes its run by a mapping of settings, so that curves of other methods fit into the same tables.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.config import Config
from ars.errors import ArsError, FileError
from ars.files import make_folder, one_line, read_json, write_atomic
from ars.records import SHARED, best_known
from ars.run_files import read_run
from ars.runs import confirmed
from ars.searches import search_settings
from ars.statistics import first_reach
from ars.stopping import Stop

FloatArray = NDArray[np.float64]

FORMAT = 2  # format 1, of ARS alone, is read
SPENT = ("iteration", "episodes", "timesteps", "seconds")  # totals at an evaluation: at_iteration, at_episodes, …
COLUMNS = (*(f"at_{name}" for name in SPENT), "mean", "std")  # one entry per evaluation
EPISODES = "episodes"  # the telemetry column with the total of training rollouts after each iteration


@dataclass(frozen=True)
class Curve:
    """A run. `columns` have one entry per evaluation: what had been spent (at_iteration, at_episodes, at_timesteps,
    at_seconds), and its mean and std. `telemetry` has one entry per iteration: `episodes` so far, and what the learner
    reports (sigma_R). `label` is the usual name of the learner with these settings, such as V2-t."""

    learner: str
    task: str
    seed: int
    settings: Mapping[str, Any]  # everything else that determines the run
    columns: Mapping[str, FloatArray]
    telemetry: Mapping[str, FloatArray] = field(default_factory=dict)
    label: str = ""
    status: str = "finished"  # or "unfinished", or why it failed
    iterations: int = 0
    episodes: int = 0
    timesteps: int = 0
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = "unknown"
    measures: Mapping[str, float] = field(default_factory=dict)  # of the run as a whole, such as its policy's bytes

    @property
    def rewards(self) -> FloatArray:
        return self.columns["mean"]

    @property
    def best(self) -> float:
        """The best evaluation; −∞ before the first."""
        return float(self.rewards.max()) if self.rewards.size else -math.inf

    @property
    def identity(self) -> str:
        """What determines the training and when it is evaluated, but not the number of rollouts per evaluation."""
        return identity(self.learner, self.task, self.seed, self.settings)

    @property
    def eval_episodes(self) -> int:
        """Rollouts per evaluation."""
        return int(self.settings.get("eval_episodes", 1))

    @property
    def failed(self) -> bool:
        """Whether it diverged; `status` explains how."""
        return self.status not in ("finished", "unfinished")

    def reach(self, threshold: float, what: str = "episodes") -> float:
        """What it spent (episodes, timesteps, seconds) to reach the threshold; infinite if it did not."""
        return first_reach(self.columns[f"at_{what}"], self.rewards, threshold)

    def settled(self, threshold: float, cap: float, timesteps: float = math.inf) -> bool:
        """Whether the outcome is known: it reached the threshold, spent the cap (of episodes) or the timesteps, or
        diverged."""
        return self.failed or self.best >= threshold or self.episodes >= cap or self.timesteps >= timesteps

    def up_to(self, episodes: int, until: float | None = None) -> "Curve":
        """The curve as if it had ended at this cap, or at the first evaluation that reached `until`: another command
        may have continued the run, and results must not depend on that. Timesteps and seconds are then those of the
        last remaining evaluation."""
        spent = self.telemetry.get(EPISODES)
        if spent is None:  # of another learner, for which only evaluations are known
            spent = np.repeat(self.columns["at_episodes"], np.diff(self.columns["at_iteration"], prepend=0).astype(int))
        last = int(np.searchsorted(spent, episodes)) + 1  # iterations, including the one that passes the cap
        if until is not None:
            last = int(min(last, self.reach(until, "iteration")))
        if self.iterations <= last:
            return self
        kept = self.columns["at_iteration"] <= last
        columns = {name: column[kept] for name, column in self.columns.items()}
        timesteps, seconds = (columns[name][-1] if kept.any() else 0 for name in ("at_timesteps", "at_seconds"))
        return replace(
            self, status="finished", iterations=last, episodes=int(spent[last - 1]), timesteps=int(timesteps),
            seconds=float(seconds), columns=columns,
            telemetry={name: column[:last] for name, column in self.telemetry.items()},
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """One column per line, so that a person can read it and a diff stays small."""
        names = ("learner", "label", "task", "seed", "status", "iterations", "episodes", "timesteps")
        value = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in names},
            "seconds": round(self.seconds, 1),
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "machine": self.machine,
            **({"measures": dict(self.measures)} if self.measures else {}),
            **{name: _rounded(self.columns[name]) for name in COLUMNS},
            "telemetry": {name: [_five_digits(value) for value in column] for name, column in self.telemetry.items()},
        }
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry, allow_nan=False)}" for name, entry in value.items())
        make_folder(path.parent)
        write_atomic(path, f"{{\n{lines}\n}}\n".encode())


def identity(learner: str, task: str, seed: int, settings: Mapping[str, Any]) -> str:
    """What identifies a run, as text that can be a key. By the frugal protocol the number of rollouts per evaluation
    decides when it is evaluated."""
    free = () if settings.get("protocol") == "frugal" else ("eval_episodes",)
    decided = {name: value for name, value in settings.items() if name not in free}
    return json.dumps([learner, task, seed, decided], sort_keys=True)


def curve_settings(config: Config) -> dict[str, Any]:
    """The settings of a configuration, flat, without the search's name, task and seed."""
    shared = {name: value for name, value in config.to_dict().items() if name not in ("search", "task", "seed")}
    return {**search_settings(config.search), **shared}


def by_identity(curves: Iterable[Curve]) -> dict[str, list[Curve]]:
    """The curves of each run; there may be several, which differ in their rollouts per evaluation."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.identity, []).append(curve)
    return groups


def fullest(curves: Iterable[Curve], enough: Callable[[Curve], bool] = lambda curve: False) -> list[Curve]:
    """One curve per run: preferably one that is `enough`, then one with more rollouts per evaluation, then a longer."""
    groups = by_identity(curves).values()
    return [max(group, key=lambda c: (enough(c), c.eval_episodes, c.episodes)) for group in groups]


def save_if_further(curve: Curve, path: Path) -> None:
    """Save a curve unless the file has a longer one, one as long that records a failure, or that of another run: not
    all settings are part of a name."""
    try:
        known = load(path) if path.exists() else None
    except FileError:
        set_aside(path, "damaged")
        known = None
    if known and (
        known.identity != curve.identity
        or known.episodes > curve.episodes
        or (known.episodes == curve.episodes and known.failed)
    ):
        return
    curve.save(path)


def set_aside(path: Path, why: str) -> None:
    """Keep a file under another name, which is free and is not read."""
    names = (path.with_name(f"{path.name}.{why}{number or ''}") for number in count())
    path.rename(next(name for name in names if not name.exists()))


def _rounded(values: FloatArray) -> list[float | int]:
    return [int(value) if value == int(value) else rounded(float(value)) for value in values]


def rounded(value: float) -> float:
    """As curves store numbers."""
    return round(value, 4)


def _five_digits(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.5g}")


def load(path: Path) -> Curve:
    """A curve from its file."""
    value = read_json(path)
    try:
        if type(value["format"]) is int and value["format"] == 1:
            return _from_format_1(value)
        if type(value["format"]) is not int or value["format"] != FORMAT:
            raise ValueError(f"format {value['format']!r:.50} is unknown to this version of ars")
        telemetry = {str(name): _numbers(column, gaps=True) for name, column in dict(value["telemetry"]).items()}
        _check(value)
        return Curve(
            learner=str(value["learner"]), label=str(value["label"]), task=str(value["task"]), seed=int(value["seed"]),
            settings=dict(value["settings"]), columns=_columns({name: value[name] for name in COLUMNS}),
            telemetry=_equal_lengths(telemetry), measures=_measures(value.get("measures", {})), **_totals(value),
        )  # fmt: skip
    except (ArsError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path} is not a run's curve: {one_line(error)}") from error


def _check(value: Mapping[str, Any]) -> None:
    """Check what format 1 checked by its configuration, and what would break tables."""
    words = [value[name] for name in ("learner", "label", "task", "status", "machine")]
    if not all(isinstance(word, str) and word.isprintable() and len(word) < 1000 for word in words):
        raise ValueError("its names are not printable text")
    rollouts = dict(value["settings"]).get("eval_episodes", 1)
    counts = [rollouts, *(value[name] for name in ("seed", "iterations", "episodes", "timesteps"))]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("its counts are not counts")
    if any(number < 0 for name in SPENT for number in value[f"at_{name}"]):
        raise ValueError("its evaluations are at negative times")


def _from_format_1(value: Mapping[str, Any]) -> Curve:
    """A curve of ARS; its columns were named eval_episodes and so on, and every iteration had 2 N episodes."""
    config = Config.from_format_1(value["config"])
    columns = {f"at_{name}": value[f"eval_{name}"] for name in SPENT}
    columns |= {name: value[f"eval_{name}"] for name in ("mean", "std")}
    Stop(**value["stop"])  # check only: a part of the file that is no longer used
    sigma_R = _numbers(value["sigma_R"])
    per_iteration = len(config.search.signs) * config.search.size({})
    telemetry = {EPISODES: per_iteration * np.arange(1.0, len(sigma_R) + 1), "sigma_R": sigma_R}
    return _of_config(config, _columns(columns), telemetry, **_totals(value))


def _of_config(config: Config, columns: Any, telemetry: Any, **more: Any) -> Curve:
    learner = config.to_dict()["search"]["name"]
    return Curve(learner=learner, label=config.label, task=config.task, seed=config.seed,
                 settings=curve_settings(config), columns=columns, telemetry=telemetry, **more)  # fmt: skip


def _totals(value: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: int(value[name]) for name in ("iterations", "episodes", "timesteps")}
    versions, machine = dict(value["versions"]), str(value["machine"])
    return {**counts, "seconds": float(value["seconds"]), "status": str(value["status"]), "versions": versions,
            "machine": machine}  # fmt: skip


def _measures(value: Any) -> dict[str, float]:
    names, numbers = [str(name) for name in dict(value)], _numbers(dict(value).values())
    return dict(zip(names, numbers.tolist(), strict=True))


def load_all(folder: Path) -> tuple[list[Curve], list[str]]:
    """Every curve of a folder, by file name, and a message for each file that is not a curve."""
    curves, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            curves.append(load(path))
        except FileError as error:
            problems.append(f"{str(error).rstrip('.')}; remove it, and its run is made again.")
    return curves, problems


def from_run(folder: Path, status: str | None = None) -> Curve:
    """The curve of a run folder, which may be in use; nothing is locked or changed."""
    run = read_run(folder, with_policy=False)
    records = run.records
    last = records[-1] if records else {"iteration": 0, "episodes": 0, "timesteps": 0, "seconds": 0.0}
    try:
        evaluations = [line for line in records if best_known(line) is not None]
        columns = {f"at_{name}": [line[name] for line in evaluations] for name in SPENT}
        columns |= {name: [best_known(line, name) for line in evaluations] for name in ("mean", "std")}
        names = [name for name in dict.fromkeys(name for line in records for name in line) if name not in SHARED]
        names = [name for name in names if not any(isinstance(line.get(name), bool) for line in records)]
        telemetry = {name: _numbers([line.get(name) for line in records], gaps=True) for name in (EPISODES, *names)}
        totals = int(last["iteration"]), int(last["episodes"]), int(last["timesteps"]), float(last["seconds"])
        best = max((line["eval_mean"] for line in evaluations), default=None)
        goal = (best, None) if run.config.protocol == "paper" else confirmed(last)
        reason = run.stop.reason(*totals, *goal)
        return _of_config(
            run.config, _columns(columns), telemetry, versions=run.versions, machine=run.machine,
            status=status or ("finished" if reason else "unfinished"), iterations=totals[0], episodes=totals[1],
            timesteps=totals[2], seconds=totals[3],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{folder / 'records.jsonl'} is damaged: {one_line(error)}") from error


def _columns(values: Mapping[str, Iterable[Any]]) -> dict[str, FloatArray]:
    columns = _equal_lengths({name: _numbers(column) for name, column in values.items()})
    if (
        any((np.diff(columns[f"at_{name}"]) < 0).any() for name in SPENT)
        or (np.diff(columns["at_iteration"]) <= 0).any()
    ):
        raise ValueError("its evaluations are not in order")
    return columns


def _equal_lengths(columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("its columns differ in length")
    return columns


def _numbers(values: Iterable[Any], *, gaps: bool = False) -> FloatArray:
    """As float64; with `gaps`, None (a measure that was not finite) becomes NaN."""
    values = [math.nan if gaps and value is None else value for value in values]
    if not all(type(value) in (int, float) for value in values):
        raise ValueError("its numbers are not numbers")
    array = np.array([float(value) for value in values], dtype=np.float64)
    if not (np.isfinite(array) | (gaps & np.isnan(array))).all():
        raise ValueError("its numbers are not finite")
    return array
