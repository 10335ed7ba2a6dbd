"""The quadruped that comes with ars: the sizes and masses of Unitree's Go1 in simple shapes (models/quadruped.xml)."""

from ars.tasks.robots.actions import PositionTargets
from ars.tasks.robots.observations import Clock, Gravity, Gyro, Heading, JointPositions, JointVelocities
from ars.tasks.robots.rewards import ActionRate, Alive, Drift, Forward, Torque, Yaw
from ars.tasks.robots.robot import Robot
from ars.tasks.robots.starts import Keyframe
from ars.tasks.robots.stops import Height, Tilt

QUADRUPED = Robot(
    name="Quadruped-v1",
    model="quadruped.xml",
    control_hz=50,
    start=Keyframe("home", qpos_noise=0.02, qvel_noise=0.02),
    action=PositionTargets(around="home", scale=0.5),
    observe=[
        Gyro("imu"), Gravity("imu"), Heading("imu"), JointPositions(minus="home"), JointVelocities(), Clock(1.5)
    ],
    reward=[
        Forward(1.0, target=0.8), Alive(0.5), Torque(-2e-4), ActionRate(-0.01), Tilt(-1.0), Drift(-1.0), Yaw(-1.0)
    ],
    stop=[Height(0.15, 0.6), Tilt(over=1.0)],
    seconds=10,
    shift=0.25,  # half of Alive: with all of it subtracted it learns to dive, with none to stand
    feet=("FR_foot", "FL_foot", "RR_foot", "RL_foot"),
)  # fmt: skip
