"""Write the tables and the figure of `ars rivals`, from the files of its runs alone."""

from collections.abc import Callable
from pathlib import Path

from ars.curves import load_all
from ars.files import make_folder, write_atomic
from ars.plotting import image_files
from ars.rivals.figure import plot
from ars.rivals.tables import TABLES


def draw_all(out: Path, say: Callable[[str], None] = print) -> None:
    """rivals-*.md and .csv, and rivals.png and .svg."""
    curves, problems = load_all(out / "runs")
    for problem in problems:
        say(f"Left out: {problem}")
    files = image_files("rivals", lambda: plot(curves))
    for name, make in TABLES.items():
        table = make(curves)
        files |= {f"rivals-{name}.md": table.markdown().encode(), f"rivals-{name}.csv": table.csv().encode()}
    make_folder(out)
    for file, content in files.items():
        write_atomic(out / file, content)
    say(f"{len(files)} files in {out}: rivals.png, and the tables rivals-*.md.")
