"""Sizes of the torture tests: a short form for `make test`; with ARS_TORTURE naming a folder, the long form of
`make torture`, which leaves its figures there (torture_report.py puts them into docs/reliability.md)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from torture_runs import DRIFT, SETTINGS, keep_figure

import ars


@pytest.fixture
def figure() -> Callable[..., None]:
    """figure(name, **numbers) keeps what a test measured, in the long form."""
    return keep_figure


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 8 iterations with evaluations, for tests that only read or copy it."""
    out = tmp_path_factory.mktemp("finished") / "run"
    assert len(list(ars.train(DRIFT, **SETTINGS, iterations=8, out=out))) == 8
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run", ignore=shutil.ignore_patterns(".lock")))
