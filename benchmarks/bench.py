"""Measure speed: `python -m benchmarks.bench` from the repository's root. See benchmarks/README.md."""

import argparse
import json
import platform
import sys
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console

from ars.executors import cores
from ars.tasks import locomotion
from benchmarks import classic, growth, network, processes, tables
from benchmarks.contest import hold
from benchmarks.contestants import ENTRIES
from benchmarks.targets import targets
from benchmarks.workload import PHASES, PLACES, lacking, prepare, size_of

HERE = Path(__file__).parent
OTHERS = ["Quadruped-v1", "Go1"]  # robots that are not the paper's
TASKS = [*(name for name in locomotion.TASKS if name.endswith("-v5")), *OTHERS]
SECTIONS = ("growth", "memory", "start-up", "first-start", "classic", "network")
PACKAGES = ("mujoco", "gymnasium", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib", "envpool", "mjlab")
MARKS = "<!-- results -->\n", "<!-- end of results -->\n"

console = Console(width=None if sys.stdout.isatty() else 150)


def main() -> int:
    options = parse(sys.argv[1:])
    if options.record_only:
        record(json.loads(options.out.read_text()))
        return 0
    results: dict[str, Any] = {
        "command": command(sys.argv[1:]),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "threads": options.threads,
        "repetitions": options.repetitions,
        "tasks": {},
    }
    if "memory" in options.only:
        say("peak memory")
        results["memory"] = processes.peak_memory(2, 1 if options.quick else 3)
    if "start-up" in options.only:
        say("start-up")
        results["start_up"] = processes.start_up(options.repetitions)
    if "classic" in options.only:
        say("classic tasks in Python")
        results["classic"] = classic.measure(options.repetitions)
    if "network" in options.only:
        say("networks beside matrices")
        results["network"] = network.measure(options.repetitions)
    if "first-start" in options.only:
        say("first and second start")
        results["first_start"] = processes.first_start(options.repetitions)
    for phase in options.phases:
        for task in options.tasks:
            if one := measure_task(task, phase, options):
                results["tasks"].setdefault(phase, {})[task] = one
                save(results, options.out)
    if "growth" in options.only:
        say("how cost grows")
        results["growth"] = growth.measure(
            options.repetitions, options.threads, options.cache, lambda text: None, quick=options.quick
        )
    results["targets"] = [{**one._asdict(), "met": one.met} for one in targets(results)]
    save(results, options.out)
    tables.show(results, console)
    if options.record:
        record(results)
    return 0


def measure_task(task: str, phase: str, options: argparse.Namespace) -> dict[str, Any]:
    if package := lacking(task):
        say(f"{task} is left out: {package} is not installed (pip install --no-deps {package}).")
        return {}
    names = []
    for name, entry in ENTRIES.items():
        if name not in options.only:
            continue
        if why := entry.missing(task):
            say(f"{task}: {name} is left out: {why}.")
        else:
            names.append(name)
    if not names:
        return {}
    say(f"{task}, {phase}: preparing")
    size = size_of(task)
    if options.quick:
        size = size._replace(learning=size.learning // 3, steps=size.steps // 2)
    work = prepare(PLACES.get(task, task), phase, options.threads, size=size, cache=options.cache)
    say(f"{task}, {phase}: {work.steps} steps in {work.episodes} episodes of {len(work.batches)} iterations")
    runs = hold({name: (ENTRIES[name], work) for name in names}, options.repetitions, say_if_left_out)
    for name in ("limit", "ours", "iteration"):
        if name in runs and set(runs[name].steps) != {work.steps}:
            raise RuntimeError(f"{name} on {task} did not make the {work.steps} steps of this workload.")
    return {
        "N": work.batches[0].size,
        "iterations": len(work.batches),
        "episodes": work.episodes,
        "mean_steps": work.steps / work.episodes,
        "contestants": {name: one.to_dict() for name, one in runs.items()},
    }


def say(text: str) -> None:
    console.print(text, style="dim", highlight=False)


def say_if_left_out(text: str) -> None:
    if "left out" in text:
        say(text)


def command(arguments: list[str]) -> str:
    """The command without paths, which are private."""
    kept, skip = [], False
    for argument in arguments:
        if not skip and not argument.startswith(("--out", "--cache")):
            kept.append(argument)
        skip = argument in ("--out", "--cache")
    return " ".join(["python -m benchmarks.bench", *kept])


def machine() -> dict[str, Any]:
    """What matters for speed, without identifying the machine."""
    names = [platform.processor()]
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")] or names
    return {"cores": cores(), "processor": names[0] or "unknown", "system": platform.system()}


def versions() -> dict[str, str]:
    installed = {"Python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed


def save(results: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def record(results: dict[str, Any]) -> None:
    """Insert the tables into the README, between the marks."""
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition(MARKS[0])
    readme.write_text(before + MARKS[0] + tables.markdown(results) + MARKS[1] + rest.partition(MARKS[1])[2])


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two tasks, two repetitions, learnt policies only")
    parser.add_argument("--tasks", help=f"default: {','.join(TASKS)}")
    parser.add_argument("--only", help=f"some of {','.join([*ENTRIES, *SECTIONS])}; sb3 means both")
    parser.add_argument("--phases", help=f"some of {','.join(PHASES)}")
    parser.add_argument("--threads", type=int, default=cores(), help="default: all cores")
    parser.add_argument("--repetitions", type=int, help="default: 5, or 2 with --quick")
    parser.add_argument("--out", type=Path, help="the JSON file; default: benchmarks/results/bench.json or quick.json")
    parser.add_argument("--record", action="store_true", help="also insert the tables into benchmarks/README.md")
    parser.add_argument("--record-only", action="store_true", help="only insert them, from the JSON file")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "ars-bench", help="where learnt policies are kept"
    )
    options = parser.parse_args(arguments)
    options.repetitions = options.repetitions or (2 if options.quick else 5)
    options.out = options.out or HERE / "results" / ("quick.json" if options.quick else "bench.json")
    options.tasks = chosen(
        parser,
        options.tasks,
        [*locomotion.TASKS, *OTHERS],
        ["Hopper-v5", "HalfCheetah-v5"] if options.quick else TASKS,
    )
    options.phases = chosen(parser, options.phases, [*PHASES], ["learnt"] if options.quick else [*PHASES])
    only = (options.only or "").replace("sb3,", "sb3-sync,sb3-async,")
    only = only.removesuffix("sb3") + "sb3-sync,sb3-async" if only.endswith("sb3") else only
    options.only = chosen(parser, only, [*ENTRIES, *SECTIONS], [*ENTRIES, *SECTIONS])
    return options


def chosen(parser: argparse.ArgumentParser, given: str | None, known: list[str], default: list[str]) -> list[str]:
    names = given.split(",") if given else default
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is not one of {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
