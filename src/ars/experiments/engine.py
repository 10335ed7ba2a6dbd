"""Many runs at once, one single-threaded run a core (or over Ray): resumable, and one failure ends one run only.

Each run has a process of its own, a run folder, and, as soon as it stops for whatever reason, its curve in one small
file. The parent only watches, so that killing it at any moment loses nothing.
"""

import math
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ars.curves import Curve, from_run, load, save_if_further
from ars.errors import ArsError, DivergedError, FileError
from ars.experiments.run_specs import RunSpec
from ars.files import make_folder, one_line
from ars.run_files import last_record

POLL = 0.2  # seconds


@dataclass(frozen=True)
class Job:
    """A plan and where its files go; what a worker is told."""

    plan: RunSpec
    runs: Path  # run folders
    curves: Path  # small files

    @property
    def folder(self) -> Path:
        return self.plan.folder(self.runs)

    @property
    def kept(self) -> Path:
        """Where a run that was left unfinished is kept beside the results, for others to go on from."""
        return self.curves.parent / "unfinished" / self.plan.name

    @property
    def failure(self) -> Path:
        """A worker's last words."""
        return self.runs / f".{self.plan.name}.failure"

    @property
    def file(self) -> Path:
        return self.curves / f"{self.plan.name}.json"


@dataclass(frozen=True)
class Outcome:
    """What became of a run: its curve, or the sentence why there is none."""

    plan: RunSpec
    curve: Curve | None
    failure: str = ""


def to_do(orders: Sequence[Job]) -> list[Job]:
    """Without those whose curve is there and says enough."""
    return [order for order in orders if not _done(order)]


def _done(order: Job) -> bool:
    with suppress(ArsError):  # a damaged file says nothing
        return order.file.exists() and order.plan.met_by(load(order.file))
    return False


def collect(runs: Path, curves: Path) -> list[str]:
    """Small files of the run folders that have gone further than theirs, which may be under way, and beside them the
    folders that are not at their end, for others to go on from; a sentence for each folder that cannot be read."""
    problems = []
    for folder in sorted(path.parent for path in runs.glob("*/config.json")):
        try:
            curve = from_run(folder)
            if curve.iterations:
                file = curves / f"{folder.name}.json"
                save_if_further(curve, file)
                _keep_unfinished(folder, curve, load(file), curves.parent / "unfinished")
        except ArsError as error:
            problems.append(str(error))
        except (OSError, shutil.Error) as error:
            problems.append(f"Cannot keep {folder} beside the results: {one_line(error)}.")
    return problems


def _keep_unfinished(folder: Path, curve: Curve, known: Curve, kept: Path) -> None:
    """A copy of a run folder that is not at its end, instead of one that is not as far; none if it is."""
    place = kept / folder.name
    if known.status != "unfinished":
        shutil.rmtree(place, ignore_errors=True)
        return
    with suppress(ArsError):
        if from_run(place).iterations >= curve.iterations:
            return
    copy = kept / f".{folder.name}.{os.getpid()}.tmp"
    copy.mkdir(parents=True, exist_ok=True)
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    for path in sorted(files, key=lambda path: path.name == "records.jsonl"):  # last: never behind the checkpoint
        shutil.copyfile(path, copy / path.name)
    shutil.rmtree(place, ignore_errors=True)
    copy.rename(place)


def run(order: Job) -> str:
    """Train or continue one run to the end of its plan; a sentence if it failed. Runs in the worker."""
    from ars.sessions import new_session, resume_session

    plan = order.plan
    try:
        _take_over(order)
        if (order.folder / "config.json").exists():
            session = resume_session(order.folder, workers=1, stop=plan.stop, task=plan.task)
        else:
            session = new_session(plan.task, plan.settings(), workers=1, stop=plan.stop, out=order.folder)
        records = session.records()
        if session.config != plan.config:
            records.close()
            return f"{order.folder} holds a run with other settings: remove it, or choose another folder."
        status = None
        try:
            for _ in records:
                pass
        except DivergedError as error:  # a bad point of a grid is a result
            status = f"diverged: {error}"
        save_if_further(from_run(order.folder, status), order.file)
    except ArsError as error:
        if isinstance(error, FileError) and order.kept.is_dir():
            return (
                f"{error} If it is damaged: without {order.folder} the run goes on from {order.kept}, without both "
                "from the beginning."
            )
        return str(error)
    except (OSError, shutil.Error) as error:
        return f"Cannot keep the run in {order.folder}: {one_line(error)}."
    return ""


