"""The trials behind the presets of V1, V1-t and BRS, which the paper does not print (deviation D6).

    python -m tools.preset_trials results/presets/trials.csv
    python -m tools.preset_trials results/presets/retuning.csv --to-threshold Walker2d

Randomly drawn points of the paper's grids are each trained for a few episodes on separate seeds, one run per core; the
point with the best mean over its runs' best evaluations becomes the preset. With --to-threshold they train to the
threshold, or for twice the paper's mean, and the least mean episodes decide, as in the paper. Only directions that
agree with the paper's means are drawn (`allowed`). Finished runs are skipped, so the command can be stopped and
restarted.
"""

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ars.errors import ArsError
from ars.noise import Key, Stream, generator
from ars.paper.table1 import PUBLISHED
from ars.presets import GRIDS, THRESHOLDS, Preset, grid
from ars.searches.ars import VARIANTS
from ars.workers import run_many

EPISODES = {"Swimmer": 200, "Hopper": 3000, "HalfCheetah": 800, "Walker2d": 2000, "Ant": 600, "Humanoid": 2000}
POINTS = {"Swimmer": 8, "Hopper": 8, "HalfCheetah": 6, "Walker2d": 4, "Ant": 4, "Humanoid": 4}
SEEDS = {"Swimmer": (1001, 1002), "Hopper": (1001, 1002)}  # one seed if a run takes long
EVALUATIONS, EVAL_EPISODES = 8, 10
EVERY, PAPER_RUNS = 10, 3  # the paper evaluates every 10 iterations and averages over three seeds
PATIENCE = 2  # times the paper's mean
# Without sigma_R the step scales with the rewards: BRS also tries the grid's alphas divided by powers of ten.
BRS_SCALES = (1, 10, 100, 1000)
VARIED = ("V1", "V1-t", "BRS")


class Trial(NamedTuple):
    robot: str
    variant: str
    alpha: float
    nu: float
    N: int
    b: int
    seed: int


class Score(NamedTuple):
    best: float  # evaluation, −infinity if there was none
    episodes: float = math.inf  # to the threshold


def allowed(robot: str, variant: str) -> list[int]:
    """The N of the grid that agree with the mean episodes of table 1. An evaluation every 10 iterations makes the sum
    over three seeds a multiple of 20 N; the paper rounds some means and truncates others."""
    printed = PUBLISHED[robot].get(variant)
    if printed is None:
        return list(GRIDS[robot][2])
    sums = range(PAPER_RUNS * (printed - 1) + 1, PAPER_RUNS * (printed + 1))
    return [N for N in GRIDS[robot][2] if any(total % (2 * EVERY * N) == 0 for total in sums)]


def candidates(robot: str, variant: str) -> list[Preset]:
    """Some points of the robot's grid that the variant and the paper's mean allow."""
    top = VARIANTS[variant].top_directions
    points = [point for point in grid(robot) if (point.b < point.N) == top]
    if variant == "BRS":
        points = [point._replace(alpha=point.alpha / scale) for point in points for scale in BRS_SCALES]
    order = generator(Key(2018, Stream.TEST, 0, list(GRIDS).index(robot))).permutation(len(points))
    return [points[i] for i in order if points[i].N in allowed(robot, variant)][: POINTS[robot]]


def trials(robots: Iterable[str], variants: Sequence[str]) -> Iterator[Trial]:
    for robot in robots:
        for variant in variants:
            if robot == "Swimmer" and variant == "V1-t":
                continue  # its grid has only N = 1, so V1-t is V1
            for point in candidates(robot, variant):
                for seed in SEEDS.get(robot, (1001,)):
                    yield Trial(robot, variant, *point, seed)


def run(trial: Trial) -> Score:
    """A short training."""
    episodes = EPISODES[trial.robot]
    return _train(trial, episodes=episodes, eval_every=max(1, episodes // (2 * trial.N * EVALUATIONS)))


def run_to_threshold(trial: Trial) -> Score:
    return _train(trial, episodes=patience(trial), eval_every=EVERY, until=THRESHOLDS[trial.robot])


def patience(trial: Trial) -> int:
    return PATIENCE * (PUBLISHED[trial.robot][trial.variant] or 0)


def _train(trial: Trial, **settings: Any) -> Score:
    from ars.errors import DivergedError
    from ars.sessions import train

    score, until = Score(-math.inf), settings.get("until", math.inf)
    settings |= trial._asdict() | {"eval_episodes": EVAL_EPISODES, "protocol": "paper"}
    try:
        for record in train(f"{settings.pop('robot')}-v1", **settings):
            if record.eval_mean is not None:
                arrived = record.episodes if record.eval_mean >= until else math.inf
                score = Score(max(score.best, record.eval_mean), min(score.episodes, arrived))
    except DivergedError:  # a bad point of the grid is a result
        pass
    return score


def read(path: Path) -> dict[Trial, Score]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            Trial(row["robot"], row["variant"], float(row["alpha"]), float(row["nu"]), int(row["N"]), int(row["b"]),
                  int(row["seed"])): Score(float(row["best"]), float(row.get("episodes", "inf")))
            for row in csv.DictReader(file)
        }  # fmt: skip


def choose(done: dict[Trial, Score]) -> dict[tuple[str, str], tuple[Preset, Score]]:
    """(variant, robot) → the allowed point with the least mean episodes and, where none arrived, the best mean of best
    evaluations; and these means."""
    scores: dict[tuple[str, str, Preset], list[Score]] = defaultdict(list)
    for trial, score in done.items():
        if trial.N in allowed(trial.robot, trial.variant):
            scores[trial.variant, trial.robot, Preset(trial.alpha, trial.nu, trial.N, trial.b)].append(score)
    chosen: dict[tuple[str, str], tuple[Preset, Score]] = {}
    for (variant, robot, point), found in scores.items():
        mean = Score(*(sum(values) / len(found) for values in zip(*found, strict=True)))
        known = chosen.get((variant, robot))
        if known is None or (mean.episodes, -mean.best) < (known[1].episodes, -known[1].best):
            chosen[variant, robot] = point, mean
    return chosen


def main(path: Path, *robots: str, to_threshold: bool = False) -> None:
    done = read(path)
    listed = robots or [robot for robot in EPISODES if robot != "Humanoid" or not to_threshold]  # V1 never arrived
    todo = [trial for trial in trials(listed, VARIED[:2] if to_threshold else VARIED) if trial not in done]
    most = sum(patience(trial) if to_threshold else EPISODES[trial.robot] for trial in todo)
    print(f"{len(done)} trials are done, {len(todo)} are left, of {most} episodes at most", flush=True)
    new, columns = not path.exists(), 2 if to_threshold else 1
    with (
        path.open("a", newline="") as file,
        closing(run_many(run_to_threshold if to_threshold else run, todo)) as ended,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*Trial._fields, *Score._fields[:columns]])
        for i, score in ended:
            if isinstance(score, ArsError):
                raise score
            writer.writerow([*todo[i], *score[:columns]])
            file.flush()
    for (variant, robot), (point, mean) in sorted(choose(read(path)).items()):
        print(f"{variant:5} {robot:12} {point}  {mean.episodes:.0f} episodes, best evaluation {mean.best:.1f}")


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--to-threshold"]
    main(Path(given[0]), *given[1:], to_threshold="--to-threshold" in sys.argv)
