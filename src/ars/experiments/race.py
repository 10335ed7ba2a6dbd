"""Raced seeds (`ars race`): synchronous successive halving over the seeds of one configuration (Jamieson and Talwalkar
2016; the seeds are the arms), at a given total of training timesteps.

With n_1 = seeds, n_2 = n_1 // 2, … until n_R = 1, there are R rounds, and each gets an equal share of the budget B. In
round i every remaining seed trains until it has spent, since its start,

    t_i = floor( sum over m = 1 … i of B / (R n_m) )

timesteps, the rung. Eight seeds have the rungs B/32, 3B/32, 7B/32 and 15B/32. The better half goes on: by the mean
return of the training rollouts of the last iterations, those that end after nine tenths of the rung; ties go to the
lower seed. Iterations are whole, so that a seed passes its rung by less than one iteration; the last round takes that
into account, as the winner trains until all seeds together have spent B.

With `until`, a race ends after the first round in which a seed reaches that evaluation, and this seed wins; of several,
the one that needed the fewest timesteps.

Nothing depends on a clock, on the number of workers or on kills: every rank is computed from the records up to the
rung, whatever else the run folder has.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from math import fsum, inf
from pathlib import Path
from typing import Any

from ars.curves import load
from ars.errors import SettingError
from ars.experiments.engine import Job, Outcome, to_do
from ars.experiments.run_specs import RunSpec, config_for
from ars.files import make_folder, safe_name
from ars.races import RaceFile, Round, Standing, read_race
from ars.records import best_known
from ars.run_files import read_records
from ars.settings import finite_number, whole_number
from ars.stopping import LARGEST_RULE

RunJobs = Callable[[Sequence[Job]], Sequence[Outcome]]  # runs what is not done yet
MOST_SEEDS = 1000
Records = Sequence[dict[str, Any]]


def seeds_left(seeds: int) -> list[int]:
    """How many seeds are in each round: 8, 4, 2, 1."""
    counts = [seeds]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return counts


def rungs(seeds: int, budget: int) -> list[int]:
    """The timesteps that a seed has spent after each round; the module's docstring has the formula."""
    counts = seeds_left(seeds)
    return [int(total) for total in accumulate(Fraction(budget, len(counts) * count) for count in counts)]


@dataclass(frozen=True)
class Race:
    """A race: one configuration on several seeds, `budget` training timesteps for all of them together."""

    specs: dict[int, RunSpec]  # seed → its run, without a cap
    budget: int
    folder: Path

    @property
    def until(self) -> float | None:
        return next(iter(self.specs.values())).until

    def job(self, seed: int, timesteps: int) -> Job:
        """The run of a seed up to a rung."""
        spec = self.specs[seed]
        return Job(replace(spec, timesteps=timesteps), self.folder / "runs", self.folder / "curves")

    def run_folder(self, seed: int) -> Path:
        return self.job(seed, 1).folder

    def decided_by(self) -> dict[str, Any]:
        """What decides the race, for its file."""
        config = next(iter(self.specs.values())).config.to_dict()
        del config["seed"]
        return {"config": config, "seeds": list(self.specs), "budget": self.budget, "until": self.until}


@dataclass(frozen=True)
class Result:
    """What a race has shown, and its runs that failed: with these it cannot go on, and has no winner."""

    file: RaceFile
    outcomes: Sequence[Outcome]


def make_race(
    task: str,
    *,
    seeds: Sequence[int],
    budget: int,
    until: float | None = None,
    out: Path | None = None,
    **settings: Any,
) -> Race:
    """A race; `settings` are those of `ars.train`, whose defaults apply."""
    count = whole_number("seeds", len(seeds), 2, MOST_SEEDS)
    if len(set(seeds)) < count:
        raise SettingError("seeds names a seed twice: each can win only once.")
    least = len(seeds_left(count)) * count
    budget = whole_number("budget", budget, least, LARGEST_RULE)
    given = {name: value for name, value in settings.items() if value is not None}
    given = {"duel": 0} | given  # a race is a better one
    specs = {}
    for seed in seeds:
        config = config_for(task, **{**given, "seed": seed})
        specs[config.seed] = RunSpec(config, None, None if until is None else finite_number("until", until))
        if until is not None and not config.eval_every:
            raise SettingError(f"until = {until:g} needs evaluations, and eval_every = 0 has none.")
    race = Race(specs, budget, out or Path("runs") / f"race-{safe_name(task)}")
    there = read_race(race.folder)
    if there is not None and there.decided_by != race.decided_by():
        ours, theirs = race.decided_by(), there.decided_by
        odd = next((name for name in ours if ours[name] != theirs.get(name)), "format")
        raise SettingError(
            f"{race.folder} holds a race with another {odd}: repeat its command, or choose another --out."
        )
    return race


