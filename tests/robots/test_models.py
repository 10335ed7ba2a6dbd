"""The quadruped against the published numbers of Unitree's Go1, and in simulation."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import ars

QUADRUPED = Path(ars.__file__).parent / "tasks" / "robots" / "models" / "quadruped.xml"
LEGS = ("FR", "FL", "RR", "RL")
LINKS = ("hip", "thigh", "calf")
JOINTS = [f"{leg}_{link}_joint" for leg in LEGS for link in LINKS]
HOME = (0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8)
MIRROR = np.diag([1.0, -1.0, 1.0])  # reflection at the plane y = 0


@pytest.fixture(scope="module")
def model() -> Any:
    return mujoco.MjModel.from_xml_path(str(QUADRUPED))


def at_home(model: Any, *, above: float = 0.0) -> Any:
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    data.qpos[2] += above
    mujoco.mj_forward(model, data)
    return data


def tilt(data: Any) -> float:
    """Degrees between the trunk's z axis and the vertical."""
    return float(np.degrees(np.arccos(np.clip(data.body("trunk").xmat[8], -1.0, 1.0))))


# -- the Go1's numbers -----------------------------------------------------------------------------------------------


def test_names_and_their_order(model: Any) -> None:
    """Those of the Go1 in mjlab, with which a description by names has to work, too."""
    assert [model.joint(j).name for j in range(model.njnt)] == ["root", *JOINTS]
    assert [model.actuator(a).name for a in range(model.nu)] == JOINTS
    assert [model.joint(int(model.actuator_trnid[a, 0])).name for a in range(model.nu)] == JOINTS
    assert model.joint("root").type[0] == mujoco.mjtJoint.mjJNT_FREE
    assert model.body(1).name == "trunk"
    assert model.site("imu").bodyid[0] == 1
    sensors = {model.sensor(s).name: int(model.sensor(s).type[0]) for s in range(model.nsensor)}
    assert sensors == {
        "imu_ang_vel": mujoco.mjtSensor.mjSENS_GYRO,
        "imu_lin_acc": mujoco.mjtSensor.mjSENS_ACCELEROMETER,
        "imu_quat": mujoco.mjtSensor.mjSENS_FRAMEQUAT,
    }


def test_masses(model: Any) -> None:
    assert model.body_mass.sum() == pytest.approx(12.743, rel=0.001)
    assert model.body("trunk").mass[0] == pytest.approx(5.204)
    for leg in LEGS:
        assert [model.body(f"{leg}_{link}").mass[0] for link in LINKS] == pytest.approx([0.68, 1.009, 0.195862])


def test_moments_of_inertia(model: Any) -> None:
    """About the axes of the link; thigh and calf are long, so about z it is least."""
    assert model.body("trunk").inertia == pytest.approx([0.0168, 0.0630, 0.0717], rel=0.01)
    for leg in LEGS:
        assert model.body(f"{leg}_hip").inertia == pytest.approx([0.000399, 0.000733, 0.000468], rel=0.01)
        assert model.body(f"{leg}_thigh").inertia == pytest.approx([0.00460, 0.00469, 0.000817], rel=0.01)
        assert model.body(f"{leg}_calf").inertia == pytest.approx([0.001485, 0.001498, 0.000036], rel=0.01)


def test_lengths(model: Any) -> None:
    data = at_home(model)

    def distance(a: Any, b: Any) -> float:
        return float(np.linalg.norm(a - b))

    for leg in LEGS:
        hip, thigh, calf = (data.body(f"{leg}_{link}").xpos for link in LINKS)
        assert np.abs(hip - data.body("trunk").xpos) == pytest.approx([0.1881, 0.04675, 0.0])
        assert distance(hip, thigh) == pytest.approx(0.08)
        assert distance(thigh, calf) == pytest.approx(0.213)
        assert distance(calf, data.site(leg).xpos) == pytest.approx(0.213)
        assert data.geom(f"{leg}_foot").xpos == pytest.approx(data.site(leg).xpos)
        assert model.geom(f"{leg}_foot").size[0] == 0.023
    front, left = data.body("FL_hip").xpos - data.body("RR_hip").xpos, data.site("FL").xpos - data.site("FR").xpos
    assert front[0] > 0
    assert left[1] > 0


