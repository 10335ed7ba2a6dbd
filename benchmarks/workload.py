"""The workload of every contestant: some of our training iterations, of which each runs the part that it can.

Training is a pure function of its configuration, so continuing a copy of a run folder gives the same episodes each
time: the replay, our rollouts and our whole iterations are measured on the same episodes.
"""

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.executors import Batch
from ars.noise import Key, environment_seed
from ars.presets import robot_of
from ars.sessions import new_session, resume_session
from ars.stopping import Stop
from ars.tasks import make
from ars.training import training_batch
from ars.versions import versions


class Size(NamedTuple):
    """N as in the presets, but limited so that one measurement does not take minutes (with fewer directions, the
    overhead of an iteration matters more, not less); the training time of the learnt policy; steps per measurement."""

    N: int
    b: int | None  # None: the search that is suggested for a task that the paper does not have, without top directions
    learning: int  # timesteps
    steps: int


SIZES = {
    "Swimmer": Size(N=1, b=1, learning=300_000, steps=40_000),
    "Hopper": Size(N=8, b=4, learning=1_500_000, steps=40_000),
    "HalfCheetah": Size(N=8, b=8, learning=1_000_000, steps=32_000),
    "Walker2d": Size(N=16, b=12, learning=2_000_000, steps=30_000),
    "Ant": Size(N=16, b=8, learning=500_000, steps=15_000),
    "Humanoid": Size(N=32, b=32, learning=200_000, steps=8_000),
    "Quadruped-v1": Size(N=22, b=None, learning=2_000_000, steps=40_000),
    "Go1": Size(N=22, b=None, learning=2_000_000, steps=40_000),
}
OTHER = Size(N=8, b=8, learning=0, steps=20_000)

PLACES = {"Go1": "examples.unitree:GO1"}  # of tasks that do not come with ars
PACKAGES = {"Go1": "mjlab"}  # whose files they need

PHASES = {
    "learnt": "policies after a short training",
    "start": "the first iterations from M = 0: robots that can fall do so after a few steps",
}


@dataclass(frozen=True)
class Work:
    """Iterations first … first + len(batches) − 1 of the run in `folder`."""

    task: str
    phase: str
    folder: Path
    batches: list[Batch]
    steps: int  # of all batches
    threads: int

    @property
    def first(self) -> int:
        return self.batches[0].j

    @property
    def episodes(self) -> int:
        return sum(batch.size * len(batch.signs) for batch in self.batches)

    def on(self, threads: int) -> "Work":
        return replace(self, threads=threads)


class Episode(NamedTuple):
    """One episode, described without our code: a ← M (x − mu) / sigma, from the initial state of the seed."""

    M: NDArray[np.float64]
    mu: NDArray[np.float64]
    sigma: NDArray[np.float64]
    seed: int


def episodes_of(batch: Batch) -> list[Episode]:
    """The episodes of a batch, for contestants that do not use our code."""
    return [
        Episode(
            batch.candidate(k, sign).M,
            batch.policy.mu,
            batch.policy.sigma,
            environment_seed(Key(batch.seed, batch.stream, batch.j, k, sign)),
        )
        for k, sign in batch.units()
    ]


def size_of(task: str) -> Size:
    return SIZES.get(robot_of(task) or task, OTHER)


def lacking(task: str) -> str:
    """The package that a task needs and that is not installed; empty if there is none."""
    package = PACKAGES.get(task, "")
    return package if package and find_spec(package) is None else ""


def prepare(task: str, phase: str, threads: int, *, size: Size, cache: Path, H: int | None = None) -> Work:
    """Train up to the start of the phase, unless it is cached, and record the iterations to be measured."""
    learning = size.learning if phase == "learnt" else 0
    folder = _trained(task, threads, learning, size, cache, H)
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(folder, Path(scratch) / "run")
        session = resume_session(copy, workers=threads, stop=Stop(iterations=10**6), task=task)
        batches, before = [], session.state
        for record in session.records():
            batches.append(training_batch(session.config, before))
            before = record.state
            if before.timesteps - session.state.timesteps >= size.steps:
                break
    return Work(task, phase, folder, batches, before.timesteps - session.state.timesteps, threads)


def _trained(task: str, threads: int, timesteps: int, size: Size, cache: Path, H: int | None) -> Path:
    """The folder of a run with this many timesteps, made once per combination of what determines its bits."""
    settings = {"N": size.N, "b": size.b, "H": H, "seed": 0, "eval_every": 0}
    what = json.dumps([make(task).definition(), timesteps, settings, versions()], sort_keys=True)
    folder = cache / f"{task.replace(':', '-')}-{timesteps}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            run = Path(scratch) / "run"
            session = new_session(task, settings, workers=threads, stop=Stop(timesteps=timesteps or 1), out=run)
            if timesteps:
                for _ in session.records():
                    pass
            else:  # as created: iteration 1 is the first to be measured
                session.executor.close()
                assert session.run is not None  # it has a folder
                session.run.close()
            run.rename(folder)
    return folder
