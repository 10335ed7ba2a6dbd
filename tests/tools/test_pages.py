"""The maintainers' scripts run from the root as their docstrings say, and are not part of what users install."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tools.pages import refresh

ROOT = Path(__file__).parents[2]


def test_tables_are_put_between_their_marks(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "table9.md").write_text("# Table 9\n\nA caption.\n\n| a |\n|--:|\n| 2 |\n")
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- table9 -->\n| a |\n|--:|\n| 1 |\n| 0 |\n<!-- end -->\nafter <!-- end -->\n")
    for _ in range(2):  # the second time nothing changes
        subprocess.run([sys.executable, "-m", "tools.pages", tmp_path, page], cwd=ROOT, check=True, timeout=60)
        assert page.read_text() == "Before\n<!-- table9 -->\n| a |\n|--:|\n| 2 |\n<!-- end -->\nafter <!-- end -->\n"


def test_coverage_is_one_line_of_the_index(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Index\n\nCoverage: 1 of 2 runs.\n\nMore.\n")
    text = "a\n<!-- coverage -->\nCoverage: 0 of 2 runs.\n<!-- end -->\nb\n"
    assert refresh(text, tmp_path) == "a\n<!-- coverage -->\nCoverage: 1 of 2 runs.\n<!-- end -->\nb\n"


def test_the_wheel_holds_the_package_alone() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build == {"wheel": {"packages": ["src/ars"]}}
    assert not (ROOT / "src" / "ars" / "tools").exists()
