"""Scenarios: what they change, that they are the same for both signs, and that bits do not depend on who runs them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import ars
from ars.errors import ArsError, TaskError
from ars.noise import Key, Stream, generator, scenario_key
from ars.policy import LinearPolicy
from ars.robots import Scenarios
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.scenarios import Scenario, World, combined
from ars.tasks.robots.terms import Model
from own_robots import LEG, ROUGH, XML
from small_runs import run_bits

KEY = Key(3, Stream.TRAINING, 2, 5, +1)


def test_rewards_of_scenarios_become_one() -> None:
    rewards = [4.0, 1.0, 3.0]
    assert combined(rewards, "mean") == pytest.approx(8 / 3)
    assert combined(rewards, "worst") == 1.0
    assert combined(rewards, "cvar") == 2.0  # of the worse two


def test_a_draw_is_within_its_ranges_and_the_same_for_both_signs() -> None:
    task = MujocoTask(ROUGH, "a:<b>")
    ranges: Any = ROUGH.scenarios
    draws = [ranges.draw(generator(scenario_key(KEY, i)), task.named, task._sizes, 50) for i in range(200)]
    for name in ("friction", "mass", "gains", "delay", "slope"):
        low, high = getattr(ranges, name)
        values = [getattr(draw, name) for draw in draws]
        assert low <= min(values) < low + 0.1 * (high - low) + 1e-9
        assert high - 0.1 * (high - low) - 1e-9 < max(values) <= high
    assert {draw.delay for draw in draws} == {0, 1, 2}
    assert draws[0].noise.shape == (51, task.n)
    assert np.abs(draws[0].noise[:, :3]).max() <= 0.1
    assert not draws[0].noise[:, 3:6].any()  # gravity has none
    assert np.abs(draws[0].bias[3:6]).max() <= 0.02
    assert not draws[0].bias[:3].any()
    assert scenario_key(KEY, 1) == scenario_key(KEY._replace(sign=-1), 1)
    assert scenario_key(KEY, 1) != scenario_key(KEY._replace(stream=Stream.EVALUATION), 1)
    one = ranges.draw(generator(scenario_key(KEY, 0)), task.named, task._sizes, 50)
    alone = replace(ranges, friction=None).draw(generator(scenario_key(KEY, 0)), task.named, task._sizes, 50)
    assert (alone.friction, alone.mass, alone.delay) == (1.0, one.mass, one.delay)


def test_what_a_world_changes() -> None:
    """Masses by MuJoCo's own subtree mass, and everything back for the next."""
    mj = mujoco.MjModel.from_xml_string(XML)
    data, fresh = mujoco.MjData(mj), mujoco.MjModel.from_xml_string(XML)
    world = World(Model(mj, data, 0.02))
    world.apply(Scenario(friction=0.5, mass=0.4, gains=2.0, slope=0.1))
    assert mj.geom("floor").friction[0] == pytest.approx(0.45)
    assert mj.body_subtreemass[0] == pytest.approx(fresh.body_subtreemass[0] + 0.4)
    np.testing.assert_allclose(mj.body_inertia[1] / fresh.body_inertia[1], mj.body_mass[1] / fresh.body_mass[1])
    assert mj.actuator_gainprm[0, 0] == 40.0
    np.testing.assert_allclose(mj.actuator_biasprm[0, 1:3], [-40.0, -2.0])
    np.testing.assert_allclose(mj.opt.gravity, [-9.81 * np.sin(0.1), 0, -9.81 * np.cos(0.1)])
    world.apply(Scenario())
    for name in ("geom_friction", "body_mass", "body_inertia", "actuator_gainprm", "body_subtreemass", "dof_M0"):
        np.testing.assert_array_equal(getattr(mj, name), getattr(fresh, name))
    np.testing.assert_array_equal(mj.opt.gravity, fresh.opt.gravity)


def controls(scenario: Scenario, steps: int = 5) -> list[float]:
    """What reaches the actuator of a policy that only follows the clock."""
    task = MujocoTask(LEG, "a:<b>", changes=True)
    M = np.zeros((1, task.n))
    M[0, 10] = 1.0  # its sine
    policy = LinearPolicy(M, np.zeros(task.n), np.ones(task.n))
    task.enter(scenario)
    task.begin(np.random.default_rng(0))
    found, zeros = [], np.zeros(task.n)
    for step in range(steps):
        task._run(policy, step, step + 1, 0.0, False, zeros, zeros)
        found.append(float(task.data.ctrl[0]))
    return found


def test_delay() -> None:
    """The keyframe's control at first, then what was asked for so many steps ago."""
    prompt, late = controls(Scenario()), controls(Scenario(delay=2))
    assert late[:2] == [0.1, 0.1]
    assert late[2:] == prompt[:3]


def test_pushes() -> None:
    """Impulse = force × time, on the trunk, at the right steps."""
    mj = mujoco.MjModel.from_xml_string(XML.replace('pos="0 0 0.3"', 'pos="0 0 9"'))  # in the air
    robot = replace(LEG, model=lambda: mj, stop=[])
    task = MujocoTask(robot, "a:<b>", changes=True)
    policy = LinearPolicy(np.zeros((1, task.n)), np.zeros(task.n), np.ones(task.n))
    mass, speeds = float(mj.body_mass.sum()), []
    for pushes in ((), ((0.1, 0.06, 2.0, 0.0),)):
        task.enter(Scenario(pushes=pushes))
        task.begin(np.random.default_rng(0))
        zeros = np.zeros(task.n)
        momenta = []
        for step in range(12):
            task._run(policy, step, step + 1, 0.0, False, zeros, zeros)
            mujoco.mj_subtreeVel(task.model, task.data)
            momenta.append(float(task.data.subtree_linvel[0, 0]) * mass)
        speeds.append(np.array(momenta))
    gained = speeds[1] - speeds[0]
    np.testing.assert_allclose(gained[:5], 0.0, atol=1e-3)
    assert gained[-1] == pytest.approx(2.0 * 0.06, rel=0.05)


