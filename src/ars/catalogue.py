"""The built-in tasks, as `ars tasks` lists them. No task is made for it, so that the list needs neither MuJoCo nor
Numba."""

from typing import Any

from ars import presets
from ars.tasks import locomotion

LQR_H = 302
SIZES = {  # n and p
    "Swimmer": (8, 2),
    "Hopper": (11, 3),
    "HalfCheetah": (17, 6),
    "Walker2d": (17, 6),
    "Ant-v5": (105, 8),
    "Ant-v1": (111, 8),
    "Humanoid-v5": (348, 17),
    "Humanoid-v1": (376, 17),
    "lqr": (3, 3),
}
DEFINITIONS = {
    "v1": "the paper's definition, for its settings and its authors' policies",
    "v5": "Gymnasium's own definition, bit for bit",
}


def rows() -> list[dict[str, Any]]:
    """Name, sizes, horizon, survival bonus, threshold, and the variant and preset that `ars train` uses."""
    return [_row(name) for name in (*locomotion.TASKS, "lqr")]


def _row(name: str) -> dict[str, Any]:
    robot = locomotion.TASKS.get(name)
    variant = presets.default_variant(name)
    n, p = SIZES.get(name) or SIZES[name.partition("-")[0]]
    return {
        "task": name,
        "n": n,
        "p": p,
        "H": robot.H if robot else LQR_H,
        "survival_bonus": robot.survival_bonus if robot else 0.0,
        "threshold": presets.threshold(name),
        "variant": variant,
        "preset": presets.preset(name, variant)._asdict(),
    }
