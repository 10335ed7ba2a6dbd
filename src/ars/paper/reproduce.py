"""`ars reproduce`: the runs of a target that are missing, and its table or figure from those that are there.

Everything is drawn from the small files in `results/runs/` alone; what is not there is marked, never guessed.
"""

import hashlib
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ars.curves import Curve, load_all
from ars.errors import SettingError
from ars.experiments.run_specs import CAPS, Plan, found, missing
from ars.experiments.sweep import rollouts
from ars.files import make_folder, write_atomic
from ars.paper import tables
from ars.paper.targets import MANY, TARGETS, WITH_MANY_SEEDS, chosen, main_variant, seeds_of, variants, versions
from ars.presets import paper_robot
from ars.settings import whole_number

FIGURE_1_RUNS = 3
LQR_TRIALS, LQR_BUDGET, LQR_SEED = 100, 1_000_000, 0


@dataclass(frozen=True)
class Request:
    """What was asked for. `tasks` and `first` narrow what runs; what is drawn is the whole target, of other seeds only
    if they were listed by hand (`seeds`), into files of their own."""

    names: Sequence[str]
    out: Path
    tasks: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    first: int | None = None  # so many of the seeds, where a target has a hundred
    to_cap: bool = False  # also where the way to the threshold would do

    def check(self) -> None:
        """One sentence for what no target has."""
        if self.first is not None:
            whole_number("seeds", self.first, 1, MANY)
            if not set(self.names) & set(WITH_MANY_SEEDS):
                raise SettingError(f"seeds is for {', '.join(WITH_MANY_SEEDS)}: give {self.names[0]} a --seed-list.")
        for task in self.tasks or ():
            if not any(chosen(name, [task]) for name in self.names):
                robots = ", ".join(TARGETS[self.names[0]].robots) or "no tasks"
                raise SettingError(f"{self.names[0]} has no {task}: it has {robots}.")

    def plans(self, name: str) -> list[Plan]:
        """The runs asked for."""
        seeds = seeds_of(name)[: self.first] if self.first and name in WITH_MANY_SEEDS else self.seeds
        return self._all(name, chosen(name, self.tasks), seeds)

    def drawn(self, name: str, version: str) -> list[Plan]:
        """The runs that the target shows."""
        return self._all(name, self.robots(name, version), self.seeds)

    def _all(self, name: str, tasks: Sequence[str], seeds: Sequence[int] | None) -> list[Plan]:
        found = TARGETS[name].plans(tasks, seeds)
        return [replace(one, until=None) for one in found] if self.to_cap else found

    def robots(self, name: str, version: str) -> list[str]:
        return [f"{robot}-{version}" for robot in TARGETS[name].robots]

    def seeds_of(self, name: str) -> Sequence[int]:
        return self.seeds or seeds_of(name)

    def suffix(self, version: str) -> str:
        """Of files that are not the target as the paper has it."""
        own = "-seeds" + "-".join(map(str, self.seeds)) if self.seeds else ""
        if len(own) > 80:  # a file's name has an end, and two long lists may begin alike
            own = f"{own[:70]}-{hashlib.sha256(own.encode()).hexdigest()[:8]}"
        return ("" if version == "v1" else f"-{version}") + own

    def curves(self) -> list[Curve]:
        return load_all(self.out / "runs")[0]

    def left_out(self) -> list[str]:
        """A sentence for each file that is damaged."""
        return load_all(self.out / "runs")[1]

    def to_do(self) -> list[Plan]:
        """The runs that are missing, in the targets' order, each once."""
        return missing((one for name in self.names for one in self.plans(name)), self.curves())


def names(target: str) -> list[str]:
    """`table1`, `figure3` or `all`."""
    if target == "all":
        return list(TARGETS)
    if target not in TARGETS:
        raise SettingError(f"target = {target!r} is unknown: choose one of {', '.join(TARGETS)}, all.")
    return [target]


def draw(request: Request, name: str) -> list[Path]:
    """Write the table or figure from what is there; returns the files."""
    if name == "figure5":
        return _draw_lqr(request.out)
    curves = request.curves()
    make = _write_table if name.startswith("table") else _write_figure
    return [path for version in versions(request.tasks) for path in make(request, name, curves, version)]


def _caps(tasks: Sequence[str]) -> dict[str, int]:
    return {task: CAPS[paper_robot(task)] for task in tasks}


def _write_table(request: Request, name: str, curves: list[Curve], version: str) -> list[Path]:
    tasks, seeds = request.robots(name, version), request.seeds_of(name)
    caps = _caps(tasks)
    makers: dict[str, Callable[[], tables.Table]] = {
        "table1": lambda: tables.table1(curves, tasks, seeds, caps),
        "table2": lambda: tables.table2(curves, tasks, seeds, main_variant),
        "table3": lambda: tables.table3(curves, tasks, seeds, main_variant),
        "table4": lambda: tables.table4(curves, tasks, seeds, main_variant, caps),
        "table5": lambda: tables.table5(curves, tasks, seeds),
        "table6": lambda: tables.table6(curves, tasks[0], seeds),
        "table7": lambda: tables.table7(curves, tasks[0], seeds),
    }
    suffix = request.suffix(version)
    files = _save_table(request.out, f"{name}{suffix}", makers[name]())
    if name == "table1":
        files += _save_table(request.out, f"table1-improvement{suffix}", tables.improvement(curves, tasks, seeds, caps))
    return files


