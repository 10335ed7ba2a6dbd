"""The report: one page about one or several runs."""

import json
import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ars import presets
from ars.commands import file_words, train_words
from ars.errors import SettingError
from ars.notes import advice
from ars.page.charts import AXES, charts, fresh_starts, shorten, tables
from ars.page.gait import film_gait
from ars.page.html import write_page
from ars.page.robustness import FILE, read_robustness
from ars.policy import FloatArray, LinearPolicy
from ars.races import RaceFile
from ars.records import best_known
from ars.run_files import RunFiles
from ars.searches import search_settings
from ars.settings import in_words
from ars.statistics import percentile
from ars.tasks.axis_names import Columns, name_axes
from ars.tasks.user_code import importable
from ars.timing import duration, length_text, mean_speed
from ars.versions import versions
from ars.video.film import check_seconds

MOST_POINTS = 400  # per curve: more than a screen can resolve
POINTS_OF_ALL = 16_000  # shared by all runs, to keep the page small
DEEPEST = 10  # nesting of settings

Say = Callable[[str], None]
At = Callable[[str, float], None]  # what is being done, and the share of everything that is done


# -- settings: the only functions here that know the fields of a configuration ----------------------------------------


def _settings_pairs(run: RunFiles) -> list[tuple[str, Any]]:
    """What the runs of a group have in common, as (name, value); they differ only in their seed."""
    config = run.config
    names = ["H", "shift", "stats_every"]
    names += [name for name in ("average", "steady", "least_timesteps", "ramp", "duel") if getattr(config, name)]
    shared = [(name, getattr(config, name)) for name in names]
    return [("search", config.label), *search_settings(config.search).items(), *shared]


def _label(run: RunFiles) -> str:
    """The headline of a run."""
    return f"{run.config.label}, seed {run.config.seed}"


# -- the page ---------------------------------------------------------------------------------------------------------


def write_report(
    runs: list[RunFiles],
    out: Path,
    *,
    task: str | None = None,
    seconds: float = 8.0,
    races: Sequence[tuple[Path, RaceFile]] = (),
    say: Say = lambda _: None,
    at: At = lambda _, __: None,
) -> dict[str, Any]:
    """Write the report of some runs, without films if seconds = 0; returns the data of the page. `races` are folders of
    races, whose runs are among these."""
    data = report_data(runs, task=task, seconds=seconds, races=races, say=say, at=at)
    write_page(data, out)
    return data


