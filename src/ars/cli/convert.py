"""ars export, import: policies for and from other software."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ars.cli.common import OTHER, TaskName, app, examples, print_written, shell, typed
from ars.errors import FileError, printable

if TYPE_CHECKING:
    from ars.interop.robot_replay import Export
    from ars.policy import LinearPolicy


@app.command(
    help_epilogue=examples(
        "ars export runs/Hopper-v1-V2-t-seed7 --to c --out hopper.h",
        "ars export best.npz --to onnx",
        "ars export lin_policy_plus.npz --task Walker2d-v1 --to json",
        "ars export runs/quadruped --to c --out quadruped.h",
    )
)
def export(
    policy: str,
    /,
    *,
    to: Annotated[
        Literal["c", "onnx", "json"],
        Parameter(
            help="c: a C99 header without dependencies, of a robot with test vectors and a program that replays them; "
            "onnx: a float64 model (needs the package onnx); json."
        ),
    ],
    out: Annotated[Path | None, Parameter(group=OTHER, help="File to write; default: named after the task.")] = None,
    task: TaskName = None,
) -> int:
    """Write a policy as C, ONNX or JSON.

    POLICY is a file, a run folder (its best policy), or the name of a policy that comes with ars.
    """
    from ars.files import check_writable, write_atomic
    from ars.interop.exports import export, file_name
    from ars.policies import open_policy

    opened = open_policy(policy, task)
    if to == "c" and "robot" in opened.task:
        return _export_robot(opened, Path(policy), task, out)
    path = Path(file_name(opened, to)) if out is None else out
    check_writable(path)
    content = export(opened, to)
    _keep(path, Path(policy))
    write_atomic(path, content)
    print_written(path, f"Wrote {printable(path)}: {opened.n} observations, {opened.p} outputs, {len(content)} bytes.")
    return 0


def _export_robot(policy: "LinearPolicy", source: Path, task: str | None, out: Path | None) -> int:
    """The header of a robot, and beside it the test vectors and their program."""
    from ars.files import check_writable, is_stream, write_atomic
    from ars.interop.exports import export, file_name
    from ars.interop.robot_replay import export_robot, names_beside
    from ars.tasks.robots.find import built_in

    name = str(policy.task.get("name")) if task is None else task
    simulated = task is not None or built_in(name) is not None  # a file must not decide what is imported
    path = Path(file_name(policy, "c")) if out is None else out / file_name(policy, "c") if out.is_dir() else out
    beside = [path.with_name(one) for one in names_beside(path.name)] if simulated and not is_stream(path) else []
    for one in (path, *beside):
        check_writable(one)
        _keep(one, source)
    made = export_robot(policy, name, path.name if beside else "policy.h") if simulated else None
    files = [export(policy, "c")] if made is None else [made.header, made.vectors, made.program]
    for one, content in zip((path, *beside), files, strict=False):
        write_atomic(one, content)
    print_written(path, "\n".join(_robot_lines(policy, made, [path, *beside], len(files[0]))))
    return 0


def _robot_lines(policy: "LinearPolicy", made: "Export | None", paths: list[Path], size: int) -> list[str]:
    """What is printed about the files of a robot."""
    from ars.interop.controller import cost, read_controller
    from ars.interop.exports import C_FLAGS

    robot = read_controller(policy)
    need = cost(policy, robot)
    lines = [
        f"Wrote {printable(paths[0])}: {len(robot.sensors)} sensor values, {policy.n} observations, {policy.p} targets "
        f"at {robot.hz:g} Hz, {size} bytes.",
        f"Constants: {8 * need.constants} bytes in double, {4 * need.constants} in float. A step: "
        f"{need.multiplications} multiplications, {need.additions} additions, {need.comparisons} comparisons.",
    ]
    if made is None:
        return [*lines, "Note: there are no test vectors, which need the robot's simulation: name it with --task."]
    lines.append(f"Targets in float: within {made.bound:g} of double in the test vectors (4 × what was measured).")
    if len(paths) == 1:
        return lines
    _, vectors, program = paths
    binary = shell(program.with_suffix(""))
    return [
        *lines,
        f"Wrote {printable(vectors)}, {made.steps} steps of the simulation, whose own targets differ by at most "
        f"{made.differs:.2g}, and {printable(program)}.",
        "What to type next:",
        f"  cc -std=c99 -O2 {C_FLAGS} {shell(program)} -o {binary} && {binary if '/' in binary else f'./{binary}'}",
    ]


@app.command(
    name="import",
    help_epilogue=examples(
        "ars import lin_policy_plus.npz --task Walker2d-v1 --out walker.npz",
        "ars import model.zip --statistics vec_normalize.pkl --task Hopper-v5",
    ),
)
def import_(
    file: Path,
    /,
    *,
    task: Annotated[str, Parameter(name="--task", help="The policy's task, for example Walker2d-v1.")],
    statistics: Annotated[
        Path | None, Parameter(help="The VecNormalize file that belongs to an sb3-contrib .zip.")
    ] = None,
    out: Annotated[Path | None, Parameter(group=OTHER, help="The policy to write [default: policy.npz].")] = None,
) -> int:
    """Convert a policy of the paper's authors, or of sb3-contrib's ARS, to our format.

    Nothing in the file is executed: a pickle that contains more than arrays is refused.
    """
    from ars.commands import file_words
    from ars.files import check_writable
    from ars.interop.imports import import_policy
    from ars.policies import notes_of

    policy = import_policy(file, task, statistics=statistics)
    path = Path("policy.npz") if out is None else out
    if out is None and path.exists():
        raise FileError(f"{path} exists already: choose another file with --out.")
    check_writable(path)
    _keep(path, file, statistics)
    policy.save(path)
    lines = [f"Wrote {printable(path)}: {policy.p} × {policy.n} for {task}, from {policy.task['imported']['kind']}."]
    lines += [f"Note: {note}" for note in notes_of(policy)]
    lines += ["What to type next:", f"  {typed(file_words('evaluate', path, task))}"]
    print_written(path, "\n".join(lines))
    return 0


def _keep(path: Path, *sources: Path | None) -> None:
    """Do not overwrite an input file."""
    if any(source is not None and source.exists() and path.exists() and path.samefile(source) for source in sources):
        raise FileError(f"{path} is the input file: choose another file with --out.")
