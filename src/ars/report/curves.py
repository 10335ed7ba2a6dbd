"""A run as the tables and figures need it: its settings and its evaluations, from a run folder or from one small file.

The small file is text, a few kB: `results/runs/` keeps one for every run of the reproduction.
"""

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.config import Config
from ars.errors import ArsError, FileError
from ars.files import read_json, write_atomic
from ars.presets import Preset
from ars.report.run_files import read_records
from ars.runs import read_config
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

    def settled(self, threshold: float, cap: int) -> bool:
        """Whether it is known if it gets there within the cap: it has, the cap is spent, or it diverged."""
        failed = self.status not in ("finished", "unfinished")
        return failed or self.best >= threshold or self.episodes >= cap

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
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, f"{{\n{lines}\n}}\n".encode())


def identity(config: Config) -> Config:
    return replace(config, eval_episodes=1)


def fullest(curves: Iterable[Curve]) -> list[Curve]:
    """One curve for each run: that with the most rollouts an evaluation, then the longest."""
    best: dict[Config, Curve] = {}
    for curve in curves:
        known = best.get(curve.identity)
        if known is None or _fullness(curve) > _fullness(known):
            best[curve.identity] = curve
    return list(best.values())


def _fullness(curve: Curve) -> tuple[int, int]:
    return curve.config.eval_episodes, curve.episodes


def save_if_further(curve: Curve, path: Path) -> None:
    """Never replace a run's file by one that knows less."""
    if not (path.exists() and load(path).episodes > curve.episodes):
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


def load_all(folder: Path) -> list[Curve]:
    """Every curve of a folder, by name."""
    return [load(path) for path in sorted(folder.glob("*.json"))]


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
