"""What describes a robot: docs/robots.md. The terms themselves are in ars.tasks.robots."""

from ars.tasks.robots.actions import Act, Controls, PositionTargets, Torques
from ars.tasks.robots.observations import (
    Clock,
    Gravity,
    Gyro,
    Heading,
    JointPositions,
    JointVelocities,
    LastAction,
    Observe,
    Sensor,
)
from ars.tasks.robots.rewards import (
    ActionRate,
    Alive,
    Bounce,
    Drift,
    Forward,
    Pose,
    Power,
    Reward,
    Saturated,
    Sideways,
    Torque,
    Yaw,
)
from ars.tasks.robots.robot import Robot
from ars.tasks.robots.scenarios import Scenarios
from ars.tasks.robots.starts import Keyframe, Start
from ars.tasks.robots.state import State
from ars.tasks.robots.stops import Height, Stop, Tilt
from ars.tasks.robots.terms import body, joint_position, joint_velocity, sensor, site

__all__ = [
    "Act", "ActionRate", "Alive", "Bounce", "Clock", "Controls", "Drift", "Forward", "Gravity", "Gyro", "Heading",
    "Height", "JointPositions", "JointVelocities", "Keyframe", "LastAction", "Observe", "Pose", "PositionTargets",
    "Power", "Reward", "Robot", "Saturated", "Scenarios", "Sensor", "Sideways", "Start", "State", "Stop", "Tilt",
    "Torque", "Torques", "Yaw", "body", "joint_position", "joint_velocity", "sensor", "site",
]  # fmt: skip