def _take_over(order: Job) -> None:
    """Go on from a run that was kept unfinished; its copy appears as a whole."""
    if not order.kept.is_dir() or order.folder.exists():
        return
    order.runs.mkdir(parents=True, exist_ok=True)
    copy = order.runs / f".{order.plan.name}.{os.getpid()}.tmp"
    shutil.copytree(order.kept, copy)
    copy.rename(order.folder)


def _keep_curve(order: Job) -> None:
    """Of a run that did not come to its end: what it has spent is part of the cost."""
    with suppress(ArsError, OSError):
        curve = from_run(order.folder)
        if curve.iterations and curve.identity == order.plan.identity:
            save_if_further(curve, order.file)


def _make_folders(orders: Sequence[Job]) -> None:
    """Said now and not by every worker."""
    for folder in {order.runs for order in orders} | {order.curves for order in orders}:
        make_folder(folder)


def run_all(
    orders: Sequence[Job],
    *,
    jobs: int,
    watch: Callable[[dict[RunSpec, float]], None] | None = None,
    minutes: float | None = None,
) -> Generator[Outcome, None, None]:
    """Outcomes as the runs end; `watch` is told the share done of those that run.

    After `minutes`, or when the iterator is closed, the runs under way are saved and stop.
    """
    _make_folders(orders)
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    context = multiprocessing.get_context("spawn")
    waiting, running = list(orders), dict[BaseProcess, Job]()
    try:
        while (waiting or running) and time.monotonic() < deadline:
            while waiting and len(running) < jobs:
                order = waiting.pop(0)
                started = context.Process(target=_work, args=(order,), daemon=True)
                started.start()
                running[started] = order
            wait([process.sentinel for process in running], timeout=POLL)
            if watch:
                watch({order.plan: share_done(order) for order in running.values()})
            for process in [process for process in running if not process.is_alive()]:
                yield _outcome(running.pop(process), process)
    finally:
        for process in running:
            process.terminate()  # _work turns it into an end after the iteration
        for process, order in running.items():
            process.join()
            if process.exitcode != 0:  # else it had ended by itself, and its curve is there
                _keep_curve(order)


def run_all_on_ray(
    orders: Sequence[Job], *, jobs: int | None, address: str | None = None
) -> Generator[Outcome, None, None]:
    """The same on the CPUs of a cluster, which must share the folders."""
    from ars.executors.ray import run_many

    _make_folders(orders)
    for i, result in run_many(run, orders, workers=jobs, address=address):
        failure = str(result) if isinstance(result, ArsError) else result
        if failure:
            _keep_curve(orders[i])
        yield Outcome(orders[i].plan, None if failure else load(orders[i].file), failure)


def _work(order: Job) -> None:
    """The worker process: 0 if the curve is written, 1 with a sentence in a file of its own."""
    from ars.executors.processes import end_with_parent, use_one_thread

    end_with_parent()
    use_one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    order.failure.unlink(missing_ok=True)
    failure = run(order)
    if failure:
        order.failure.write_text(failure)
        sys.exit(1)


def _outcome(order: Job, process: BaseProcess) -> Outcome:
    code = process.exitcode or 0
    if code == 0:
        with suppress(ArsError):
            return Outcome(order.plan, load(order.file))
    failure = f"its process ended with code {code}, before the run did; the same command continues it."
    if code == 1 and order.failure.exists():
        failure = order.failure.read_text()
        order.failure.unlink()
    _keep_curve(order)
    return Outcome(order.plan, None, failure)


def share_done(order: Job) -> float:
    """From the last line of a run's records, read while they are written."""
    record = last_record(order.folder / "records.jsonl")
    return min(1.0, record["episodes"] / order.plan.episodes) if record else 0.0
