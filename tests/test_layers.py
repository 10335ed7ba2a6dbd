"""Imports follow the tables of docs/architecture.md, which is the only place that states them."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ars"
PAGE = ROOT / "docs" / "architecture.md"


class Import(NamedTuple):
    """An import in src/ars, lazy and TYPE_CHECKING ones too. `source` and `target` are modules below ars."""

    place: str
    source: str
    target: str


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] in ("__init__", "__main__") else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__main__.py"}


def room(module: str) -> str:
    """The package or top-level module below ars; `ars` for its own __init__."""
    return module.partition(".")[0] or "ars"


@cache
def imports() -> tuple[list[Import], list[Import]]:
    """(of our own modules, of third-party packages)."""
    own, foreign = [], []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = "cli" if path == PACKAGE / "__main__.py" else module_name(path)
        for node in ast.walk(ast.parse(path.read_text())):
            for name in names_of(node):
                line = getattr(node, "lineno", 0)
                place = f"{path.relative_to(ROOT)}:{line}"
                top, _, rest = name.partition(".")
                if top == "ars":
                    while rest and rest not in MODULES:
                        rest = rest.rpartition(".")[0]
                    own.append(Import(place, source, rest))
                elif top not in sys.stdlib_module_names:
                    foreign.append(Import(place, source, top))
    return own, foreign


def names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rows_below(heading: str) -> list[list[str]]:
    """The cells of a table in the page, by the first words of its heading row."""
    table = PAGE.read_text().split(f"\n{heading}", 1)[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def layers() -> tuple[dict[str, int], dict[str, set[str]]]:
    """Room → its row, and room → what it never imports."""
    row_of: dict[str, int] = {}
    never: dict[str, set[str]] = {}
    for number, rooms, _, forbidden in rows_below("| | rooms |"):
        for name in spans(rooms):
            assert name not in row_of, f"{name} is in the table of layers twice"
            row_of[name], never[name] = int(number), set(spans(forbidden))
    return row_of, never


def test_the_table_lists_every_room_once() -> None:
    row_of, never = layers()
    assert set(row_of) == {room(module) for module in MODULES}
    assert set.union(*never.values()) <= set(row_of)


def test_dependencies_point_one_way() -> None:
    row_of, never = layers()
    wrong = []
    for place, source, target in imports()[0]:
        one, other = room(source), room(target)
        if one == other:
            continue
        if row_of[other] >= row_of[one]:
            wrong.append(f"{place}: {one} (row {row_of[one]}) must not import {other} (row {row_of[other]})")
        elif other in never[one]:
            wrong.append(f"{place}: {one} never imports {other}")
    assert not wrong, "\n" + "\n".join(dict.fromkeys(wrong))


def test_third_party_packages_are_imported_in_known_places() -> None:
    allowed = {spans(package)[0]: spans(places) for package, places in rows_below("| package |")}
    everywhere = {spans(package)[0] for package, places in rows_below("| package |") if places == "everywhere"}
    wrong, used = [], set()
    for place, source, package in imports()[1]:
        homes = {home for home in allowed.get(package, []) if f"{source}.".startswith(f"{home}.")}
        used |= {(package, home) for home in homes}
        if not homes and package not in everywhere:
            wrong.append(f"{place}: {package} must not be imported here")
    unused = {(package, home) for package, homes in allowed.items() for home in homes} - used
    wrong += [f"{PAGE.name}: {home} does not import {package}" for package, home in sorted(unused)]
    assert not wrong, "\n" + "\n".join(dict.fromkeys(wrong))


def test_a_forbidden_edge_would_be_found() -> None:
    """The parser sees imports inside functions and below TYPE_CHECKING."""
    own, foreign = imports()
    assert any(edge[1:] == ("executors", "executors.ray") for edge in own)  # inside a function
    assert any(edge[1:] == ("", "sessions") for edge in own)  # below TYPE_CHECKING
    assert any(edge[1:] == ("cluster", "ray") for edge in foreign)
