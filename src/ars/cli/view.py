"""ars watch, report, gallery: what people look at."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Quiet, TaskName, app, command, examples, whole
from ars.errors import SettingError

if TYPE_CHECKING:
    from ars.policy import LinearPolicy

FILM_SECONDS = 10.0
Seed = Annotated[int, Parameter(group=OTHER, converter=whole, help="Of the initial state, as in ars evaluate.")]


@app.command(
    help_epilogue=examples(
        "ars watch HalfCheetah-v1",
        "ars watch runs/HalfCheetah-v5-V2-seed0/best.npz --gif run.gif",
        "ars watch Hopper-v1 --mp4 hop.mp4 --seconds 5",
    )
)
def watch(
    policy: str,
    /,
    *,
    gif: Annotated[Path | None, Parameter(help="Write this GIF.")] = None,
    mp4: Annotated[Path | None, Parameter(help="Write this MP4; needs the extra `video`.")] = None,
    webp: Annotated[Path | None, Parameter(help="Write this animated WebP.")] = None,
    seconds: Annotated[float | None, Parameter(help="How long at the most [default: 10 for films].")] = None,
    seed: Seed = 0,
    task: TaskName = None,
) -> int:
    """See a policy move: in a window where there is a display, else as a film.

    POLICY is a file, a run folder (its best policy), or the name of a policy that comes with ars. What you see is the
    first episode of `ars evaluate` with the same seed, in real time.
    """
    from ars.policies import open_policy
    from ars.video.camera import check_opengl
    from ars.video.episode import task_of
    from ars.video.viewer import has_display, show

    check_opengl()
    opened = open_policy(policy, task)
    name = task_of(opened, task)
    files = {".gif": gif, ".mp4": mp4, ".webp": webp}
    wanted = [_ending(file, ending) for ending, file in files.items() if file is not None]
    if not wanted and has_display():
        _check_seconds(seconds)
        rewards = show(opened, task, seconds=seconds, seed=seed)
        if rewards:
            print(f"Rewards of the episodes that ended: {', '.join(f'{reward:.1f}' for reward in rewards)}.")
        return 0
    return _film(opened, name, task, wanted or [_free_file(name)], FILM_SECONDS if seconds is None else seconds, seed)


def _film(policy: "LinearPolicy", name: str, task: str | None, paths: list[Path], seconds: float, seed: int) -> int:
    from ars.video.film import film, writer_for

    _check_seconds(seconds)
    writers = [writer_for(path) for path in paths]
    _say(f"Filming {name} …")
    rollout, trace = film(policy, task, writers, seconds=seconds, seed=seed)
    speed = trace.moments[-1].speed
    reached = f"{trace.moments[-1].time:.1f} s, reward {rollout.reward:.1f}" + (
        "" if speed is None else f", {speed:.1f} m/s at the end"
    )
    for path in paths:
        print(f"Wrote {path}, {path.stat().st_size / 1e6:.1f} MB: {reached}.")
    return 0


@app.command(
    help_epilogue=examples(
        "ars report runs/HalfCheetah-v5-V2-seed0", "ars report runs/Hopper-* --out hopper.html", "ars report runs"
    )
)
def report(
    *runs: Path,
    out: Annotated[Path, Parameter(help="The page.")] = Path("report.html"),
    seconds: Annotated[float, Parameter(help="Of the film; 0: without one.")] = 8.0,
    task: TaskName = None,
    quiet: Quiet = False,
) -> int:
    """Make one page of one or several runs, which opens without network.

    RUNS are run folders, or folders of run folders; they may still be written. The page has learning curves, settings,
    the policy as a picture, and a film of the best run of each task.
    """
    if not runs:
        raise SettingError("Name at least one run folder: ars report runs/HalfCheetah-v5-V2-seed0.")
    from ars.page.page import write_report
    from ars.run_files import read_run, run_folders
    from ars.video.camera import check_opengl

    check_opengl()
    if seconds != 0:
        _check_seconds(seconds)
    found = [read_run(path) for path in run_folders(list(runs))]
    data = write_report(found, out, task=task, seconds=seconds, say=_nothing if quiet else _say)
    why_not = next((run["gait"]["why_not"] for run in data["runs"] if run["gait"] and "why_not" in run["gait"]), None)
    if not quiet:
        if why_not:
            _say(f"Without a film: {why_not}")
        print(f"The page is {out}: open it in a browser.")
    return 0


@app.command(help_epilogue=examples("ars gallery", "ars gallery runs/Hopper-* --out hoppers.html"))
def gallery(
    *policies: str,
    out: Annotated[Path, Parameter(help="The page.")] = Path("gallery.html"),
    seconds: Annotated[float, Parameter(help="Of each film.")] = 6.0,
    task: TaskName = None,
    quiet: Quiet = False,
) -> int:
    """Make a page with the films of several policies side by side.

    POLICIES are what `ars watch` takes; without any, all that come with ars.
    """
    from ars import policies as shipped
    from ars.page.page import gallery_names, write_gallery
    from ars.policies import open_policy
    from ars.video.camera import check_opengl

    check_opengl()
    _check_seconds(seconds)
    names = list(policies) or shipped.names()
    if not names:
        raise SettingError(f"No policies come with this ars: name some, {command()} gallery runs/*.")
    opened = [(shown, open_policy(name, task)) for shown, name in zip(gallery_names(names), names, strict=True)]
    write_gallery(opened, out, task=task, seconds=seconds, say=_nothing if quiet else _say)
    if not quiet:
        print(f"The page is {out}: open it in a browser.")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _nothing(_text: str) -> None:
    """For --quiet."""


def _check_seconds(seconds: float | None) -> None:
    from ars.config import finite_number

    if seconds is not None and finite_number("seconds", seconds) <= 0:
        raise SettingError(f"seconds = {seconds:g} must be larger than 0.")


def _ending(path: Path, ending: str) -> Path:
    if path.suffix.lower() != ending:
        raise SettingError(f"--{ending[1:]} {path} must end in {ending}.")
    return path


def _free_file(name: str) -> Path:
    """TASK.gif here, numbered if there is one already."""
    from ars.files import safe_name

    safe = safe_name(name)
    path, number = Path(f"{safe}.gif"), 1
    while path.exists():
        number += 1
        path = Path(f"{safe}-{number}.gif")
    return path
