"""`ars reproduce` as a library: run what is missing for tables and figures, and draw them from what there is.

Everything is drawn only from the curve files in `results/runs/`; missing values are marked, never guessed.
"""

import hashlib
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ars.curves import Curve, load_all
from ars.errors import SettingError
from ars.experiments.cost import costs, on_cores, remaining_cost
from ars.experiments.engine import Job, Outcome, collect, run_all, to_do
from ars.experiments.run_specs import CAPS, RunSpec, missing
from ars.experiments.sweep import rollouts
from ars.files import make_folder, write_atomic
from ars.paper import ARTEFACTS, figure5, load_artefact
from ars.paper.artefact import MANY, ROBOTS, Shown
from ars.presets import paper_robot, robot_of
from ars.settings import whole_number
from ars.timing import duration

RUNS = Path("runs/paper")  # run folders
Say = Callable[[str], None]
RunJobs = Callable[[Sequence[Job], Mapping[RunSpec, float]], Sequence[Outcome]]  # the second: seconds of each


class Asked(Protocol):
    """A request for runs: what the functions that run and price it need. `names` divide its runs."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def out(self) -> Path: ...

    def specs(self, name: str) -> list[RunSpec]: ...

    def curves(self) -> list[Curve]: ...

    def to_do(self) -> list[RunSpec]: ...

    def needs_lqr(self) -> bool: ...


@dataclass(frozen=True)
class Request:
    """What was requested. `tasks` and `first` limit what runs; the whole artefact is drawn, with other seeds only if
    they were listed (`seeds`), to separate files."""

    names: Sequence[str]
    out: Path
    tasks: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    first: int | None = None  # how many of the seeds to run, if an artefact has a hundred
    to_cap: bool = False  # whether runs continue to the cap after the threshold

    def check(self) -> None:
        """Raise an error for what no artefact has."""
        if self.first is not None:
            whole_number("seeds", self.first, 1, len(MANY))
            many = sorted(name for name in ARTEFACTS if load_artefact(name).many)
            if not set(self.names) & set(many):
                raise SettingError(f"seeds applies only to {', '.join(many)}: give {self.names[0]} a --seed-list.")
        for task in self.tasks or ():
            if not any(chosen(name, [task]) for name in self.names):
                robots = ", ".join(load_artefact(self.names[0]).robots) or "no tasks"
                raise SettingError(f"{self.names[0]} has no {task}: it has {robots}.")

    def specs(self, name: str) -> list[RunSpec]:
        """The requested runs."""
        artefact = load_artefact(name)
        narrowed = artefact.seeds[: self.first] if self.first and artefact.many else None
        return self._runs(name, chosen(name, self.tasks), narrowed or self.seeds or artefact.seeds)

    def _runs(self, name: str, tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
        artefact = load_artefact(name)
        specs = artefact.runs(tasks, seeds)
        if artefact.then:
            specs = [*specs, *artefact.then(tasks, seeds, self.curves())]
        return [replace(spec, until=None) for spec in specs] if self.to_cap else specs

    def shown(self, name: str, version: str) -> Shown:
        """What the artefact is drawn from."""
        artefact = load_artefact(name)
        tasks, seeds = [f"{robot}-{version}" for robot in artefact.robots], self.seeds or artefact.seeds
        caps = {task: CAPS[paper_robot(task)] for task in tasks}
        curves = self.curves() if artefact.whole else [up_to_cap(curve) for curve in self.curves()]
        return Shown(curves, tasks, seeds, caps, self._runs(name, tasks, seeds), self.out)

    def suffix(self, version: str) -> str:
        """For the names of files that differ from the paper's version of the artefact."""
        own = "-seeds" + "-".join(map(str, self.seeds)) if self.seeds else ""
        if len(own) > 80:  # file names are limited, and two long lists may begin alike
            own = f"{own[:70]}-{hashlib.sha256(own.encode()).hexdigest()[:8]}"
        return ("" if version == "v1" else f"-{version}") + own

    def curves(self) -> list[Curve]:
        return load_all(self.out / "runs")[0]

    def to_do(self) -> list[RunSpec]:
        """The missing runs, in the order of the artefacts, each once."""
        return missing((spec for name in self.names for spec in self.specs(name)), self.curves())

    def needs_lqr(self) -> bool:
        return "figure5" in self.names and not figure5.is_there(self.out)


