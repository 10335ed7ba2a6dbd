"""The built-in tasks, as `ars tasks` lists them."""

from contextlib import closing
from typing import Any

from ars import presets
from ars.tasks import locomotion, make


def rows() -> list[dict[str, Any]]:
    """Name, sizes, horizon, survival bonus, threshold, and the variant and preset that `ars train` uses."""
    return [_row(name) for name in (*locomotion.TASKS, "lqr")]


def _row(name: str) -> dict[str, Any]:
    variant = presets.default_variant(name)
    with closing(make(name)) as task:
        return {
            "task": name,
            "n": task.n,
            "p": task.p,
            "H": task.H,
            "survival_bonus": task.survival_bonus,
            "threshold": presets.threshold(name),
            "variant": variant,
            "preset": presets.preset(name, variant)._asdict(),
        }
