"""A run as the tables and figures need it: its settings and its evaluations, from a run folder or from one small file.

The small file is text, a few kB: `results/runs/` keeps one for every run of the reproduction.
"""

import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.config import Config
from ars.errors import ArsError, FileError
from ars.files import make_folder, read_json, write_atomic
from ars.presets import Preset
from ars.run_files import read_records
from ars.runs import read_config
from ars.statistics import first_reach
from ars.stopping import Stop

FloatArray = NDArray[np.float64]

FORMAT = 1
EVALUATIONS = ("iteration", "episodes", "timesteps", "seconds", "mean", "std")  # columns, one entry an evaluation


@dataclass(frozen=True)
class Curve:
    """A run: `evaluations` by column, `sigma_R` of every iteration, and what it spent in all."""

    config: Config
    stop: Stop
    versions: Mapping[str, str]
    machine: str
    status: str  # "finished", "unfinished", or why it failed
    iterations: int
    episodes: int
    timesteps: int
    seconds: float
    evaluations: Mapping[str, FloatArray]
    sigma_R: FloatArray

    @property
    def rewards(self) -> FloatArray:
        return self.evaluations["mean"]

    @property
    def best(self) -> float:
        """The best evaluation; −∞ before the first."""
        return float(self.rewards.max()) if self.rewards.size else -math.inf

    @property
    def identity(self) -> Config:
        """What decides the training, and when it is evaluated; by how many rollouts is not part of it."""
        return identity(self.config)

    @property
    def point(self) -> Preset:
        return Preset(self.config.alpha, self.config.nu, self.config.N, self.config.b)

    @property
    def failed(self) -> bool:
        """It diverged: the status says how."""
        return self.status not in ("finished", "unfinished")

    def reach(self, threshold: float, what: str = "episodes") -> float:
        """What it spent (episodes, timesteps, seconds) to get to the threshold; infinite if it did not."""
        return first_reach(self.evaluations[what], self.rewards, threshold)

    def settled(self, threshold: float, cap: int) -> bool:
        """Whether it is known if it gets there within the cap: it has, the cap is spent, or it diverged."""
        return self.failed or self.best >= threshold or self.episodes >= cap

    def up_to(self, episodes: int, until: float | None = None) -> "Curve":
        """As if it had ended at this cap, or at the first evaluation of `until`: another command's run may have gone
        further, and the answer must not depend on it. Its timesteps and seconds are then those of the last evaluation
        that is left."""
        last = -(-episodes // (2 * self.config.N))  # iterations; the one that passes the cap counts
        if until is not None:
            last = int(min(last, self.reach(until, "iteration")))
        if self.iterations <= last:
            return self
        kept = self.evaluations["iteration"] <= last
        columns = {name: column[kept] for name, column in self.evaluations.items()}
        timesteps, seconds = (columns[name][-1] if kept.any() else 0 for name in ("timesteps", "seconds"))
        return replace(
            self, status="finished", iterations=last, episodes=2 * self.config.N * last, timesteps=int(timesteps),
            seconds=float(seconds), evaluations=columns, sigma_R=self.sigma_R[:last],
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """One column a line, so that a person can read it and a diff stays small."""
        value = {
            "format": FORMAT,
            "status": self.status,
            "config": self.config.to_dict(),
            "stop": self.stop.to_dict(),
            "versions": dict(self.versions),
            "machine": self.machine,
            "iterations": self.iterations,
            "episodes": self.episodes,
            "timesteps": self.timesteps,
            "seconds": round(self.seconds, 1),
            **{f"eval_{name}": _rounded(self.evaluations[name]) for name in EVALUATIONS},
            "sigma_R": [float(f"{value:.5g}") for value in self.sigma_R],
        }
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry, allow_nan=False)}" for name, entry in value.items())
        make_folder(path.parent)
        write_atomic(path, f"{{\n{lines}\n}}\n".encode())


def identity(config: Config) -> Config:
    return replace(config, eval_episodes=1)


def by_identity(curves: Iterable[Curve]) -> dict[Config, list[Curve]]:
    """The curves of each run: there may be several, with more or fewer rollouts an evaluation."""
    found: dict[Config, list[Curve]] = {}
    for curve in curves:
        found.setdefault(curve.identity, []).append(curve)
    return found


def fullest(curves: Iterable[Curve], enough: Callable[[Curve], bool] = lambda curve: False) -> list[Curve]:
    """One curve for each run: one that says enough, then one with more rollouts an evaluation, then the longest."""
    groups = by_identity(curves).values()
    return [max(group, key=lambda c: (enough(c), c.config.eval_episodes, c.episodes)) for group in groups]


def save_if_further(curve: Curve, path: Path) -> None:
    """Never replace a run's file by one that knows less: not as far, or not that it failed there."""
    try:
        known = load(path) if path.exists() else None
    except FileError:  # set aside, not lost
        path.rename(path.with_name(f"{path.name}.damaged"))
        known = None
    if known and (known.episodes > curve.episodes or (known.episodes == curve.episodes and known.failed)):
        return
    curve.save(path)


def _rounded(values: FloatArray) -> list[float | int]:
    return [int(value) if value == int(value) else round(float(value), 4) for value in values]


def load(path: Path) -> Curve:
    """A curve from its small file."""
    value = read_json(path)
    try:
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']!r} is unknown to this version of ars")
        columns = {name: _numbers(value[f"eval_{name}"]) for name in EVALUATIONS}
        if len({len(column) for column in columns.values()}) != 1:
            raise ValueError("its columns differ in length")
        return Curve(
            Config.from_dict(value["config"]), Stop(**value["stop"]), dict(value["versions"]), str(value["machine"]),
            str(value["status"]), int(value["iterations"]), int(value["episodes"]), int(value["timesteps"]),
            float(value["seconds"]), columns, _numbers(value["sigma_R"]),
        )  # fmt: skip
    except (ArsError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path} is not a run's curve: {error}") from error


def load_all(folder: Path) -> tuple[list[Curve], list[str]]:
    """Every curve of a folder, by name, and a sentence for each file that is none: one must not hide the others."""
    curves, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            curves.append(load(path))
        except FileError as error:
            problems.append(f"{str(error).rstrip('.')}; remove it, and its run is made again.")
    return curves, problems


def from_run(folder: Path, status: str | None = None) -> Curve:
    """The curve of a run folder, which may be in use: nothing is locked or changed."""
    saved = read_config(folder)
    records = read_records(folder / "records.jsonl")
    last = records[-1] if records else {"iteration": 0, "episodes": 0, "timesteps": 0, "seconds": 0.0}
    try:
        evaluated = [line for line in records if line.get("eval_mean") is not None]
        columns = {
            name: _numbers([line[f"eval_{name}" if name in ("mean", "std") else name] for line in evaluated])
            for name in EVALUATIONS
        }
        totals = int(last["iteration"]), int(last["episodes"]), int(last["timesteps"]), float(last["seconds"])
        best = float(columns["mean"].max()) if evaluated else None
        reason = saved.stop.reason(*totals, best)
        return Curve(
            saved.config, saved.stop, read_json(folder / "config.json")["versions"], machine(),
            status or ("finished" if reason else "unfinished"), *totals, columns,
            _numbers([line["sigma_R"] for line in records]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{folder / 'records.jsonl'} is damaged: {error}") from error


def _numbers(values: Iterable[Any]) -> FloatArray:
    array = np.array([float(value) for value in values], dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("its numbers are not finite")
    return array


def machine() -> str:
    """The processor and how many cores we may use: what a time depends on."""
    model = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open() as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    except OSError:
        pass
    return f"{model}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
