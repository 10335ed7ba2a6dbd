"""The study of races (`ars study races`): how often a race of csa's seeds makes Walker2d walk, and how often the best
of as many restarts does, at the same total of timesteps.

Both have the same seeds, eight at a time, which no setting was chosen on. A restart trains for an eighth of the budget,
and the best one is chosen as in a race: by the mean return of its last training rollouts. Rewards are those of the last
evaluation, which chose nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from ars.errors import FileError
from ars.experiments.engine import Outcome, to_do
from ars.experiments.race import Race, RunJobs, make_race, mean_return, run_race, up_to
from ars.experiments.seeds import draw_seeds
from ars.experiments.study import ROBOTS, study_seeds
from ars.files import is_file, make_folder, one_line, read_json, write_json
from ars.run_files import read_records

FORMAT = 1


class Plan(NamedTuple):
    """What is raced, how often, and which reward counts as a walk."""

    task: str = "Walker2d-v1"
    search: str = "csa"
    races: int = 10
    seeds: int = 8
    budget: int = 4_000_000
    walks: float = 2000.0  # 1000 steps upright at 1 m/s, for example
    master: int = 1603

    def seeds_of(self, k: int) -> tuple[int, ...]:
        """The seeds of race k = 1, 2, …: no two races share one, and the study of searches has none of them."""
        used = {seed for stage in ("tuning", "held-out") for robot in ROBOTS for seed in study_seeds(stage, robot)}
        drawn = draw_seeds(k * self.seeds, master=self.master, but=sorted(used))
        return drawn[-self.seeds :]

    def race(self, k: int, runs: Path) -> Race:
        return make_race(
            self.task, seeds=self.seeds_of(k), budget=self.budget, out=runs / f"race-{k}", search=self.search
        )


class Chosen(NamedTuple):
    """The seed that was chosen, what it had spent, and its last evaluation."""

    seed: int
    timesteps: int
    reward: float


class Raced(NamedTuple):
    """What a race and restarts of the same seeds led to."""

    race: Chosen
    restarts: Chosen
    spent: int  # by all seeds of the race


def at(records: Sequence[dict[str, Any]], timesteps: int) -> tuple[float, int, float]:
    """A run so far: the mean return that it is ranked by, what it has spent, and its last evaluation."""
    so_far = up_to(records, timesteps)
    evaluations = [record["eval_mean"] for record in so_far if record.get("eval_mean") is not None]
    return mean_return(so_far, timesteps), so_far[-1]["timesteps"], evaluations[-1] if evaluations else -inf


def restarts_of(records: Mapping[int, Sequence[dict[str, Any]]], share: int) -> Chosen:
    """The best of runs that have all spent `share`; ties go to the lower seed."""
    ends = {seed: at(of_seed, share) for seed, of_seed in records.items()}
    best = min(ends, key=lambda seed: (-ends[seed][0], seed))
    return Chosen(best, *ends[best][1:])


def run_study(
    plan: Plan, out: Path, runs: Path, run: RunJobs, say: Callable[[str], None] = lambda _: None
) -> Sequence[Outcome]:
    """Run the races that are missing, one after the other, and write a small file after each; returns the runs of the
    race that could not be completed, if any."""
    make_folder(out)
    for k in range(1, plan.races + 1):
        if is_file(out / f"{k}.json"):
            continue
        say(f"Race {k} of {plan.races}.")
        race, share = plan.race(k, runs), plan.budget // plan.seeds
        done = run_race(race, run, say)
        if done.file.winner is None:
            return done.outcomes
        say(f"Restarts: {plan.seeds} seeds to {share:,} timesteps.")
        jobs = [race.job(seed, share) for seed in race.specs]
        outcomes = run(jobs)
        if to_do(jobs):
            return outcomes
        records = {seed: read_records(race.run_folder(seed) / "records.jsonl") for seed in race.specs}
        places = done.file.places()
        spent = {standing.seed: standing.timesteps for standing, _ in places}
        won = at(records[done.file.winner], spent[done.file.winner])
        raced = Raced(Chosen(done.file.winner, *won[1:]), restarts_of(records, share), sum(spent.values()))
        write_json(out / f"{k}.json", {
            "format": FORMAT, **race.decided_by(), "walks": plan.walks, "race": raced.race._asdict(),
            "restarts": raced.restarts._asdict(), "spent": raced.spent,
        })  # fmt: skip
    return ()


def read_study(plan: Plan, out: Path) -> dict[int, Raced]:
    """The races that have been completed, whoever wrote their files."""
    found = {}
    for k in range(1, plan.races + 1):
        path = out / f"{k}.json"
        if not is_file(path):
            continue
        value = read_json(path)
        try:
            if value["format"] != FORMAT or tuple(value["seeds"]) != plan.seeds_of(k) or value["budget"] != plan.budget:
                raise ValueError("it is of another study")
            found[k] = Raced(_chosen(value["race"]), _chosen(value["restarts"]), int(value["spent"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path} is damaged: {one_line(error)}.") from error
    return found


def _chosen(value: dict[str, Any]) -> Chosen:
    return Chosen(int(value["seed"]), int(value["timesteps"]), float(value["reward"]))
