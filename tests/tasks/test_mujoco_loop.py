"""The compiled loop against Gymnasium's own environments, and against itself under every disturbance."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from ars.executors import Batch, Rollouts, SerialExecutor, make_executor
from ars.executors.threads import ThreadExecutor
from ars.noise import Key, Stream, environment_seed
from ars.policy import LinearPolicy
from ars.tasks import factory, locomotion, make, mujoco_loop, paper_envs
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.paper import squares
from batches import batch as make_batch

NAMES = sorted(locomotion.TASKS)
KEY = Key(3, Stream.TRAINING, 0, 0, +1)


def random_policy(p: int, n: int, scale: float = 0.1, seed: int = 0) -> LinearPolicy:
    random = np.random.default_rng(seed)
    return LinearPolicy(scale * random.standard_normal((p, n)), 0.1 * random.standard_normal(n), 1 + random.random(n))


class Stepper:
    """The compiled loop one step at a time, with given actions: a policy with M = 0 and offset −c = a acts by a."""

    def __init__(self, name: str) -> None:
        self.task = MujocoTask(locomotion.TASKS[name], name)

    def reset(self, key: Key) -> None:
        self.task.reset(key)
        self.done = 0

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool]:
        t = self.task
        s1, s2 = np.zeros(t.n), np.zeros(t.n)
        reward, steps, finite, stopped = t._loop.episode(
            t.model._address, t.data._address, t._views, t.arrays, (np.zeros((t.n, t.p)), -action), self.done,
            self.done + 1, 0.0, False, t._x, t._x_first, s1, s2,
        )  # fmt: skip
        self.done += 1
        assert (steps, finite) == (1, True)
        return t._x.copy(), reward, stopped


@pytest.mark.parametrize("name", NAMES)
def test_equals_gymnasium_to_the_bit_for_1000_steps(name: str) -> None:
    """Same initial state, same actions (some beyond their range): observations, rewards, terminations are equal."""
    env, ours = paper_envs.make(name).unwrapped, Stepper(name)
    random = np.random.default_rng(1)
    ours.reset(KEY)
    obs, _ = env.reset(seed=environment_seed(KEY))
    np.testing.assert_array_equal(ours.task.data.qpos, env.data.qpos)
    np.testing.assert_array_equal(ours.task.data.qvel, env.data.qvel)
    falls = 0
    for step in range(1000):
        action = random.normal(scale=0.7, size=ours.task.p)
        x, reward, terminated = ours.step(action)
        obs, expected, expected_terminated, _, _ = env.step(action)
        np.testing.assert_array_equal(x, obs)
        assert (reward, terminated) == (float(expected), bool(expected_terminated)), f"at step {step}"
        if terminated:
            falls += 1
            key = KEY._replace(k=falls)
            ours.reset(key)
            env.reset(seed=environment_seed(key))
    assert falls > 0 or name.startswith(("Swimmer", "HalfCheetah", "Ant"))  # the fallen are among what is compared


@pytest.mark.parametrize("name", NAMES)
def test_episodes_equal_the_plain_path_to_the_bit(name: str) -> None:
    """Whole closed-loop episodes: rewards, lengths and moments."""
    fast, plain = make(name), make(name, compiled=False)
    assert fast.definition() == plain.definition()
    for k in range(3):
        policy = random_policy(fast.p, fast.n, seed=k)
        keywords = {"H": 150, "shift": fast.survival_bonus, "gather": True}
        a = fast.rollout(policy, KEY._replace(k=k), **keywords)
        b = plain.rollout(policy, KEY._replace(k=k), **keywords)
        assert (a.reward, a.steps, a.finite) == (b.reward, b.steps, b.finite)
        assert a.moments
        assert b.moments
        np.testing.assert_array_equal(a.moments.mean, b.moments.mean)
        np.testing.assert_array_equal(a.moments.m2, b.moments.m2)
    plain.close()


def test_the_loop_is_compiled_once_for_all_tasks() -> None:
    """Whatever the number of parts of an observation, the type of a number and the layout of a policy."""
    for name in ("Swimmer-v5", "Ant-v5", "Humanoid-v1"):
        task = make(name)
        policy = random_policy(task.p, task.n)
        turned = replace(policy, M=np.asfortranarray(policy.M))
        for one, H, shift in ((policy, 2, 0.0), (turned, np.int32(2), 1), (policy, 2, np.float32(1.0))):
            task.rollout(one, KEY, H=H, shift=shift, gather=np.bool_(True))
    loops = {make(name)._loop for name in NAMES if name not in ("Ant-v1",)}  # type: ignore[attr-defined]
    assert len({loop.digest for loop in loops}) == 3  # for observations of two, three and six parts
    assert all(len(loop.episode.dispatcher.signatures) <= 1 for loop in loops)


@pytest.mark.parametrize("name", NAMES)
def test_islands_switched_off_change_no_bit(name: str) -> None:
    """The flags of Gymnasium's model and of ours: the same trajectories, through falls and all."""
    described = locomotion.TASKS[name]
    models = [locomotion.load_model(described), mujoco_loop._shared_model(mujoco_loop._as_robot(described))]
    assert models[0].opt.disableflags == 0
    assert models[1].opt.disableflags == mujoco.mjtDisableBit.mjDSBL_ISLAND
    datas = [mujoco.MjData(model) for model in models]
    random = np.random.default_rng(2)
    for _ in range(15):
        qpos = models[0].qpos0 + random.uniform(-0.1, 0.1, models[0].nq)
        for model, data in zip(models, datas, strict=True):
            mujoco.mj_resetData(model, data)
            data.qpos[:] = qpos
        for _ in range(60):
            ctrl = random.normal(scale=0.7, size=models[0].nu)
            for model, data in zip(models, datas, strict=True):
                data.ctrl[:] = ctrl
                mujoco.mj_step(model, data, described.frame_skip)
        np.testing.assert_array_equal(datas[0].qpos, datas[1].qpos)
        np.testing.assert_array_equal(datas[0].qvel, datas[1].qvel)


