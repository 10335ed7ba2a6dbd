"""The committed results: drawn again they are the same, and their runs are found. New results may fail these tests
until they are drawn, so `make check-results` runs them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ars.config import Config
from ars.curves import Curve, load
from ars.experiments.race_study import Plan
from ars.experiments.run_specs import run_name
from ars.experiments.study import STAGES
from ars.paper import ARTEFACTS, load_artefact
from ars.paper.races import draw_races
from ars.paper.reproduce import Request, draw
from ars.paper.searches import draw_study, make_study
from ars.searches import make_search, search_class
from ars.settings import own_fields

RESULTS = Path(__file__).parents[2] / "results"
pytestmark = pytest.mark.results


@pytest.mark.parametrize("name", ARTEFACTS)
def test_what_is_drawn_from_the_runs_is_what_is_committed(name: str, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "runs", tmp_path / "runs")
    (tmp_path / "lqr").mkdir()
    shutil.copy(RESULTS / "lqr" / "lqr.csv", tmp_path / "lqr")
    inputs = set(tmp_path.glob("*/*"))
    assert draw(Request([name], tmp_path), name)
    for path in set(tmp_path.glob("*/*")) - inputs:
        committed = RESULTS / path.relative_to(tmp_path)
        if path.suffix == ".svg":  # its words alone: another version of Matplotlib may place its marks elsewhere
            assert words(path) == words(committed), path.name
        elif path.suffix != ".png":
            assert path.read_bytes() == committed.read_bytes(), path.name


@pytest.mark.parametrize("stage", STAGES)
def test_the_study_of_searches_is_drawn_from_its_runs(stage: str, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "searches" / "runs", tmp_path / "runs")
    draw_study(make_study(stage, out=tmp_path), say=lambda _: None)
    for name in (f"{stage}.md", f"{stage}.csv", f"{stage}-summary.md"):
        assert (tmp_path / name).read_bytes() == (RESULTS / "searches" / name).read_bytes(), name


def test_the_races_are_drawn_from_their_files(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "searches" / "races", tmp_path / "races")
    draw_races(Plan(), tmp_path / "races", lambda _: None)
    for name in ("races.md", "races.csv"):
        assert (tmp_path / name).read_bytes() == (RESULTS / "searches" / name).read_bytes(), name


def words(svg: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)", svg.read_text())


def test_lqr_shows_what_its_page_says() -> None:
    """The page quotes the output of the script."""
    done = subprocess.run([sys.executable, RESULTS / "lqr" / "check.py"], capture_output=True, text=True, check=True)
    page = (RESULTS / "lqr" / "README.md").read_text()
    assert [line for line in done.stdout.splitlines() if line not in page] == []


def test_runs_have_the_names_of_their_settings() -> None:
    """Run folders and small files go by them. Before searches had settings of their own, V2-t with b = N was not called
    V2: such a file is found by its settings all the same."""
    for path in (RESULTS / "runs").glob("*.json"):
        config = config_of(load(path))
        name, label = run_name(config), config.label
        older = name.replace(f"-{label}-", f"-{label}-t-", 1) if config.search.b == config.search.N else name
        assert path.stem in (name, older)


def test_no_run_is_there_twice() -> None:
    curves = [load(path) for path in (RESULTS / "runs").glob("*.json")]
    assert len({(curve.identity, curve.eval_episodes) for curve in curves}) == len(curves)


def config_of(curve: Curve) -> Config:
    own = {f.name for f in own_fields(search_class(curve.learner))}
    block = {name: value for name, value in curve.settings.items() if name in own}
    shared = {name: value for name, value in curve.settings.items() if name not in own}
    return Config(
        protocol="paper", task=curve.task, seed=curve.seed, search=make_search(curve.learner, block), **shared
    )


def test_the_index_lists_every_artefact() -> None:
    index = (RESULTS / "index.md").read_text()
    for name in ARTEFACTS:
        assert f"| {name} | {load_artefact(name).title} |" in index
