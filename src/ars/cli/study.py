"""ars study: comparisons beyond the paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ars.cli.common import OTHER, Whole, app, examples
from ars.cli.many import Many, report_failures
from ars.cli.process import interrupt_code
from ars.cli.reproduce import Draw, DryRun, Minutes, run_or_draw, some
from ars.errors import SettingError

if TYPE_CHECKING:
    from ars.experiments.engine import Outcome


@app.command(
    help_epilogue=examples(
        "ars study searches --dry-run",
        "ars study searches --tasks Hopper-v1 --arms ars csa --minutes 60",
        "ars study searches --stage held-out --tasks Walker2d-v1 --pause 1e6",
        "ars study searches --stage held-out --draw",
        "ars study races",
    )
)
def study(
    target: Literal["searches", "races"],
    /,
    *,
    stage: Annotated[
        Literal["tuning", "held-out"] | None,
        Parameter(help="Seeds for choosing settings [default], or seeds that have not been seen."),
    ] = None,
    tasks: Annotated[
        list[str] | None, Parameter(consume_multiple=True, help="Only these tasks: Swimmer-v1 Hopper-v1.")
    ] = None,
    arms: Annotated[list[str] | None, Parameter(consume_multiple=True, help="Only these arms: ars csa.")] = None,
    pause: Annotated[
        Whole, Parameter(help="Leave each run for another time after so many timesteps; later, it goes on from there.")
    ] = None,
    minutes: Minutes = None,
    dry_run: DryRun = False,
    draw: Draw = False,
    out: Annotated[Path, Parameter(group=OTHER, help="Folder of the results.")] = Path("results/searches"),
    runs: Annotated[Path, Parameter(group=OTHER, help="Folder of the run folders.")] = Path("runs/searches"),
    many: Many = Many(),  # noqa: B008 (frozen)
) -> int:
    """Compare searches on the paper's robots at equal timesteps: success, timesteps to the threshold, rewards, time.

    searches: it prints what the missing runs cost on this machine, runs them, and draws a table and a figure of the
    stage. The same command continues after an interruption; finished runs are not repeated.

    races: ten races of eight seeds (ars race) beside the best of as many restarts, at the same total of timesteps.
    """
    if target == "races":
        given = {"stage": stage, "tasks": tasks, "arms": arms, "pause": pause, "minutes": minutes}
        if odd := [name for name, value in given.items() if value is not None]:
            raise SettingError(f"--{odd[0]} applies to ars study searches only: leave it out.")
        return races(out / "races", runs / "races", many, dry_run=dry_run, draw=draw)
    from ars.paper.searches import draw_study, make_study

    listed = {"tasks": some("tasks", tasks, "Swimmer-v1"), "arms": some("arms", arms, "csa")}
    if pause is not None and draw:
        raise SettingError("pause and draw contradict each other: give one of them.")
    request = make_study(stage or "tuning", out=out, pause=pause, **listed)
    if pause is not None:
        print(f"Each run up to {pause:,} timesteps, for now:")
    return run_or_draw(request, draw_study, many, minutes=minutes, dry_run=dry_run, draw=draw, runs=runs)


def races(out: Path, runs: Path, many: Many, *, dry_run: bool, draw: bool) -> int:
    """The races that are missing, and the table."""
    from ars.experiments.race_study import Plan, read_study, run_study
    from ars.paper.races import draw_races

    if dry_run and draw:
        raise SettingError("dry_run and draw contradict each other: give one of them.")
    many.check()
    plan = Plan()
    if dry_run:
        left = plan.races - len(read_study(plan, out))
        print(
            f"{left} of {plan.races} races are missing: {left * plan.budget:,} timesteps of {plan.task}, and about "
            "half as many for restarts."
        )
        return 0
    outcomes: Sequence[Outcome] = ()
    if not draw:
        say = (lambda _: None) if many.quiet else (lambda text: print(text, flush=True))
        try:
            outcomes = run_study(
                plan, out, runs, lambda jobs: many.run(jobs, known={job.spec: 1.0 for job in jobs}), say
            )
        except KeyboardInterrupt:
            print("Interrupted: everything is saved; the same command continues, and --draw draws what there is.")
            return interrupt_code()
    draw_races(plan, out)
    return report_failures(list(outcomes), quiet=many.quiet)
