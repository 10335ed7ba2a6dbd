"""The report and the gallery: one HTML file each, which opens without network and on any device.

Everything that is shown comes as JSON and is put on the page as text; only our own script may run, by its hash, and
the page may load nothing.
"""

import base64
import hashlib
import itertools
import json
import math
import shlex
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ars import presets
from ars.config import Config
from ars.errors import FileError, SettingError
from ars.files import write_atomic
from ars.page.gait import gait
from ars.policy import LinearPolicy
from ars.run_files import RunFiles
from ars.tasks.axis_names import name_axes
from ars.tasks.user_code import task_flag
from ars.versions import versions

SCRIPTS = ("elements.js", "numbers.js", "chart.js", "gait.js", "heat_map.js", "report.js", "gallery.js", "main.js")
MOST_POINTS = 400  # of a curve: more than a screen can show apart
POINTS_OF_ALL = 16_000  # many runs have fewer points each, or the page would grow without end
DIGITS = 6
DEEPEST = 10  # of nested settings

Say = Callable[[str], None]


def write_report(
    runs: list[RunFiles], out: Path, *, task: str | None = None, seconds: float = 8.0, say: Say = lambda _: None
) -> dict[str, Any]:
    """Write the report of some runs; with seconds = 0 without films. Returns what the page shows."""
    data = report_data(runs, task=task, seconds=seconds, say=say)
    write_page(data, out)
    return data


def write_gallery(
    policies: list[tuple[str, LinearPolicy]], out: Path, *, task: str | None = None, seconds: float, say: Say
) -> dict[str, Any]:
    """Write a page with the films of several policies side by side."""
    shown = []
    for name, policy in policies:
        say(f"Filming {name} …")
        shown.append({"name": name, "task": str(policy.task.get("name", task or "")), "size": [policy.p, policy.n],
                      "gait": gait(policy, task, seconds=seconds)})  # fmt: skip
    data = {"kind": "gallery", "version": versions()["ars-rl"], "policies": shown}
    write_page(data, out)
    return data


def write_page(data: dict[str, Any], out: Path) -> None:
    if not out.absolute().parent.is_dir():
        raise FileError(f"Cannot write {out}: there is no folder {out.absolute().parent}.")
    write_atomic(out, page(data).encode())


def page(data: dict[str, Any]) -> str:
    """The HTML. The data goes in last: nothing in it is looked at again."""
    style, frame = _asset("page.css"), _asset("page.html")
    script = '"use strict";\n{\n' + "\n".join(map(_asset, SCRIPTS)) + "}\n"
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    before, after = (
        frame.replace("{{POLICY}}", policy).replace("{{STYLE}}", style).replace("{{SCRIPT}}", script).split("{{DATA}}")
    )
    return before + as_json(data) + after


def _asset(name: str) -> str:
    return (files("ars.page") / "assets" / name).read_text(encoding="utf-8")


