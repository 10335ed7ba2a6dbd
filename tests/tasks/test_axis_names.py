"""Names of observations and actuators: the model's, written down here by hand."""

import json

import numpy as np
import pytest

from ars.tasks import locomotion, make
from ars.tasks.axis_names import name_axes

CHEETAH = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")


def of(task: str) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    made = make(task)
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
