"""The result of `ars robustness` for a page: read from a file that may be damaged, and on a page of its own."""

import math
from pathlib import Path
from typing import Any

from ars.errors import FileError
from ars.files import parse_json, read_bytes
from ars.page.html import write_page
from ars.versions import versions

FILE = "robustness.json"  # in a run folder
MOST = 100  # values along a side of a map


def read_robustness(path: Path) -> dict[str, Any] | None:
    """The result in a file, checked; None if there is none."""
    if not path.is_file():
        return None
    try:
        value = parse_json(read_bytes(path).decode())
        maps = [_map(one) for one in value["maps"][:10]]
        counts = {name: int(value[name]) for name in ("conditions", "survived")}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError) as error:
        raise FileError(f"{path} is damaged: it is not a result of ars robustness.") from error
    return {**counts, "maps": maps}


def _map(value: Any) -> dict[str, Any]:
    xs, ys = ([_number(one) for one in value[name]] for name in ("xs", "ys"))
    if not 0 < len(xs) <= MOST or not 0 < len(ys) <= MOST:
        raise ValueError("a map is too large")
    tables = {name: [[_number(one) for one in row] for row in value[name]] for name in ("survived", "speed")}
    if any(len(table) != len(ys) or any(len(row) != len(xs) for row in table) for table in tables.values()):
        raise ValueError("a map has another size than its axes")
    texts = {name: str(value[name])[:100] for name in ("title", "x", "y")}
    return {**texts, "xs": xs, "ys": ys, **tables}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a number")
    return float(value)


def write_robustness_page(name: str, result: dict[str, Any], out: Path) -> None:
    shown = {"conditions": result["conditions"], "survived": result["survived"], "maps": result["maps"]}
    write_page({"kind": "robustness", "version": versions()["ars-rl"], "name": name, "robustness": shown}, out)
