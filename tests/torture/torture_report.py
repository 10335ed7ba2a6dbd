"""The figures of the long form → docs/reliability.json, and the table in docs/reliability.md.

Usage: torture_report.py FOLDER, with the folder that ARS_TORTURE named.
"""

import json
import platform
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- figures: made by `make torture` -->", "<!-- end of figures -->"


def collect(folder: Path) -> dict[str, dict[str, Any]]:
    """Name → what that test measured."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def total(figures: dict[str, dict[str, Any]], prefix: str, number: str = "cases") -> int:
    return sum(found.get(number, 0) for name, found in figures.items() if name.startswith(prefix))


def most(figures: dict[str, dict[str, Any]], prefix: str, number: str) -> float:
    return max((found[number] for name, found in figures.items() if name.startswith(prefix)), default=float("nan"))


def rows(figures: dict[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    """What, how much, and the test that measured it."""

    def kills(kind: str) -> str:
        found = figures[f"kills_{kind}"]
        return f"{found['kills']} of the run" + (f", {found['workers']} of its workers" if found["workers"] else "")

    def soak(kind: str) -> str:
        found = figures[f"soak_{kind}"]
        grown, peak = f"{found['growth_MB']:+.2f} MB of growth", f"peak {found['peak_MB']:.0f} MB"
        return f"{found['iterations']} iterations, {grown}, {peak}, {found['handles']} file handles"

    local = sum(figures[f"kills_{kind}"]["kills"] for kind in ("threads", "processes"))
    steps = figures["kills_at_steps"]
    damaged = ("damage_policy", "damage_checkpoint", "damage_config", "damage_records", "damage_hypothesis",
               "damage_older_records", "damage_wrong_types")  # fmt: skip
    read = sum(total(figures, name) for name in damaged) + total(figures, "damage_command_line")
    refused = total(figures, "settings_") + total(figures, "flags_")
    slowest = max(most(figures, name, "slowest") for name in damaged[:4])
    peak = max(most(figures, name, "peak_MB") for name in damaged[:4])
    return [
        ("SIGKILLs at random moments, threads", kills("threads"), "test_kills"),
        ("SIGKILLs at random moments, processes", kills("processes"), "test_kills"),
        ("SIGKILLs at random moments, Ray", kills("ray"), "test_kills"),
        (
            "of the local ones, in the middle of a write",
            f"{total(figures, 'kills_', 'in_writes')} of {local}",
            "test_kills",
        ),
        ("SIGTERMs at random moments", str(total(figures, "kills_", "ended")), "test_kills"),
        ("SIGKILLs before and within each step on disk", f"{steps['kills']} at {steps['steps']} steps", "test_kills"),
        ("disk faults: full, for a moment, read-only, broken", str(total(figures, "disk_", "faults")), "test_disk"),
        ("damaged policies, checkpoints, configurations, records", f"{read}", "test_damage, test_mixes"),
        ("mixes of the files of two runs", str(total(figures, "mixes")), "test_mixes"),
        ("odd names and values of arguments", str(total(figures, "names")), "test_names"),
        ("damaged files to import", str(total(figures, "imports")), "tests/interop/test_imports"),
        ("the slowest of the generated cases", f"{slowest:.2f} s", "test_damage"),
        ("peak memory over the generated cases", f"{peak:.0f} MB", "test_damage"),
        ("peak memory over files made to fill it", f"{most(figures, 'bomb_', 'peak_MB'):.0f} MB", "test_damage"),
        ("bad values of settings and flags", str(refused), "test_bad_settings"),
        ("kinds of bad environments", str(figures["environments"]["kinds"]), "test_bad_environments"),
        ("soak, threads", soak("threads"), "test_soak"),
        ("soak, processes (of all together)", soak("processes"), "test_soak"),
        ("soak, Ray (of all of its processes together)", soak("ray"), "test_soak"),
    ]  # fmt: skip


def main(folder: Path) -> None:
    figures = collect(folder)
    (DOCS / "reliability.json").write_text(json.dumps(figures, indent=1) + "\n")
    lines = ["| what | measured | test |", "|---|---|---|"]
    lines += [f"| {what} | {measured} | {test} |" for what, measured, test in rows(figures)]
    where = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    page = DOCS / "reliability.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text("\n".join([before + BEGIN, *lines, "", f"{where}.", END + after]))
    print("\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
