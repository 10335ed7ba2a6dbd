"""ars ask, tell: training with rewards from a real robot or another simulator."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ars.cli.common import OTHER, Json, Whole, app, command, examples, print_json, shell
from ars.cli.settings import Settings
from ars.errors import SettingError


@app.command(
    help_epilogue=examples(
        "ars ask runs/arm --task arm --n 14 --p 7 --N 4 --H 500",
        "ars ask runs/arm",
        "ars tell runs/arm results.json",
    )
)
def ask(
    folder: Path,
    /,
    *,
    task: Annotated[
        str | None, Parameter(name="--task", help="For a new run: a task of ars train or, with --n and --p, any name.")
    ] = None,
    n: Annotated[Whole, Parameter(name="--n", help="Size of an observation.")] = None,
    p: Annotated[Whole, Parameter(name="--p", help="Size of an action.")] = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    start: Annotated[str | None, Parameter(name="--from", group=OTHER, help="Start from this policy.")] = None,
    start_weight: Annotated[
        Whole, Parameter(name="--from-weight", group=OTHER, help="How many states its statistics count for.")
    ] = None,
    json: Json = False,
) -> int:
    """Write the policies whose rewards are needed next, as files.

    They are written to FOLDER/asked, with a list in asked.json. If FOLDER is not a run yet, a new run is created there.
    """
    from ars.ask_tell import AskTell
    from ars.files import is_file, read_json
    from ars.folder import ASKED

    begun = is_file(folder / "config.json")
    given = settings.given()
    if begun and (given or any(flag is not None for flag in (task, n, p, start, start_weight))):
        raise SettingError(f"{folder} is a run, whose settings cannot be changed: give `ars ask` only the folder.")
    if not begun and task is None:
        raise SettingError(f"{folder} is not a run yet: start one with --task, and --n and --p for your own robot.")
    if begun:
        run = AskTell.open(folder)
    else:
        run = AskTell.create(folder, str(task), n=n, p=p, start=start, start_weight=start_weight, **given)
    with run:
        files = run.write_asked()
    if json:
        print_json(read_json(folder / ASKED / "asked.json"))
        return 0
    print(f"{len(files)} policies to measure are in {folder / ASKED}; asked.json lists them.")
    print(f"What to type next:\n  {command()} tell {shell(folder)} results.json")
    return 0


@app.command(help_epilogue=examples("ars tell runs/arm results.json"))
def tell(folder: Path, results: Path, /) -> int:
    """Read the rewards of policies that `ars ask` wrote.

    RESULTS is a JSON file with a list of {"key", "reward", "steps"}, and for normalised states "states" or "moments".
    Results may be given in any order and in parts; repeats are ignored.
    """
    from ars.ask_tell import AskTell, read_results

    told = read_results(results)
    with AskTell.open(folder) as run:
        for record in run.tell(told):
            print(f"Iteration {record.iteration} is complete: mean reward {record.reward_mean:z.4g}.")
        iteration, missing = run.state.j + 1, len(run.ask())
        total = run.asked
    print(f"Iteration {iteration} needs {missing} of {total} results.")
    print(f"What to type next:\n  {command()} ask {shell(folder)}")
    return 0
