"""The declared mirrors are those of the models: from a mirrored state, mirrored actions lead to mirrored states."""

import mujoco
import numpy as np
import pytest

from ars.errors import TaskError
from ars.tasks import locomotion, make
from ars.tasks.locomotion import Locomotion, Slice
from ars.tasks.mirrors import _bodies, _joints, mirror_of

ROBOTS = [name for name, task in locomotion.TASKS.items() if task.mirror]


def equalised(task: Locomotion) -> tuple[mujoco.MjModel, set[str]]:
    """The model with the same friction, armature, stiffness and ranges left and right, and what differed."""
    model, differed = locomotion.load_model(task), set()
    bodies = _bodies(task, model)

    def copy(field: str, one: int, other: int, sign: float = 1.0) -> None:
        array = getattr(model, field)
        value = array[one].copy() if sign > 0 else -array[one][::-1]
        if not np.allclose(array[other], value):
            differed.add(field)
        array[other] = value

    for body, image in enumerate(bodies):
        if body < image:
            geoms = (np.flatnonzero(model.geom_bodyid == each) for each in (body, image))
            for one, other in zip(*geoms, strict=True):
                copy("geom_friction", one, other)
    for joint, (image, sign) in enumerate(_joints(task, model, bodies)):
        if joint < image:
            copy("dof_armature", model.jnt_dofadr[joint], model.jnt_dofadr[image])
            copy("jnt_stiffness", joint, image)
            copy("jnt_range", joint, image, sign)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model, differed


def observe(task: Locomotion, data: mujoco.MjData) -> np.ndarray:
    parts = zip(locomotion.observed(task, data), task.observation, strict=True)
    return np.concatenate([np.clip(source, -part.clip, part.clip) for source, part in parts])


def reward_terms(task: Locomotion, model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """What the reward and the end of an episode depend on."""
    mass_center = model.body_mass @ data.xipos / model.body_mass.sum()
    contact = np.square(np.clip(data.cfrc_ext, -task.contact_clip, task.contact_clip)).sum()
    x = (data.qpos[0], data.xpos[1, 0], data.subtree_com[1, 0], mass_center[0])
    return np.array([*x, data.qpos[task.z_index], np.square(data.ctrl).sum(), contact])


@pytest.mark.parametrize("name", ROBOTS)
def test_a_mirrored_robot_moves_as_the_mirror_image(name: str) -> None:
    task = locomotion.TASKS[name]
    model, differed = equalised(task)
    # the models are symmetric but for these: Walker2d-v1's left foot has more friction, Humanoid's left hip differs
    known = {"Walker2d-v1": {"geom_friction"}, "Humanoid-v1": {"dof_armature", "jnt_stiffness", "jnt_range"},
             "Humanoid-v5": {"dof_armature", "jnt_stiffness"}}  # fmt: skip
    assert differed == known.get(name, set())
    model.opt.iterations, model.opt.tolerance = 300, 0.0  # the order of contacts must not matter
    random = np.random.default_rng(5)
    one, two = mujoco.MjData(model), mujoco.MjData(model)
    mirror = mirror_of(task, model, one)
    order, signs = mirror.states
    whole = mirror_of(locomotion.replace(task, observation=(Slice("qpos"), Slice("qvel"))), model, one)
    actions = np.array(mirror.action)
    state = np.concatenate([one.qpos, one.qvel]) + random.uniform(-0.1, 0.1, model.nq + model.nv)
    for data, values in ((one, state), (two, whole.states[1] * state[whole.states[0]])):
        data.qpos[:], data.qvel[:] = values[: model.nq], values[model.nq :]
        mujoco.mj_forward(model, data)
    contacts = 0
    for _ in range(25):
        one.ctrl[:] = random.uniform(-1, 1, model.nu)
        two.ctrl[:] = np.sign(actions) * one.ctrl[np.abs(actions) - 1]
        for data in (one, two):
            mujoco.mj_step(model, data, nstep=task.frame_skip)
            mujoco.mj_rnePostConstraint(model, data)
        x = observe(task, one)
        contacts += one.ncon
        np.testing.assert_allclose(observe(task, two), signs * x[order], rtol=0, atol=1e-8 * max(1.0, np.abs(x).max()))
        np.testing.assert_allclose(reward_terms(task, model, two), reward_terms(task, model, one), rtol=1e-8, atol=1e-8)
    assert contacts > 0
    assert not np.allclose(x, signs * x[order], atol=1e-3)


@pytest.mark.parametrize("name", ["HalfCheetah-v1", "Hopper-v5", "Swimmer-v1", "CartPole-v1", "lqr"])
def test_a_task_without_two_sides_has_no_mirror(name: str) -> None:
    with pytest.raises(TaskError, match=r"mirror"):
        make(name, mirror=True)


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ((("thigh", "leg_left"),), "have different limbs"),
        ((("thigh", "tail"),), "there is no body tail"),
        ((("torso", "thigh"),), "have different limbs"),
    ],
)
def test_pairs_that_are_not_the_model_are_refused(pairs: tuple[tuple[str, str], ...], why: str) -> None:
    task = locomotion.replace(locomotion.TASKS["Walker2d-v5"], mirror=pairs)
    model = locomotion.load_model(task)
    with pytest.raises(TaskError, match=why):
        mirror_of(task, model, mujoco.MjData(model))


def test_a_false_reflection_is_refused() -> None:
    task = locomotion.replace(locomotion.TASKS["Ant-v5"], mirror=(("front_left_leg", "front_right_leg"),))
    model = locomotion.load_model(task)
    with pytest.raises(TaskError, match="lies elsewhere"):
        mirror_of(task, model, mujoco.MjData(model))
