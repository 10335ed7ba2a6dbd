"""The documentation points at what is there, and its examples run."""

import importlib
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars import LinearPolicy, resume, searches, train
from tools.pages import prose, refresh

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
@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/rivals.md"])
def test_tables_in_pages_are_those_of_the_results(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text.count("<!-- end -->") >= 1
    assert refresh(text, ROOT / "results") == text, f"run: python -m tools.pages results {page}"


def test_results_are_interpreted_briefly() -> None:
    assert len(prose((ROOT / "docs" / "results.md").read_text()).split()) <= 800


@pytest.mark.results
def test_numbers_in_the_results_page_are_generated() -> None:
    """Every number of three digits or more, decimal or percentage in the prose is in a generated file as well."""
    generated = [*(ROOT / "results").rglob("*.md"), ROOT / "src" / "ars" / "policies" / "README.md"]
    known = {number for page in generated for number in numbers_in(page.read_text())}
    assert numbers_in(prose((ROOT / "docs" / "results.md").read_text())) <= known


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+|\d+%|\d{3,}", text))


def code_block(page: str, number: int) -> str:
    """A Python block of a page in docs/."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return blocks[number]


def test_the_example_of_a_search_trains_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("ars.searches.sign")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(code_block("adding_a_search.md", 0), module.__dict__)
    line = re.fullmatch(r'\s+"(\w+)": "(\w+:\w+)",\s+', code_block("adding_a_search.md", 1))
    assert line
    monkeypatch.setitem(searches.SEARCHES, line[1], line[2])
    settings: dict[str, Any] = {"search": "sign", "step_size": 0.1, "eval_every": 0}
    *_, whole = train("CartPole-v1", iterations=4, **settings)
    list(train("CartPole-v1", iterations=2, out=tmp_path / "run", **settings))
    *_, resumed = resume(tmp_path / "run", iterations=4)
    assert resumed.policy.M.any()
    assert (resumed.policy.M == whole.policy.M).all()
    assert "votes_up" in resumed.to_dict()


def test_the_example_of_ask_and_tell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(policy: LinearPolicy, H: int) -> tuple[float, int, Any]:
        states = np.random.default_rng(1).normal(size=(5, policy.n))
        return float(policy.act(states[0]).sum()), 5, states

    monkeypatch.chdir(tmp_path)
    exec(code_block("ask_tell.md", 0).replace("range(100)", "range(2)"), {"measure": measure})
    assert LinearPolicy.load(tmp_path / "arm.npz").M.shape == (7, 14)


def test_the_example_of_the_library_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = code_block("library.md", 0)
    for number in ("N=16", "iterations=20", "iterations=30", "episodes=20"):
        assert number in text
        text = text.replace(number, re.sub(r"\d+", "3" if number == "iterations=30" else "2", number))
    exec(text, {"__name__": "__main__"})
    first, second, policy, evaluation = capsys.readouterr().out.splitlines()
    assert first.startswith("Record(iteration 1, ")
    assert second.startswith("Record(iteration 2, ")
    assert policy == "LinearPolicy(__main__:<Gentle>, 1×3, iteration 2)"
    assert evaluation.startswith("Evaluation(reward ")


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
