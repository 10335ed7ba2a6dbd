"""Run what is missing: every run in a process of its own, external learners with the Python that has their packages.

A finished run is never repeated. A run that is interrupted begins again: the learners are not ours to checkpoint.
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from ars.curves import Curve, load
from ars.errors import ArsError, SettingError
from ars.experiments.cost import on_cores
from ars.files import make_folder, one_line
from ars.rivals.roster import EXTERNAL, RIVALS, Spec
from ars.timing import duration
from ars.workers import run_many

INSTALL = "pip install 'ars-rl[rivals]'"
PATIENCE = 300  # seconds for another Python to import its packages, from a slow disk
GRACE = 5.0  # seconds that a run has to end after it is asked to


@dataclass(frozen=True)
class Job:
    """A run, the file of its curve, and the Python that runs it."""

    spec: Spec
    file: Path
    python: str = sys.executable

    def curve(self) -> Curve | None:
        """What there is of this run."""
        with suppress(ArsError):  # a damaged file is made again
            curve = load(self.file) if self.file.exists() else None
            if curve and (curve.learner, curve.task, curve.seed) == (self.spec.rival, self.spec.task, self.spec.seed):
                same = all(curve.settings.get(name) == value for name, value in self.spec.settings.items())
                return curve if same else None
        return None

    def done(self) -> bool:
        curve = self.curve()
        return curve is not None and curve.status != "unfinished"

    def share(self) -> float:
        curve = self.curve()
        return min(1.0, curve.timesteps / self.spec.timesteps) if curve else 0.0


def make_jobs(specs: Iterable[Spec], out: Path) -> list[Job]:
    return [Job(spec, out / "runs" / f"{spec.name}.json") for spec in specs]


def missing(jobs: Iterable[Job]) -> list[Job]:
    return [job for job in jobs if not job.done()]


# -- what it costs -------------------------------------------------------------------------------------------------


def seconds_of(specs: Iterable[Spec], curves: Sequence[Curve]) -> dict[Spec, float]:
    """Seconds of one core for each run: as measured for the same rival, on the same task if there is one, or the
    estimate of the roster."""
    spent: dict[tuple[str, str], list[float]] = {}  # seconds and timesteps; a short run counts little
    for curve in curves:
        if curve.status == "finished" and "cpu_seconds" in curve.measures and curve.timesteps:
            for task in (curve.task, ""):
                total = spent.setdefault((curve.learner, task), [0.0, 0.0])
                total[0] += curve.measures["cpu_seconds"]
                total[1] += curve.timesteps

    def per_timestep(spec: Spec) -> float:
        estimate = [60 * RIVALS[spec.rival].minutes, 1e6]
        seconds, timesteps = spent.get((spec.rival, spec.task)) or spent.get((spec.rival, "")) or estimate
        return seconds / timesteps

    return {spec: spec.timesteps * per_timestep(spec) for spec in specs}


def say_costs(jobs: Sequence[Job], curves: Sequence[Curve], cores: int, say: Callable[[str], None] = print) -> None:
    """A line per rival, and the total in core hours."""
    todo = seconds_of([job.spec for job in missing(jobs)], curves)
    measured = {curve.learner for curve in curves if "cpu_seconds" in curve.measures}
    for rival in dict.fromkeys(job.spec.rival for job in jobs):
        mine = [job.spec for job in jobs if job.spec.rival == rival]
        left = [todo[spec] for spec in mine if spec in todo]
        cost = f"{sum(left) / 3600:.2f} core hours ({'measured' if rival in measured else 'estimated'})"
        count = f"{len(mine)} run{'s' if len(mine) != 1 else ''}, {len(mine) - len(left)} there"
        say(f"{rival:8} {count}: {cost if left else 'nothing to run'}")
    if todo:
        total = sum(todo.values())
        on = duration(on_cores(list(todo.values()), cores))
        where = f"{cores} core{'s' if cores != 1 else ''}"
        say(f"together {len(todo)} runs: {total / 3600:.2f} core hours, about {on} on {where}")


# -- which Python --------------------------------------------------------------------------------------------------


def with_python(jobs: Sequence[Job], given: str | None) -> list[Job]:
    """The jobs with the Python of external learners, which must have their packages; one sentence if it has not."""
    needed = [RIVALS[job.spec.rival].title for job in jobs if job.spec.kind in EXTERNAL]
    if not needed:
        return list(jobs)
    if given is None and find_spec("sb3_contrib") is None:
        raise SettingError(
            f"{needed[0]} needs stable-baselines3, which this Python does not have: {INSTALL}, or name the Python of "
            "another environment with --python, or choose other --rivals."
        )
    if given is not None:
        _check_python(given)
    return [replace(job, python=given or sys.executable) if job.spec.kind in EXTERNAL else job for job in jobs]


def _check_python(python: str) -> None:
    code = "import ars.rivals, sb3_contrib"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise SettingError(f"python = {python} cannot be run: {one_line(error)}.") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise SettingError(f"python = {python} cannot run the rivals ({why}): {INSTALL} there.")


# -- running -------------------------------------------------------------------------------------------------------


def run(job: Job) -> str:
    """One run to its end, in a worker, which waits; returns why it failed, or ""."""
    arguments = [job.python, "-m", "ars.rivals.child", job.spec.to_json(), str(job.file), str(os.getpid())]
    job.file.unlink(missing_ok=True)  # what is left of an interrupted run is no progress of this one
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        try:
            said = child.communicate()[1]
        except BaseException:  # an interruption
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(GRACE / 2)
            child.kill()
            raise
    if job.done():
        return ""
    why = (said.strip().splitlines() or [f"its process ended with code {child.returncode}"])[-1]
    return f"{job.spec.name}: {why}"


def run_missing(
    jobs: Sequence[Job],
    *,
    workers: int,
    minutes: float | None = None,
    weights: Mapping[Spec, float],
    at: Callable[[str, float], None] = lambda what, share: None,
    say: Callable[[str], None] = print,
) -> list[str]:
    """Run the jobs in their order, `workers` at a time; returns the failures. `weights` are the seconds of each run,
    and `at` is told what runs and the share done of all."""
    for folder in {job.file.parent for job in jobs}:
        make_folder(folder)
    total, over, failures = sum(weights[job.spec] for job in jobs), 0.0, list[str]()

    def poll(running: list[int]) -> None:
        now = sum(weights[jobs[i].spec] * jobs[i].share() for i in running)
        at(", ".join(jobs[i].spec.name for i in running), (over + now) / total)

    seconds = math.inf if minutes is None else 60 * minutes
    ended = run_many(run, [replace(job, file=job.file.absolute()) for job in jobs], workers=workers, poll=poll,
                     seconds=seconds)  # fmt: skip
    left = len(jobs)
    with closing(ended):
        for i, result in ended:
            left -= 1
            over += weights[jobs[i].spec]
            failures += [str(result)] if str(result) else []
            say(str(result) or _sentence(jobs[i]))
    if left:
        say(f"{minutes:g} minutes are over: {left} of {len(jobs)} runs are left; the same command runs them.")
    return failures


def _sentence(job: Job) -> str:
    curve = job.curve()
    assert curve is not None
    last = f"reward {curve.rewards[-1]:z.1f}, best {curve.best:z.1f}" if curve.rewards.size else "not evaluated"
    return f"{job.spec.name}: {curve.status}, {last}, {duration(curve.seconds)} of training"
