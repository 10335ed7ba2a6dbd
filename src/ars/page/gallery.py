"""The gallery: the films of several policies side by side on one page."""

from pathlib import Path
from typing import Any

from ars.page.gait import film_gait
from ars.page.html import write_page
from ars.page.report import At, part_of, short_names
from ars.policy import LinearPolicy
from ars.versions import versions
from ars.video.film import check_seconds


def write_gallery(
    policies: list[tuple[str, LinearPolicy]],
    out: Path,
    *,
    task: str | None = None,
    seconds: float = 6.0,
    at: At = lambda _, __: None,
) -> dict[str, Any]:
    """Write the page for policies and their names; returns the data of the page."""
    check_seconds(seconds)
    shown = []
    for i, (name, policy) in enumerate(policies):
        progress = part_of(at, f"Filming {name}", i, len(policies))
        facts = [str(policy.task.get("name", task or "")), f"{policy.p} × {policy.n} numbers"]
        gait = film_gait(policy, task, seconds=seconds, progress=progress)
        shown.append({"name": name, "facts": facts, "gait": gait})
    data = {"kind": "gallery", "version": versions()["ars-rl"], "policies": shown}
    write_page(data, out)
    return data


def gallery_names(names: list[str]) -> list[str]:
    """Distinct short names: the folder for a run's best.npz, the name for a policy that comes with ars."""
    paths = [Path(name) for name in names]
    return short_names([path.parent if path.name in ("best.npz", "policy.npz") else path for path in paths])