def _write_figure(request: Request, name: str, curves: list[Curve], version: str) -> list[Path]:
    from ars.paper import plots

    out, suffix, seeds = request.out, request.suffix(version), request.seeds_of(name)
    tasks, plans = request.robots(name, version), request.drawn(name, version)
    there, caps = found(plans, curves), _caps(tasks)
    by_task = {task: [c for c in there if c.config.task == task] for task in tasks}
    if name == "figure1":  # the paper shows one run; of those that are there we show a few
        shown = request.seeds or (*seeds, *seeds_of("table6"))
        runs = [curve for task in tasks for curve in tables.pick(curves, task, "V2", shown)]
        runs = sorted(runs, key=lambda curve: shown.index(curve.config.seed))[:FIGURE_1_RUNS]
        return _save_plot(out, f"figure1{suffix}", lambda kind: plots.sigma_R(runs, kind))
    if name == "figure2":
        groups = {task: {v: tables.pick(curves, task, v, seeds) for v in variants(task)} for task in tasks}
        return _save_plot(out, f"figure2{suffix}", lambda kind: plots.three_seeds(groups, kind))
    what = "seeds" if name == "figure3" else "runs"
    wanted = {task: sum(one.task == task for one in plans) for task in tasks}
    files = _save_plot(out, f"{name}{suffix}", lambda kind: plots.percentiles(by_task, wanted, caps, kind, what=what))
    if name == "figure3":
        files += _save_table(out, f"figure3-numbers{suffix}", tables.many_seeds(there, tasks, seeds, caps))
        return files + _save_plot(out, f"figure3-profiles{suffix}", lambda kind: plots.profiles(by_task, caps, kind))
    files += _save_table(out, f"figure4-plane{suffix}", tables.plane(by_task, seeds, caps))
    return files + _save_table(out, f"figure4-numbers{suffix}", tables.sensitivity(by_task, wanted, caps))


def _save_table(out: Path, name: str, table: tables.Table) -> list[Path]:
    files = {out / "tables" / f"{name}.md": table.markdown(), out / "tables" / f"{name}.csv": table.csv()}
    return [_write(path, text.encode()) for path, text in files.items()]


def _save_plot(out: Path, name: str, draw_it: Callable[[str], bytes]) -> list[Path]:
    return [_write(out / "figures" / f"{name}.{kind}", draw_it(kind)) for kind in ("png", "svg")]


def _write(path: Path, content: bytes) -> Path:
    make_folder(path.parent)
    write_atomic(path, content)
    return path


# -- figure 5 ------------------------------------------------------------------------------------------------------


def lqr_is_there(out: Path) -> bool:
    return (out / "lqr" / "lqr.csv").exists()


def _draw_lqr(out: Path) -> list[Path]:
    """From the numbers in lqr.csv; `ars lqr` makes them."""
    from ars.experiments.lqr.comparison import read_results
    from ars.experiments.lqr.report import write

    if not lqr_is_there(out):
        return []
    write(out / "lqr", read_results(out / "lqr" / "lqr.csv"), LQR_BUDGET)
    return [out / "lqr" / name for name in ("table.md", "stabilising.png", "relative_cost.png")]


# -- the index -----------------------------------------------------------------------------------------------------


def write_index(out: Path) -> Path:
    """index.md: every target with its command, its files and how many of its runs are there; versions and machines."""
    request = Request(list(TARGETS), out)
    curves = request.curves()
    lines = [
        "# Index of results",
        "",
        "Written by `ars reproduce`. With `--draw`, a command draws again from the files in `runs/` alone.",
        "",
        "| target | | command | runs complete | files |",
        "|---|---|---|--:|---|",
    ]
    for name, target in TARGETS.items():
        plans = request.plans(name)
        done = len(plans) - len(missing(plans, curves))
        folder = "lqr" if name == "figure5" else "tables" if name.startswith("table") else "figures"
        kinds = ("table.md", "stabilising.png", "relative_cost.png") if name == "figure5" else (
            [f"{name}.md", f"{name}.csv"] if name.startswith("table") else [f"{name}.png", f"{name}.svg"]
        )  # fmt: skip
        there = [f"[{kind}]({folder}/{kind})" for kind in kinds if (out / folder / kind).exists()]
        count = "–" if name == "figure5" else f"{done} of {len(plans)}"
        lines.append(f"| {name} | {target.title} | `ars reproduce {name}` | {count} | {' '.join(there)} |")
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
