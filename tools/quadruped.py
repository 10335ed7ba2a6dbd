"""Train the quadruped on ten seeds, and over scenarios, and measure how it walks: results/robots/.

    python -m tools.quadruped                          # what is missing: about a minute per seed on two cores
    python -m tools.quadruped examples.unitree:GO1     # another robot, without scenarios
    python -m tools.quadruped --draw                   # only the table

Each seed has a small file, with the time it took. A walk counts if nine of ten episodes last for their 10 s, at 0.5
to 1.0 m/s, with less than 5% of the torques at their limit and less than 10% of the way sideways.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import ars
from ars.executors import cores
from ars.experiments.robustness import measure_robustness
from ars.files import read_json, write_atomic, write_json
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.robots import Robot, Scenarios
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.find import find_robot
from ars.tasks.robots.quadruped import QUADRUPED
from ars.tasks.robots.rewards import force_limits
from ars.tasks.robots.scenarios import Scenario

OUT = Path("results/robots")
TASK = "Quadruped-v1"
SEEDS = range(10)
EPISODES = 10
AVERAGE = 20  # iterations: the mean policy falls more rarely than the latest
TIMESTEPS = 2_000_000
ROUGH_TIMESTEPS = 6_000_000
ROUGH = Scenarios(
    each=4, friction=(0.4, 1.4), mass=(-0.5, 3.0), gains=(0.9, 1.1), delay=(0, 2), slope=(-0.1, 0.1), push=(0.0, 80.0),
    noise={"Gyro": 0.1, "JointPositions": 0.02, "JointVelocities": 0.5, "Gravity": 0.03},
)  # fmt: skip


HARD = Scenario(delay=1, mass=2.0, pushes=((10 / 3, 0.2, 0.0, 60.0),))  # 20 ms late, +2 kg, 60 N from the side


def walk(policy: LinearPolicy, robot: Robot, world: Scenario = Scenario()) -> dict[str, float]:  # noqa: B008 (frozen)
    """Of ten episodes: those that last, mean speed, mean sideways part, mean share of saturated torques."""
    task = MujocoTask(replace(robot, scenarios=None), "quadruped", observe=policy.observe, changes=True)
    task.enter(world)
    limits = force_limits(task.model)
    steps, speeds, sideways, saturated = [], [], [], []
    for k in range(EPISODES):
        task.reset(Key(0, Stream.TEST, 0, k))
        before, done = task.data.qpos[:2].copy(), 0
        for _ in task.steps(policy, H=task.H):
            done += 1
            saturated.append(float(np.mean(np.abs(task.data.actuator_force) >= limits)))
        x, y = task.data.qpos[:2] - before
        steps.append(done)
        speeds.append(float(x) / (done * task.arrays.dt))
        sideways.append(abs(float(y)) / max(abs(float(x)), 1e-9))
    return {
        "lasting": sum(done == task.H for done in steps), "speed": float(np.mean(speeds)),
        "sideways": float(np.mean(sideways)), "saturated": float(np.mean(saturated)),
    }  # fmt: skip


def walks(row: dict[str, Any]) -> bool:
    good = row["lasting"] >= 0.9 * EPISODES and 0.5 <= row["speed"] <= 1.0
    return bool(good and row["saturated"] < 0.05 and row["sideways"] < 0.1)


def train(robot: Robot, seed: int, timesteps: int, **settings: Any) -> tuple[LinearPolicy, int, float]:
    """The policy with the best evaluation, timesteps and seconds."""
    began, best, reward = time.monotonic(), None, -np.inf
    for record in ars.train(robot, seed=seed, timesteps=timesteps, workers=cores(), **settings):
        known = record.confirmation or record.evaluation
        if known and (mean := known.summary()["mean"] or -np.inf) > reward:
            best, reward = record.policy, mean
    assert isinstance(best, LinearPolicy)
    return best, record.timesteps, time.monotonic() - began


def run(robot: Robot, seed: int, out: Path) -> dict[str, Any]:
    policy, timesteps, seconds = train(robot, seed, TIMESTEPS, average=AVERAGE, eval_episodes=30)
    policy.save(out / f"policy-seed{seed}.npz")
    return {"seed": seed, "timesteps": timesteps, "seconds": round(seconds, 1), **walk(policy, robot)}


def run_rough(out: Path) -> dict[str, Any]:
    """From the policy of seed 0, over scenarios; and what both survive."""
    plain = LinearPolicy.load(out / "policy-seed0.npz")
    robot = replace(QUADRUPED, scenarios=ROUGH)
    policy, _, seconds = train(robot, 0, ROUGH_TIMESTEPS, start=plain, nu=0.02, average=AVERAGE, eval_episodes=30)
    policy.save(out / "policy-rough.npz")
    return {"timesteps": ROUGH_TIMESTEPS, "seconds": round(seconds, 1), **measure_rough(plain, policy)}


def measure_rough(plain: LinearPolicy, policy: LinearPolicy) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in (("plain", plain), ("rough", policy)):
        result = measure_robustness(one, QUADRUPED, workers=cores())
        survived = {"survived": result["survived"], "conditions": result["conditions"]}
        found[name] = {**survived, "hard": walk(one, QUADRUPED, HARD)["lasting"]}
    return {**walk(policy, QUADRUPED), "robustness": found}


def table(name: str, rows: list[dict[str, Any]], rough: dict[str, Any] | None) -> Iterator[str]:
    good = sum(map(walks, rows))
    yield f"# {name}"
    yield ""
    yield f"{good} of {len(rows)} seeds walk (`python -m tools.quadruped {name}`): of ten episodes, nine or all last."
    yield ""
    yield "| seed | timesteps | seconds | episodes that last | speed, m/s | sideways | torques at limit | walks |"
    yield "|--:|--:|--:|--:|--:|--:|--:|---|"
    for row in rows:
        yield (
            f"| {row['seed']} | {row['timesteps']} | {row['seconds']:.0f} | {row['lasting']} of {EPISODES} | "
            f"{row['speed']:.2f} | {row['sideways']:.1%} | {row['saturated']:.1%} | {'yes' if walks(row) else 'no'} |"
        )
    yield ""
    yield "Weights of the reward, timesteps and what counts as a walk were chosen while looking at seeds 0 to 3 of"
    yield f"{TASK}, which are therefore no test of them. Times are of a machine that was busy with other work."
    if rough:
        plain, over = rough["robustness"]["plain"], rough["robustness"]["rough"]
        yield ""
        seconds, worlds = f"{rough['seconds']:.0f} s", f"{over['survived']} of {over['conditions']}"
        gait = (
            f"{rough['speed']:.2f} m/s, {rough['sideways']:.1%} sideways, {rough['saturated']:.1%} of torques at limit"
        )
        yield (
            f"Trained on over scenarios for {rough['timesteps']:g} timesteps ({seconds}), the policy of seed 0 "
            f"survives {worlds} worlds of `ars robustness`, before {plain['survived']}. Its walk: {gait}. With actions "
            f"20 ms late, 2 kg more and a push of 60 N, all at once, {over['hard']} of {EPISODES} episodes last, "
            f"before {plain['hard']}."
        )
        yield "One seed. The worlds have noise and, but for one row of the grid, latency; both were added while"
        yield "trying other policies: in a first grid without them, training over scenarios made hardly any difference."


def main() -> None:
    draw, names = "--draw" in sys.argv, [word for word in sys.argv[1:] if word != "--draw"]
    name = names[0] if names else TASK
    robot = find_robot(name)
    if not isinstance(robot, Robot):
        raise SystemExit(f"{name} is not a robot of terms (docs/robots.md).")
    out = OUT / robot.name
    out.mkdir(parents=True, exist_ok=True)
    for seed in () if draw else SEEDS:
        if not (file := out / f"seed{seed}.json").exists():
            write_json(file, run(robot, seed, out))
    if not draw and robot is QUADRUPED and not (out / "rough.json").exists():
        write_json(out / "rough.json", run_rough(out))
    rows = [read_json(file) for seed in SEEDS if (file := out / f"seed{seed}.json").exists()]
    rough = read_json(out / "rough.json") if (out / "rough.json").exists() else None
    page = OUT / f"{robot.name}.md"
    write_atomic(page, ("\n".join(table(name, rows, rough)) + "\n").encode())
    print(page.read_text())


if __name__ == "__main__":
    main()
