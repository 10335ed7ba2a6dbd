"""Run specs by hand, for the tests of experiments."""

from dataclasses import replace
from typing import Any

from ars.experiments.run_specs import RunSpec, task_defaults
from ars.presets import robot_of
from batches import paper_config


def spec(
    task: str, variant: str, alpha: float, nu: float, N: int, b: int, seed: int, episodes: int,
    eval_episodes: int = 100, until: float | None = None,
) -> RunSpec:  # fmt: skip
    H, shift = task_defaults(task)[:2] if robot_of(task) else (1000, 0.0)
    values = {"alpha": alpha, "nu": nu, "N": N, "b": b, "seed": seed, "eval_episodes": eval_episodes}
    return RunSpec(paper_config(variant, task=task, H=H, shift=shift, **values), episodes, until)


def change(one: RunSpec, **changes: Any) -> RunSpec:
    """The same run with other values of its configuration, its cap or its threshold."""
    own = {name: changes.pop(name) for name in ("episodes", "until") if name in changes}
    return replace(one, config=replace(one.config, **changes), **own)
