"""ars study: comparisons beyond the paper."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ars.cli.common import OTHER, app, examples
from ars.cli.many import Many
from ars.cli.reproduce import Draw, DryRun, Minutes, run_or_draw, some


@app.command(
    help_epilogue=examples(
        "ars study searches --dry-run",
        "ars study searches --tasks Hopper-v1 --arms ars csa --minutes 60",
        "ars study searches --stage held-out --tasks Walker2d-v1",
        "ars study searches --stage held-out --draw",
    )
)
def study(
    target: Literal["searches"],
    /,
    *,
    stage: Annotated[
        Literal["tuning", "held-out"], Parameter(help="Seeds for choosing settings, or seeds that have not been seen.")
    ] = "tuning",
    tasks: Annotated[
        list[str] | None, Parameter(consume_multiple=True, help="Only these tasks: Swimmer-v1 Hopper-v1.")
    ] = None,
    arms: Annotated[list[str] | None, Parameter(consume_multiple=True, help="Only these arms: ars csa.")] = None,
    minutes: Minutes = None,
    dry_run: DryRun = False,
    draw: Draw = False,
    out: Annotated[Path, Parameter(group=OTHER, help="Folder of the results.")] = Path("results/searches"),
    runs: Annotated[Path, Parameter(group=OTHER, help="Folder of the run folders.")] = Path("runs/searches"),
    many: Many = Many(),  # noqa: B008 (frozen)
) -> int:
    """Compare searches on the paper's robots at equal timesteps: success, timesteps to the threshold, rewards, time.

    It prints what the missing runs cost on this machine, runs them, and draws a table and a figure of the stage. The
    same command continues after an interruption; finished runs are not repeated.
    """
    from ars.paper.searches import draw_study, make_study

    listed = {"tasks": some("tasks", tasks, "Swimmer-v1"), "arms": some("arms", arms, "csa")}
    request = make_study(stage, out=out, **listed)
    return run_or_draw(request, draw_study, many, minutes=minutes, dry_run=dry_run, draw=draw, runs=runs)
