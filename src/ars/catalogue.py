"""The built-in tasks, as `ars tasks` lists them; the compiled loop is not loaded for it."""

from typing import Any

from ars import presets
from ars.tasks import locomotion, make


def rows() -> list[dict[str, Any]]:
    """Name, sizes, horizon, survival bonus, threshold, and the variant and preset that `ars train` uses."""
    lqr = make("lqr")
    robots = [
        _row(name, *locomotion.sizes(robot), robot.H, robot.survival_bonus) for name, robot in locomotion.TASKS.items()
    ]
    return [*robots, _row("lqr", lqr.n, lqr.p, lqr.H, lqr.survival_bonus)]


def _row(name: str, n: int, p: int, H: int, survival_bonus: float) -> dict[str, Any]:
    variant = presets.default_variant(name)
    return {
        "task": name,
        "n": n,
        "p": p,
        "H": H,
        "survival_bonus": survival_bonus,
        "threshold": presets.threshold(name),
        "variant": variant,
        "preset": presets.preset(name, variant)._asdict(),
    }
