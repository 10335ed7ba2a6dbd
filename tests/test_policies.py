"""Policies by file, run folder or name; those that come with the package reach what their README says."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ars
from ars.curves import load_all
from ars.errors import FileError
from ars.policies import FOLDER, names, open_policy, shipped
from ars.policy import LinearPolicy
from ars.presets import THRESHOLDS, threshold
from ars.records import Evaluation
from ars.versions import versions
from small_runs import train

SETTINGS = ("alpha", "nu", "N", "b", "eval_episodes")
KNOWN = json.loads((FOLDER / "evaluations.json").read_text())


def policy_of(value: float) -> LinearPolicy:
    """One that can be told from others."""
    return LinearPolicy(np.full((3, 11), value), np.zeros(11), np.ones(11), {"name": "Hopper-v1"})


# -- which policy is meant --------------------------------------------------------------------------------------------


def test_our_own_files_and_run_folders(tmp_path: Path) -> None:
    """A run folder stands for its best policy, or for the latest where there is no evaluation yet."""
    policy_of(1.0).save(tmp_path / "policy.npz")
    for what in (str(tmp_path / "policy.npz"), tmp_path):
        assert open_policy(what).M[0, 0] == 1.0
    policy_of(2.0).save(tmp_path / "best.npz")
    assert open_policy(str(tmp_path)).M[0, 0] == 2.0


def test_a_name_where_no_file_of_that_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_policy("Hopper-v1").M.tobytes() == LinearPolicy.load(shipped("Hopper-v1")).M.tobytes()
    with pytest.raises(FileError, match=r"'Hoper-v1'.*Hopper-v1.* do\."):
        open_policy("Hoper-v1")
    policy_of(3.0).save(tmp_path / "Hopper-v1")
    assert open_policy("Hopper-v1").M[0, 0] == 3.0


@pytest.mark.parametrize("what", ["nothing.npz", "no/where", "", "\0", "x" * 5000, "../" * 50])
def test_what_is_not_there_is_a_sentence(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError):
        open_policy(what)


EVALUATE = """
import sys
from ars.cli import main
try:
    main(["evaluate", sys.argv[1], "--task", sys.argv[2], "--episodes", "1", "--workers", "1", "--json"])
finally:
    print("loaded" if "ars.interop.pickles" in sys.modules else "not loaded")
"""


@pytest.mark.parametrize("kind", ["run", "file", "name", "foreign"])
def test_the_reader_of_pickles_is_loaded_for_foreign_files_only(kind: str, tmp_path: Path) -> None:
    train(tmp_path / "run", "Swimmer-v1", iterations=2)
    parts = np.empty(3, dtype=object)
    parts[:] = np.ones((2, 8)), np.zeros(8), np.ones(8)
    np.savez(tmp_path / "theirs.npz", parts)
    what = {"run": "run", "file": "run/policy.npz", "name": "Swimmer-v1", "foreign": "theirs.npz"}[kind]
    command = [sys.executable, "-c", EVALUATE, what, "Swimmer-v1"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout.splitlines()[-1] == ("loaded" if kind == "foreign" else "not loaded")


# -- what comes with the package --------------------------------------------------------------------------------------


def test_every_robot_has_a_policy() -> None:
    assert {f"{robot}-v1" for robot in THRESHOLDS} <= set(names())
    assert sorted(KNOWN) == names()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_evaluation_is_reproduced(name: str) -> None:
    """Ten of its hundred episodes, to the bit; what is said of them all follows from their rewards."""
    known = KNOWN[name]
    policy = ars.LinearPolicy.load(shipped(name))
    assert policy.task["name"] == known["task"]
    rewards, steps = np.array(known["rewards"]), np.array(known["steps"])
    assert Evaluation(rewards, steps, dropped=0).summary() == known["evaluation"]
    assert len(rewards) == 100
    reached, least = known["evaluation"]["mean"], threshold(known["task"])
    if all(known["versions"][package] == versions()[package] for package in ("mujoco", "numpy", "numba", "machine")):
        found = ars.evaluate(policy, episodes=10, workers=2)
        assert (found.rewards.tolist(), found.steps.tolist()) == (known["rewards"][:10], known["steps"][:10])
    else:  # with other physics the rewards differ, but a task that was solved still is
        least = 0.9 * reached if least is None else least
        assert ars.evaluate(policy, episodes=100, workers=2).summary()["mean"] >= least or reached < least
    line = next(row for row in (FOLDER / "README.md").read_text().splitlines() if row.startswith(f"| {name} |"))
    assert f"| {reached:.2f} |" in line


@pytest.mark.results
@pytest.mark.parametrize("name", sorted(name for name, one in KNOWN.items() if "made" not in one))
def test_a_policy_is_the_best_of_its_run_in_the_results(name: str) -> None:
    """When results go on, python -m tools.shipping ships the better policies."""
    known = KNOWN[name]
    runs = [
        run
        for run in load_all(Path(__file__).parents[1] / "results" / "runs")[0]
        if (run.task, run.label, run.seed) == (known["task"], known["variant"], known["seed"])
        and all(run.settings[setting] == known[setting] for setting in SETTINGS)
    ]
    assert [run.columns["at_iteration"][run.rewards.argmax()] for run in runs] == [known["iteration"]]


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(FileError, match="Swimmer-v1"):
        shipped("Nothing-v1")
