"""The grid of worlds, the file, the page, and the check of a robot before its training."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.cli import main
from ars.errors import ArsError, FileError, TaskError
from ars.experiments import robustness
from ars.experiments.robot_check import check_robot
from ars.experiments.robustness import measure_robustness, summary
from ars.files import write_json
from ars.page.robustness import read_robustness
from ars.policy import LinearPolicy
from ars.robots import Alive, Forward, Height, JointPositions, Keyframe, Observe, PositionTargets, Robot, Torque
from ars.tasks import make
from own_robots import LEG, XML


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of 14 worlds."""
    for name, values in {
        "FRICTION": (0.01, 1.0), "MASS": (-0.1, 0.3), "PUSH": (0.1, 3.0), "DIRECTION": (0, 90, 180), "DELAY": (0, 3),
        "SLOPE": (0, 10),
    }.items():  # fmt: skip
        monkeypatch.setattr(robustness, name, values)


def policy(n: int = 14, p: int = 1) -> LinearPolicy:
    return LinearPolicy(np.zeros((p, n)), np.zeros(n), np.ones(n), {"name": "own_robots:LEG"})


@pytest.mark.usefixtures("small")
def test_a_grid_has_the_same_result_with_any_number_of_workers() -> None:
    one, two = (measure_robustness(policy(), LEG, workers=workers) for workers in (1, 2))
    assert one == two
    assert one["conditions"] == 14
    assert 0 < one["survived"] < 14
    shares = [share for part in one["maps"] for row in part["survived"] for share in row]
    assert sum(share == 1.0 for share in shares) == one["survived"]
    assert min(shares) < 0.999
    assert len(list(summary(one))) == 4
    push = one["maps"][1]
    assert push["survived"][0][0] == 1.0
    assert push["survived"][0][1] < 1.0  # three times its weight, from behind


def test_the_whole_grid_has_at_least_500_worlds() -> None:
    assert sum(each.size for each in robustness.maps(12.0, 5.0, 9.81, 10.0)) >= 500


@pytest.mark.usefixtures("small")
def test_the_six_have_it_too() -> None:
    zero = LinearPolicy(np.zeros((3, 11)), np.zeros(11), np.ones(11))
    result = measure_robustness(zero, "Hopper-v1", workers=2)
    assert result["survived"] == 0
    assert 0.0 < result["maps"][0]["survived"][0][0] < 0.5


@pytest.mark.usefixtures("small")
def test_the_command_and_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "leg.npz", tmp_path / "page.html"
    policy().save(file)
    with pytest.raises(SystemExit) as exit_:
        main(["robustness", str(file), "--task", "own_robots:LEG", "--out", str(out), "--workers", "1"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert "of 14 conditions" in said
    assert "Friction and mass" in said
    assert "robustness" in out.read_text()
    with pytest.raises(SystemExit) as exit_:
        main(["robustness", str(file), "--task", "CartPole-v1", "--out", str(out)])
    assert exit_.value.code == 2
    assert "is not a robot of MuJoCo" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "robustness.json"
    assert read_robustness(path) is None
    result = measure_robustness(policy(), LEG, workers=1)
    write_json(path, result)
    shown = read_robustness(path)
    assert shown
    assert shown["maps"] == [{**part, "ys": [float(y) for y in part["ys"]]} for part in result["maps"]]
    for wrong in ("[]", "{}", "nonsense", json.dumps({**result, "maps": [{}]}), '{"maps": [1]}'):
        path.write_text(wrong)
        with pytest.raises(FileError, match="is damaged"):
            read_robustness(path)
    worse: dict[str, Any] = json.loads(json.dumps(result))
    worse["maps"][0]["speed"][0].append(1.0)
    path.write_text(json.dumps(worse))
    with pytest.raises(FileError, match="is damaged"):
        read_robustness(path)


# -- ars robot check ---------------------------------------------------------------------------------------------------


def test_a_check_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["robot", "check", "own_robots:LEG"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert "14 observations, 1 actions, 50 steps of 0.02 s" in said
    for words in ("imu ωx", "JointVelocities", "swing", "Forward", "control steps per second"):
        assert words in said


def falling() -> Robot:
    low = XML.replace('pos="0 0 0.3"', 'pos="0 0 2"')
    return Robot(
        model=low, control_hz=50, start=Keyframe("home"), action=PositionTargets("home", scale=1e4, limit=1e-4),
        observe=[JointPositions()], reward=[Forward(1.0), Alive(1e6), Torque(0.0)], stop=[Height(1.7)], seconds=2,
    )  # fmt: skip


def test_a_check_warns_of_what_will_not_learn() -> None:
    said = "\n".join(check_robot(falling(), "falling").warnings)
    assert "it falls after 0." in said
    assert "reward_Alive is 5e+07 per second" in said
    assert "reward_Torque is always zero" in said
    assert "of the actions are at their limit" in said


def beyond(s: Any, k: Any, m: Any, x: Any) -> None:
    x[0] = s.qpos[1000]


def test_an_index_beyond_an_array_is_found_before_it_is_compiled() -> None:
    robot = replace(LEG, observe=[Observe(beyond, 1)])
    with pytest.raises(TaskError, match=r"leg: its term beyond \(line \d+\) fails: IndexError"):
        check_robot(robot, "beyond")
    with pytest.raises(ArsError, match="IndexError"):
        make("beyond:<beyond>", own=robot)


def test_a_name_that_is_no_robot(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["robot", "check", "CartPole-v1"])
    assert "CartPole-v1 is not a robot" in capsys.readouterr().err
