"""`ars reproduce` as a library: the runs of tables and figures that are missing, and these drawn from what is there.

Everything is drawn from the small files in `results/runs/` alone; what is not there is marked, never guessed.
"""

import hashlib
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ars.curves import Curve, load_all
from ars.errors import SettingError
from ars.experiments.cost import costs, on_cores, remaining_cost
from ars.experiments.engine import Job, Outcome, collect, run_all, to_do
from ars.experiments.run_specs import CAPS, RunSpec, missing
from ars.experiments.sweep import rollouts
from ars.files import make_folder, write_atomic
from ars.paper import ARTEFACTS, figure5, load_artefact
from ars.paper.artefact import MANY, ROBOTS, Shown
from ars.presets import paper_robot
from ars.settings import whole_number
from ars.timing import duration

RUNS = Path("runs/paper")  # run folders
Say = Callable[[str], None]
RunJobs = Callable[[Sequence[Job], Mapping[RunSpec, float]], Sequence[Outcome]]  # the second: seconds of each


@dataclass(frozen=True)
class Request:
    """What was asked for. `tasks` and `first` narrow what runs; what is drawn is the whole artefact, of other seeds
    only if they were listed by hand (`seeds`), into files of their own."""

    names: Sequence[str]
    out: Path
    tasks: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    first: int | None = None  # so many of the seeds, where an artefact has a hundred
    to_cap: bool = False  # also where the way to the threshold would do

    def check(self) -> None:
        """One sentence for what no artefact has."""
        if self.first is not None:
            whole_number("seeds", self.first, 1, len(MANY))
            many = sorted(name for name in ARTEFACTS if load_artefact(name).many)
            if not set(self.names) & set(many):
                raise SettingError(f"seeds is for {', '.join(many)}: give {self.names[0]} a --seed-list.")
        for task in self.tasks or ():
            if not any(chosen(name, [task]) for name in self.names):
                robots = ", ".join(load_artefact(self.names[0]).robots) or "no tasks"
                raise SettingError(f"{self.names[0]} has no {task}: it has {robots}.")

    def specs(self, name: str) -> list[RunSpec]:
        """The runs asked for."""
        artefact = load_artefact(name)
        narrowed = artefact.seeds[: self.first] if self.first and artefact.many else None
        return self._runs(name, chosen(name, self.tasks), narrowed or self.seeds or artefact.seeds)

    def _runs(self, name: str, tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
        specs = load_artefact(name).runs(tasks, seeds)
        return [replace(spec, until=None) for spec in specs] if self.to_cap else specs

    def shown(self, name: str, version: str) -> Shown:
        """What the artefact shows."""
        artefact = load_artefact(name)
        tasks, seeds = [f"{robot}-{version}" for robot in artefact.robots], self.seeds or artefact.seeds
        caps = {task: CAPS[paper_robot(task)] for task in tasks}
        return Shown(self.curves(), tasks, seeds, caps, self._runs(name, tasks, seeds), self.out)

    def suffix(self, version: str) -> str:
        """Of files that are not the artefact as the paper has it."""
        own = "-seeds" + "-".join(map(str, self.seeds)) if self.seeds else ""
        if len(own) > 80:  # a file's name has an end, and two long lists may begin alike
            own = f"{own[:70]}-{hashlib.sha256(own.encode()).hexdigest()[:8]}"
        return ("" if version == "v1" else f"-{version}") + own

    def curves(self) -> list[Curve]:
        return load_all(self.out / "runs")[0]

    def to_do(self) -> list[RunSpec]:
        """The runs that are missing, in the artefacts' order, each once."""
        return missing((spec for name in self.names for spec in self.specs(name)), self.curves())

    def needs_lqr(self) -> bool:
        return "figure5" in self.names and not figure5.is_there(self.out)


def names(target: str) -> list[str]:
    """`table1`, `figure3` or `all`."""
    if target == "all":
        return list(ARTEFACTS)
    if target not in ARTEFACTS:
        raise SettingError(f"target = {target!r} is unknown: choose one of {', '.join(ARTEFACTS)}, all.")
    return [target]


def chosen(name: str, tasks: Sequence[str] | None) -> list[str]:
    """The tasks of an artefact, narrowed to those asked for; `Hopper` reads as `Hopper-v1`."""
    robots = load_artefact(name).robots
    return [task for task in map(_full, tasks or robots) if paper_robot(task) in robots]


def versions(tasks: Sequence[str] | None) -> list[str]:
    """Which definitions of the robots were asked for: v1, v5 or both."""
    return sorted({_full(task).rpartition("-")[2] for task in tasks or ROBOTS})


def _full(task: str) -> str:
    return task if "-" in task else f"{task}-v1"


# -- running -------------------------------------------------------------------------------------------------------


def say_costs(request: Request, cores: int, say: Say = print) -> dict[RunSpec, float]:
    """How many runs of each artefact are there, and what the rest takes on this machine; returns the runs that are
    missing, with the seconds of each."""

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
    request: Request, *, cores: int, runs: Path = RUNS, minutes: float | None = None, run: RunJobs | None = None,
    compare: Callable[[Path], None] = figure5.compare, say: Say = print, warn: Say = print,
) -> list[Outcome]:  # fmt: skip
    """Run what is missing, after a word on what it costs. `run` runs the jobs, with a display for instance, and
    `compare` makes the numbers of figure 5."""
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
        say(f"{minutes:g} minutes are over: {left} of {len(jobs)} runs are left; the same command goes on.")
    if needs_lqr and minutes is not None:  # it has no limit of its own
        say("figure5 is left out, for ars lqr has no --minutes: run ars reproduce figure5.")
    elif needs_lqr:
        compare(request.out)
    return ended


# -- drawing -------------------------------------------------------------------------------------------------------


def draw_all(request: Request, *, say: Say = print, warn: Say = print) -> None:
    """Draw every artefact of a request from what is there, and the index."""
    for problem in load_all(request.out / "runs")[1]:
        warn(f"Left out: {problem}")
    for name in request.names:
        files = draw(request, name)
        say("\n".join(map(str, files)) if files else f"{name} is not there yet: ars reproduce {name} runs it.")
    say(str(write_index(request.out)))


def draw(request: Request, name: str) -> list[Path]:
    """Write a table or figure from what is there; returns its main files."""
    artefact, written = load_artefact(name), []
    for version in versions(request.tasks) if artefact.robots else ["v1"]:
        for file, content in artefact.draw(request.shown(name, version)).items():
            path = request.out / file
            suffix = request.suffix(version) if artefact.robots else ""
            written.append(_write(path.with_stem(path.stem + suffix), content))
    return [request.out / file for file in artefact.files] if written and artefact.files else written


def write_index(out: Path) -> Path:
    """index.md: every artefact with its command, its files and how many of its runs are there; versions and
    machines."""
    request = Request(list(ARTEFACTS), out)
    curves = request.curves()
    lines = [
        "# Index of results",
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
    """Of the source tree that this package runs from, or `unknown`."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True,
            timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
