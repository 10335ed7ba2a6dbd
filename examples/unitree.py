"""Unitree's Go1 and G1: robots of docs/robots.md whose models are made from the files of mjlab 1.6.

    pip install --no-deps mjlab
    ars robot check examples.unitree:GO1
    ars train examples.unitree:GO1 --timesteps 1e6 --out runs/go1

The G1 is a start: in a million steps it learns to fall later, not yet to walk.

Only MJCF files and meshes of mjlab are read; its Python code, which needs torch and a GPU's tools, is not imported. The
files have neither floor nor actuators: gains, armatures, torque limits and poses below are those of its
go1_constants.py and g1_constants.py. Solver, floor and contacts are those of ars' own quadruped.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco

from ars.robots import (
    ActionRate,
    Alive,
    Clock,
    Forward,
    Gravity,
    Gyro,
    Heading,
    Height,
    JointPositions,
    JointVelocities,
    Keyframe,
    Pose,
    PositionTargets,
    Robot,
    Sideways,
    Tilt,
    Torque,
    Yaw,
)
from ars.tasks.robots.quadruped import QUADRUPED

DAMPING_RATIO = 2.0


@dataclass(frozen=True)
class Motor:
    """The reflected inertia in kg m² and the torque limit in N m of a joint's motor."""

    armature: float
    limit: float


def planetary(rotors: tuple[float, float, float], second: float, third: float) -> float:
    """The reflected inertia of the rotors of a planetary gearbox, given the ratios of its two stages."""
    return rotors[0] * (second * third) ** 2 + rotors[1] * third**2 + rotors[2]


GO1_ROTOR = 0.000111842  # kg m²
GO1_MOTORS = {  # patterns of joint names
    ".*_(hip|thigh)_joint": Motor(GO1_ROTOR * 6**2, 23.7),
    ".*_calf_joint": Motor(GO1_ROTOR * 9**2, 35.55),
}
GO1_HOME = {".*R_hip_joint": 0.1, ".*L_hip_joint": -0.1, ".*_thigh_joint": 0.9, ".*_calf_joint": -1.8}

SMALL = planetary((0.139e-4, 0.017e-4, 0.169e-4), 1 + 46 / 18, 1 + 56 / 16)  # Unitree's 5020
G1_MOTORS = {
    ".*_(elbow|shoulder_pitch|shoulder_roll|shoulder_yaw|wrist_roll)_joint": Motor(SMALL, 25.0),
    ".*_hip_(pitch|yaw)_joint|waist_yaw_joint": Motor(
        planetary((0.489e-4, 0.098e-4, 0.533e-4), 4.5, 1 + 48 / 22), 88.0
    ),
    ".*_(hip_roll|knee)_joint": Motor(planetary((0.489e-4, 0.109e-4, 0.738e-4), 4.5, 5.0), 139.0),
    ".*_wrist_(pitch|yaw)_joint": Motor(planetary((0.068e-4, 0.0, 0.0), 5.0, 5.0), 5.0),
    "waist_(pitch|roll)_joint|.*_ankle_(pitch|roll)_joint": Motor(2 * SMALL, 50.0),  # two motors on a linkage
}
G1_HOME = {  # knees bent
    ".*_hip_pitch_joint": -0.312,
    ".*_knee_joint": 0.669,
    ".*_ankle_pitch_joint": -0.363,
    ".*_shoulder_pitch_joint": 0.2,
    "left_shoulder_roll_joint": 0.2,
    "right_shoulder_roll_joint": -0.2,
    ".*_elbow_joint": 0.6,
}


def go1() -> mujoco.MjSpec:
    """With gains of 15 Hz: with mjlab's 10 Hz it does not hold the pose that its targets are."""
    spec = read("unitree_go1/xmls/go1.xml")
    complete(spec, GO1_MOTORS, GO1_HOME, hz=15.0, friction=0.8)
    for geom in spec.geoms:
        if re.fullmatch(".._foot_collision", geom.name):
            geom.name = geom.name.removesuffix("_collision")  # as the quadruped's feet are called
    return spec


def g1() -> mujoco.MjSpec:
    """With mjlab's gains; below 26 Hz it falls unless the policy balances it."""
    spec = read("unitree_g1/xmls/g1.xml")
    complete(spec, G1_MOTORS, G1_HOME, hz=10.0, friction=0.6)
    return spec


def read(path: str) -> mujoco.MjSpec:
    found = find_spec("mjlab")  # which does not import it
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("its files are in mjlab, which is not installed: pip install --no-deps mjlab")
    return mujoco.MjSpec.from_file(str(Path(found.submodule_search_locations[0], "asset_zoo", "robots", path)))