def as_json(data: Any) -> str:
    """JSON that no HTML parser can take for markup, in ASCII: also what is no proper Unicode comes through."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# -- the report's data ------------------------------------------------------------------------------------------------


def report_data(runs: list[RunFiles], *, task: str | None, seconds: float, say: Say = lambda _: None) -> dict[str, Any]:
    """All that the page shows. A film is made of the best run of each task: more would make the page heavy."""
    tasks = {run.config.task for run in runs}
    if task is not None and task not in tasks:
        raise SettingError(f"There is no run of {task} among these: they are of {', '.join(sorted(tasks))}.")
    names = short_names([run.path for run in runs])
    most = max(80, min(MOST_POINTS, POINTS_OF_ALL // max(1, len(runs))))
    shown = [_run(run, name, most) for run, name in zip(runs, names, strict=True)]
    if seconds > 0:
        for index in _best_of_each_task(runs, shown):
            run = runs[index]
            if run.policy is not None:
                say(f"Filming {names[index]} …")
                confirmed = task if task == run.config.task else None  # for that task's runs, and no others
                shown[index]["gait"] = gait(_of_this_run(run), confirmed, seconds=seconds)
    return {"kind": "report", "version": versions()["ars-rl"], "runs": shown}


def _of_this_run(run: RunFiles) -> LinearPolicy:
    """The policy for the task of the run, whatever its own file says."""
    assert run.policy is not None
    return LinearPolicy(run.policy.M, run.policy.mu, run.policy.sigma, {**run.policy.task, "name": run.config.task})


def _best_of_each_task(runs: list[RunFiles], shown: list[dict[str, Any]]) -> list[int]:
    best: dict[str, int] = {}
    for index, run in enumerate(runs):
        if run.policy is None:
            continue
        other = best.get(run.config.task)
        if other is None or _score(shown[index]) > _score(shown[other]):
            best[run.config.task] = index
    return sorted(best.values())


def _score(run: dict[str, Any]) -> float:
    return float(run["best"]["mean"]) if run["best"] else -math.inf


def _run(run: RunFiles, name: str, most: int) -> dict[str, Any]:
    config, records = run.config, run.records
    last = records[-1] if records else {"iteration": 0, "episodes": 0, "timesteps": 0, "seconds": 0.0}
    evaluated = [record for record in records if record.get("eval_mean") is not None]
    best = max(evaluated, key=lambda record: record["eval_mean"], default=None)
    threshold = presets.threshold(config.task)
    reached = next((r for r in evaluated if threshold is not None and r["eval_mean"] >= threshold), None)
    return {
        "name": name,
        "task": config.task,
        "variant": config.variant,
        "seed": config.seed,
        "group": _group(config),
        "threshold": threshold,
        "totals": {axis: last[axis] for axis in ("iteration", *AXES)},
        "best": {"mean": best["eval_mean"], "std": best.get("eval_std"), "iteration": best["iteration"]}
        if best else None,
        "reached": {axis: reached[axis] for axis in AXES} if reached else None,
        "speed": _speed(records),
        "evaluations": _columns(thinned(evaluated, most), {"mean": "eval_mean", "std": "eval_std", "low": "eval_min",
                                                     "high": "eval_max"}),
        "sigma_R": _columns(thinned(records, most), {"value": "sigma_R"}),
        "throughput": throughput(records),
        "policy": _policy(run),
        "settings": settings(run),
        "commands": commands(run),
        "gait": None,
    }  # fmt: skip


AXES = ("episodes", "timesteps", "seconds")


def _group(config: Config) -> str:
    """Runs that differ in their seed only belong together."""
    names = ("alpha", "nu", "N", "b", "H", "shift")
    return f"{config.variant}, " + ", ".join(f"{name} {getattr(config, name):g}" for name in names)


def thinned(records: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most so many, evenly spread, with the first and the last."""
    if len(records) <= most:
        return records
    return [records[i] for i in np.unique(np.linspace(0, len(records) - 1, most).round().astype(int))]


def _columns(records: list[dict[str, Any]], values: dict[str, str]) -> dict[str, list[Any]]:
    axes = {axis: axis for axis in AXES}
    return {to: [_short(record.get(name)) for record in records] for to, name in (axes | values).items()}


def throughput(records: list[dict[str, Any]], buckets: int = 120) -> dict[str, list[Any]]:
    """Training timesteps per second over stretches of the run. Iterations that also evaluated are left out, because
    their seconds are not for training alone, unless there are no others."""
    pairs = [(a, b) for a, b in itertools.pairwise(records) if b["seconds"] > a["seconds"]]
    pairs = [(a, b) for a, b in pairs if "eval_mean" not in b] or pairs
    result: dict[str, list[Any]] = {name: [] for name in (*AXES, "value")}
    for part in np.array_split(np.arange(len(pairs)), min(buckets, len(pairs) or 1)):
        chosen = [pairs[i] for i in part]
        spent = sum(b["seconds"] - a["seconds"] for a, b in chosen)
        if spent > 0:
            for axis in AXES:
                result[axis].append(_short(chosen[-1][1][axis]))
            result["value"].append(_short(sum(b["timesteps"] - a["timesteps"] for a, b in chosen) / spent))
    return result


