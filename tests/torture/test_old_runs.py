"""Runs and policies that earlier versions wrote stay readable: tests/fixtures/format1 and format2 are what these
formats looked like when they were new. Never write these files anew: a new format gets a folder of its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars.errors import FileError
from ars.runs import Run
from ars.saved_config import FORMAT

FIXTURES = Path(__file__).parent.parent / "fixtures"
EXPECTED: dict[str, dict[str, Any]] = {
    f"{path.parent.name}/{name}": expected
    for path in sorted(FIXTURES.glob("format*/expected.json"))
    for name, expected in json.loads(path.read_text()).items()
}

# What is computed anew may differ in the last bits with other versions of NumPy, Numba and MuJoCo, and a robot's
# simulation in more than these: loading is exact, and the rest must agree to so much.
RELATIVE = {"lqr": 1e-6, "cartpole": 1e-6, "swimmer": 1e-2}


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / request.param, tmp_path / request.param))


def name_of(old: Path) -> str:
    """Of a copy: format1/lqr."""
    return f"{old.parent.name}/{old.name}"


def test_the_fixtures_are_there() -> None:
    assert set(EXPECTED) == {f"{kind}/{name}" for kind in ("format1", "format2") for name in RELATIVE}
    assert set(EXPECTED) == {f"{path.parent.name}/{path.name}" for path in FIXTURES.glob("format*/*/")}


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_an_old_run_is_opened_as_it_was(old: Path) -> None:
    expected = EXPECTED[name_of(old)]
    with Run.open(old) as run:
        assert run.config.task == expected["task"]
        assert run.state.j == expected["iterations"] == len((old / "records.jsonl").read_text().splitlines())
        assert run.policy().M.tolist() == expected["M"]
        assert run.best is not None
    for file in ("checkpoint.npz", "records.jsonl", "config.json"):
        assert (old / file).read_bytes() == (FIXTURES / name_of(old) / file).read_bytes()


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_an_old_policy_acts_and_is_evaluated(old: Path) -> None:
    expected = EXPECTED[name_of(old)]
    policy = ars.LinearPolicy.load(old / "best.npz")
    assert policy.act([1.0] * policy.n).tolist() == expected["act on ones"]
    mean = ars.evaluate(policy, episodes=5).summary()["mean"]
    assert mean == pytest.approx(expected["evaluate --episodes 5"], rel=RELATIVE[old.name])


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_an_old_run_is_resumed(old: Path) -> None:
    expected = EXPECTED[name_of(old)]
    more = list(ars.resume(old, iterations=expected["iterations"] + 2))
    assert [record.iteration for record in more] == [expected["iterations"] + 1, expected["iterations"] + 2]
    limit = RELATIVE[old.name]
    assert [record.reward_mean for record in more] == pytest.approx(expected["resumed reward_mean"], rel=limit)
    np.testing.assert_allclose(more[-1].policy.M, expected["resumed M"], rtol=limit, atol=1e-9)


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_a_resumed_run_is_written_in_the_latest_format(old: Path) -> None:
    """Each file by itself, so that a kill between the two leaves what can be read."""
    expected = EXPECTED[name_of(old)]
    list(ars.resume(old, iterations=expected["iterations"] + 1))
    assert json.loads((old / "config.json").read_text())["format"] == FORMAT
    with np.load(old / "checkpoint.npz") as saved:
        assert saved["format"] == FORMAT
    for name in ("checkpoint.npz", "records.jsonl"):  # the configuration is written first
        shutil.copy(FIXTURES / name_of(old) / name, old / name)
    with Run.open(old) as run:
        assert run.state.j == expected["iterations"]
        assert run.policy().M.tolist() == expected["M"]


@pytest.mark.parametrize("old", EXPECTED, indirect=True)
def test_a_format_to_come_is_a_sentence(old: Path) -> None:
    """It names the formats, and leaves the run alone."""
    saved = json.loads((old / "config.json").read_text())
    (old / "config.json").write_text(json.dumps({**saved, "format": FORMAT + 1}))
    with pytest.raises(ars.ArsError, match=r"format 3 is unknown to this version of ars, which reads 2 and 1"):
        ars.resume(old)
    assert (old / "policy.npz").read_bytes() == (FIXTURES / name_of(old) / "policy.npz").read_bytes()


@pytest.mark.parametrize("old", ["format1/cartpole"], indirect=True)
def test_an_old_checkpoint_beside_settings_of_today_is_refused(old: Path) -> None:
    """The oldest checkpoints have no duels: with such a configuration it is a mix of two runs."""
    list(ars.resume(old, iterations=EXPECTED[name_of(old)]["iterations"] + 1))  # writes the latest config.json
    config = json.loads((old / "config.json").read_text())
    config["config"] |= {"duel": 300, "protocol": "frugal"}
    (old / "config.json").write_text(json.dumps(config))
    shutil.copy(FIXTURES / name_of(old) / "checkpoint.npz", old)
    with pytest.raises(FileError, match="format 1 has no search other than ars, and no duels"):
        Run.open(old)
