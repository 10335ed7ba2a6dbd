"""Each term against MuJoCo's own sensors, or worked by hand."""

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from ars.errors import TaskError
from ars.robots import (
    ActionRate,
    Alive,
    Bounce,
    Clock,
    Drift,
    Forward,
    Gravity,
    Gyro,
    Heading,
    Height,
    JointPositions,
    JointVelocities,
    LastAction,
    Pose,
    PositionTargets,
    Power,
    Saturated,
    Sensor,
    Sideways,
    State,
    Tilt,
    Torque,
    Torques,
    Yaw,
)
from ars.tasks.robots.sine import turn
from ars.tasks.robots.state import views
from ars.tasks.robots.terms import Model

FREE = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 1">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.05"/>
      <site name="imu" pos="0.05 0 0.02" euler="15 25 35"/>
      <body name="arm" pos="0.2 0 0">
        <joint name="a" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03"/>
        <body name="hand" pos="0 0 -0.2">
          <joint name="b" axis="1 0 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="b" joint="b" kp="10" ctrlrange="-0.4 0.6" forcerange="-2 2"/>
    <position name="a" joint="a" kp="10" ctrlrange="-1 1" forcerange="-50 50"/>
  </actuator>
  <sensor><gyro name="gyro" site="imu"/><framequat name="pose" objtype="site" objname="imu"/></sensor>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.3 -0.2"/></keyframe>
