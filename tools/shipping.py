"""Choose the trained policies that come with the package: the best of each task by its run's evaluations.

    python -m tools.shipping runs/paper
    python -m tools.shipping Quadruped-v1 results/robots/Quadruped-v1/policy-seed0.npz "python -m tools.quadruped"

The second adds one policy of another robot, with the command that made it.
The choice uses only evaluations during training, so that it does not depend on the new episodes that README.md reports.
The best policy of another seed is kept too if it is nearly as good and above the threshold: often it has another gait.
"""

import math
import shutil
import sys
from pathlib import Path
from typing import Any

from ars.curves import Curve, from_run
from ars.files import read_json, write_atomic, write_json
from ars.policies import FOLDER
from ars.policy import LinearPolicy
from ars.presets import robot_of, threshold
from ars.sessions import evaluate

EPISODES, SEED = 100, 0  # what `ars evaluate` does without flags
NEARLY = 0.8  # of the best reward: worth keeping as another gait
MOST = 3  # policies per task


def candidates(runs: Path) -> dict[str, list[tuple[Path, Curve]]]:
    """Task → (best.npz, curve), best first, one per seed. Evaluations of fewer than 100 rollouts are noisier and count
    only if no run with 100 has reached the threshold."""
    by_task: dict[str, list[tuple[Path, Curve]]] = {}
    for folder in sorted(path.parent for path in runs.glob("*/best.npz")):
        curve = from_run(folder)
        if robot_of(curve.task):
            by_task.setdefault(curve.task, []).append((folder / "best.npz", curve))
    for task, every in by_task.items():
        whole = [entry for entry in every if entry[1].eval_episodes >= EPISODES]
        reached = any(curve.best >= (threshold(task) or -math.inf) for _, curve in whole)
        group = sorted(whole if reached else every, key=lambda entry: -entry[1].best)
        seeds: dict[int, tuple[Path, Curve]] = {}
        for entry in group:
            seeds.setdefault(entry[1].seed, entry)
        by_task[task] = list(seeds.values())
    return by_task


def ship(runs: Path, *, workers: int) -> dict[str, dict[str, Any]]:
    """Copy the chosen policies into the package; name → what is known about each."""
    shipped = {name: one for name, one in read_json(FOLDER / "evaluations.json").items() if "made" in one}
    for task, group in sorted(candidates(runs).items()):
        least = max(NEARLY * group[0][1].best, threshold(task) or -math.inf)
        worth = [group[0], *(entry for entry in group[1:] if entry[1].best >= least)][:MOST]
        for rank, (path, curve) in enumerate(worth):
            name = task if rank == 0 else f"{task}-seed{curve.seed}"
            shutil.copyfile(path, FOLDER / f"{name}.npz")
            policy = LinearPolicy.load(FOLDER / f"{name}.npz")
            shipped[name] = {
                "task": task,
                "variant": curve.label,
                **{symbol: curve.settings[symbol] for symbol in ("alpha", "nu", "N", "b")},
                "seed": curve.seed,
                "eval_episodes": curve.eval_episodes,
                "iteration": policy.task["iteration"],
                **measured(policy, workers),
            }
    for path in FOLDER.glob("*.npz"):  # last, so that an interruption leaves a complete set
        if path.stem not in shipped:
            path.unlink()
    return shipped


def add(name: str, path: Path, made: str, *, workers: int) -> dict[str, dict[str, Any]]:
    """One more policy beside those that are there."""
    policy = LinearPolicy.load(path)
    task = {**policy.task, "name": name}  # it may have been trained as an object
    LinearPolicy(policy.M, policy.mu, policy.sigma, task).save(FOLDER / f"{name}.npz")
    policy = LinearPolicy.load(FOLDER / f"{name}.npz")
    entry = {"task": name, "made": made, **measured(policy, workers)}
    return dict(sorted({**read_json(FOLDER / "evaluations.json"), name: entry}.items()))


def measured(policy: LinearPolicy, workers: int) -> dict[str, Any]:
    """The fresh episodes, one by one too: a test repeats some of them instead of all."""
    fresh = evaluate(policy, episodes=EPISODES, seed=SEED, workers=workers)
    return {
        "evaluation": fresh.summary(),
        "versions": policy.task["versions"],
        "rewards": fresh.rewards.tolist(),
        "steps": fresh.steps.tolist(),
    }


def readme(shipped: dict[str, dict[str, Any]]) -> str:
    below = any(entry["evaluation"]["mean"] < (threshold(entry["task"]) or -math.inf) for entry in shipped.values())
    lines = [
        "# Trained policies",
        "",
        "The best policies of the reproduction, chosen by the evaluations of their runs and then measured on",
        f"{EPISODES} fresh episodes. `ars evaluate NAME` repeats the measurement, to the last digit with the same",
        "versions of MuJoCo and NumPy; `ars watch NAME` shows the gait. Written by",
        "`python -m tools.shipping runs/paper`.",
        "",
        *(["Policies below their task's threshold come from runs that have not reached it.", ""] if below else []),
        "| name | reward | std | min | max | threshold | made by |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for name, entry in shipped.items():
        found = entry["evaluation"]
        numbers = " | ".join(f"{found[key]:.2f}" for key in ("mean", "std", "min", "max"))
        if "made" in entry:
            lines.append(f"| {name} | {numbers} | – | `{entry['made']}` |")
            continue
        made = (
            f"`ars train {entry['task']} --variant {entry['variant']} --alpha {entry['alpha']:g} --nu {entry['nu']:g} "
        )
        made += f"--N {entry['N']} --b {entry['b']} --seed {entry['seed']} --iterations {entry['iteration']}`"
        lines.append(f"| {name} | {numbers} | {threshold(entry['task']):g} | {made} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> None:
    from ars.executors import cores

    if len(words) == 1:
        shipped = ship(Path(words[0]), workers=cores())
    else:
        name, path, made = words
        shipped = add(name, Path(path), made, workers=cores())
    write_json(FOLDER / "evaluations.json", shipped)
    write_atomic(FOLDER / "README.md", readme(shipped).encode())
    print(readme(shipped))


if __name__ == "__main__":
    main(sys.argv[1:])
