"""The trials behind the presets of V1, V1-t and BRS, which the paper does not print (deviation D6).

    python -m tools.preset_trials results/presets/trials.csv

Randomly drawn points of the paper's grids are each trained for a few episodes on separate seeds, one run per core; the
point with the best mean over its runs' best evaluations becomes the preset. Finished runs are skipped, so the command
can be stopped and restarted.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ars.errors import ArsError
from ars.noise import Key, Stream, generator
from ars.presets import GRIDS, Preset, grid
from ars.searches.ars import VARIANTS
from ars.workers import run_many

EPISODES = {"Swimmer": 200, "Hopper": 3000, "HalfCheetah": 800, "Walker2d": 2000, "Ant": 600, "Humanoid": 2000}
POINTS = {"Swimmer": 8, "Hopper": 8, "HalfCheetah": 6, "Walker2d": 4, "Ant": 4, "Humanoid": 4}
SEEDS = {"Swimmer": (1001, 1002), "Hopper": (1001, 1002)}  # one seed if a run takes long
EVALUATIONS, EVAL_EPISODES = 8, 10
# Without sigma_R the step scales with the rewards: BRS also tries the grid's alphas divided by powers of ten.
BRS_SCALES = (1, 10, 100, 1000)


class Trial(NamedTuple):
    robot: str
    variant: str
    alpha: float
    nu: float
    N: int
    b: int
    seed: int


def candidates(robot: str, variant: str) -> list[Preset]:
    """Some points of the robot's grid that the variant allows."""
    top = VARIANTS[variant].top_directions
    points = [point for point in grid(robot) if (point.b < point.N) == top]
    if variant == "BRS":
        points = [point._replace(alpha=point.alpha / scale) for point in points for scale in BRS_SCALES]
    order = generator(Key(2018, Stream.TEST, 0, list(GRIDS).index(robot))).permutation(len(points))
    return [points[i] for i in order[: POINTS[robot]]]


def trials() -> Iterator[Trial]:
    for robot in EPISODES:
        for variant in ("V1", "V1-t", "BRS"):
            if robot == "Swimmer" and variant == "V1-t":
                continue  # its grid has only N = 1, so V1-t is V1
            for point in candidates(robot, variant):
                for seed in SEEDS.get(robot, (1001,)):
                    yield Trial(robot, variant, *point, seed)


def run(trial: Trial) -> float:
    """The best evaluation of a short training, or −infinity if there was none."""
    from ars.errors import DivergedError
    from ars.sessions import train

    episodes = EPISODES[trial.robot]
    every = max(1, episodes // (2 * trial.N * EVALUATIONS))
    best = float("-inf")
    settings = trial._asdict() | {"eval_every": every, "eval_episodes": EVAL_EPISODES, "episodes": episodes}
    settings["protocol"] = "paper"
    try:
        for record in train(f"{settings.pop('robot')}-v1", **settings):
            best = max(best, record.eval_mean if record.eval_mean is not None else best)
    except DivergedError:  # a bad point of the grid is a result
        pass
    return best


def read(path: Path) -> dict[Trial, float]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            Trial(row["robot"], row["variant"], float(row["alpha"]), float(row["nu"]), int(row["N"]), int(row["b"]),
                  int(row["seed"])): float(row["best"])
            for row in csv.DictReader(file)
        }  # fmt: skip


def choose(done: dict[Trial, float]) -> dict[tuple[str, str], tuple[Preset, float]]:
    """(variant, robot) → the point with the best mean, and that mean."""
    scores: dict[tuple[str, str, Preset], list[float]] = defaultdict(list)
    for trial, best in done.items():
        scores[trial.variant, trial.robot, Preset(trial.alpha, trial.nu, trial.N, trial.b)].append(best)
    chosen: dict[tuple[str, str], tuple[Preset, float]] = {}
    for (variant, robot, point), bests in scores.items():
        mean = sum(bests) / len(bests)
        if (variant, robot) not in chosen or mean > chosen[variant, robot][1]:
            chosen[variant, robot] = point, mean
    return chosen


def main(path: Path) -> None:
    done = read(path)
    todo = [trial for trial in trials() if trial not in done]
    print(f"{len(done)} trials are done, {len(todo)} are left", flush=True)
    new = not path.exists()
    with path.open("a", newline="") as file, closing(run_many(run, todo)) as results:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*Trial._fields, "best"])
        for i, best in results:
            if isinstance(best, ArsError):
                raise best
            writer.writerow([*todo[i], best])
            file.flush()
    for (variant, robot), (point, mean) in sorted(choose(read(path)).items()):
        print(f"{variant:5} {robot:12} {point}  best evaluation {mean:.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