@pytest.mark.parametrize(
    ("link", "axis", "limits", "torque", "armature"),
    [
        ("hip", (1, 0, 0), (-0.863, 0.863), 23.7, 0.004026),
        ("thigh", (0, 1, 0), (-0.686, 4.501), 23.7, 0.004026),
        ("calf", (0, 1, 0), (-2.818, -0.888), 35.55, 0.009059),
    ],
)
def test_joints(
    model: Any, link: str, axis: tuple[int, ...], limits: tuple[float, ...], torque: float, armature: float
) -> None:
    omega, damping_ratio = 2.0 * np.pi * 15.0, 2.0
    for leg in LEGS:
        joint, actuator = model.joint(f"{leg}_{link}_joint"), model.actuator(f"{leg}_{link}_joint")
        assert tuple(joint.axis) == axis
        assert tuple(joint.range) == tuple(actuator.ctrlrange) == limits
        assert tuple(actuator.forcerange) == (-torque, torque)
        assert joint.armature[0] == pytest.approx(armature, rel=1e-3)
        kp, kv = armature * omega**2, 2.0 * damping_ratio * armature * omega
        assert actuator.gainprm[0] == pytest.approx(kp, rel=1e-3)
        assert actuator.biasprm[:3] == pytest.approx([0.0, -kp, -kv], rel=1e-3)


# -- contacts and shapes ---------------------------------------------------------------------------------------------


def test_feet_touch_the_floor_at_home(model: Any) -> None:
    data = at_home(model)
    assert tuple(data.qpos[7:]) == tuple(data.ctrl) == HOME
    assert {model.geom(int(c.geom[1])).name for c in data.contact} == {f"{leg}_foot" for leg in LEGS}
    assert all(-1e-5 < c.dist <= 0.0 for c in data.contact)
    assert all(c.friction[0] == 0.8 for c in data.contact)


def test_only_the_robot_and_the_floor_can_touch(model: Any) -> None:
    floor = model.geom("floor").id
    for a in range(model.ngeom):
        for b in range(a):
            if model.geom_contype[a] & model.geom_conaffinity[b] or model.geom_contype[b] & model.geom_conaffinity[a]:
                assert floor in (a, b)


def test_primitive_shapes(model: Any) -> None:
    """No files besides the XML; geoms that touch nothing are only for the eye."""
    assert model.nmesh == model.nhfield == model.nskin == 0
    kinds = mujoco.mjtGeom
    allowed = [kinds.mjGEOM_PLANE, kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE, kinds.mjGEOM_BOX]
    assert set(model.geom_type.tolist()) <= {int(kind) for kind in allowed}
    assert model.geom("floor").type[0] == kinds.mjGEOM_PLANE
    visual = (model.geom_contype == 0) & (model.geom_conaffinity == 0)
    assert visual.any()
    assert (model.geom_group[visual] == 1).all()


def test_floor_can_be_recoloured(model: Any) -> None:
    """Films recolour the sky, and the 2D textures with "plane" in their names."""
    names = {int(model.tex_type[t]): model.texture(t).name for t in range(model.ntex)}
    assert "plane" in names[mujoco.mjtTexture.mjTEXTURE_2D]
    assert mujoco.mjtTexture.mjTEXTURE_SKYBOX in names
    assert model.nlight == 1


# -- left and right --------------------------------------------------------------------------------------------------


def test_trunk_is_its_own_mirror_image(model: Any) -> None:
    assert model.body("trunk").ipos[1] == model.site("imu").pos[1] == 0.0
    assert tuple(model.body("trunk").iquat) == (1.0, 0.0, 0.0, 0.0)
    shapes = [
        (int(model.geom_type[g]), tuple(model.geom_size[g]), np.abs(_axes(model, g)), model.geom_pos[g])
        for g in np.flatnonzero(model.geom_bodyid == 1)
    ]
    for kind, size, axes, at in shapes:
        assert any(
            (kind, size) == (other_kind, other_size)
            and np.array_equal(MIRROR @ at, other_at)
            and np.allclose(axes, other_axes)
            for other_kind, other_size, other_axes, other_at in shapes
        )


@pytest.mark.parametrize("end", ["F", "R"])
def test_legs_are_mirror_images(model: Any, end: str) -> None:
    for link in LINKS:
        right, left = model.body(f"{end}R_{link}"), model.body(f"{end}L_{link}")
        assert np.array_equal(MIRROR @ right.pos, left.pos)
        assert np.array_equal(MIRROR @ right.ipos, left.ipos)
        assert np.array_equal(right.inertia, left.inertia)
        assert tuple(right.iquat) == tuple(left.iquat) == (1.0, 0.0, 0.0, 0.0)
        assert tuple(right.quat) == tuple(left.quat) == (1.0, 0.0, 0.0, 0.0)
        assert right.mass[0] == left.mass[0]
        right_joint, left_joint = (model.joint(f"{end}{side}_{link}_joint") for side in "RL")
        sign = -1.0 if link == "hip" else 1.0  # an axis along x turns the other way in a mirror
        limits = np.sort(sign * right_joint.range)
        assert np.array_equal(limits, left_joint.range)
        assert np.array_equal(right_joint.axis, left_joint.axis)
        assert right_joint.armature[0] == left_joint.armature[0]
        home = model.key("home").qpos
        assert sign * home[right_joint.qposadr[0]] == home[left_joint.qposadr[0]]
        right_motor, left_motor = (model.actuator(f"{end}{side}_{link}_joint") for side in "RL")
        for number in ("gainprm", "biasprm", "forcerange"):
            assert np.array_equal(getattr(right_motor, number), getattr(left_motor, number))
    right_geoms, left_geoms = (
        [g for g in range(model.ngeom) if model.body(int(model.geom_bodyid[g])).name.startswith(f"{end}{side}_")]
        for side in "RL"
    )
    for right_geom, left_geom in zip(right_geoms, left_geoms, strict=True):
        assert model.geom_type[right_geom] == model.geom_type[left_geom]
        assert np.array_equal(model.geom_size[right_geom], model.geom_size[left_geom])
        assert np.array_equal(MIRROR @ model.geom_pos[right_geom], model.geom_pos[left_geom])
        assert np.allclose(np.abs(_axes(model, right_geom)), np.abs(_axes(model, left_geom)))


