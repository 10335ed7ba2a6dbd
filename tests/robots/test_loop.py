"""The generated loop: compiled and plain to the same bits, kept on disk under what decides it, and checked on entry."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numba import njit

import own_robots
from ars.errors import TaskError
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.robots import Alive, Forward, Height, JointPositions, Keyframe, Reward, Robot, Start, Tilt
from ars.tasks import make
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.loop import fields_used, fingerprint
from ars.tasks.robots.state import State
from own_robots import LEG, ROUGH, XML

KEY = Key(3, Stream.TRAINING, 0, 0, +1)


def random_policy(task: Any, seed: int = 0, scale: float = 0.3) -> LinearPolicy:
    random = np.random.default_rng(seed)
    return LinearPolicy(scale * random.standard_normal((task.p, task.n)), np.zeros(task.n), np.ones(task.n))


@pytest.mark.parametrize("robot", [LEG, ROUGH], ids=lambda robot: robot.name)
def test_compiled_and_plain_have_the_same_bits(robot: Robot) -> None:
    fast, plain = MujocoTask(robot, "a:<b>"), MujocoTask(robot, "a:<b>", compiled=False)
    assert fast.definition() == plain.definition()
    steps = set()
    for k in range(6):
        policy, keywords = random_policy(fast, k), {"H": 50, "shift": 0.5, "gather": True}
        a, b = (task.rollout(policy, KEY._replace(k=k), **keywords) for task in (fast, plain))
        assert (a.reward, a.steps, a.finite) == (b.reward, b.steps, b.finite)
        assert a.moments
        assert b.moments
        np.testing.assert_array_equal(a.moments.mean, b.moments.mean)
        np.testing.assert_array_equal(a.moments.m2, b.moments.m2)
        np.testing.assert_array_equal(fast.arrays.parts, plain.arrays.parts)
        steps.add(a.steps)
    assert len(steps) > 1  # some of them stop


def test_the_physics_is_that_of_mj_step() -> None:
    """Steps from the middle of one to the middle of the next: the same positions, to the bit."""
    task = MujocoTask(LEG, "a:<b>")
    policy = random_policy(task, 1, 0.1)
    task.reset(KEY)
    other, zeros = mujoco.MjData(task.model), np.zeros(task.n)
    mujoco.mj_copyData(other, task.model, task.data)
    for step in range(20):
        task._run(policy, step, step + 1, 0.0, False, zeros, zeros)
        other.ctrl[:] = task.data.ctrl
        mujoco.mj_step(task.model, other, task.arrays.frame_skip)
        np.testing.assert_array_equal(task.data.qpos, other.qpos)
        np.testing.assert_array_equal(task.data.qvel, other.qvel)


def test_single_steps_are_the_same_episode() -> None:
    """What films show is what is trained."""
    task = MujocoTask(LEG, "a:<b>")
    policy = random_policy(task, 1)
    whole = task.rollout(policy, KEY, H=50, shift=0.0, gather=False)
    task.reset(KEY)
    rewards, finite = zip(*task.steps(policy, H=50), strict=True)
    assert len(rewards) == whole.steps
    assert all(finite)
    assert sum(rewards) == pytest.approx(whole.reward, rel=1e-12)
    assert task.stopped == (whole.steps < 50)


def test_the_reward_is_the_sum_of_its_terms() -> None:
    task = MujocoTask(LEG, "a:<b>")
    rollout = task.rollout(random_policy(task, 2), KEY, H=50, shift=0.0, gather=False)
    terms = task.reward_terms()
    assert list(terms) == [f"reward_{name}" for name in ("Forward", "Alive", "Torque", "ActionRate", "Tilt", "swing")]
    assert sum(terms.values()) == pytest.approx(rollout.reward)
    assert terms["reward_Alive"] == 0.5 * rollout.steps
    measured = task.measure_episode
    assert measured
    assert measured(random_policy(task, 2))["episode_steps"] > 0


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_an_observation_is_that_of_the_state_after_the_step(integrator: str) -> None:
    """Kinematics are brought up to date; mj_step itself leaves them one physics step old."""
    task = MujocoTask(replace(LEG, model=XML.replace("<option ", f'<option integrator="{integrator}" ')), "a:<b>")
    task.rollout(random_policy(task, 0, 0.1), KEY, H=20, shift=0.0, gather=False)
    seen, data = task.arrays.whole.copy(), task.data
    mujoco.mj_forward(task.model, data)
    np.testing.assert_allclose(seen[:3], data.sensor("gyro").data, rtol=1e-9)
    assert seen[-2] == data.xpos[1, 2]


CHANGING = """
from ars.tasks.robots.loop import fingerprint
FACTOR = {factor}
def helper(v):
    return v * {inner}
def term(s, k, m):
    return helper(s.qpos[0]) * FACTOR
