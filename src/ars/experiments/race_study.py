"""The study of races (`ars study races`): how often a race of csa's seeds makes Walker2d walk, and how often the best
of as many restarts does, at the same total of timesteps.

Both have the same seeds, on none of which a setting was chosen. A restart trains for an eighth of the budget, and the
best one is chosen as in a race: by the mean return of its last training rollouts. Rewards are those of the last
evaluation, which chose nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ars.errors import FileError, SettingError
from ars.experiments.engine import Job, Outcome, to_do
from ars.experiments.race import Race, RunJobs, end_of, make_race, run_race, up_to
from ars.experiments.seeds import draw_seeds
from ars.experiments.study import ROBOTS, seen_seeds
from ars.files import is_file, make_folder, one_line, read_json, write_json
from ars.races import count
from ars.run_files import read_records

FORMAT = 1
MOST = 1e300  # a reward


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
        """The seeds of race k = 1, 2, …: no two races share one, and no setting was chosen on any. Those of the first
        three are also among the held-out seeds of the study, which were drawn later."""
        used = {seed for robot in ROBOTS for seed in seen_seeds(robot)}
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
    """What a race and restarts of the same seeds led to; None if all had diverged."""

    race: Chosen | None
    restarts: Chosen | None


def best_of(jobs: Mapping[int, Job], timesteps: int) -> Chosen | None:
    """The best of runs that have all spent so much, as a race ranks them; ties go to the lower seed."""
    ends = {seed: end_of(job, timesteps) for seed, job in jobs.items()}
    best = min(ends, key=lambda seed: (*ends[seed].place(), seed))
    if ends[best].diverged:
        return None
    return Chosen(best, ends[best].timesteps, last_evaluation(jobs[best], ends[best].timesteps))


def last_evaluation(job: Job, timesteps: int) -> float:
    """Of a run, until it had spent so much; every run is evaluated after its first iteration."""
    records = up_to(read_records(job.folder / "records.jsonl"), timesteps)
    return float([record["eval_mean"] for record in records if record.get("eval_mean") is not None][-1])


def run_study(
    plan: Plan, out: Path, runs: Path, run: RunJobs, say: Callable[[str], None] = lambda _: None
) -> Sequence[Outcome]:
    """Run the races that are missing, one after the other, and write a small file after each; returns the runs of the
    race that could not be completed, if any."""
    make_folder(out)
    there = read_study(plan, out)
    for k in range(1, plan.races + 1):
        if k in there:
            continue
        say(f"Race {k} of {plan.races}.")
        race, share = plan.race(k, runs), plan.budget // plan.seeds
        done = run_race(race, run, say)
        if done.file.winner is None and (not done.file.rounds or done.file.rounds[-1].goes_on()):
            return done.outcomes
        say(f"Restarts: {plan.seeds} seeds to {share:,} timesteps.")
        jobs = {seed: race.job(seed, share) for seed in race.specs}
        outcomes = run([*jobs.values()])
        if to_do([*jobs.values()]):
            return outcomes
        winner, won = done.file.winner, None
        if winner is not None:
            spent = done.file.places()[0][0].timesteps
            won = Chosen(winner, spent, last_evaluation(race.job(winner, spent), spent))
        raced = Raced(won, best_of(jobs, share))
        chosen = {name: one and one._asdict() for name, one in raced._asdict().items()}
        write_json(out / f"{k}.json", {"format": FORMAT, **race.decided_by(), "walks": plan.walks, **chosen})
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
            if value["format"] != FORMAT:
                raise ValueError("its format is unknown")
            decided = {name: value[name] for name in ("config", "seeds", "budget", "until")}
            found[k] = Raced(_chosen(value["race"]), _chosen(value["restarts"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path} is damaged: {one_line(error)}.") from error
        if decided != plan.race(k, out).decided_by():
            raise SettingError(f"{path} is of races with other settings: remove it, or give another --out and --runs.")
    return found


def _chosen(value: Any) -> Chosen | None:
    if value is None:
        return None
    reward = value["reward"]
    if type(reward) not in (int, float) or not -MOST <= reward <= MOST:
        raise ValueError(f"reward = {reward!r:.50}")
    return Chosen(count(value["seed"]), count(value["timesteps"]), float(reward))
