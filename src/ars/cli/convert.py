"""ars export, import: policies for and from other software."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ars.cli.common import OTHER, TaskName, app, examples, print_written, typed
from ars.errors import FileError, printable


@app.command(
    help_epilogue=examples(
        "ars export runs/Hopper-v1-V2-t-seed7 --to c --out hopper.h",
        "ars export best.npz --to onnx",
        "ars export lin_policy_plus.npz --task Walker2d-v1 --to json",
    )
)
def export(
    policy: str,
    /,
    *,
    to: Annotated[
        Literal["c", "onnx", "json"],
        Parameter(help="c: a C99 header without dependencies; onnx: a float64 model (needs the package onnx); json."),
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
    path = Path(file_name(opened, to)) if out is None else out
    check_writable(path)
    content = export(opened, to)
    _keep(path, Path(policy))
    write_atomic(path, content)
    print_written(path, f"Wrote {printable(path)}: {opened.n} observations, {opened.p} outputs, {len(content)} bytes.")
    return 0


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