def test_noise_is_seen_and_bias_too() -> None:
    task = MujocoTask(LEG, "a:<b>", changes=True)
    bias, noise = np.arange(float(task.n)), np.zeros((60, task.n))
    noise[1] = 0.5
    policy = LinearPolicy(np.zeros((1, task.n)), np.zeros(task.n), np.ones(task.n))
    seen = []
    for scenario in (Scenario(), Scenario(bias=bias, noise=noise)):
        task.enter(scenario)
        task.begin(np.random.default_rng(0))
        task._run(policy, 0, 1, 0.0, False, np.zeros(task.n), np.zeros(task.n))
        seen.append(task._x.copy())
    np.testing.assert_allclose(seen[1] - seen[0], bias + 0.5)


def test_terrain() -> None:
    field = '<asset><hfield name="ground" nrow="20" ncol="20" size="5 5 0.2 0.1"/></asset><worldbody>'
    xml = XML.replace("<worldbody>", field, 1).replace('type="plane" size="50 5 1"', 'type="hfield" hfield="ground"')
    robot = replace(LEG, model=xml, scenarios=Scenarios(each=2, terrain=("ground", 0.05)))
    task = MujocoTask(robot, "a:<b>")
    policy = LinearPolicy(np.zeros((1, task.n)), np.zeros(task.n), np.ones(task.n))
    assert task.rollout(policy, KEY, H=20, shift=0.0, gather=False).finite
    heights = task.model.hfield_data * 0.2
    assert 0.04 < heights.max() <= 0.05
    assert heights.min() < 0.01
    task.enter(Scenario())
    assert not task.model.hfield_data.any()


def test_terrain_is_of_its_own_height_field() -> None:
    fields = """<asset><hfield name="hill" nrow="5" ncol="5" size="5 5 0.4 0.1"/>
                <hfield name="ground" nrow="20" ncol="20" size="5 5 0.2 0.1"/></asset><worldbody>"""
    xml = XML.replace("<worldbody>", fields, 1).replace('type="plane" size="50 5 1"', 'type="hfield" hfield="ground"')
    task = MujocoTask(replace(LEG, model=xml), "a:<b>", changes=True)
    task.enter(Scenario(terrain=("ground", np.full(400, 0.1))))
    assert not task.model.hfield_data[:25].any()
    np.testing.assert_allclose(task.model.hfield_data[25:], 0.5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"friction": (1.2, 0.5)}, r"friction = \(1.2, 0.5\) is not a range"),
        ({"friction": 0.5}, "friction = 0.5 is not a range"),
        ({"delay": (0.5, 1.0)}, "not whole numbers of control steps"),
        ({"mass": (-50.0, 0.0)}, "takes more than .* kg, the mass of the body 'trunk'"),
        ({"noise": {"Camera": 0.1}}, "noise of 'Camera': this robot observes Gyro, Gravity"),
        ({"noise": {"Gyro": -0.1}}, "is not at least 0"),
        ({"each": 0}, "each = 0 is not a whole number"),
        ({"terrain": ("ground", 0.1)}, "no height field 'ground'; it has none"),
        ({"push_seconds": 0.0}, "push_seconds"),
    ],
    ids=str,
)
def test_a_wrong_range_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        MujocoTask(replace(LEG, scenarios=Scenarios(**changes)), "a:<b>")


SETTINGS: dict[str, Any] = {"iterations": 3, "N": 4, "least_timesteps": 0, "eval_episodes": 2, "seed": 2}


def test_any_number_of_workers_gives_the_same_bits() -> None:
    one, *others = (run_bits(ars.train("own_robots:ROUGH", **SETTINGS, workers=workers)) for workers in (1, 2, 3))
    assert others == [one, one]
    assert run_bits(ars.train("own_robots:ROUGH", **SETTINGS, workers=1, over="worst")) != one
    assert run_bits(ars.train(ROUGH, **SETTINGS, workers=2)) == one  # as an object


def test_a_run_over_scenarios_is_resumed(tmp_path: Path) -> None:
    whole = run_bits(ars.train("own_robots:ROUGH", **SETTINGS, over="cvar", workers=1))
    first = {**SETTINGS, "iterations": 1}
    for _ in ars.train("own_robots:ROUGH", **first, over="cvar", workers=1, out=tmp_path / "run"):
        pass
    rest = list(ars.resume(tmp_path / "run", task="own_robots:ROUGH", iterations=3, workers=2))
    assert run_bits(rest)[-1] == whole[-1]
    assert rest[-1].policy.task["robot"]["scenarios"]["friction"] == [0.4, 1.2]


def test_over_needs_scenarios() -> None:
    for task in ("own_robots:LEG", "Hopper-v1", "CartPole-v1"):
        with pytest.raises(ArsError, match="over = worst is for robots with scenarios"):
            next(ars.train(task, iterations=1, over="worst", workers=1))


def test_an_evaluation_is_one_scenario_each() -> None:
    task = MujocoTask(ROUGH, "a:<b>")
    policy = LinearPolicy(np.zeros((1, task.n)), np.zeros(task.n), np.ones(task.n))
    evaluated = task.rollout(policy, KEY._replace(stream=Stream.TEST), H=50, shift=0.0, gather=False)
    trained = task.rollout(policy, KEY, H=50, shift=0.0, gather=False)
    assert evaluated.steps <= 50 < trained.steps
