"""A new search is one file and one line: flags, run folder, resume, sweep, page and curve follow by themselves.

The package is copied, the file and the line are added to the copy, and commands are run as a user would.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ars

TOY = '''\
"""Steps along the sign of the reward: a search for tests."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ars.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class SignSearch:
    """M moves by `step` along the signs of the better candidate, and `step` shrinks; directions are added meanwhile."""

    signs: ClassVar[tuple[int, ...]] = (+1,)

    nu: float = setting(0.1, help="Standard deviation of the exploration noise.", above=0, shrink=True)
    pairs: int = setting(3, help="Directions of the first iteration.", least=1, most=1000)
    decay: float = setting(0.9, help="What the step-size is multiplied by after an iteration.", above=0)

    def __post_init__(self):
        check_settings(self)

    def initial(self, shape):
        return {"M": np.zeros(shape), "step": np.array(0.05), "count": np.array(float(self.pairs))}

    def size(self, params):
        return int(params["count"])

    def candidate(self, params, delta, sign):
        return params["M"] + sign * self.nu * delta

    def step(self, params, deltas, rewards):
        best = int(np.nanargmax(rewards[:, 0]))
        step = float(params["step"])
        after = {"M": params["M"] + step * np.sign(deltas[best]), "step": params["step"] * self.decay}
        after["count"] = params["count"] + 1.0
        return after, {"step_size": step, "best_direction": float(best)}

    def label(self, normalise):
        return "sign"
'''
SETTINGS = (
    "--search",
    "sign",
    "--pairs",
    "2",
    "--nu",
    "0.2",
    "--protocol",
    "paper",
    "--eval-every",
    "2",
    "--eval-episodes",
    "2",
    "--seed",
    "4",
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with one more file and one more line."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(Path(ars.__file__).parent, folder / "ars", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "ars" / "searches" / "sign.py").write_text(TOY)
    registry = folder / "ars" / "searches" / "__init__.py"
    text = registry.read_text()
    line = '    "ars": "ars:ARS",\n'
    assert text.count(line) == 1
    registry.write_text(text.replace(line, f'{line}    "sign": "sign:SignSearch",\n'))
    return folder


def run(toy: Path, *words: str, code: int = 0) -> str:
    env = {**os.environ, "PYTHONPATH": str(toy)}
    done = subprocess.run(
        [sys.executable, "-m", "ars", *words], cwd=toy, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def trained(toy: Path) -> Path:
    run(toy, "train", "CartPole-v1", *SETTINGS, "--iterations", "4", "--out", "whole")
    return toy / "whole"


def test_its_flags_are_in_the_help(toy: Path) -> None:
    shown = " ".join(run(toy, "train", "--help").split())
    assert "--pairs" in shown
    assert "Directions of the first iteration." in shown
    assert "--decay" in run(toy, "sweep", "--help")


def test_a_run_folder_holds_it(trained: Path) -> None:
    saved = json.loads((trained / "config.json").read_text())["config"]
    assert saved["search"] == {"name": "sign", "nu": 0.2, "pairs": 2, "decay": 0.9}
    records = [json.loads(line) for line in (trained / "records.jsonl").read_text().splitlines()]
    assert [record["episodes"] for record in records] == [2, 5, 9, 14]  # one-sided, one direction more each time
    assert [round(record["step_size"], 6) for record in records] == [0.05, 0.045, 0.0405, 0.03645]
    with np.load(trained / "checkpoint.npz") as arrays:
        assert {name for name in arrays.files if name.startswith("param.")} == {"param.M", "param.step", "param.count"}


def test_it_resumes_to_the_same_bits_with_other_workers(toy: Path, trained: Path) -> None:
    run(toy, "train", "CartPole-v1", *SETTINGS, "--iterations", "2", "--out", "half", "--workers", "2")
    run(toy, "resume", "half", "--iterations", "4", "--workers", "1")
    for file in ("policy.npz", "best.npz"):
        assert (toy / "half" / file).read_bytes() == (trained / file).read_bytes()


def test_settings_that_cannot_work_are_one_sentence(toy: Path) -> None:
    for words, expected in (
        (("--search", "sign", "--nu", "0"), "nu = 0 must be larger than 0"),
        (("--search", "sign", "--pairs", "0"), "pairs = 0 must be a whole number from 1 to 1000"),
        (("--search", "sign", "--alpha", "1"), "'alpha': it belongs to the search ars or es, not to sign"),
        (("--search", "sign", "--variant", "V2"), "variant"),
        (("--pairs", "3"), "'pairs': it belongs to the search sign, not to ars"),
        (("--search", "other"), "other"),
    ):
        said = run(toy, "train", "CartPole-v1", *words, "--out", "never", code=2)
        assert expected in said
        assert said.count("\n") == 1
    assert not (toy / "never").exists()


def test_sweep_page_curve_and_dashboards(toy: Path, trained: Path) -> None:
    said = run(
        toy, "sweep", "CartPole-v1", "--search", "sign", "--seed-list", "1,2", "--grid", "pairs=1,2", "--episodes",
        "20", "--eval-every", "1", "--eval-episodes", "2", "--threshold", "500", "--out", "swept",
    )  # fmt: skip
    assert "pairs" in said
    header, *rows = (toy / "swept" / "sweep.csv").read_text().splitlines()
    assert header.startswith("nu,pairs,decay,seeds")
    assert len(rows) == 2
    names = sorted(path.stem for path in (toy / "swept" / "curves").glob("*.json"))
    assert names[0] == "CartPole-v1-sign-nu0.1-pairs1-decay0.9-seed1-eval2"
    curve = json.loads((toy / "swept" / "curves" / f"{names[0]}.json").read_text())
    assert (curve["learner"], curve["label"], curve["settings"]["pairs"]) == ("sign", "sign", 1)
    assert curve["telemetry"]["episodes"] == [1, 3, 6, 10, 15, 21]
    assert set(curve["telemetry"]) == {"episodes", "step_size", "best_direction"}
    run(toy, "report", "whole", "--seconds", "0", "--out", "page.html")
    page = (toy / "page.html").read_text()
    assert "step_size" in page
    assert "best_direction" in page
    assert "--search sign --nu 0.2 --pairs 2 --decay 0.9" in page
    run(toy, "train", "CartPole-v1", *SETTINGS, "--iterations", "1", "--out", "board", "--tensorboard")
    assert b"train/step_size" in next((toy / "board").glob("events*")).read_bytes()
