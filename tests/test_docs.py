"""The documentation points at what is there."""

import importlib
import re
from pathlib import Path

import pytest

from tools.pages import refresh

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for folder in ("docs", "results", "benchmarks", "src") for page in (ROOT / folder).rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.results
@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_tables_in_pages_are_those_of_the_results(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text.count("<!-- end -->") >= 1
    assert refresh(text, ROOT / "results") == text, "run: python -m tools.pages results docs/results.md README.md"


def names_of_the_map() -> list[str]:
    spans = re.findall(r"`([a-z_]+(?:\.\w+)+)`", (ROOT / "docs" / "paper_map.md").read_text())
    return sorted({span for span in spans if not span.endswith((".py", ".md"))})


@pytest.mark.parametrize("name", names_of_the_map())
def test_the_map_names_what_exists(name: str) -> None:
    parts = name.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(["ars", *parts[:depth]]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            fields = getattr(found, "__dataclass_fields__", {}) | getattr(found, "__annotations__", {})
            found = fields[part] if part in fields else getattr(found, part)
        return
    pytest.fail(f"no module for {name}")
