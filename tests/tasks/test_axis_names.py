"""Names of observations and actuators: the model's, written down here by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.interop.exports import FORMATS, export, names
from ars.saved_config import run_identity
from ars.tasks import locomotion, make
from ars.tasks.axis_names import name_axes
from batches import paper_config
from small_runs import small_policy

CHEETAH = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")


def of(task: str, **more: Any) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    made = make(task, **more)
    found = name_axes(task, json.loads(json.dumps(made.definition())), made.n, made.p)
    made.close()
    return found.rows, {kind.title: kind.names for kind in found.columns}


def test_half_cheetah() -> None:
    rows, blocks = of("HalfCheetah-v1")
    assert rows == CHEETAH
    assert blocks == {
        "positions": ("rootz", "rooty", *CHEETAH),
        "velocities": ("rootx", "rootz", "rooty", *CHEETAH),
    }


def test_motors_without_a_name_have_that_of_their_joint() -> None:
    rows, blocks = of("Hopper-v5")
    assert rows == ("thigh_joint", "leg_joint", "foot_joint")
    assert blocks["positions"] == ("rootz", "rooty", *rows)
    assert of("Ant-v5")[0] == ("hip_4", "ankle_4", "hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3")


def test_humanoid_has_its_blocks() -> None:
    rows, blocks = of("Humanoid-v1")
    assert rows[:4] == ("abdomen_y", "abdomen_z", "abdomen_x", "right_hip_x")
    sizes = {title: len(columns) for title, columns in blocks.items()}
    assert sizes == {"positions": 22, "velocities": 23, "inertia": 140, "body velocities": 84, "motor forces": 23,
                     "contact forces": 84}  # fmt: skip
    assert blocks["positions"][:6] == ("root z", "root qw", "root qx", "root qy", "root qz", "abdomen_z")
    assert blocks["velocities"][:7] == ("root vx", "root vy", "root vz", "root ωx", "root ωy", "root ωz", "abdomen_z")
    assert blocks["motor forces"][:7] == ("root fx", "root fy", "root fz", "root τx", "root τy", "root τz", "abdomen_z")
    assert blocks["inertia"][9:11] == ("world mass", "torso Ixx")
    assert blocks["contact forces"][-1] == "left_lower_arm force z"


@pytest.mark.parametrize("task", sorted(locomotion.TASKS))
def test_a_column_is_where_its_name_says(task: str) -> None:
    """Moving one joint changes the observation in the column that has its name."""
    import mujoco

    _, blocks = of(task)
    columns = [name for title in blocks for name in blocks[title]]
    robot = locomotion.TASKS[task]
    model = locomotion.load_model(robot)
    data = mujoco.MjData(model)

    def observe() -> np.ndarray:
        mujoco.mj_forward(model, data)
        return np.concatenate([getattr(data, part.field).ravel()[part.start :] for part in robot.observation])

    joint = model.joint(model.njnt - 1)
    before = observe()
    data.qpos[joint.qposadr[0]] += 0.01
    changed = np.flatnonzero(observe() != before)
    assert columns[changed[0]] == joint.name
    assert len(columns) == len(before)


LEGS = tuple(f"{leg}_{link}_joint" for leg in ("FR", "FL", "RR", "RL") for link in ("hip", "thigh", "calf"))


def test_a_robot_of_terms_has_the_names_of_its_definition() -> None:
    rows, blocks = of("Quadruped-v1")
    assert rows == LEGS
    assert list(blocks) == ["Gyro", "Gravity", "Heading", "JointPositions", "JointVelocities", "Clock"]
    assert blocks["Gyro"] == ("imu ωx", "imu ωy", "imu ωz")
    assert blocks["JointPositions"] == LEGS
    _, blocks = of("Quadruped-v1", observe="Heading,JointPositions,clock sin")
    assert blocks == {"Heading": ("imu heading",), "JointPositions": LEGS, "Clock": ("clock sin",)}


def test_the_names_reach_c_onnx_and_json() -> None:
    policy = small_policy("Quadruped-v1")
    named = names(policy)
    assert named["observation"][7] == "JointPositions: FR_hip_joint"
    assert named["action"] == list(LEGS)
    for to in FORMATS:
        content = export(policy, to)
        assert b"RL_calf_joint" in content
        assert b"x32" not in content


MODEL = """
<mujoco>
  <worldbody>
    <body name="box">
      <joint name="x" type="slide"/><joint name="spin" type="hinge"/><joint type="hinge"/>
      <geom size="0.1"/><site name="nose"/>
    </body>
  </worldbody>
  <actuator><motor joint="spin"/><motor name="jet" joint="x"/><motor site="nose" gear="1 0 0 0 0 0"/></actuator>