def report_data(
    runs: list[RunFiles],
    *,
    task: str | None,
    seconds: float,
    races: Sequence[tuple[Path, RaceFile]] = (),
    say: Say = lambda _: None,
    at: At = lambda _, __: None,
) -> dict[str, Any]:
    """The data of the page. Only the best run of each task is filmed, to keep the page small."""
    if seconds != 0:
        check_seconds(seconds)
    names = dict.fromkeys(run.config.task for run in runs)
    task = None if task is None else importable(task)
    if task is not None and task not in names:
        raise SettingError(f"task = {task} has no run among these, which are of {', '.join(sorted(names))}.")
    most = max(80, min(MOST_POINTS, POINTS_OF_ALL // max(1, len(runs))))
    shown = [_run(run, name, most) for run, name in zip(runs, short_names([run.path for run in runs]), strict=True)]
    raced = [_race(folder, race, runs, shown) for folder, race in races]
    tasks = [_task(name, runs, shown, raced) for name in names]
    if seconds > 0:
        filmed = [one["best"] for one in tasks if runs[one["best"]].policy is not None]
        for i, best in enumerate(filmed):
            confirmed = task if task == runs[best].config.task else None  # for the runs of that task only
            gait = shown[best]["gait"] = film_gait(
                _policy_of_task(runs[best]), confirmed, seconds=seconds,
                progress=part_of(at, f"Filming {shown[best]['name']}", i, len(filmed)),
            )  # fmt: skip
            if "why_not" in gait:
                say(f"No film: {gait['why_not']}")
    return {"kind": "report", "version": versions()["ars-rl"], "tasks": tasks, "runs": shown}


def part_of(at: At, what: str, i: int, count: int) -> Callable[[float], None]:
    """The progress of the i-th of several films, of which each counts the same; also announces it."""
    at(what, i / count)
    return lambda share: at(what, (i + share) / count)


def _policy_of_task(run: RunFiles) -> LinearPolicy:
    """The policy, with the task of the run whatever its own file says."""
    assert run.policy is not None
    return LinearPolicy(run.policy.M, run.policy.mu, run.policy.sigma, {**run.policy.task, "name": run.config.task})


def _race(folder: Path, race: RaceFile, runs: list[RunFiles], shown: list[dict[str, Any]]) -> dict[str, Any]:
    """A race as a table, and the indices of its runs, which are told what became of them."""
    seeds = {standing.seed: standing for standing, _ in race.places()}
    members = [index for index, run in enumerate(runs) if run.path.parent.parent == folder]
    for index in members:
        standing = seeds.get(runs[index].config.seed)
        if standing is not None:
            shown[index]["race"] = "won" if standing.seed == race.winner else "" if standing.goes_on else "stopped"
    heads, rows = race.table()
    return {"name": folder.name, "heads": heads, "rows": rows, "runs": members}


def _task(name: str, runs: list[RunFiles], shown: list[dict[str, Any]], races: list[dict[str, Any]]) -> dict[str, Any]:
    """The data that the runs of a task share."""
    members = [index for index, run in enumerate(runs) if run.config.task == name]
    _mark_differences([shown[index] for index in members])
    _align_facts([shown[index] for index in members])
    groups = group({index: _settings_pairs(runs[index]) for index in members})
    return {
        "name": name,
        "headline": f"{len(members)} runs" if len(members) > 1 else _label(runs[members[0]]),
        "runs": members,
        "groups": [alike for _, alike in groups],
        "races": [race for race in races if set(race["runs"]) & set(members)],
        "charts": charts(shown, groups, presets.threshold(name)),
        "best": max(members, key=lambda index: (runs[index].policy is not None, _best_mean(runs[index]))),
    }


def _best_mean(run: RunFiles) -> float:
    return max((best_known(r) for r in run.records if best_known(r) is not None), default=-math.inf)


def group(settings: dict[int, list[tuple[str, Any]]]) -> list[tuple[str, list[int]]]:
    """Runs with equal settings, and what distinguishes each group: "alpha 0.02: ", or "" for a single group."""
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for index, pairs in settings.items():
        texts = ((name, value if isinstance(value, str) else f"{name} {in_words(value)}") for name, value in pairs)
        alike.setdefault(tuple(texts), []).append(index)
    groups = []
    for key, members in alike.items():
        own = [pair[1] for pair in key if any(pair not in other for other in alike)]
        groups.append((", ".join(own) + ": " if own else "", members))
    return groups


def _mark_differences(runs: list[dict[str, Any]]) -> None:
    """Add to each setting whether it differs between runs."""
    common = set.intersection(*(set(run["settings"]) for run in runs))
    for run in runs:
        run["settings"] = [(*row, row not in common) for row in run["settings"]]


def _align_facts(runs: list[dict[str, Any]]) -> None:
    """Give all runs the same facts, for the columns of a table: what a run does not have is a dash."""
    fullest = max((run["facts"] for run in runs), key=len)
    for run in runs:
        known = dict(run["facts"])
        run["facts"] = [(what, known.get(what, "–")) for what, _ in fullest]


# -- one run ----------------------------------------------------------------------------------------------------------


def _run(run: RunFiles, name: str, most: int) -> dict[str, Any]:
    return {
        "name": name,
        "facts": facts(run),
        "notes": [f"Iteration {r['iteration']}: {note}." for r in run.records for note in advice(r, run.config)],
        **tables(run.records, most),
        "fresh_starts": fresh_starts(run.records),
        "policy": _policy(run),
        "robustness": read_robustness(run.path / FILE),
        "settings": settings(run),
        "commands": commands(run),
        "gait": None,
        "race": None,
    }


def facts(run: RunFiles) -> list[tuple[str, str]]:
    """The main facts of a run, as (what, value)."""
    last = run.records[-1] if run.records else dict.fromkeys(AXES, 0)
    evaluated = [record for record in run.records if best_known(record) is not None]
    best: dict[str, Any] = max(evaluated, key=best_known, default={})
    std = best_known(best, "std")
    deviation = "" if std is None else f" ± {_number(std)}"
    lengths = [r["length_mean"] for r in run.records if r.get("length_mean") is not None]
    rows = [
        ("seed", str(run.config.seed)),
        ("best evaluation, mean", _number(best_known(best)) + deviation),
        ("its lowest reward", _number(best_known(best, "min"))),
        ("at iteration", _number(best.get("iteration"))),
        ("episode length, change", length_text(lengths[-1], lengths[0]) if lengths else "–"),
    ]
    if (threshold := presets.threshold(run.config.task)) is not None:
        reached = next((record for record in evaluated if best_known(record) >= threshold), None)
        rows += [
            ("episodes to threshold", _number(reached["episodes"]) if reached else "not reached"),
            ("time to threshold", duration(reached["seconds"]) if reached else "–"),
        ]
    if ended := [record["fresh_won"] for record in run.records if "fresh_won" in record]:
        rows.append(("fresh starts tried, better", f"{len(ended)}, {sum(ended)}"))
    return [
        *rows,
        ("episodes", _number(last["episodes"])),
        ("timesteps", _number(last["timesteps"])),
        ("time, with evaluations", duration(last["seconds"])),
        ("training steps/s", _number(mean_speed(run.records))),
    ]


def _number(value: float | None) -> str:
    """Four digits, or all those before the point, as the script's `number` does."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.4g}"


def _policy(run: RunFiles) -> dict[str, Any] | None:
    if run.policy is None:
        return None
    policy = run.policy
    names = name_axes(run.config.task, run.definition, policy.n, policy.p)
    matrices = {"W": policy.W, "M": policy.M}
    return {
        "file": run.policy_file,
        "rows": list(names.rows),
        "blocks": [{"title": block.title, "columns": list(block.names)} for block in names.columns],
        **{
            name: [[shorten(value, 4) for value in row] for row in matrix.tolist()] for name, matrix in matrices.items()
        },
        "scales": {name: _scales(matrix, names.columns) for name, matrix in matrices.items()},
        "ignored": np.flatnonzero(np.isinf(policy.sigma)).tolist(),
    }


def _scales(matrix: FloatArray, blocks: tuple[Columns, ...]) -> list[float]:
    """The value of full colour, for the whole matrix and for each block: the largest or, if there are many, the 99th
    percentile, so that a few outliers do not fade the rest."""
    sizes = np.abs(matrix)
    ends = np.cumsum([len(block.names) for block in blocks])
    parts = [sizes, *np.split(sizes, ends[:-1], axis=1)]
    return [shorten(float(percentile(part.ravel(), 99 if part.size > 400 else 100)), 4) or 1.0 for part in parts]


def settings(run: RunFiles) -> list[tuple[str, str, str]]:
    """Every setting as (part, name, value), flat."""
    parts = {"configuration": run.config.to_dict(), "stops at": run.stop.to_dict(), "task": run.definition,
             "versions": run.versions}  # fmt: skip
    return [(where, name, value) for where, part in parts.items() for name, value in _flat(part)]


def _flat(value: Any, name: str = "", depth: int = 0) -> list[tuple[str, str]]:
    if isinstance(value, dict) and depth < DEEPEST:
        pairs = [_flat(part, f"{name}.{key}" if name else str(key), depth + 1) for key, part in value.items()]
        return [pair for part in pairs for pair in part]
    try:
        return [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]
    except RecursionError:  # our own files are never nested that deeply
        return [(name, "…")]


def commands(run: RunFiles) -> list[tuple[str, str]]:
    """The commands that repeat, continue, evaluate and show this run."""
    task, file = run.config.task, run.path / run.policy_file
    listed = [("train it again", train_words(run.config, run.stop))]
    listed += [("continue it", file_words("resume", run.path, task, "--minutes", "10"))]
    if run.policy_file:
        listed += [("evaluate it", file_words("evaluate", file, task)), ("watch it", file_words("watch", file, task))]
    listed += [("make this page", file_words("report", run.path, task))]
    return [(what, shlex.join(["ars", *words])) for what, words in listed]


def short_names(paths: list[Path]) -> list[str]:
    """The names of the folders, with as much of their paths as distinguishes them."""
    full = [path.absolute() for path in paths]
    depth = 1
    while len({path.parts[-depth:] for path in full}) < len(set(full)):  # ends: whole paths differ
        depth += 1
    return [str(Path(*path.parts[-depth:])) for path in full]