def test_dirty_data_is_harmless() -> None:
    """An episode does not depend on what the MjData held before it."""
    for name in ("Ant-v5", "Humanoid-v1"):
        clean, dirty = make(name), make(name)
        assert isinstance(dirty, MujocoTask)
        policy = random_policy(clean.p, clean.n)
        keywords = {"H": 60, "shift": 0.0, "gather": True}
        expected = clean.rollout(policy, KEY, **keywords)
        dirty.rollout(random_policy(clean.p, clean.n, seed=5), KEY._replace(k=9), **keywords)
        for field in ("qpos", "qvel", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied", "cfrc_ext", "cvel"):
            getattr(dirty.data, field)[:] = 123.0
        dirty.data.time = 55.0
        again = dirty.rollout(policy, KEY, **keywords)
        assert (again.reward, again.steps) == (expected.reward, expected.steps)
        assert again.moments
        assert expected.moments
        np.testing.assert_array_equal(again.moments.m2, expected.moments.m2)


def test_resets_draw_from_gymnasium_distributions() -> None:
    """Not only the same numbers for the same seed: their range and spread are the environment's."""
    for name, uniform in (("HalfCheetah-v5", False), ("Hopper-v5", True)):
        task = make(name)
        assert isinstance(task, MujocoTask)
        described = locomotion.TASKS[name]
        draws = []
        for k in range(400):
            task.reset(KEY._replace(k=k))
            draws.append(task.data.qvel.copy())
        spread = np.std(draws)
        expected = described.qvel_noise / np.sqrt(3) if uniform else described.qvel_noise
        assert spread == pytest.approx(expected, rel=0.05)
        assert (np.abs(draws).max() <= described.qvel_noise) == uniform


def _batch(task: MujocoTask, N: int = 6) -> Batch:
    zeros, ones = np.zeros(task.n), np.ones(task.n)
    return make_batch(
        np.zeros((task.p, task.n)), zeros, ones, nu=0.1, size=N, seed=4, j=0, H=60, shift=task.survival_bonus,
        gather=True,
    )  # fmt: skip


def _same(a: Rollouts, b: Rollouts) -> None:
    np.testing.assert_array_equal(a.rewards, b.rewards)
    np.testing.assert_array_equal(a.steps, b.steps)
    np.testing.assert_array_equal(a.moments.mean, b.moments.mean)
    np.testing.assert_array_equal(a.moments.m2, b.moments.m2)


@pytest.mark.parametrize("name", ["Hopper-v1", "Humanoid-v5"])
def test_threads_give_the_same_bits(name: str) -> None:
    task = make(name)
    assert isinstance(task, MujocoTask)
    batch = _batch(task)
    expected = SerialExecutor(lambda: make(name, compiled=False)).run(batch)
    for workers in (1, 2, 4):
        executor = make_executor(factory(name), workers)
        assert isinstance(executor, ThreadExecutor) == (workers > 1)
        _same(executor.run(batch), expected)
        executor.close()


def test_a_diverging_simulation_is_not_finite_and_leaves_no_log(tmp_path: Path) -> None:
    """MuJoCo resets a bad state silently; without its counters the episode would look fine. Both paths see it at the
    same step, from threads too, and no MUJOCO_LOG.TXT appears where the user is."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})"
        + """
import numpy as np
from ars.executors import make_executor
from batches import batch as make_batch
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.tasks import factory, make
for name in ("HalfCheetah-v5", "Ant-v1"):
    found = []
    for compiled in (True, False):
        task = make(name, compiled=compiled)
        policy = LinearPolicy(np.full((task.p, task.n), 1e7), np.zeros(task.n), np.ones(task.n))
        model = task.model if compiled else task._env.unwrapped.model
        model.actuator_ctrllimited[:] = 0
        model.actuator_gear[:, 0] = 1e9
        rollout = task.rollout(policy, Key(1, Stream.TRAINING, 0, 0, 1), H=1000, shift=0.0, gather=False)
        found.append((rollout.steps, rollout.finite))
    assert found[0] == found[1] and not found[0][1] and found[0][0] < 1000, found
    M = np.full((task.p, task.n), 1e7)
    batch = make_batch(M, np.zeros(task.n), np.ones(task.n), nu=0.1, size=4, seed=1, j=0, H=100)
    assert np.isnan(make_executor(factory(name), 2).run(batch).rewards).all()
"""
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


ROBOT = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom type="plane" size="50 5 1"/>
    <body pos="0 0 0.3">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="pitch" type="hinge" axis="0 1 0"/>
      <geom type="capsule" size="0.05 0.2" euler="0 90 0"/>
      <body pos="0.2 0 0">
        <joint name="leg" type="hinge" axis="0 1 0" range="-60 60"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.04"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="leg" gear="20" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>
"""


def test_a_robot_of_ones_own_runs_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's MJCF with a description, named module:attribute, checked against a plain loop written here."""
    (tmp_path / "robot.xml").write_text(ROBOT)
    (tmp_path / "my_robot.py").write_text(
        "from pathlib import Path\n"
        "from ars.tasks.locomotion import Locomotion, Slice\n"
        "HOPPING = Locomotion(name='one leg', xml=str(Path(__file__).with_name('robot.xml')), frame_skip=2, H=80,\n"
        "    observation=(Slice('qpos', 1), Slice('qvel', clip=5.0)), survival_bonus=0.5, ctrl_weight=0.01,\n"
        "    z_range=(-0.2, 1.0), qpos_noise=0.01, qvel_noise=0.01)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    task = make("my_robot:HOPPING")
    assert isinstance(task, MujocoTask)
    assert (task.n, task.p, task.H) == (7, 1, 80)
    policy = random_policy(1, 7, scale=1.0)
    rollout = task.rollout(policy, KEY, H=80, shift=0.5, gather=False)

    task.reset(KEY)
    model, data = mujoco.MjModel.from_xml_string(ROBOT), mujoco.MjData(mujoco.MjModel.from_xml_string(ROBOT))
    data.qpos[:], data.qvel[:] = task.data.qpos, task.data.qvel
    mujoco.mj_forward(model, data)
    total, steps = 0.0, 0
    for _ in range(80):
        a = policy.act(np.concatenate([data.qpos[1:], np.clip(data.qvel, -5, 5)]))
        x = data.qpos[0]
        data.ctrl[:] = a
        mujoco.mj_step(model, data, 2)
        healthy = -0.2 < data.qpos[1] < 1.0
        total += ((data.qpos[0] - x) / 0.02 + 0.5 * healthy - 0.01 * a[0] ** 2) - 0.5
        steps += 1
        if not healthy:
            break
    assert steps == rollout.steps
    assert rollout.reward == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "word"), [({"observation": (locomotion.Slice("wings"),)}, "wings"), ({"progress": "up"}, "up")]
)
def test_a_wrong_description_is_named(change: dict[str, object], word: str) -> None:
    from ars.errors import TaskError

    with pytest.raises(TaskError, match=word):
        MujocoTask(replace(locomotion.TASKS["Hopper-v5"], **change), "mine")


def test_numpy_sums_in_the_order_that_squares_assumes() -> None:
    """Rewards equal Gymnasium's only while NumPy adds in eight lanes; sizes are those of controls and contacts."""
    random = np.random.default_rng(0)
    for size in (1, 2, 3, 6, 7, 8, 9, 17, 78, 84):
        values = random.standard_normal(size) * 10.0 ** random.integers(-3, 4, size)
        wide = np.full(size, np.inf)
        assert squares(values, -wide, wide) == np.sum(np.square(values))
        one = np.ones(size)
        assert squares(values, -one, one) == np.sum(np.square(np.clip(values, -1, 1)))
