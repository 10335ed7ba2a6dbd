"""ars rivals: the paper's rivals, measured."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Quiet, Whole, app, examples, how_many, whole
from ars.cli.process import interrupt_code
from ars.cli.reproduce import Draw, DryRun, some
from ars.errors import SettingError


@app.command(
    help_epilogue=examples(
        "ars rivals --dry-run",
        "ars rivals --rivals ars csa es cem",
        "ars rivals --python .venv-rivals/bin/python --rivals ppo --tasks Hopper-v1 --seeds 1",
        "ars rivals --draw",
    )
)
def rivals(
    *,
    tasks: Annotated[list[str] | None, Parameter(consume_multiple=True, help="Only these: Hopper-v1.")] = None,
    rivals: Annotated[list[str] | None, Parameter(consume_multiple=True, help="Only these: ars csa ppo.")] = None,
    seeds: Annotated[Whole, Parameter(help="Seeds of each rival; default: 3, and 1 of SAC and DDPG.")] = None,
    timesteps: Annotated[int, Parameter(converter=whole, help="Training timesteps of each run.")] = 1_000_000,
    minutes: Annotated[
        float | None, Parameter(help="Stop after this long, and draw; a run that has not ended begins again.")
    ] = None,
    dry_run: DryRun = False,
    draw: Draw = False,
    python: Annotated[
        str | None, Parameter(group=OTHER, help="The Python that has stable-baselines3; default: this one.")
    ] = None,
    out: Annotated[Path, Parameter(group=OTHER, help="Folder of the results.")] = Path("results/rivals"),
    jobs: Annotated[Whole, Parameter(group=OTHER, help="Runs at a time, one core each; default: all cores.")] = None,
    quiet: Quiet = False,
) -> int:
    """Measure the paper's rivals on its tasks: ARS and other searches here, PPO, A2C, TRPO, SAC and DDPG through
    stable-baselines3.

    It prints what the missing runs cost, runs them, each in a process of its own, and draws the tables and the figure
    from what there is. Finished runs are not repeated.
    """
    from ars.curves import load_all
    from ars.files import is_folder
    from ars.progress import bar
    from ars.rivals import roster, running
    from ars.rivals.draw import draw_all
    from ars.settings import finite_number, whole_number

    if dry_run and draw:
        raise SettingError("dry_run and draw contradict each other: give one of them.")
    if minutes is not None and not finite_number("minutes", minutes) > 0:
        raise SettingError(f"minutes = {minutes:g} must be larger than 0.")
    cores = whole_number("jobs", how_many(jobs), 1, 4096)
    if draw and not is_folder(out / "runs"):
        raise SettingError(f"out = {out} has no runs: give the folder of the results, or run this beside results/.")
    listed = roster.specs(some("rivals", rivals, "ppo"), some("tasks", tasks, "Hopper-v1"), seeds, timesteps)
    asked, curves = running.make_jobs(listed, out), load_all(out / "runs")[0]
    failures: list[str] = []
    if not draw:
        running.say_costs(asked, curves, cores)
        if dry_run:
            return 0
        todo = running.with_python(running.missing(asked), python)
        with bar(quiet=quiet) as shown:
            try:
                failures = running.run_missing(
                    todo, workers=cores, minutes=minutes, weights=running.seconds_of(listed, curves), at=shown.at,
                    say=shown.say,
                )  # fmt: skip
            except KeyboardInterrupt:
                print("Interrupted: finished runs are kept; the same command runs the others.", file=sys.stderr)
                return interrupt_code()
    draw_all(out)
    for failure in failures if quiet else ():  # otherwise they have been shown
        print(failure, file=sys.stderr)
    if failures:
        print(f"{len(failures)} of {len(todo)} runs failed; the same command tries them again.", file=sys.stderr)
    return 1 if failures else 0