def test_mirrored_targets_give_the_mirrored_motion(model: Any) -> None:
    """Half a second, before rounding errors have grown."""
    data, mirrored = at_home(model), at_home(model)
    swap = np.array([3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8])
    signs = np.tile([-1.0, 1.0, 1.0], 4)
    rng = np.random.default_rng(3)
    for _ in range(25):
        data.ctrl[:] = HOME + rng.uniform(-0.2, 0.2, 12)
        mirrored.ctrl[:] = (signs * data.ctrl)[swap]
        mujoco.mj_step(model, data, 5)
        mujoco.mj_step(model, mirrored, 5)
    assert mirrored.qpos[7:] == pytest.approx((signs * data.qpos[7:])[swap], abs=1e-6)
    assert mirrored.qpos[:3] == pytest.approx(MIRROR @ data.qpos[:3], abs=1e-6)
    assert mirrored.qpos[3:7] == pytest.approx(data.qpos[3:7] * (1, -1, 1, -1), abs=1e-6)


def _axes(model: Any, geom: int) -> Any:
    """The geom's axes as columns; their signs mean nothing for boxes, capsules and spheres on the axes of the link."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
    return axes.reshape(3, 3)


# -- simulation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("above", [0.0, 0.1])
def test_stands(model: Any, above: float) -> None:
    """With the standing pose as targets, from the pose itself and dropped from 10 cm above."""
    data = at_home(model, above=above)
    lowest, floor = 1.0, model.geom("floor").id
    for _ in range(round(5.0 / model.opt.timestep)):
        mujoco.mj_step(model, data)
        lowest = min(lowest, data.qpos[2])
        assert all(floor in contact.geom for contact in data.contact)
    assert tilt(data) < 3.0
    home = model.key("home").qpos[2]
    assert data.qpos[2] == pytest.approx(home, abs=0.02)
    assert lowest > home - 0.04
    assert np.abs(data.qvel).max() < 0.01
    assert {model.geom(int(contact.geom[1])).name for contact in data.contact} == {f"{leg}_foot" for leg in LEGS}
    # the IMU measures what it should
    assert data.sensor("imu_lin_acc").data == pytest.approx([0.0, 0.0, 9.81], abs=0.3)
    assert data.sensor("imu_ang_vel").data == pytest.approx(np.zeros(3), abs=0.01)
    assert data.sensor("imu_quat").data == pytest.approx(data.qpos[3:7], abs=1e-4)


def test_random_targets_do_not_diverge(model: Any) -> None:
    """20 s at 50 Hz, in which it may fall; contacts are with the floor alone, and only shallow."""
    data, rng = at_home(model, above=0.1), np.random.default_rng(0)
    floor, deepest, fastest = model.geom("floor").id, 0.0, 0.0
    for _ in range(1000):
        data.ctrl[:] = HOME + rng.uniform(-0.3, 0.3, 12)
        mujoco.mj_step(model, data, round(0.02 / model.opt.timestep))
        assert all(floor in contact.geom for contact in data.contact)
        deepest = min([deepest, *(contact.dist for contact in data.contact)])
        fastest = max(fastest, float(np.abs(data.qvel).max()))
    assert np.isfinite(data.qpos).all()
    assert not any(warning.number for warning in data.warning)
    assert deepest > -0.02
    assert fastest < 30.0


def test_step_depends_on_the_state_alone(model: Any) -> None:
    """Without a warm start of the solver, positions, velocities and targets determine a step to the last bit."""
    data, rng = at_home(model), np.random.default_rng(1)
    for _ in range(20):
        data.ctrl[:] = HOME + rng.uniform(-0.3, 0.3, 12)
        mujoco.mj_step(model, data, 5)
    fresh = mujoco.MjData(model)
    fresh.qpos[:], fresh.qvel[:], fresh.ctrl[:] = data.qpos, data.qvel, data.ctrl
    mujoco.mj_step(model, data, 5)
    mujoco.mj_step(model, fresh, 5)
    assert np.array_equal(data.qpos, fresh.qpos)