def _speed(records: list[dict[str, Any]]) -> float | None:
    """Training timesteps per second over the whole run, by the same rule as throughput."""
    values = throughput(records, buckets=1)["value"]
    return float(values[0]) if values else None


def _policy(run: RunFiles) -> dict[str, Any] | None:
    if run.policy is None:
        return None
    policy = run.policy
    names = name_axes(run.config.task, run.definition, policy.n, policy.p)
    return {
        "file": run.policy_file,
        "rows": list(names.rows),
        "blocks": [{"title": kind.title, "columns": list(kind.names)} for kind in names.columns],
        "W": [[_short(value, 4) for value in row] for row in policy.W.tolist()],
        "M": [[_short(value, 4) for value in row] for row in policy.M.tolist()],
        "ignored": np.flatnonzero(np.isinf(policy.sigma)).tolist(),
    }


def settings(run: RunFiles) -> list[tuple[str, str, str]]:
    """Every setting as (where, name, value), flat."""
    parts = {"configuration": run.config.to_dict(), "stops at": run.stop.to_dict(), "task": run.definition,
             "versions": run.versions}  # fmt: skip
    return [(where, name, value) for where, part in parts.items() for name, value in _flat(part)]


def _flat(value: Any, name: str = "", depth: int = 0) -> list[tuple[str, str]]:
    if isinstance(value, dict) and depth < DEEPEST:
        pairs = [_flat(part, f"{name}.{key}" if name else str(key), depth + 1) for key, part in value.items()]
        return [pair for part in pairs for pair in part]
    try:
        return [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]
    except RecursionError:  # nothing of ours is nested like that
        return [(name, "…")]


def commands(run: RunFiles) -> list[tuple[str, str]]:
    """What to type to get this run again, and what can be done with it. Settings are all written out, so that the
    command stays right if a preset changes."""
    config = run.config
    flags = {"variant": config.variant, "alpha": config.alpha, "nu": config.nu, "N": config.N, "b": config.b,
             "H": config.H, "shift": config.shift, "seed": config.seed, "eval-every": config.eval_every,
             "eval-episodes": config.eval_episodes}  # fmt: skip
    if config.noise != "counter":
        flags |= {"noise": config.noise, "table-size": config.table_size}
    if config.stats_every != 1:
        flags |= {"stats-every": config.stats_every}
    flags |= run.stop.to_dict()
    words = [
        "ars",
        "train",
        config.task,
        *(word for name, value in flags.items() for word in (f"--{name}", str(value))),
    ]
    folder = str(run.path)
    own = shlex.split(task_flag(config.task))
    found = [("train it again", words), ("go on", ["ars", "resume", folder, "--minutes", "10", *own])]
    if run.policy_file:
        file = str(run.path / run.policy_file)
        found += [("measure it", ["ars", "evaluate", file, *own]), ("watch it", ["ars", "watch", file, *own])]
    return [(what, shlex.join(command)) for what, command in [*found, ("this page", ["ars", "report", folder, *own])]]


def short_names(paths: list[Path]) -> list[str]:
    """The folders' names; with as much of the path as tells them apart."""
    full = [path.absolute() for path in paths]
    depth = 1
    while len({path.parts[-depth:] for path in full}) < len(set(full)):  # ends: whole paths differ
        depth += 1
    return [str(Path(*path.parts[-depth:])) for path in full]


def gallery_names(names: list[str]) -> list[str]:
    """Policies by what tells them apart: the folder for a run's best.npz, the name for one that comes with ars."""
    paths = [Path(name) for name in names]
    return short_names([path.parent if path.name in ("best.npz", "policy.npz") else path for path in paths])


def _short(value: Any, digits: int = DIGITS) -> Any:
    """A number with as many digits as anybody can see."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None