def up_to_cap(curve: Curve) -> Curve:
    """The curve as if its run had ended at our cap: another command may have continued it."""
    robot = robot_of(curve.task)
    return curve.up_to(CAPS[robot]) if robot else curve


def names(target: str) -> list[str]:
    """`table1`, `figure3` or `all`."""
    if target == "all":
        return list(ARTEFACTS)
    if target not in ARTEFACTS:
        raise SettingError(f"target = {target!r} is unknown: choose one of {', '.join(ARTEFACTS)}, all.")
    return [target]


def chosen(name: str, tasks: Sequence[str] | None) -> list[str]:
    """The requested tasks that an artefact has; `Hopper` means `Hopper-v1`."""
    robots = load_artefact(name).robots
    return [task for task in map(full_name, tasks or robots) if paper_robot(task) in robots]


def versions(tasks: Sequence[str] | None) -> list[str]:
    """Which definitions of the robots were requested: v1, v5 or both."""
    return sorted({full_name(task).rpartition("-")[2] for task in tasks or ROBOTS})


def full_name(task: str) -> str:
    return task if "-" in task else f"{task}-v1"


# -- running -------------------------------------------------------------------------------------------------------


def say_costs(request: Asked, cores: int, say: Say = print) -> dict[RunSpec, float]:
    """Print how many runs of each artefact are complete and what the rest costs on this machine; returns the missing
    runs with the seconds of each."""

    def need(seconds: Collection[float]) -> str:
        return f"about {duration(sum(seconds))} of one core, {duration(on_cores(seconds, cores))} on {cores}"

    seconds, curves = costs(request.to_do()), request.curves()
    left = remaining_cost(seconds, curves)
    for name in request.names:
        if name == "figure5":
            say(f"{name:8} {figure5.COST if request.needs_lqr() else 'nothing to run'}")
            continue
        specs = set(request.specs(name))
        mine = [left.get(spec, 0.0) for spec in missing(specs, curves)]  # 0: part of another artefact's run
        count = f"{len(specs)} run{'s' if len(specs) != 1 else ''}, {len(specs) - len(mine)} there"
        say(f"{name:8} {count}: {need(mine) if mine else 'nothing to run'}")
    if len(request.names) > 1 and left:
        say(f"{'together':8} {len(left)} runs: {need(left.values())}")
    return seconds


def run_missing(
    request: Asked, *, cores: int, runs: Path = RUNS, minutes: float | None = None, run: RunJobs | None = None,
    compare: Callable[[Path], None] = figure5.compare, say: Say = print, warn: Say = print,
) -> list[Outcome]:  # fmt: skip
    """Print what the missing runs cost, and run them. `run` runs the jobs, for instance with a display, and `compare`
    makes the numbers of figure 5."""
    curves = request.out / "runs"
    for problem in collect(runs, curves):
        warn(f"Left out: {problem}")
    needs_lqr = request.needs_lqr()
    seconds = say_costs(request, cores, say)
    jobs = [Job(spec, runs, curves) for spec in seconds]
    try:
        ended = list(run(jobs, seconds) if run else run_all(to_do(jobs), workers=cores, minutes=minutes))
    finally:
        collect(runs, curves)
    if minutes is not None and len(ended) < len(jobs):
        left = len(jobs) - len(ended)
        say(f"{minutes:g} minutes are over: {left} of {len(jobs)} runs are left; the same command continues.")
    if needs_lqr and minutes is not None:  # it has no time limit
        say("figure5 is left out, because ars lqr has no --minutes: run ars reproduce figure5.")
    elif needs_lqr:
        compare(request.out)
    if minutes is None and set(request.to_do()) - set(seconds):  # what depends on the outcome of these runs
        more = run_missing(request, cores=cores, runs=runs, run=run, compare=compare, say=say, warn=warn)
        ended = list({outcome.spec: outcome for outcome in (*ended, *more)}.values())  # a failed one may have run since
    return ended


