"""What a learner reports as it trains, and the small file that keeps it.

The file is an ars.curves.Curve in which an iteration is an evaluation, and seconds are CPU seconds of training alone.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ars.curves import COLUMNS, Curve
from ars.errors import DivergedError
from ars.versions import machine, versions

BLOCK, BLOCKS = 200, 7  # calls per timing of an action, of which the fastest counts


class Point(NamedTuple):
    """An evaluation: what training had spent before it, and its rewards."""

    timesteps: int
    episodes: int
    rewards: tuple[float, ...]
    cpu_seconds: float

    @property
    def finite(self) -> list[float]:
        """The rewards that count, as in any evaluation of ours."""
        kept = [reward for reward in self.rewards if math.isfinite(reward)]
        if not kept:
            raise DivergedError(f"No reward of the evaluation after {self.timesteps} timesteps is finite.")
        return kept

    @property
    def mean(self) -> float:
        return float(np.mean(self.finite))


class Ending(NamedTuple):
    """What a learner knows at its end."""

    settings: Mapping[str, Any]  # all that it used, besides those of the request
    measures: Mapping[str, float]  # of its final policy: action_cost
    versions: Mapping[str, str] = {}  # of further packages


class Recorder:
    """Writes the curve of a run after each evaluation, so that its progress can be seen; only the end finishes it."""

    def __init__(self, path: Path, *, learner: str, label: str, task: str, seed: int, settings: Mapping[str, Any]):
        self._path, self._rows = path, list[tuple[float, ...]]()
        self._curve = Curve(
            learner=learner, label=label, task=task, seed=seed, settings=settings, status="unfinished",
            columns={name: np.zeros(0) for name in COLUMNS}, versions=versions(), machine=machine(),
        )  # fmt: skip

    def add(self, point: Point) -> None:
        at = point.episodes, point.timesteps, point.cpu_seconds
        self._rows.append((len(self._rows) + 1, *at, point.mean, float(np.std(point.finite))))
        rows = np.array(self._rows, dtype=np.float64)
        self._curve = replace(
            self._curve, columns=dict(zip(COLUMNS, rows.T, strict=True)), iterations=len(rows),
            episodes=point.episodes, timesteps=point.timesteps, seconds=point.cpu_seconds,
        )  # fmt: skip
        self._curve.save(self._path)

    def end(self, ending: Ending, status: str = "finished") -> None:
        """`status` is "finished", or why the run failed; the measures also get what all of it cost."""
        curve = self._curve
        measures = {**ending.measures, "cpu_seconds": round(time.process_time(), 1)}  # evaluations and imports too
        replace(
            curve, status=status, settings={**ending.settings, **curve.settings}, measures=measures,
            versions={**curve.versions, **ending.versions},
        ).save(self._path)  # fmt: skip


def action_cost(act: Callable[[], object], parameters: int, size: int) -> dict[str, float]:
    """Parameters and bytes (`size`) of a policy, and the CPU microseconds of an action, by the fastest block."""
    act()  # loads what it needs
    blocks = []
    for _ in range(BLOCKS):
        began = time.process_time()
        for _ in range(BLOCK):
            act()
        blocks.append((time.process_time() - began) / BLOCK)
    return {"parameters": parameters, "bytes": size, "microseconds": round(1e6 * min(blocks), 2)}
