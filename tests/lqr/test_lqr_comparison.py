"""The comparison: its files, its determinism, kill and resume, and its statistics by hand."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.errors import FileError, SettingError, WorkerError
from ars.experiments.lqr import comparison, plots, report
from ars.experiments.lqr.comparison import BLOCK, Progress, checkpoints, compare, extensions, methods
from ars.experiments.lqr.statistics import Result, first, index_at, stabilising
from ars.lqr import Problem
from ars.statistics import percentile

SMALL: dict[str, Any] = {"trials": BLOCK + 2, "budget": 3000, "seed": 4}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def read_csv(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "lqr.csv").read_text().splitlines()))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All methods; not to be changed."""
    folder = tmp_path_factory.mktemp("full")
    compare(out=folder, **SMALL)
    return folder


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fast methods, and no plots: for what does not depend on them."""
    monkeypatch.setattr(comparison, "methods", lambda problem: methods(problem)[:2])
    monkeypatch.setattr(plots, "stabilising", lambda *_: b"")
    monkeypatch.setattr(plots, "relative_cost", lambda *_: b"")


@pytest.fixture
def done(few: None, tmp_path: Path) -> Path:
    """A comparison of two methods, in four blocks."""
    compare(out=tmp_path / "done", **SMALL)
    return tmp_path / "done"


def test_files(full: Path) -> None:
    names = {name for name in contents(full) if not name.startswith("blocks/")}
    plots = {f"{plot}.{kind}" for plot in ("stabilising", "relative_cost") for kind in ("png", "svg")}
    assert names == {"comparison.json", "lqr.csv", "table.md"} | plots
    assert (full / "stabilising.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (full / "relative_cost.svg").read_bytes()


def test_csv(full: Path) -> None:
    rows = read_csv(full)
    assert list(rows[0]) == ["method", "trial", "timesteps", "relative_cost"]
    too_large = {"ars-v1-16"}  # for this budget: its first iteration has 9664 timesteps
    assert {row["method"] for row in rows} == {method.name for method in methods(Problem.paper())} - too_large
    assert {int(row["trial"]) for row in rows} == set(range(BLOCK + 2))
    costs = [float(row["relative_cost"]) for row in rows]
    assert not np.isnan(costs).any()
    assert "inf" in {row["relative_cost"] for row in rows}
    assert max(int(row["timesteps"]) for row in rows) == 3000
    assert {int(row["timesteps"]) for row in rows if row["method"] == "ars-v1"} == {2416}


def test_the_same_seed_gives_the_same_bytes(full: Path, tmp_path: Path) -> None:
    compare(out=tmp_path, **SMALL)
    assert contents(tmp_path) == contents(full)


def test_two_workers_give_the_same_bytes(done: Path, tmp_path: Path) -> None:
    compare(out=tmp_path / "parallel", workers=2, **SMALL)
    assert contents(tmp_path / "parallel") == contents(done)


@dataclass(frozen=True)
class Dies:
    """A method that takes its process down."""

    name: str = "dies"
    label: str = "Dies"
    unit: int = 1

    def run(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[float]:
        os._exit(7)


def test_a_worker_that_dies_is_a_sentence_and_the_rest_is_kept(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "methods", lambda problem: [*methods(problem)[:1], Dies()])
    with pytest.raises(WorkerError, match=r"ended with code 7\. Finished blocks are saved: the same command continues"):
        compare(out=tmp_path, trials=2, budget=3000, workers=2)
    assert [path.name for path in (tmp_path / "blocks").iterdir()] in ([], ["nominal-6-0000-0002.json"])


def test_what_is_done_is_not_done_again(done: Path) -> None:
    before = contents(done)
    seen: list[Progress] = []
    compare(out=done, progress=seen.append, **SMALL)
    assert [step.done for step in seen] == [1, 2, 3, 4]
    assert all(step.reused and step.total == 4 for step in seen)
    assert contents(done) == before


KILLED = """
import os, signal, sys
from ars.experiments.lqr import comparison

def progress(step):
    if step.done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

