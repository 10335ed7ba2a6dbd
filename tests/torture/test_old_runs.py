"""Runs and policies that earlier versions wrote stay readable: tests/fixtures/format1 is what format 1 looked like when
it was new. Never write these files anew: a new format gets a folder of its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars.runs import Run

FOLDER = Path(__file__).parent.parent / "fixtures" / "format1"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())

# What is computed anew may differ in the last bits with other versions of NumPy, Numba and MuJoCo, and a robot's
# simulation in more than these: loading is exact, and the rest must agree to so much.
RELATIVE = {"lqr": 1e-6, "cartpole": 1e-6, "swimmer": 1e-2}


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER / request.param, tmp_path / request.param))


def test_the_fixtures_are_there() -> None:
    assert set(EXPECTED) == set(RELATIVE) == {path.name for path in FOLDER.iterdir() if path.is_dir()}


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_an_old_run_is_opened_as_it_was(old: Path) -> None:
    expected = EXPECTED[old.name]
    with Run.open(old) as run:
        assert run.config.task == expected["task"]
        assert run.state.j == expected["iterations"] == len((old / "records.jsonl").read_text().splitlines())
        assert run.policy().M.tolist() == expected["M"]
        assert run.best is not None
    for file in ("checkpoint.npz", "records.jsonl", "config.json"):
        assert (old / file).read_bytes() == (FOLDER / old.name / file).read_bytes()


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_an_old_policy_acts_and_is_evaluated(old: Path) -> None:
    expected = EXPECTED[old.name]
    policy = ars.LinearPolicy.load(old / "best.npz")
    assert policy.act([1.0] * policy.n).tolist() == expected["act on ones"]
    mean = ars.evaluate(policy, episodes=5).summary()["mean"]
    assert mean == pytest.approx(expected["evaluate --episodes 5"], rel=RELATIVE[old.name])


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_an_old_run_is_resumed(old: Path) -> None:
    expected = EXPECTED[old.name]
    more = list(ars.resume(old, iterations=expected["iterations"] + 2))
    assert [record.iteration for record in more] == [expected["iterations"] + 1, expected["iterations"] + 2]
    limit = RELATIVE[old.name]
    assert [record.reward_mean for record in more] == pytest.approx(expected["resumed reward_mean"], rel=limit)
    np.testing.assert_allclose(more[-1].policy.M, expected["resumed M"], rtol=limit, atol=1e-9)


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
@pytest.mark.parametrize(("file", "find", "put"), [("config.json", b'"format": 1', b'"format": 3')])
def test_a_format_to_come_is_a_sentence(old: Path, file: str, find: bytes, put: bytes) -> None:
    """It names both formats, and leaves the run alone."""
    content = (old / file).read_bytes()
    (old / file).write_bytes(content.replace(find, put))
    with pytest.raises(ars.ArsError, match=r"format 3 is unknown to this version of ars, which reads 2 and 1"):
        ars.resume(old)
    assert (old / "policy.npz").read_bytes() == (FOLDER / old.name / "policy.npz").read_bytes()
