"""The policies that come with the package reach what their README says, exactly where the versions are the same."""

import json
from pathlib import Path

import pytest

import ars
from ars.curves import load_all
from ars.errors import FileError
from ars.policies import FOLDER, names, shipped
from ars.presets import THRESHOLDS
from ars.versions import versions

SETTINGS = ("task", "variant", "alpha", "nu", "N", "b", "seed", "eval_episodes")
KNOWN = json.loads((FOLDER / "evaluations.json").read_text())


def test_every_robot_has_a_policy() -> None:
    assert {f"{robot}-v1" for robot in THRESHOLDS} <= set(names())
    assert sorted(KNOWN) == names()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_evaluation_is_reproduced(name: str) -> None:
    known = KNOWN[name]
    policy = ars.LinearPolicy.load(shipped(name))
    assert policy.task["name"] == known["task"]
    found = ars.evaluate(policy, episodes=100, workers=2).summary()
    if all(known["versions"][package] == versions()[package] for package in ("mujoco", "numpy", "numba", "machine")):
        assert found == known["evaluation"]
    else:  # other versions of the physics: near it, robots that fall now and then being the worst
        assert found["mean"] == pytest.approx(known["evaluation"]["mean"], rel=0.3)
    line = next(row for row in (FOLDER / "README.md").read_text().splitlines() if row.startswith(f"| {name} |"))
    assert f"| {known['evaluation']['mean']:.2f} |" in line


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_policy_is_the_best_of_its_run_in_the_results(name: str) -> None:
    """When results go on, python -m tools.shipping ships the better policies."""
    known = KNOWN[name]
    runs = [
        run
        for run in load_all(Path(__file__).parents[1] / "results" / "runs")[0]
        if all(getattr(run.config, setting) == known[setting] for setting in SETTINGS)
    ]
    assert [run.evaluations["iteration"][run.rewards.argmax()] for run in runs] == [known["iteration"]]


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(FileError, match="Swimmer-v1"):
        shipped("Nothing-v1")