</mujoco>
"""


class Bench:
    """A model in some state, and terms evaluated there."""

    def __init__(self, xml: str = FREE, dt: float = 0.02) -> None:
        self.mj = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.mj)
        random = np.random.default_rng(5)
        mujoco.mj_integratePos(self.mj, self.data.qpos, random.normal(size=self.mj.nv), 0.5)
        self.data.qvel[:] = random.normal(size=self.mj.nv)
        self.data.ctrl[:] = random.normal(size=self.mj.nu)
        mujoco.mj_forward(self.mj, self.data)
        self.model = Model(self.mj, self.data, dt)
        self.action, self.last = random.normal(size=self.mj.nu), random.normal(size=self.mj.nu)

    def state(self, step: int = 3) -> State:
        dt = self.model.dt
        return State(
            **views(self.mj, self.data), action=self.action, last_action=self.last, t=step * dt, step=step, dt=dt
        )

    def observe(self, term: Any, step: int = 3) -> np.ndarray:
        bound = term.bind(self.model)
        x = np.full(len(bound.names), np.nan)
        bound.function(self.state(step), np.array(bound.constants, dtype=float), np.zeros(bound.memory), x)
        return x

    def value(self, term: Any, memory: float = 0.0) -> Any:
        bound = term.bind(self.model)
        return bound.function(self.state(), np.array(bound.constants, dtype=float), np.full(bound.memory, memory))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def rotation(bench: Bench) -> np.ndarray:
    return bench.data.site("imu").xmat.reshape(3, 3)


def test_the_imu(bench: Bench) -> None:
    np.testing.assert_allclose(bench.observe(Gyro("imu")), bench.data.sensor("gyro").data, rtol=1e-12)
    np.testing.assert_array_equal(bench.observe(Sensor("gyro")), bench.data.sensor("gyro").data)
    np.testing.assert_allclose(bench.observe(Gravity("imu")), rotation(bench).T @ [0, 0, -1], rtol=1e-12)
    assert bench.observe(Heading("imu"))[0] == (rotation(bench) @ [1, 0, 0])[1]
    bench.mj.opt.gravity[:] = -1.0, 0.0, -9.0  # a slope
    down = np.array([-1.0, 0.0, -9.0]) / math.hypot(1.0, 9.0)
    np.testing.assert_allclose(bench.observe(Gravity("imu")), rotation(bench).T @ down, rtol=1e-12)


def test_joints_are_in_the_order_of_the_actuators(bench: Bench) -> None:
    a, b = bench.data.joint("a"), bench.data.joint("b")
    np.testing.assert_array_equal(bench.observe(JointPositions()), [b.qpos[0], a.qpos[0]])
    np.testing.assert_array_equal(bench.observe(JointPositions(minus="home")), [b.qpos[0] + 0.2, a.qpos[0] - 0.3])
    np.testing.assert_array_equal(bench.observe(JointVelocities()), [b.qvel[0], a.qvel[0]])
    np.testing.assert_array_equal(bench.observe(JointVelocities(joints=("a",))), a.qvel)
    assert JointPositions().bind(bench.model).names == ["b", "a"]
    np.testing.assert_array_equal(bench.observe(LastAction()), bench.action)


def test_the_clock(bench: Bench) -> None:
    """To 1e-15 of libm, over many turns and both signs."""
    for turns in np.concatenate([np.linspace(-3, 3, 1001), [0.25, 0.5, 0.75, 1.0, 1e3 + 0.1]]):
        assert turn(float(turns)) == pytest.approx(math.sin(2 * math.pi * turns), abs=2e-15 * max(1.0, abs(turns)))
    t = 7 * 0.02
    np.testing.assert_allclose(
        bench.observe(Clock(1.5), step=7),
        [math.sin(2 * math.pi * 1.5 * t), math.cos(2 * math.pi * 1.5 * t)],
        atol=1e-14,
    )


def test_rewards_by_hand(bench: Bench) -> None:
    x, y, z = bench.data.xpos[1]
    force, action, last = bench.data.actuator_force, bench.action, bench.last
    assert bench.value(Forward(1.0), memory=0.1) == pytest.approx((x - 0.1) / 0.02)
    assert bench.value(Forward(1.0, target=0.8), memory=x - 0.02 * 0.8) == pytest.approx(1.0)
    assert bench.value(Forward(1.0, target=0.8), memory=x) == pytest.approx(0.0)
    assert bench.value(Forward(1.0, target=0.8), memory=x - 0.02 * 1.2) == pytest.approx(0.5)
    assert bench.value(Sideways(-1.0), memory=y + 0.01) == pytest.approx(0.5)
    bound = Drift(-1.0).bind(bench.model)
    memory = np.zeros(1)
    constants = np.array(bound.constants)
    assert bound.function(bench.state(0), constants, memory) == 0.0
    bench.data.xpos[1, 1] = y - 0.3
    assert bound.function(bench.state(), constants, memory) == pytest.approx(0.3)
    assert bench.value(Bounce(-1.0), memory=z - 0.01) == pytest.approx(0.25)
    assert bench.value(Alive(3.0)) == 1.0
    assert bench.value(Torque(-1.0)) == pytest.approx(float(force @ force))
    velocity = [bench.data.joint("b").qvel[0], bench.data.joint("a").qvel[0]]
    assert bench.value(Power(-1.0)) == pytest.approx(float(np.abs(force * velocity).sum()))
    assert bench.value(ActionRate(-1.0)) == pytest.approx(float(((action - last) ** 2).sum()))
    q = [bench.data.joint("b").qpos[0] + 0.2, bench.data.joint("a").qpos[0] - 0.3]
    assert bench.value(Pose(-1.0)) == pytest.approx(float(np.square(q).sum()))
    axes = bench.data.xmat[1].reshape(3, 3)
    assert bench.value(Tilt(-1.0)) == pytest.approx(1.0 - axes[2, 2] ** 2)
    assert bench.value(Yaw(-1.0)) == pytest.approx(axes[1, 0] ** 2)
    bench.data.actuator_force[:] = 2.0, 49.0
    assert bench.value(Saturated(-1.0)) == 0.5


def test_stops(bench: Bench) -> None:
    z, upright = bench.data.xpos[1, 2], bench.data.xmat[1, 8]
    assert not bench.value(Height(z - 0.01, z + 0.01))
    assert bench.value(Height(z + 0.01, 9.0))
    assert bench.value(Height(0.0, z - 0.01))
    angle = math.acos(upright)
    assert bench.value(Tilt(over=angle - 0.01))
    assert not bench.value(Tilt(over=angle + 0.01))
    bench.data.xpos[1, 2] = np.nan
    assert bench.value(Height(0.0, 9.0))


def act(bench: Bench, term: Any, actions: list[list[float]]) -> list[np.ndarray]:
    bound = term.bind(bench.model)
    memory, done = np.zeros(bound.memory), []
    for step, action in enumerate(actions):
        a, ctrl = np.array(action), np.zeros(2)
        bound.function(bench.state(step), np.array(bound.constants, dtype=float), memory, a, ctrl)
        done.append(np.concatenate([a, ctrl]))
    return done


def test_position_targets(bench: Bench) -> None:
    """Home is (-0.2, 0.3) in the order of actuators; b's range is (-0.4, 0.6)."""
    first, second = act(bench, PositionTargets(around="home", scale=0.5), [[0.4, -0.2], [-3.0, 1.5]])
    np.testing.assert_allclose(first, [0.4, -0.2, 0.0, 0.2])
    np.testing.assert_allclose(second, [-1.0, 1.0, -0.4, 0.8])  # limits of action, then of control
    slow = PositionTargets(around="home", scale=(0.5, 1.0), rate=5.0)  # 0.1 a step
    first, second = act(bench, slow, [[1.0, 0.05], [1.0, 0.05]])
    np.testing.assert_allclose(first[2:], [-0.1, 0.35])
    np.testing.assert_allclose(second[2:], [0.0, 0.35])
    np.testing.assert_allclose(act(bench, Torques(scale=0.2), [[0.5, -9.0]])[0], [0.5, -1.0, 0.1, -0.2])


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Gyro("head"), r"^Gyro\('head'\): this model has no site 'head'; it has: imu\.$"),
        (Sensor("x"), r"no sensor 'x'; it has: gyro, pose"),
        (JointPositions(minus="stand"), r"JointPositions\('stand'\): this model has no keyframe 'stand'; it has: home"),
        (JointPositions(joints=("knee",)), "no joint 'knee'"),
        (Clock(0.0), r"Clock\(0.0\): hz = 0.0 is not above 0"),
        (Forward(float("nan")), "weight = nan is not a finite number"),
        (Forward(1.0, target=-1.0), "target = -1.0 is not above 0"),
        (PositionTargets("home", scale=(1.0,)), "scale has 1 numbers, and this model has 2 actuators"),
        (PositionTargets("home", limit=-1.0), "limit = -1.0 is not above 0"),
        (Height(0.3, 0.2), "low = 0.3 is not below high = 0.2"),
        (Tilt(), "give a weight"),
        (Tilt(over=4.0), "not an angle between 0"),
        (Gyro("imu", clip=-1.0), "clip = -1.0 is not above 0"),
    ],
    ids=str,
)
def test_a_mistake_is_one_sentence(term: Any, words: str, bench: Bench) -> None:
    with pytest.raises(TaskError, match=words):
        term.bind(bench.model)
