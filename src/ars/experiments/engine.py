"""Many runs in parallel, one single-threaded run per core (or on Ray), which can be resumed and fail independently.

Each run has its own process, a run folder and, once it stops for any reason, its curve in a small file. The parent only
watches, so killing it at any moment loses nothing.
"""

import math
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ars.curves import Curve, from_run, load, save_if_further, set_aside
from ars.errors import ArsError, DivergedError, FileError, WorkerError
from ars.experiments.run_specs import RunSpec
from ars.files import make_folder, one_line
from ars.run_files import last_record
from ars.saved_config import read_config
from ars.workers import run_many


@dataclass(frozen=True)
class Job:
    """A run and the folders of its files."""

    spec: RunSpec
    runs: Path  # run folders
    curves: Path  # curve files

    @property
    def folder(self) -> Path:
        return self.runs / self.spec.name

    @property
    def kept(self) -> Path:
        """The copy of an unfinished run next to the results, from which others can continue it."""
        return self.curves.parent / "unfinished" / self.spec.name

    @property
    def file(self) -> Path:
        return self.curves / f"{self.spec.name}.json"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: its curve, or the reason why there is none."""

    spec: RunSpec
    curve: Curve | None
    failure: str = ""


def to_do(jobs: Sequence[Job]) -> list[Job]:
    """The jobs without a sufficient curve."""
    return [job for job in jobs if not _done(job)]


def _done(job: Job) -> bool:
    with suppress(ArsError):  # ignore a damaged file
        return job.file.exists() and job.spec.met_by(load(job.file))
    return False


def collect(runs: Path, curves: Path) -> list[str]:
    """Update the curve files from the run folders, which may be in use, and copy unfinished run folders next to the
    results, so that others can continue them; returns a message for each folder that cannot be read."""
    problems = []
    for folder in sorted(path.parent for path in runs.glob("*/config.json")):
        try:
            curve = from_run(folder)
            if curve.iterations:
                file = curves / f"{folder.name}.json"
                save_if_further(curve, file)
                if (known := load(file)).identity == curve.identity:  # otherwise one of them is stale: touch neither
                    _keep_unfinished(folder, curve, known, curves.parent / "unfinished")
        except ArsError as error:
            problems.append(str(error))
        except (OSError, shutil.Error) as error:
            problems.append(f"Cannot copy {folder} next to the results: {one_line(error)}.")
    return problems


def _keep_unfinished(folder: Path, curve: Curve, known: Curve, kept: Path) -> None:
    """Keep a copy of an unfinished run folder, unless there is one as long; delete the copy of a finished run."""
    target = kept / folder.name
    if known.status != "unfinished":
        shutil.rmtree(target, ignore_errors=True)
        return
    with suppress(ArsError):
        if from_run(target).iterations >= curve.iterations:
            return
    copy = kept / f".{folder.name}.{os.getpid()}.tmp"
    copy.mkdir(parents=True, exist_ok=True)
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    for path in sorted(files, key=lambda path: path.name == "records.jsonl"):  # last: never behind the checkpoint
        shutil.copyfile(path, copy / path.name)
    shutil.rmtree(target, ignore_errors=True)
    copy.rename(target)


def run(job: Job) -> str:
    """Train or continue one run to its end, in a worker; returns why it failed, or ""."""
    from ars.sessions import new_session, resume_session

    spec, job = job.spec, replace(job, runs=job.runs.absolute(), curves=job.curves.absolute())  # environments may chdir
    try:
        _take_over(job)
        if (job.folder / "config.json").exists():
            if read_config(job.folder).config != spec.config:
                return f"{job.folder} holds a run with other settings: remove it, or choose another folder."
            session = resume_session(job.folder, workers=1, stop=spec.stop, task=spec.task)
        else:
            session = new_session(spec.task, spec.settings(), workers=1, stop=spec.stop, out=job.folder)
        status = None
        with closing(session.records()) as records:  # closing it after an interruption saves the run
            try:
                for record in records:
                    if spec.pause is not None and record.timesteps >= spec.pause:
                        break
            except DivergedError as error:  # a bad point of a grid is a result
                status = f"diverged: {error}"
        _make_room(job)
        save_if_further(from_run(job.folder, status), job.file)
    except ArsError as error:
        if isinstance(error, FileError) and job.kept.is_dir():
            return (
                f"{error} If it is damaged, remove {job.folder} to continue from {job.kept}, or both to start from "
                "the beginning."
            )
        return str(error)
    except (OSError, shutil.Error) as error:
        return f"Cannot store the run in {job.folder}: {one_line(error)}."
    return ""


def _take_over(job: Job) -> None:
    """Continue from the copy of an unfinished run, if there is one; the new folder appears atomically."""
    if not job.kept.is_dir() or job.folder.exists():
        return
    job.runs.mkdir(parents=True, exist_ok=True)
    copy = job.runs / f".{job.spec.name}.{os.getpid()}.tmp"
    shutil.copytree(job.kept, copy)
    copy.rename(job.folder)


def _make_room(job: Job) -> None:
    """Set aside a curve of the same name by settings that are not part of it, as after a change of defaults."""
    with suppress(ArsError):  # a damaged file
        if job.file.exists() and load(job.file).identity != job.spec.identity:
            set_aside(job.file, "other")


def _keep_curve(job: Job) -> None:
    """Save the curve of a run that did not finish: what it has spent is part of the cost."""
    with suppress(ArsError, OSError):
        curve = from_run(job.folder)
        if curve.iterations and curve.identity == job.spec.identity:
            _make_room(job)
            save_if_further(curve, job.file)


def run_all(
    jobs: Sequence[Job],
    *,
    workers: int | None,
    executor: str = "local",
    address: str | None = None,
    watch: Callable[[dict[RunSpec, float]], None] | None = None,
    minutes: float | None = None,
) -> Generator[Outcome, None, None]:
    """Yield outcomes as runs end; `watch` gets the share done of each current run. With Ray, the nodes must share the
    folders.

    After `minutes`, or when the iterator is closed, the current runs are saved and stopped.
    """
    for folder in {job.runs for job in jobs} | {job.curves for job in jobs}:
        make_folder(folder)  # up front, so that errors are reported once

    def poll(running: list[int]) -> None:
        if watch:
            watch({jobs[i].spec: share_done(jobs[i]) for i in running})

    left = dict(enumerate(jobs))
    seconds = math.inf if minutes is None else 60 * minutes
    try:
        with closing(
            run_many(run, jobs, workers=workers, backend=executor, address=address, poll=poll, seconds=seconds)
        ) as results:
            for i, result in results:
                yield _outcome(left.pop(i), result)
    finally:
        for job in left.values():
            _keep_curve(job)


def _outcome(job: Job, result: str | ArsError) -> Outcome:
    """`result` is what `run` returned, or why it did not return."""
    failure = str(result)
    if isinstance(result, WorkerError):
        failure += " Its progress is saved: the same command continues it."
    if not failure:
        try:
            curve = load(job.file)
            if job.spec.met_by(curve):
                return Outcome(job.spec, curve)
            failure = f"{job.file} is not the curve of this run: remove it, and the run is made again."
        except ArsError as error:
            failure = str(error)
    _keep_curve(job)
    return Outcome(job.spec, None, failure)


def share_done(job: Job) -> float:
    """The share done, from the last line of a run's records, which may be in use."""
    record = last_record(job.folder / "records.jsonl")
    return job.spec.share(record) if record else 0.0