def complete(
    spec: mujoco.MjSpec, motors: Mapping[str, Motor], home: Mapping[str, float], *, hz: float, friction: float
) -> None:
    set_options(spec)
    for sensor in list(spec.sensors):
        spec.delete(sensor)  # the descriptions below need none, and they cost time in every step
    for geom in spec.geoms:
        if "_collision" in geom.name:  # with the floor only: contype 0 excludes contacts of the robot with itself
            geom.contype, geom.conaffinity, geom.priority = 0, 1, 1
            geom.condim, geom.friction[0], geom.solref[:] = 3, friction, (0.01, 1.0)
    add_floor(spec)
    for joint in hinges(spec):
        add_actuator(spec, joint, matching(motors, joint.name), hz)
    add_home(spec, home)


def set_options(spec: mujoco.MjSpec) -> None:
    """The reasons are in the file of the quadruped."""
    option, bit = spec.option, mujoco.mjtDisableBit
    option.timestep, option.integrator = 0.004, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.iterations, option.ls_iterations = 10, 20
    for flag in (bit.mjDSBL_WARMSTART, bit.mjDSBL_MIDPHASE, bit.mjDSBL_ISLAND):
        option.disableflags |= int(flag)


def add_floor(spec: mujoco.MjSpec) -> None:
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.83, 0.89, 0.94], rgb2=[0.3, 0.45, 0.62], width=64, height=384,
    )  # fmt: skip
    spec.add_texture(
        name="texplane", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.44, 0.51, 0.57], rgb2=[0.54, 0.61, 0.66], width=128, height=128,
    )  # fmt: skip
    material = spec.add_material(name="floor", texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "texplane"  # films recolour it by this name
    floor = spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    floor.material, floor.contype, floor.conaffinity = "floor", 1, 0


def add_actuator(spec: mujoco.MjSpec, joint: Any, motor: Motor, hz: float) -> None:
    """A position actuator with the name of its joint: a spring of this frequency on the motor's own inertia."""
    omega = 2.0 * math.pi * hz
    joint.armature = motor.armature
    actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    actuator.set_to_position(kp=motor.armature * omega**2, kv=2.0 * DAMPING_RATIO * motor.armature * omega)
    actuator.forcelimited, actuator.forcerange[:] = True, (-motor.limit, motor.limit)
    actuator.ctrllimited, actuator.ctrlrange[:] = True, joint.range


def add_home(spec: mujoco.MjSpec, angles: Mapping[str, float]) -> None:
    """The keyframe "home", at the height at which the lowest geom just touches the floor."""
    pose = [matching(angles, joint.name, 0.0) for joint in hinges(spec)]
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, *pose]
    mujoco.mj_kinematics(model, data)
    touching = [geom for geom in range(model.ngeom) if model.geom_conaffinity[geom]]
    gap = min(mujoco.mj_geomDistance(model, data, model.geom("floor").id, geom, 10.0, None) for geom in touching)
    spec.add_key(name="home", qpos=[0.0, 0.0, 2.0 - gap, 1.0, 0.0, 0.0, 0.0, *pose], ctrl=pose)


def hinges(spec: mujoco.MjSpec) -> list[Any]:
    return [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_HINGE]


def matching(values: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The value whose pattern matches the whole name."""
    found = [value for pattern, value in values.items() if re.fullmatch(pattern, name)]
    if not found and default is None:
        raise LookupError(f"no pattern matches its joint {name}")
    return found[0] if found else default


GO1 = replace(QUADRUPED, name="Go1", model=go1)

G1 = Robot(
    name="G1",
    model=g1,
    control_hz=50,
    start=Keyframe("home", qpos_noise=0.01, qvel_noise=0.01),
    action=PositionTargets(around="home", scale=0.3),
    observe=[
        Gyro("imu_in_pelvis"), Gravity("imu_in_pelvis"), Heading("imu_in_pelvis"), JointPositions(minus="home"),
        JointVelocities(), Clock(1.25),
    ],
    reward=[
        Forward(1.0, target=0.5), Alive(1.0), Torque(-2e-5), ActionRate(-0.01), Tilt(-5.0), Sideways(-0.5), Yaw(-1.0),
        Pose(-0.05),
    ],
    stop=[Height(0.6, 1.0), Tilt(over=0.6)],
    seconds=10,
    shift=0.0,  # it has to learn to stand first, so standing pays
    feet=("left_foot4_collision", "right_foot4_collision"),  # along the middle of each
)  # fmt: skip
