"""Ratios and their targets, as pure functions of the results."""

from collections.abc import Iterable
from math import exp, log, nan
from typing import Any, NamedTuple

from ars.presets import robot_of

Speeds = dict[str, dict[str, float]]  # task → contestant → steps/s

MEAN = "geometric mean of the paper's tasks"
RATIOS = {
    "ours / limit": ("ours", "limit"),
    "iteration / limit": ("iteration", "limit"),
    "ours / gymnasium": ("ours", "gymnasium"),
    "iteration / sb3-sync": ("iteration", "sb3-sync"),
    "iteration / sb3-async": ("iteration", "sb3-async"),
    "ours / envpool": ("ours", "envpool"),
}


class Target(NamedTuple):
    """A measured number and its bound, which it must reach or stay below."""

    what: str
    measured: float
    bound: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured < self.bound


def ratio(speeds: dict[str, float], name: str) -> float | None:
    above, below = RATIOS[name]
    return speeds[above] / speeds[below] if above in speeds and below in speeds else None


def geometric_mean(values: Iterable[float | None]) -> float:
    logs = [log(value) for value in values if value is not None]
    return exp(sum(logs) / len(logs)) if logs else nan


def of_paper(speeds: Speeds) -> list[str]:
    """Those of the tasks that are the paper's."""
    return [task for task in speeds if robot_of(task)]


def mean(speeds: Speeds, name: str) -> float:
    return geometric_mean(ratio(speeds[task], name) for task in of_paper(speeds))


def speeds_of(results: dict[str, Any], phase: str) -> Speeds:
    return {
        task: {name: run["steps_per_second"] for name, run in one["contestants"].items()}
        for task, one in results["tasks"].get(phase, {}).items()
    }


def targets(results: dict[str, Any]) -> list[Target]:
    """The targets for which there are results."""
    speeds = speeds_of(results, "learnt")
    found = []
    column = {name: {task: ratio(one, name) for task, one in speeds.items()} for name in RATIOS}

    def lowest(name: str, tasks: Iterable[str]) -> tuple[str, float] | None:
        there = [(value, task) for task in tasks if (value := column[name][task]) is not None]
        return (min(there)[1], min(there)[0]) if there else None

    if worst := lowest("ours / limit", of_paper(speeds)):
        found.append(Target(f"ours / limit on every task of the paper (lowest: {worst[0]})", worst[1], 0.95))
        found.append(Target(f"ours / limit, {MEAN}", mean(speeds, "ours / limit"), 1.0))
    for task in speeds:
        if task not in of_paper(speeds) and (value := column["ours / limit"][task]) is not None:
            found.append(Target(f"ours / limit on {task}", value, 0.95))
    large = [task for task in speeds if results["tasks"]["learnt"][task]["N"] >= 8]
    if worst := lowest("iteration / limit", large):
        found.append(Target(f"iteration / limit where N ≥ 8 (lowest: {worst[0]})", worst[1], 0.9))
    for name, bound in (("ours / gymnasium", 1.5), ("ours / envpool", 1.2)):
        if lowest(name, of_paper(speeds)):
            found.append(Target(f"{name}, {MEAN}", mean(speeds, name), bound))
    for task in speeds:
        if task.startswith("HalfCheetah"):
            for name in ("iteration / sb3-sync", "iteration / sb3-async"):
                if (value := column[name][task]) is not None:
                    found.append(Target(f"{name} on {task}", value, 8.0))
    slow = [(row["bare"] / row["ours"], row["task"]) for row in results.get("classic", []) if row["bare"] >= 10.0]
    if slow:
        worst_ratio, task = min(slow)
        found.append(Target(f"ours / bare where a step takes 10 µs or more (lowest: {task})", worst_ratio, 0.5))
    if memory := results.get("memory"):
        what = f"peak memory of {memory['task']} training on {memory['threads']} threads, MB"
        found.append(Target(what, memory["peak_MB"], 500.0, at_least=False))
    if start := results.get("start_up"):
        found.append(Target("`ars --help`, seconds", start["help"], 0.5, at_least=False))
        found.append(Target("start to first iteration, seconds", start["first_iteration"], 2.0, at_least=False))
    if start := results.get("first_start"):
        found.append(Target("first start, which compiles, processor seconds", start["first"], 5.0, at_least=False))
        found.append(Target("second start, processor seconds", start["second"], 2.0, at_least=False))
    return found
