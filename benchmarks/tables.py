"""The results as tables: on the terminal (rich), and as Markdown for the README."""

from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.targets import MEAN, RATIOS, mean, ratio, speeds_of, targets
from benchmarks.workload import PHASES


class Table(NamedTuple):
    title: str
    head: list[str]
    rows: list[list[str]]


def tables(results: dict[str, Any]) -> list[Table]:
    made = []
    for phase in results["tasks"]:
        made += [_ratios(results, phase), _speeds(results, phase)]
    if results.get("classic"):
        made.append(_classic(results["classic"]))
    if results.get("network"):
        made.append(_network(results["network"]))
    made += [_growth(name, rows) for name, rows in results.get("growth", {}).items()]
    found = targets(results)
    if found:
        rows = [
            [one.what, f"{'≥' if one.at_least else '<'} {one.bound:g}", f"{one.measured:.3g}", _yes(one.met)]
            for one in found
        ]
        made.append(Table("Targets", ["what", "target", "measured", "met"], rows))
    return made


def _yes(met: bool) -> str:
    return "yes" if met else "no"


def _ratios(results: dict[str, Any], phase: str) -> Table:
    speeds = speeds_of(results, phase)
    rows = []
    for task, one in speeds.items():
        facts = results["tasks"][phase][task]
        rows.append([task, str(facts["N"]), f"{facts['mean_steps']:.0f}", *(_number(ratio(one, r)) for r in RATIOS)])
    rows.append([MEAN, "", "", *(_number(mean(speeds, name)) for name in RATIOS)])
    title = f"Ratios of steps/s, {phase}: {PHASES[phase]}"
    return Table(title, ["task", "N", "steps an episode", *RATIOS], rows)


def _speeds(results: dict[str, Any], phase: str) -> Table:
    speeds = speeds_of(results, phase)
    names = list(dict.fromkeys(name for one in speeds.values() for name in one))
    rows = [[task, *(f"{one[name]:,.0f}" if name in one else "–" for name in names)] for task, one in speeds.items()]
    return Table(f"Steps/s, {phase}", ["task", *names], rows)


def _classic(rows: list[dict[str, Any]]) -> Table:
    body = [
        [row["task"], f"{row['steps_per_episode']:.0f}", f"{row['bare']:.1f}", f"{row['ours']:.1f}",
         _number(row["bare"] / row["ours"])]
        for row in rows
    ]  # fmt: skip
    head = ["task", "steps an episode", "bare, µs/step", "ours, µs/step", "ours / bare"]
    return Table("Environments in Python", head, body)


def _network(rows: list[dict[str, Any]]) -> Table:
    body = [
        [row["task"], f"{row['linear']:.1f}", f"{row['network']:.1f}", _number(row["network"] / row["linear"])]
        for row in rows
    ]
    head = ["task", "matrix, µs/step", "2 × 64 tanh, µs/step", "network / matrix"]
    return Table("Networks in the compiled loop", head, body)


def _growth(name: str, rows: list[dict[str, Any]]) -> Table:
    title = {"threads": "Steps/s against threads", "N": "Steps/s against N", "n_p": "Steps/s against n · p"}[name]
    head = list(rows[0]) + (["ours / limit"] if "limit" in rows[0] else [])
    body = []
    for row in rows:
        cells = [f"{value:,.0f}" if isinstance(value, float) else str(value) for value in row.values()]
        body.append(cells + ([_number(row["ours"] / row["limit"])] if "limit" in row else []))
    return Table(title, [title.replace("n_p", "n · p") for title in head], body)


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.2f}"


def show(results: dict[str, Any], console: Console) -> None:
    for table in tables(results):
        drawn = RichTable(title=table.title, title_justify="left")
        for i, name in enumerate(table.head):
            drawn.add_column(name, justify="left" if i == 0 else "right")
        for row in table.rows:
            colour = {"yes": "green", "no": "red"}.get(row[-1])
            drawn.add_row(*row, style=colour)
        console.print(drawn)


def markdown(results: dict[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts = [
        f"`{results['command']}` on {results['date']}: {machine['cores']} cores ({machine['processor']}), "
        f"{results['threads']} threads, best of {results['repetitions']}. {versions}."
    ]
    for table in tables(results):
        align = ["---", *["---:"] * (len(table.head) - 1)]
        lines = [f"| {' | '.join(row)} |" for row in (table.head, align, *table.rows)]
        parts.append("\n".join([f"**{table.title}**", "", *lines]))
    return "\n\n".join(parts) + "\n"