</mujoco>"""


def test_a_description_of_ones_own_has_the_names_of_its_model(tmp_path: Path) -> None:
    (tmp_path / "box.xml").write_text(MODEL)
    parts = locomotion.Slice("qpos", 1, 3), locomotion.Slice("qvel", 0, 2)
    robot = locomotion.Locomotion(name="box", xml=str(tmp_path / "box.xml"), frame_skip=1, observation=parts)
    rows, blocks = of("Locomotion:<box>", own=robot)
    assert rows == ("spin", "jet", "actuator 2")  # its own name, that of its joint, or a number
    assert blocks == {"positions": ("spin", "joint 2"), "velocities": ("x", "spin")}
    assert of("Locomotion:<box>", own=robot, observe="1-2")[1] == {"positions": ("joint 2",), "velocities": ("x",)}


def test_names_are_no_part_of_what_a_run_is() -> None:
    """Runs of a user's robot can be resumed that were made before definitions had names; the six have none."""
    config = paper_config("V1", task="a:b", H=5, shift=0.0)
    named = {"n": 1, "names": {"observation": [], "action": []}}
    assert run_identity(config, named) == run_identity(config, {"n": 1})
    assert run_identity(config, {"n": 2}) != run_identity(config, {"n": 1})
    assert all("names" not in make(task).definition() for task in ("Hopper-v1", "Ant-v5"))


def named_robot(n: object, p: object, title: object = "Gyro") -> dict[str, object]:
    return {"actuators": p, "observe": [{"term": title, "names": n}]}


@pytest.mark.parametrize(
    "definition",
    [
        {"robot": None},
        {"robot": {}},
        {"robot": named_robot(["a", "b"], ["m", "n"])},  # too few
        {"robot": named_robot(["a", "b", 3], ["m", "n"])},
        {"robot": named_robot("abc", ["m", "n"])},
        {"robot": named_robot(["a", "b", "c"], "mn")},
        {"robot": named_robot(["a", "b", "c"], ["m", "n"], title=7)},
        {"robot": {"actuators": ["m", "n"], "observe": {"term": "Gyro", "names": ["a", "b", "c"]}}},
        {"robot": named_robot(["a", "b", "c"], ["m", "n"]), "observe": "7-9"},
        {"names": 5},
        {"names": {"observation": [{"title": "t"}], "action": ["m", "n"]}},
        {"names": {"observation": [{"title": "t", "names": ["a", "b", "c"]}], "action": ["m"]}},
    ],
)
def test_names_in_a_file_that_do_not_fit_are_not_used(definition: dict[str, Any]) -> None:
    found = name_axes("mine:ROBOT", definition, 3, 2)
    assert found.rows == ("a0", "a1")
    assert [kind.title for kind in found.columns] == ["observations"]
    good = {"robot": named_robot(["a", "b", "c"], ["m", "n"])}
    assert name_axes("mine:ROBOT", good, 3, 2).rows == ("m", "n")


def test_other_tasks() -> None:
    rows, blocks = of("CartPole-v1")
    assert rows == ("choice 0", "choice 1")
    assert blocks == {"observations": ("x0", "x1", "x2", "x3")}
    structure = {"dict": [["arm", {"shape": [2]}], ["goal", {"dict": [["x", {"shape": []}], ["kind", {"n": 2}]]}]]}
    found = name_axes("mine:make", {"observation": structure}, 5, 1)
    assert found.columns[0].names == ("arm 0", "arm 1", "goal x", "goal kind 0", "goal kind 1")
    assert found.rows == ("a0",)


@pytest.mark.parametrize(
    "observation",
    [
        None,
        3,
        {},
        {"shape": "x"},
        {"dict": 5},
        {"dict": [["a", {"shape": [10**9]}]]},
        {"dict": [["a"]]},
        {"shape": [9]},
    ],
)
def test_what_a_file_says_does_no_harm(observation: object) -> None:
    found = name_axes("mine:make", {"observation": observation, "actions": "?"}, 3, 2)
    assert found.columns[0].names == ("x0", "x1", "x2")
    wrong_size = name_axes("Hopper-v1", {}, 3, 2)  # a file that calls itself Hopper-v1 and is not
    assert wrong_size.rows == ("a0", "a1")