def run_race(race: Race, run: RunJobs, say: Callable[[str], None] = lambda _: None) -> Result:
    """Run what is missing of a race, round by round, and write its file; `say` is told what begins."""
    make_folder(race.folder)
    file, outcomes, known = RaceFile(race.decided_by()), list[Outcome](), read_race(race.folder)
    if known is None:  # otherwise it is kept until as much is known again, which is the same
        file.save(race.folder)
    counts, limits = seeds_left(len(race.specs)), rungs(len(race.specs), race.budget)
    racing, spent = list(race.specs), dict[int, int]()
    for i, rung in enumerate(limits):
        last = i == len(limits) - 1
        if last:  # what is left of the budget
            others = sum(timesteps for seed, timesteps in spent.items() if seed not in racing)
            rung = max(race.budget - others, spent[racing[0]])  # the second: earlier rounds have spent everything
        say(f"Round {i + 1} of {len(limits)}: {_listed(racing)} to {rung:,} timesteps.")
        jobs = [race.job(seed, rung) for seed in racing]
        outcomes += run(jobs)
        if to_do(jobs):  # some failed, or were stopped
            return Result(file, outcomes)
        ends = {seed: end_of(job, rung) for seed, job in zip(racing, jobs, strict=True)}
        spent |= {seed: end.timesteps for seed, end in ends.items()}
        order = sorted(ends, key=lambda seed: (*ends[seed].place(), seed))
        racing = [seed for seed in order if not ends[seed].diverged][: 1 if last else counts[i + 1]]
        arrived = ends[order[0]].reached
        if arrived:
            racing = order[:1]
        file = RaceFile(file.decided_by, (*file.rounds, _round(rung, order, ends, racing)))
        if not racing:
            break
        if arrived or last:
            file = RaceFile(file.decided_by, file.rounds, racing[0])
            break
        if known is None or len(file.rounds) >= len(known.rounds):
            file.save(race.folder)
    file.save(race.folder)
    return Result(file, outcomes)


def _listed(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {seeds[0]}"


@dataclass(frozen=True)
class End:
    """Where a seed stands at a rung."""

    timesteps: int
    mean_return: float
    reached: bool  # `until`
    diverged: bool

    def place(self) -> tuple[bool, bool, float]:
        """Sorts the best first."""
        return not self.reached, self.diverged, self.timesteps if self.reached else -self.mean_return


def end_of(job: Job, rung: int) -> End:
    records = up_to(read_records(job.folder / "records.jsonl"), rung, job.spec.until)
    diverged = load(job.file).failed and (not records or records[-1]["timesteps"] < rung)
    if not records:
        return End(0, -inf, False, diverged)
    last = records[-1]
    return End(last["timesteps"], mean_return(records, rung), reached(last, job.spec.until), diverged)


def up_to(records: Records, timesteps: int, until: float | None = None) -> Records:
    """The records up to the first that has spent so many timesteps or reached `until`: a run may have gone on."""
    end = bisect_left(records, timesteps, key=lambda record: record["timesteps"]) + 1
    return records[: next((i + 1 for i, record in enumerate(records[:end]) if reached(record, until)), end)]


def mean_return(records: Records, rung: int) -> float:
    """The mean return of the training rollouts of the iterations that end after nine tenths of the rung, each iteration
    with the same weight; of the last one, if the run ended before."""
    late = [record["reward_mean"] for record in records if 10 * record["timesteps"] > 9 * rung]
    late = late or [records[-1]["reward_mean"]]
    return fsum(late) / len(late)


def reached(record: dict[str, Any], until: float | None) -> bool:
    """Whether a run has ended with this record because it reached `until`."""
    mean = best_known(record)
    return until is not None and mean is not None and mean >= until


def _round(rung: int, order: Sequence[int], ends: dict[int, End], on: Sequence[int]) -> Round:
    rows = [(seed, ends[seed], seed in on) for seed in order]
    return Round(
        rung, tuple(Standing(seed, e.timesteps, None if e.diverged else e.mean_return, yes) for seed, e, yes in rows)
    )