two = comparison.methods(comparison.Problem.paper())[:2]
comparison.methods = lambda problem: two
trials, budget, seed = map(int, sys.argv[2:])
comparison.compare(out=sys.argv[1], progress=progress, trials=trials, budget=budget, seed=seed)
"""


def test_killed_and_resumed(done: Path, tmp_path: Path) -> None:
    out, arguments = tmp_path / "killed", [str(SMALL[name]) for name in ("trials", "budget", "seed")]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out), *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list((out / "blocks").iterdir())) == 3
    assert not (out / "lqr.csv").exists()
    seen: list[Progress] = []
    compare(out=out, progress=seen.append, **SMALL)
    assert [step.reused for step in seen] == [True, True, True, False]
    assert contents(out) == contents(done)


@pytest.mark.parametrize(
    "damage",
    [
        lambda saved: "",
        lambda saved: "{",
        lambda saved: "[]",
        lambda saved: json.dumps(saved)[:-9],
        lambda saved: json.dumps({**saved, "format": 0}),
        lambda saved: json.dumps({**saved, "method": {**saved["method"], "H": 7}}),
        lambda saved: json.dumps({**saved, "relative_cost": 1}),
        lambda saved: json.dumps({**saved, "relative_cost": saved["relative_cost"][:-1]}),
        lambda saved: json.dumps({**saved, "relative_cost": [["x"]]}),
        lambda saved: json.dumps({**saved, "relative_cost": [[math.nan] * len(saved["timesteps"])] * BLOCK}),
    ],
)
def test_a_damaged_block_is_done_again(done: Path, damage: Callable[[dict[str, Any]], str]) -> None:
    before = contents(done)
    path = done / "blocks" / "nominal-6-0000-0010.json"
    path.write_text(damage(json.loads(path.read_text())))
    compare(out=done, **SMALL)
    assert contents(done) == before


def test_more_trials_keep_those_there_are(done: Path) -> None:
    before = read_csv(done)
    seen: list[Progress] = []
    compare(out=done, progress=seen.append, **{**SMALL, "trials": 2 * BLOCK})
    assert sum(step.reused for step in seen) == 2
    after = read_csv(done)
    assert len(after) > len(before)
    assert [row for row in after if int(row["trial"]) < SMALL["trials"]] == before


@pytest.mark.parametrize(("change", "name"), [({"seed": 5}, "seed"), ({"budget": 2000}, "budget")])
def test_a_folder_of_another_comparison(done: Path, change: dict[str, int], name: str) -> None:
    with pytest.raises(FileError, match=f"contains a comparison with another {name}: choose another --out"):
        compare(out=done, **{**SMALL, **change})
    with pytest.raises(FileError, match="another problem"):
        compare(Problem.random(2, 1, 1.1, 0), out=done, **SMALL)


@pytest.mark.parametrize(
    ("setting", "value"), [("trials", 0), ("trials", 1.5), ("budget", 99), ("seed", -1), ("workers", True)]
)  # fmt: skip
def test_settings_that_cannot_be(tmp_path: Path, setting: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{setting} = {value!r} must be a whole number"):
        compare(out=tmp_path / "new", **{setting: value})
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="Cannot create the folder"):
        compare(out=tmp_path / "file", **SMALL)


def test_another_instance_with_extensions(tmp_path: Path) -> None:
    problem = Problem.random(2, 1, 1.05, seed=1)
    result = compare(problem, out=tmp_path, trials=2, budget=5000, with_extensions=True)
    assert [r.extension for r in result.results] == [False] * len(methods(problem)) + [True] * len(extensions(problem))
    assert (tmp_path / "relative_cost-extensions.png").exists()
    assert result.table == (tmp_path / "table.md").read_text()
    assert result.table.count("(extension)") == 2 * len(extensions(problem))
    assert all(result.costs.shape == (2, len(result.timesteps)) for result in result.results)


def test_a_budget_too_small_for_some_methods(tmp_path: Path) -> None:
    result = compare(out=tmp_path, trials=1, budget=100)
    assert {r.name: len(r.timesteps) for r in result.results}["ars-v1"] == 0
    assert "| ARS V1, N = 4 | never | never | – | – |" in result.table


def test_checkpoints_are_what_a_method_can_spend() -> None:
    assert checkpoints(1000, 1) == [100, 150, 200, 300, 400, 500, 600, 800, 1000]
    assert checkpoints(1000, 302) == [302, 604, 906]
    assert checkpoints(1_000_000, 2416)[-1] == 413 * 2416
    assert checkpoints(700, 100) == [100, 200, 300, 400, 500, 600, 700]
    assert checkpoints(100, 302) == []


# -- statistics and table, by hand -------------------------------------------------------------------------------------

COSTS = np.array([[np.inf, 4.0, 0.04], [np.inf, 3.0, 0.03], [np.inf, 2.0, 0.02], [1.0, np.inf, 0.05]])


def test_statistics_by_hand() -> None:
    assert stabilising(COSTS).tolist() == [0.25, 0.75, 1.0]
    assert percentile(COSTS, 50).tolist() == [np.inf, 3.0, 0.03]
    assert percentile(COSTS, 2).tolist() == [1.0, 2.0, 0.02]
    assert percentile(COSTS, 98).tolist() == [np.inf, np.inf, 0.05]


def test_looking_up_checkpoints() -> None:
    assert [index_at([6, 60, 600], t) for t in (5, 6, 599, 10**6)] == [None, 0, 1, 2]
    assert first([6, 60, 600], np.array([False, True, True])) == 60
    assert first([6, 60, 600], np.array([False, False, False])) is None


def test_table_by_hand() -> None:
    text = report.table([Result("ars-v1", "ARS V1", False, [100, 500, 1000], COSTS)], 1000)
    assert "| ARS V1 | 1,000 | 1,000 | 100% | .030 [.020, .050] |" in text
    assert "| ARS V1 | 25% ∞ | 100% .030 |" in text
    assert "4 trials a method" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.inf, "∞"),
        (123.4, "123"),
        (1.26, "1.3"),
        (0.332, ".33"),
        (0.0098, ".0098"),
        (0.1, ".10"),
        (0.0, "0"),
        (1.94e-4, "1.9e-4"),
    ],
)
def test_numbers_of_the_table(value: float, text: str) -> None:
    assert report.number(value) == text


def test_csv_by_hand() -> None:
    rows = report.rows([Result("ars-v1", "ARS V1", False, [100, 500, 1000], COSTS[:1])])
    assert rows == "method,trial,timesteps,relative_cost\nars-v1,0,100,inf\nars-v1,0,500,4\nars-v1,0,1000,0.04\n"