print(fingerprint(term))
"""


def test_compiled_code_is_kept_for_what_decides_it() -> None:
    """A changed constant, or a changed function that a term calls, is another loop; other names are not."""

    def digest(**values: float) -> str:
        code = CHANGING.format(**values)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout

    same = digest(factor=1.0, inner=2.0)
    assert digest(factor=1.0, inner=2.0) == same
    assert digest(factor=1.5, inner=2.0) != same
    assert digest(factor=1.0, inner=2.5) != same


def test_a_closure_counts_too() -> None:
    def scaled(factor: float) -> Any:
        def term(s: Any, k: Any, m: Any) -> float:
            return factor * s.qpos[0]

        return term

    assert fingerprint(scaled(1.0)) == fingerprint(scaled(1.0))
    assert fingerprint(scaled(1.0)) != fingerprint(scaled(2.0))
    robots = [minimal(reward=[Reward(scaled(factor))]) for factor in (1.0, 2.0)]
    one, two = (MujocoTask(robot, "a:<b>").rollout(
        random_policy(MujocoTask(robot, "a:<b>")), KEY, H=5, shift=0.0, gather=False) for robot in robots)  # fmt: skip
    assert two.reward == pytest.approx(2 * one.reward)


def test_a_start_of_ones_own() -> None:
    def low(model: Any, data: Any, random: np.random.Generator) -> None:
        data.qpos[1] = -0.1 + 0.01 * random.random()

    task = MujocoTask(replace(LEG, start=Start(low)), "a:<b>")
    task.reset(KEY)
    assert -0.1 <= task.data.qpos[1] <= -0.09


def test_what_the_users_functions_raise_is_one_sentence() -> None:
    def broken(model: Any, data: Any, random: np.random.Generator) -> None:
        data.qpos[100] = 1.0

    with pytest.raises(TaskError, match=r"Start\(broken\) fails: IndexError"):
        MujocoTask(replace(LEG, start=Start(broken)), "a:<b>").reset(KEY)

    def texts(s: Any, k: Any, m: Any) -> float:
        return float(len("{:.3f}".format(s.t)))  # noqa: UP032 (what Numba lacks)

    task = MujocoTask(minimal(reward=[Reward(texts)]), "a:<b>")
    with pytest.raises(TaskError, match="A term cannot be compiled by Numba"):
        task.rollout(random_policy(task), KEY, H=3, shift=0.0, gather=False)

    def few(s: Any) -> float:
        return 0.0

    with pytest.raises(TaskError, match=r"leg: its term .* fails: TypeError: .*few"):
        MujocoTask(replace(LEG, reward=[Reward(few)]), "a:<b>")


def test_models_of_every_kind(tmp_path: Path) -> None:
    file = tmp_path / "leg.xml"
    file.write_text(XML)
    kinds = [XML, file, str(file), mujoco.MjSpec.from_string(XML), lambda: mujoco.MjSpec.from_string(XML)]
    kinds.append(lambda: mujoco.MjModel.from_xml_string(XML))
    rewards = set()
    for model in kinds:
        task = MujocoTask(replace(LEG, model=model), "a:<b>")
        rewards.add(task.rollout(random_policy(task), KEY, H=10, shift=0.0, gather=False).reward)
    assert len(rewards) == 1


def minimal(**changes: Any) -> Robot:
    fields: dict[str, Any] = {
        "model": XML, "control_hz": 50, "start": Keyframe("home"), "observe": [JointPositions()],
        "reward": [Alive(1.0)],
    }  # fmt: skip
    return Robot(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"control_hz": 30}, r"control_hz = 30 is 3.333 physics steps of 0.01 s, which is not a whole number"),
        ({"control_hz": 0}, "control_hz = 0 is not a number above 0"),
        ({"control_hz": 1000}, "not a whole number"),
        ({"seconds": float("inf")}, "seconds = inf is not a number above 0"),
        ({"observe": []}, "at least one term"),
        ({"reward": Alive(1.0)}, "is not a list of terms"),
        ({"observe": ["qpos"]}, "'qpos' among `observe` is not a term"),
        ({"model": "nowhere.xml"}, "There is no model nowhere.xml"),
        ({"model": "<mujoco><nonsense/></mujoco>"}, "cannot be loaded"),
        ({"model": "<mujoco/>"}, "no keyframe 'home'; it has none"),
        ({"model": 5}, "not a path, MJCF, an MjSpec or a function"),
        ({"start": Keyframe("stand")}, r"Keyframe\('stand'\): this model has no keyframe 'stand'; it has: home"),
        ({"start": Keyframe("home", qpos_noise=-1.0)}, "qpos_noise = -1.0"),
        ({"stop": [Height(0.3, 0.2)]}, "low = 0.3 is not below"),
        ({"reward": [Forward(1.0), Tilt()]}, "give a weight"),
    ],
    ids=str,
)
def test_a_description_that_makes_no_sense_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        MujocoTask(minimal(**changes), "a:<b>")


def test_a_mirror_is_refused() -> None:
    with pytest.raises(TaskError, match="no mirror"):
        make("own_robots:LEG", mirror=True)


def test_a_subset_of_the_observation() -> None:
    whole, part = make("own_robots:LEG"), make("own_robots:LEG", observe="Gyro,leg velocity")
    assert (whole.n, part.n) == (14, 4)
    assert isinstance(part, MujocoTask)
    assert isinstance(whole, MujocoTask)
    zero = [LinearPolicy(np.zeros((1, task.n)), np.zeros(task.n), np.ones(task.n)) for task in (whole, part)]
    for task, policy in zip((whole, part), zero, strict=True):
        task.rollout(policy, KEY, H=7, shift=0.0, gather=False)
    np.testing.assert_array_equal(part._x, whole._x[[0, 1, 2, 8]])


def spins(s: Any) -> float:
    return float(s.qvel[0])


def test_the_state_has_what_terms_use() -> None:
    """Their own functions and those that they call; all of it if a module of the user's is among them."""
    inner = 2

    def term(s: Any, k: Any, m: Any) -> float:
        return spins(s) + sum(s.xpos[i, 0] for i in range(inner))

    assert fields_used([term]) == {"qvel", "xpos"}
    assert fields_used([njit(term)]) == {"qvel", "xpos"}
    assert fields_used([lambda s, k, m: own_robots.LEG]) == set(State._fields)