# -- drawing -------------------------------------------------------------------------------------------------------


def draw_all(request: Request, *, say: Say = print, warn: Say = print) -> None:
    """Draw every artefact of a request, and write the index."""
    for problem in load_all(request.out / "runs")[1]:
        warn(f"Left out: {problem}")
    for name in request.names:
        files = draw(request, name)
        say("\n".join(map(str, files)) if files else f"{name} has no results yet: run ars reproduce {name}.")
    say(str(write_index(request.out)))


def draw(request: Request, name: str) -> list[Path]:
    """Write the files of a table or figure; returns the main ones."""
    artefact, written = load_artefact(name), []
    for version in versions(request.tasks) if artefact.robots else ["v1"]:
        for file, content in artefact.draw(request.shown(name, version)).items():
            path = request.out / file
            suffix = request.suffix(version) if artefact.robots else ""
            written.append(_write(path.with_stem(path.stem + suffix), content))
    return [request.out / file for file in artefact.files] if written and artefact.files else written


def coverage(out: Path) -> str:
    """One line: how many runs of those behind the paper's tables and figures are complete. BRS is not among them."""
    request = Request([name for name in ARTEFACTS if not load_artefact(name).beyond], out)
    specs = [spec for name in request.names for spec in request.specs(name) if spec.config.label != "BRS"]
    left = {spec.identity for spec in missing(specs, request.curves())}
    runs = {spec.identity: paper_robot(spec.task) for spec in specs}
    counts = []
    for robot in ROBOTS:
        of_robot = [identity for identity, task in runs.items() if task == robot]
        counts.append(f"{robot} {sum(identity not in left for identity in of_robot)} of {len(of_robot)}")
    done = len(runs) - len(left)
    return (
        f"Coverage: {done} of the {len(runs)} runs behind the paper's tables and figures are complete "
        f"({done / len(runs):.0%}), within our caps of episodes: {', '.join(counts)}."
    )


def write_index(out: Path) -> Path:
    """index.md: coverage; every artefact with its command, files and number of complete runs; versions and machines."""
    request = Request(list(ARTEFACTS), out)
    curves = request.curves()
    lines = [
        "# Index of results",
        "",
        coverage(out),
        "",
        "Written by `ars reproduce`. With `--draw`, a command draws again from the files in `runs/` alone.",
        "",
        "| target | | command | runs complete | files |",
        "|---|---|---|--:|---|",
    ]
    for name in ARTEFACTS:
        artefact, specs = load_artefact(name), request.specs(name)
        usual = [f"tables/{name}.md", f"tables/{name}.csv", f"figures/{name}.png", f"figures/{name}.svg"]
        there = [Path(file) for file in artefact.files or usual if (out / file).exists()]
        links = " ".join(f"[{file.name}]({file.as_posix()})" for file in there)
        count = f"{len(specs) - len(missing(specs, curves))} of {len(specs)}" if specs else "–"
        lines.append(f"| {name} | {artefact.title} | `ars reproduce {name}` | {count} | {links} |")
    training, evaluation = rollouts(curves)
    hours = sum(c.seconds for c in curves) / 3600
    lines += [
        "",
        f"{len(curves)} runs: {training:,} rollouts of training and {evaluation:,} of evaluation, {hours:.1f} hours of "
        "one core.",
        "",
        f"Drawn by the code of commit {commit()}.",
        "",
        *sorted({f"Versions: {', '.join(f'{k} {v}' for k, v in sorted(c.versions.items()))}.\n" for c in curves}),
        *sorted({f"Machine: {c.machine}.\n" for c in curves}),
    ]
    return _write(out / "index.md", ("\n".join(lines).rstrip() + "\n").encode())


def _write(path: Path, content: bytes) -> Path:
    make_folder(path.parent)
    write_atomic(path, content)
    return path


def commit() -> str:
    """The commit of the source tree of this package, or `unknown`."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True,
            timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
