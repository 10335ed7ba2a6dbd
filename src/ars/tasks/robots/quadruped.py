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
        Forward(3.0, target=0.8), Alive(0.5), Torque(-2e-4), ActionRate(-5e-3), Tilt(-0.5), Drift(-0.6), Yaw(-0.5)
    ],
    stop=[Height(0.15, 0.6), Tilt(over=1.0)],
    seconds=10,
    shift=0.25,  # half of Alive
    feet=("FR_foot", "FL_foot", "RR_foot", "RL_foot"),
)  # fmt: skip
