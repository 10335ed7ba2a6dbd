"""A user's file with robots: a body on one leg, with terms of its own, and the same in scenarios."""

import math
from dataclasses import replace
from typing import Any

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
    LastAction,
    Observe,
    PositionTargets,
    Reward,
    Robot,
    Scenarios,
    Stop,
    Tilt,
    Torque,
    body,
    joint_velocity,
)

XML = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="50 5 1" friction="0.9"/>
    <body name="trunk" pos="0 0 0.3">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="pitch" type="hinge" axis="0 1 0"/>
      <geom type="capsule" size="0.05 0.2" euler="0 90 0"/>
      <site name="imu" euler="10 20 30"/>
      <body name="leg" pos="0.2 0 0">
        <joint name="leg" type="hinge" axis="0 1 0" range="-60 60"/>
        <geom name="foot" type="capsule" fromto="0 0 0 0 0 -0.25" size="0.04"/>
      </body>
    </body>
  </worldbody>
  <actuator><position name="leg" joint="leg" kp="20" kv="1" ctrlrange="-1 1" forcerange="-15 15"/></actuator>
  <sensor><gyro name="gyro" site="imu"/></sensor>
  <keyframe><key name="home" qpos="0 0 0 0.1" ctrl="0.1"/></keyframe>
</mujoco>
"""
FACTOR = 2.0


def doubled(value: float) -> float:
    return FACTOR * value


def swing(s: Any, k: Any, m: Any) -> float:
    """The leg's speed, and how often it was asked for."""
    m[0] += 1.0
    return abs(doubled(s.qvel[int(k[0])])) + 1e-3 * m[0]


def height(s: Any, k: Any, m: Any, x: Any) -> None:
    x[0] = s.xpos[int(k[0]), 2]
    x[1] = math.exp(-x[0])


def spun(s: Any, k: Any, m: Any) -> bool:
    return abs(s.qvel[2]) > k[0]


LEG = Robot(
    name="leg",
    model=XML,
    control_hz=50,
    start=Keyframe("home", qpos_noise=0.02, qvel_noise=0.02),
    action=PositionTargets(around="home", scale=0.5, rate=20.0),
    observe=[
        Gyro("imu"), Gravity("imu"), Heading("imu"), JointPositions(minus="home"), JointVelocities(clip=5.0),
        LastAction(), Clock(1.5), Observe(height, 2, [body("trunk")]),
    ],
    reward=[
        Forward(1.0, target=0.8), Alive(0.5), Torque(-1e-4), ActionRate(-0.01), Tilt(-1.0),
        Reward(swing, 0.01, [joint_velocity("leg")], memory=1),
    ],
    stop=[Height(-0.5, 1.0), Tilt(over=0.7), Stop(spun, [6.0])],
    seconds=1,
    feet=("foot",),
)  # fmt: skip

ROUGH = replace(
    LEG,
    name="rough",
    scenarios=Scenarios(
        each=3, friction=(0.4, 1.2), mass=(-0.2, 1.0), gains=(0.8, 1.2), delay=(0, 2), slope=(-0.1, 0.1),
        push=(0.0, 5.0), noise={"Gyro": 0.1, "JointPositions": 0.01}, bias={"Gravity": 0.02},
    ),
)  # fmt: skip
