"""ars robustness, ars robot: what a policy stands, and whether a robot's description will do."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ars.cli.common import (
    Json,
    Quiet,
    TaskName,
    Workers,
    app,
    examples,
    how_many,
    print_json,
    print_table,
    print_written,
)
from ars.cli.view import Seed
from ars.errors import printable


@app.command(
    help_epilogue=examples(
        "ars robustness runs/Quadruped-v1-csa-seed0", "ars robustness Hopper-v1", "ars robustness dog.npz --task my:DOG"
    )
)
def robustness(
    policy: str,
    /,
    *,
    out: Annotated[Path, Parameter(help="Page to write.")] = Path("robustness.html"),
    seed: Seed = 0,
    task: TaskName = None,
    workers: Workers = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Try a policy in 506 worlds: friction × mass, push × direction, delay × slope, one episode each.

    Actions are one control step late, and observations have noise of a tenth of their deviation in training. POLICY is
    as for `ars watch`. The page has maps of survival and speed. In a run folder the result is kept as robustness.json,
    and `ars report` shows it too.
    """
    from ars.experiments.robustness import measure_robustness, summary
    from ars.files import check_writable, write_json
    from ars.page.robustness import FILE, write_robustness_page
    from ars.policies import open_policy
    from ars.progress import bar
    from ars.video.episode import task_of

    check_writable(out)
    opened = open_policy(policy, task)
    name = task_of(opened, task)
    with bar(quiet=quiet or json) as shown:
        result = measure_robustness(
            opened, name, seed=seed, workers=how_many(workers), finished=lambda share: shown.at("Trying worlds", share)
        )
    if Path(policy).is_dir():
        write_json(Path(policy) / FILE, result)
    write_robustness_page(name, result, out)
    if json:
        print_json(result)
    elif not quiet:
        print("\n".join(summary(result)))
        print_written(out, f"The page is {printable(out)}: open it in a browser.")
    return 0


robot = App(name="robot", help="Robots described by a model and terms (docs/robots.md).")
app.command(robot)


@robot.command(help_epilogue=examples("ars robot check my_robot.py:DOG", "ars robot check Quadruped-v1"))
def check(name: str, /, *, json: Json = False) -> int:
    """Check a robot before it is trained: observation and action, what its reward's terms pay, its speed.

    NAME is FILE.py:NAME, module:NAME, or a robot that comes with ars. It warns of what will not learn.
    """
    from dataclasses import asdict

    from ars.errors import TaskError
    from ars.experiments.robot_check import check_robot
    from ars.tasks.robots.find import find_robot
    from ars.tasks.user_code import importable

    name = importable(name)
    found = find_robot(name)
    if found is None:
        raise TaskError(f"{name} is not a robot: name one as FILE.py:NAME, or see `ars tasks`.")
    checked = check_robot(found, name)
    if json:
        print_json(asdict(checked))
        return 0
    count = sum(len(names) for _, names, _ in checked.observation)
    print(f"{name}: {count} observations, {len(checked.actions)} actions, {checked.H} steps of {checked.dt:g} s")
    rows = [
        (term, str(len(names)), unit, ", ".join(names[:6]) + (", …" if len(names) > 6 else ""))
        for term, names, unit in checked.observation
    ]
    print_table(
        ("observation", "numbers", "unit", "names"),
        [*rows, ("action", str(len(checked.actions)), "", ", ".join(checked.actions))],
    )
    terms = [
        (term.removeprefix("reward_"), f"{checked.zero.terms[term]:z.4g}", f"{value:z.4g}")
        for term, value in checked.random.terms.items()
    ]
    lengths = ("mean length, s", f"{checked.zero.steps * checked.dt:.2f}", f"{checked.random.steps * checked.dt:.2f}")
    limits = ("actions at their limit", f"{checked.zero.limited:.0%}", f"{checked.random.limited:.0%}")
    forces = ("forces at their limit", f"{checked.zero.forces:.0%}", f"{checked.random.forces:.0%}")
    print_table(("reward per second", "zero action", "random policies"), [*terms, lengths, limits, forces])
    print(f"{checked.steps_per_second:,.0f} control steps per second on one core.")
    for warning in checked.warnings:
        print(f"Warning: {warning}")
    return 0
