"""ars watch, report, gallery: films, windows and pages."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Quiet, TaskName, app, command, examples, print_written, whole
from ars.errors import SettingError, printable

FILM_SECONDS = 10.0
Seed = Annotated[int, Parameter(group=OTHER, converter=whole, help="Seed of the initial state, as in ars evaluate.")]


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
    seconds: Annotated[float | None, Parameter(help="Maximum duration [default: 10 for films].")] = None,
    seed: Seed = 0,
    task: TaskName = None,
) -> int:
    """Watch a policy in a window if there is a display, otherwise as a film.

    POLICY is a file, a run folder (its best policy), or the name of a policy that comes with ars. The first
    episode is that of `ars evaluate` with the same seed, in real time. In the window of a MuJoCo robot, arrow keys push
    it for 0.1 s with half its weight: left and right along x, up and down along y.
    """
    from ars.page.report import part_of
    from ars.policies import open_any_policy
    from ars.progress import bar
    from ars.video.camera import check_opengl
    from ars.video.episode import task_of
    from ars.video.film import film, free_file, writer_for
    from ars.video.viewer import has_display, show

    check_opengl()
    opened = open_any_policy(policy, task)
    name = task_of(opened, task)
    files = {".gif": gif, ".mp4": mp4, ".webp": webp}
    paths = [_check_ending(file, ending) for ending, file in files.items() if file is not None]
    if not paths and has_display():
        rewards = show(opened, task, seconds=seconds, seed=seed)
        if rewards:
            print(f"Rewards of the episodes that ended: {', '.join(f'{reward:z.1f}' for reward in rewards)}.")
        return 0
    paths = paths or [free_file(name)]
    writers = [writer_for(path) for path in paths]
    with bar(quiet=False) as shown:
        rollout, trace = film(
            opened, task, writers, seconds=FILM_SECONDS if seconds is None else seconds, seed=seed,
            progress=part_of(shown.at, f"Filming {name}", 0, 1),
        )  # fmt: skip
    last = trace.snapshots[-1]
    speed = "" if last.speed is None else f", {last.speed:z.1f} m/s at the end"
    for path in paths:
        size = path.stat().st_size / 1e6
        print_written(
            path, f"Wrote {printable(path)}, {size:.1f} MB: {last.time:.1f} s, reward {rollout.reward:z.1f}{speed}."
        )
    return 0


@app.command(
    help_epilogue=examples(
        "ars report runs/HalfCheetah-v5-V2-seed0", "ars report runs/Hopper-* --out hopper.html", "ars report runs"
    )
)
def report(
    *runs: Path,
    out: Annotated[Path, Parameter(help="File to write.")] = Path("report.html"),
    seconds: Annotated[float, Parameter(help="Length of the film; 0 for none.")] = 8.0,
    task: TaskName = None,
    quiet: Quiet = False,
) -> int:
    """Write a page about one or several runs, which opens without a network connection.

    RUNS are run folders, or folders of run folders, such as that of a sweep or a race; runs may still be in progress.
    The page has learning curves, settings, the policy as a heat map, and a film of the best run of each task.
    """
    if not runs:
        raise SettingError("Name at least one run folder: ars report runs/HalfCheetah-v5-V2-seed0.")
    from ars.files import check_writable
    from ars.page.report import write_report
    from ars.progress import bar
    from ars.races import read_race
    from ars.run_files import read_run, run_folders
    from ars.video.camera import check_opengl

    check_opengl()
    check_writable(out)
    opened = [read_run(path) for path in run_folders(list(runs))]
    races = [(path, race) for path in runs if (race := read_race(path)) is not None]
    with bar(quiet=quiet) as shown:
        write_report(opened, out, task=task, seconds=seconds, races=races, say=shown.say, at=shown.at)
    if not quiet:
        print_written(out, f"The page is {printable(out)}: open it in a browser.")
    return 0


@app.command(help_epilogue=examples("ars gallery", "ars gallery runs/Hopper-* --out hoppers.html"))
def gallery(
    *policies: str,
    out: Annotated[Path, Parameter(help="File to write.")] = Path("gallery.html"),
    seconds: Annotated[float, Parameter(help="Length of each film.")] = 6.0,
    task: TaskName = None,
    quiet: Quiet = False,
) -> int:
    """Write a page with the films of several policies side by side.

    POLICIES are as for `ars watch`; by default all those that come with ars.
    """
    from ars import policies as shipped
    from ars.files import check_writable
    from ars.page.gallery import gallery_names, write_gallery
    from ars.policies import open_policy
    from ars.progress import bar
    from ars.video.camera import check_opengl

    check_opengl()
    check_writable(out)
    names = list(policies) or shipped.names()
    if not names:
        raise SettingError(f"This ars comes without policies: name some, for example {command()} gallery runs/*.")
    opened = [(shown, open_policy(name, task)) for shown, name in zip(gallery_names(names), names, strict=True)]
    with bar(quiet=quiet) as shown:
        write_gallery(opened, out, task=task, seconds=seconds, at=shown.at)
    if not quiet:
        print_written(out, f"The page is {printable(out)}: open it in a browser.")
    return 0


def _check_ending(path: Path, ending: str) -> Path:
    if path.suffix.lower() != ending:
        raise SettingError(f"--{ending[1:]} {path} must end in {ending}.")
    return path
