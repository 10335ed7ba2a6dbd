"""`ars reproduce`: the runs of a target that are missing, and its table or figure from those that are there.

Everything is drawn from the small files in `results/runs/` alone; what is not there is marked, never guessed.
"""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ars.errors import SettingError
from ars.experiments.plans import CAPS, Plan, found, missing
from ars.experiments.seeds import PAPER_SEEDS, draw_seeds
from ars.experiments.targets import MANY, TARGETS, chosen, main_variant, variants
from ars.files import write_atomic
from ars.presets import robot_of
from ars.report import tables
from ars.report.curves import Curve, load_all

LQR_TRIALS, LQR_BUDGET, LQR_SEED = 100, 1_000_000, 0


@dataclass(frozen=True)
class Request:
    """What was asked for: targets by name, narrowed to some tasks and seeds; `out` is the folder of results."""

    names: Sequence[str]
    out: Path
    tasks: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    to_cap: bool = False  # also where the way to the threshold would do

    def plans(self, name: str) -> list[Plan]:
        found = TARGETS[name].plans(chosen(name, self.tasks), self.seeds)
        return [replace(one, until=None) for one in found] if self.to_cap else found

    def curves(self) -> list[Curve]:
        return load_all(self.out / "runs")

    def to_do(self) -> list[Plan]:
        """The runs that are missing, in the targets' order, each once."""
        return missing([one for name in self.names for one in self.plans(name)], self.curves())


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
    curves, tasks = request.curves(), chosen(name, request.tasks)
    if name.startswith("table"):
        return _write_tables(request, name, curves, tasks)
    return _write_figure(request, name, curves, tasks)


def _write_tables(request: Request, name: str, curves: list[Curve], tasks: list[str]) -> list[Path]:
    seeds = request.seeds or PAPER_SEEDS
    makers: dict[str, Callable[[], tables.Table]] = {
        "table1": lambda: tables.table1(curves, tasks, seeds),
        "table2": lambda: tables.table2(curves, tasks, seeds, main_variant),
        "table3": lambda: tables.table3(curves, tasks, seeds, main_variant),
        "table4": lambda: tables.table4(curves, tasks, seeds, main_variant),
        "table5": lambda: tables.table5(curves, tasks),
        "table6": lambda: tables.table6(curves),
        "table7": lambda: tables.table7(curves),
    }
    files = _save_table(request.out, name, makers[name]())
    if name == "table1":
        files += _save_table(request.out, "table1-improvement", tables.improvement(curves, tasks, seeds))
    return files


def _write_figure(request: Request, name: str, curves: list[Curve], tasks: list[str]) -> list[Path]:
    from ars.report import plots

    seeds = request.seeds or (draw_seeds(MANY) if name == "figure3" else PAPER_SEEDS)
    files: list[Path] = []
    caps = {task: CAPS[robot_of(task) or ""] for task in tasks}
    by_task = {task: [c for c in found(request.plans(name), curves) if c.config.task == task] for task in tasks}
    by_task = {task: group for task, group in by_task.items() if group} or by_task
    if name == "figure1":
        runs = [curve for task in tasks for curve in tables.pick(curves, task, "V2")]
        draw_it = lambda kind: plots.sigma_R(runs, kind)  # noqa: E731 (one line for each figure)
    elif name == "figure2":
        ours = [c for c in curves if c.config.seed in seeds]
        groups = {task: {name: tables.pick(ours, task, name) for name in variants(task)} for task in by_task}
        draw_it = lambda kind: plots.three_seeds(groups, kind)  # noqa: E731
    elif name == "figure3":
        draw_it = lambda kind: plots.percentiles(by_task, caps, kind, what="seeds")  # noqa: E731
        files += _save_table(request.out, "figure3-numbers", tables.many_seeds(curves, list(by_task), seeds))
        files += _save_plot(request.out, "figure3-profiles", lambda kind: plots.profiles(by_task, kind))
    else:
        wanted = {task: sum(one.task == task for one in request.plans(name)) for task in by_task}
        draw_it = lambda kind: plots.percentiles(by_task, caps, kind, what="runs")  # noqa: E731
        files += _save_table(
            request.out, "figure4-numbers",
            tables.sensitivity([c for group in by_task.values() for c in group], list(by_task), wanted),
        )  # fmt: skip
    return _save_plot(request.out, name, draw_it) + files


def _save_table(out: Path, name: str, table: tables.Table) -> list[Path]:
    files = {out / "tables" / f"{name}.md": table.markdown(), out / "tables" / f"{name}.csv": table.csv()}
    return [_write(path, text.encode()) for path, text in files.items()]


def _save_plot(out: Path, name: str, draw_it: Callable[[str], bytes]) -> list[Path]:
    return [_write(out / "figures" / f"{name}.{kind}", draw_it(kind)) for kind in ("png", "svg")]


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)
    return path


# -- figure 5 ------------------------------------------------------------------------------------------------------


def lqr_is_there(out: Path) -> bool:
    return (out / "lqr" / "lqr.csv").exists()


def _draw_lqr(out: Path) -> list[Path]:
    """From the numbers in lqr.csv; `ars lqr` makes them."""
    from ars.lqr.comparison import read_results
    from ars.lqr.report import write

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
        "| target | | command | runs there | files |",
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
    training, evaluation = sum(c.episodes for c in curves), sum(c.rewards.size * c.config.eval_episodes for c in curves)
    hours = sum(c.seconds for c in curves) / 3600
    lines += [
        "",
        f"{len(curves)} runs: {training:,} rollouts of training and {evaluation:,} of evaluation, {hours:.1f} hours of "
        "one core, shared with other work.",
        "",
        f"Drawn at commit {commit()}.",
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
