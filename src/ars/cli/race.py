"""ars race: many seeds, of which the better half goes on after each round."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, STOP, Whole, app, examples, print_table, typed, whole
from ars.cli.many import Draw, Many, report_failures
from ars.cli.process import interrupt_code
from ars.cli.settings import Settings

if TYPE_CHECKING:
    from ars.experiments.race import Race
    from ars.races import RaceFile


@app.command(
    help_epilogue=examples(
        "ars race Walker2d-v1 --budget 2e7",
        "ars race Walker2d-v1 --search csa --seeds 16 --budget 1e7 --until 4390",
        "ars race my_module:make_env --seed-list 1,2,3,4 --budget 1e6 --out runs/mine",
    )
)
def race(
    task: str,
    /,
    *,
    budget: Annotated[int, Parameter(converter=whole, help="Training timesteps of all seeds together.")],
    seeds: Annotated[Whole, Parameter(help="Number of seeds, drawn without repetition [default: 8].")] = None,
    draw: Draw = Draw(),  # noqa: B008 (frozen)
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    until: Annotated[float | None, Parameter(group=STOP, help="Mean reward of an evaluation.")] = None,
    out: Annotated[Path | None, Parameter(group=OTHER, help="Output folder; default: runs/race-TASK.")] = None,
    many: Many = Many(),  # noqa: B008 (frozen)
) -> int:
    """Train several seeds, drop the worse half after each round, and give the rest of the budget to the last one.

    Each round gets an equal share of the budget. Seeds are ranked by their mean return in training, so that the race
    is a function of its settings, seeds and budget. The same command continues after an interruption.
    """
    from ars.experiments.race import make_race, run_race

    many.check()
    given = settings.given()
    chosen = draw.seeds(seeds, 8, given)
    asked = make_race(task, seeds=chosen, budget=budget, until=until, out=out, **given)

    def say(text: str) -> None:
        if not many.quiet:
            print(text, flush=True)

    try:
        say(draw.said(chosen))
        done = run_race(asked, lambda jobs: many.run(jobs, known={job.spec: 1.0 for job in jobs}), say)
    except KeyboardInterrupt:
        print(f"Interrupted: everything is saved in {asked.folder}; the same command continues.")
        return interrupt_code()
    if done.file.rounds:
        print_table(*done.file.table())
    failed = report_failures(done.outcomes, quiet=many.quiet)
    if done.file.winner is None:
        if done.file.rounds and not done.file.rounds[-1].goes_on():
            print("No seed is left: all have diverged.")
        return 1
    _print_winner(asked, done.file, next_steps=not many.quiet)
    return failed


def _print_winner(race: "Race", file: "RaceFile", *, next_steps: bool) -> None:
    from ars.commands import file_words

    winner = file.winner
    assert winner is not None
    folder, task = race.run_folder(winner), race.specs[winner].task
    policy = next(path for name in ("best.npz", "policy.npz") if (path := folder / name).exists())
    spent = sum(standing.timesteps for standing, _ in file.places())
    print(f"Seed {winner} won, after {spent:,} timesteps of all seeds; its policy is {policy}.")
    if next_steps:
        print("What to type next:")
        for verb, path in (("evaluate", policy), ("watch", policy), ("report", race.folder)):
            print(f"  {typed(file_words(verb, path, task))}")
        last = file.rounds[-1].standings[0].timesteps
        print(f"  {typed(file_words('resume', folder, task, '--timesteps', str(2 * last)))}")
