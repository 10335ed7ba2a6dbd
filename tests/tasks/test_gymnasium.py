"""Environments as tasks: one reset an episode, states acted on, actions as the space wants them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import small_envs
from ars.errors import SettingError, TaskError
from ars.noise import Key, Stream, environment_seed
from ars.policy import LinearPolicy
from ars.tasks import Rollout, compiled_step, make  # noqa: F401 (compiled steps are loaded before the first test)
from ars.tasks.gymnasium import GymnasiumTask
from ars.tasks.locomotion import TASKS

KEY = Key(7, Stream.TRAINING, 3, 2, -1)


def policy_of(task: Any, M: Any = None) -> LinearPolicy:
    M = np.zeros((task.p, task.n)) if M is None else np.array(M, dtype=np.float64)
    return LinearPolicy(M, np.zeros(task.n), np.ones(task.n))


def roll(name: str, M: Any = None, *, H: int = 1000, shift: float = 0.0, key: Key = KEY) -> Rollout:
    """With plain and with compiled steps, which must give the same bits and call the environment in the same way."""
    results = []
    for plain_steps in (np.inf, 0):
        small_envs.calls.clear()
        task = GymnasiumTask(f"small_envs:{name}", plain_steps=plain_steps)
        rollout = task.rollout(policy_of(task, M), key, H=H, shift=shift, gather=True)
        results.append((bits_of(rollout), str(small_envs.calls)))
    assert results[0] == results[1]
    return rollout


def bits_of(rollout: Rollout) -> Any:
    moments = rollout.moments
    sums = None if moments is None else (int(moments.count), moments.mean.tobytes(), moments.m2.tobytes())
    return rollout.reward.hex(), rollout.steps, rollout.finite, sums


def steps_of(calls: list[Any]) -> list[Any]:
    return [np.asarray(call[1]).tolist() for call in calls if call[0] == "step"]


# -- one episode -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Script", "Truncated"])
def test_one_reset_and_no_step_after_the_end(name: str, calls: list[Any]) -> None:
    """sb3-contrib#95: environments are reset once an episode. brax simulates on after termination and counts it."""
    rollout = roll(name)
    assert [call[0] for call in calls] == ["reset", "step", "step", "step", "step"]
    assert (rollout.steps, rollout.reward, rollout.finite) == (4, 1.0 + 2.0 + 3.0 + 4.0, True)


def test_the_reset_is_seeded_from_the_key(calls: list[Any]) -> None:
    """Nothing else decides an episode."""
    roll("Script")
    assert calls[0] == ("reset", environment_seed(KEY))


def test_H_cuts_the_episode(calls: list[Any]) -> None:
    """A training rollout of horizon H."""
    rollout = roll("Script", H=2)
    assert (rollout.steps, rollout.reward) == (2, 3.0)
    assert len(steps_of(calls)) == 2


def test_an_environment_without_horizon_ends() -> None:
    """Stated default: 1000."""
    task = GymnasiumTask("small_envs:Endless")
    assert task.H == 1000
    assert task.rollout(policy_of(task), KEY, H=task.H, shift=0.0, gather=False).steps == 1000


def test_shift_is_taken_off_every_step() -> None:
    """The survival bonus, in training."""
    assert roll("Script", shift=0.75).reward == 10.0 - 4 * 0.75
    assert roll("Script", shift=0.75, H=3).reward == 6.0 - 3 * 0.75


def test_moments_cover_states_acted_on_and_not_the_final_one() -> None:
    """(100, 50), reached by the last step, is never acted on. The second coordinate is constant: exactly."""
    moments = roll("Script").moments
    states = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 1.0], [9.0, 1.0]])
    assert moments is not None
    assert moments.count == 4
    np.testing.assert_allclose(moments.mean, states.mean(axis=0), rtol=1e-15)
    np.testing.assert_allclose(moments.m2, 4 * states.var(axis=0), rtol=1e-14)
    assert moments.m2[1] == 0.0


@pytest.mark.parametrize("name", ["Drift", "Reused"])
def test_moments_and_reward_against_a_plain_loop(name: str) -> None:
    """Compared with recorded states; also for an environment that overwrites its observation in place."""
    rng = np.random.default_rng(0)
    policy = LinearPolicy(0.3 * rng.standard_normal((2, 3)), np.array([1.0, 1.0, 7.0]), np.array([0.5, 0.5, np.inf]))
    task = GymnasiumTask(f"small_envs:{name}")
    lengths = set()
    for k in range(20):
        key = Key(0, Stream.TRAINING, 0, k, 1)
        rollout = task.rollout(policy, key, H=1000, shift=0.5, gather=True)
        env = small_envs.Drift()
        obs, _ = env.reset(seed=environment_seed(key))
        states, total, done = [], 0.0, False
        while not done:
            states.append(obs)
            action = policy.M @ ((obs - policy.mu) / policy.sigma)
            obs, reward, terminated, truncated, _ = env.step(action.astype(env.action_space.dtype))
            total += reward - 0.5
            done = terminated or truncated
        assert rollout.moments is not None
        assert rollout.steps == rollout.moments.count == len(states)
        assert rollout.reward == pytest.approx(total, rel=1e-9)
        np.testing.assert_allclose(rollout.moments.mean, np.mean(states, axis=0), rtol=1e-9)
        np.testing.assert_allclose(rollout.moments.m2, len(states) * np.var(states, axis=0), rtol=1e-7, atol=1e-12)
        lengths.add(rollout.steps)
    assert len(lengths) > 2  # some ended early


def test_gather_off_collects_nothing() -> None:
    """Evaluations, V1 and BRS need no moments."""
    task = GymnasiumTask("small_envs:Script")
    assert task.rollout(policy_of(task), KEY, H=10, shift=0.0, gather=False).moments is None


def test_the_same_key_gives_the_same_bits_whatever_came_before() -> None:
    """A worker's environment has a past; an episode must not show it."""
    task = GymnasiumTask("small_envs:Drift")
    policy = policy_of(task, 0.1 * np.ones((2, 3)))

    def once(k: int) -> tuple[float, int]:
        rollout = task.rollout(policy, Key(0, Stream.TRAINING, 0, k, 1), H=1000, shift=0.0, gather=False)
        return rollout.reward, rollout.steps

    first = [once(k) for k in range(6)]
    assert [once(k) for k in reversed(range(6))] == first[::-1]
    assert len(set(first)) == 6
    fresh = GymnasiumTask("small_envs:Drift")
    rollout = fresh.rollout(policy, Key(0, Stream.TRAINING, 0, 3, 1), H=1000, shift=0.0, gather=False)
    assert (rollout.reward, rollout.steps) == first[3]


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "small_envs:Drift", "small_envs:Mixture"])
def test_a_task_goes_over_to_compiled_steps_without_changing_a_bit(name: str) -> None:
    """It does so between two episodes, after its first `plain_steps`."""
    plain, changing = GymnasiumTask(name, plain_steps=np.inf), GymnasiumTask(name, plain_steps=10)
    rng = np.random.default_rng(3)
    actors = []
    for k in range(12):
        M, mu, sigma = rng.standard_normal((plain.p, plain.n)), rng.random(plain.n), 0.5 + rng.random(plain.n)
        policy, key = LinearPolicy(0.3 * M, mu, sigma), Key(1, Stream.TRAINING, 0, k, 1)
        one, other = (
            bits_of(task.rollout(policy, key, H=30, shift=0.3, gather=k % 3 > 0)) for task in (plain, changing)
        )
        assert one == other
        actors.append(type(changing._actor).__name__)
    assert actors[0] == "PlainActor"
    assert actors[-1] == "CompiledActor"


@pytest.mark.parametrize("plain_steps", [np.inf, 0])
def test_a_policy_of_another_size_is_a_sentence(plain_steps: float) -> None:
    """Compiled code does not check the sizes of arrays."""
    task = GymnasiumTask("small_envs:Script", plain_steps=plain_steps)
    for p, n in ((1, 3), (2, 2)):
        policy = LinearPolicy(np.zeros((p, n)), np.zeros(n), np.ones(n))
        with pytest.raises(SettingError, match=rf"policy is {p} × {n} and small_envs:Script needs 1 × 2"):
            task.rollout(policy, KEY, H=5, shift=0.0, gather=True)


# -- actions ---------------------------------------------------------------------------------------------------------


def test_discrete_actions_start_where_the_space_starts(calls: list[Any]) -> None:
    """Discrete(3, start=5): argmax over three numbers, plus five."""
    M = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]  # x = (0, 1), (2, 1), (5, 1), (9, 1)
    roll("Choices", M)
    assert steps_of(calls) == [6, 7, 7, 7]


def test_bounded_box_actions_are_clipped_and_shaped(calls: list[Any]) -> None:
    """Each to its own bounds, in the space's shape: a deviation for environments that are not MuJoCo's."""
    roll("Bounded", [[0.0, -5.0], [1.0, 0.5]])
    assert steps_of(calls) == [[[-1.0], [0.5]], [[-1.0], [2.5]], [[-1.0], [3.0]], [[-1.0], [3.0]]]


def test_a_bound_on_one_side_holds(calls: list[Any]) -> None:
    """Box(0, inf): a negative action is outside the space as much as with two bounds."""
    roll("HalfBounded", [[1.0, -3.0]])
    assert steps_of(calls) == [[0.0], [0.0], [2.0], [6.0]]


def test_mujoco_actions_are_not_clipped() -> None:
    """Gymnasium's robots price the unclamped action; clipping first would make large gains free."""
    task = GymnasiumTask("Hopper-v5")
    assert (task.actions.low, task.actions.high) == (None, None)
    # M acts on the height alone, about 1.25: actions of about 12.5, a cost of 1e-3 · 3 · 156 in the first step
    M = np.zeros((3, 11))
    M[:, 0] = 10.0
    large = task.rollout(policy_of(task, M), KEY, H=1, shift=0.0, gather=False).reward
    M[:, 0] = 5.0  # still beyond the range, so the motion is the same
    small = task.rollout(policy_of(task, M), KEY, H=1, shift=0.0, gather=False).reward
    height = task._env.unwrapped.init_qpos[1]
    assert small - large == pytest.approx(1e-3 * 3 * height**2 * (10**2 - 5**2), rel=0.02)


# -- observations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DictObservation", [1.0, 2.0, 10.0]),  # Gymnasium sorts the keys: position, velocity
        ("TupleObservation", [10.0, 1.0, 2.0, 3.0, 4.0]),
        ("Image", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
    ],
)
def test_observations_are_flattened(name: str, expected: list[float]) -> None:
    rollout = roll(name, H=1)
    assert rollout.moments is not None
    assert rollout.moments.mean.tolist() == expected


def test_nested_observations_are_flattened_as_gymnasium_does() -> None:
    """Each part in the type of its space; one-hot rows for Discrete parts; scalars where the space has one number."""
    env = small_envs.Mixture()
    task = GymnasiumTask("small_envs:Mixture")
    observation, _ = env.reset(seed=environment_seed(KEY))
    for _ in range(20):
        task._observe(observation)
        expected = np.asarray(gymnasium.spaces.flatten(env.observation_space, observation), dtype=np.float64)
        assert task._x.tobytes() == expected.tobytes()
        observation = env.step(np.zeros((), np.float32))[0]


def test_a_part_of_another_size_is_named() -> None:
    with pytest.raises(TaskError, match=r"small_envs:WrongPart failed in reset .* part .* has 1 numbers, not 2"):
        roll("WrongPart")


@pytest.mark.parametrize("name", ["NanObservation", "NanReward", "InfiniteReward", "NanLastObservation"])
def test_a_rollout_that_becomes_non_finite_ends(name: str, calls: list[Any]) -> None:
    """mujoco-py#736: NaN is flagged, not spread."""
    rollout = roll(name)
    assert not rollout.finite
    assert rollout.steps == len(steps_of(calls)) == (4 if name == "NanLastObservation" else 2)


def test_a_non_finite_first_observation_is_not_acted_on(calls: list[Any]) -> None:
    rollout = roll("NanFirstObservation")
    assert not rollout.finite
    assert (rollout.steps, steps_of(calls)) == (0, [])
    assert rollout.moments is not None
    assert rollout.moments.count == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("M", [[[1e308, 1e308]], [[-1e308, 1e308]]])
def test_a_non_finite_action_ends_the_rollout(M: Any, calls: list[Any]) -> None:
    """D3: an environment that happens to ignore it must not make a policy of infinities look good."""
    rollout = roll("Script", M)  # x = (0, 1), then (2, 1), (5, 1): beyond the largest float
    assert not rollout.finite


def test_a_diverged_simulation_ends_the_rollout() -> None:
    """MuJoCo resets silently and the state stays finite: 1000 steps of another episode must not be counted."""
    rollout = roll("diverging_swimmer")
    assert not rollout.finite
    assert rollout.steps == 3


# -- mistakes --------------------------------------------------------------------------------------------------------


def test_an_environment_that_raises_is_named() -> None:
    with pytest.raises(TaskError, match=r"small_envs:Raises .*RuntimeError: the motor is on fire"):
        roll("Raises")
    with pytest.raises(TaskError, match=r"small_envs:RaisesAtReset .*no power"):
        roll("RaisesAtReset")


def test_an_observation_of_another_shape_than_the_space_is_named() -> None:
    with pytest.raises(TaskError, match=r"small_envs:WrongShape .*\(5,\)"):
        roll("WrongShape")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DiscreteObservation", "observations of kind Discrete"),
        ("ManyActions", "actions of kind MultiDiscrete"),
        ("not_an_environment", "returned str"),
        ("nothing_of_this_name", "nothing_of_this_name"),
    ],
)
def test_what_cannot_be_a_task_is_a_sentence(name: str, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        make(f"small_envs:{name}")


@pytest.mark.parametrize("name", ["no_such_module:Env", "no.such.module:Env", ":Env", "small_envs:", "os:getcwd", ":"])
def test_modules_that_are_not_there_are_a_sentence(name: str) -> None:
    with pytest.raises(TaskError):
        make(name)


def test_a_module_that_fails_to_import_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TaskError, match=r"broken_module.*ZeroDivisionError"):
        make("broken_module:Env")


def test_a_module_in_the_users_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console script does not look there by itself."""
    (tmp_path / "my_own_env.py").write_text("from small_envs import Script as Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))  # restores sys.path afterwards
    monkeypatch.chdir(tmp_path)
    task = make("my_own_env:Mine")
    assert (task.n, task.p) == (2, 1)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Hoper-v5", "Hopper-v5"),
        ("halfcheetah-v1", "HalfCheetah-v1"),
        ("Cartpole-v1", "CartPole-v1"),
        ("Ant-v7", "Ant-v"),
    ],
)
def test_unknown_tasks_get_the_nearest_names(name: str, near: str) -> None:
    with pytest.raises(TaskError, match=near) as error:
        make(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("name", ["", " ", "xyzzyxyzzyxyzzy", "v5"])
def test_unknown_tasks_like_nothing_are_a_sentence_too(name: str) -> None:
    with pytest.raises(TaskError, match="There is no task"):
        make(name)


# -- the contract of every task --------------------------------------------------------------------------------------

NAMES = [
    *TASKS,
    "CartPole-v1",
    "Pendulum-v1",
    "MountainCarContinuous-v0",
    "small_envs:Drift",
    "small_envs:DictObservation",
]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_contract(name: str, compiled: bool) -> None:
    """What every task promises: sizes, a definition in JSON, episodes that keep to H, shift and their key."""
    task = make(name, compiled=compiled)
    try:
        definition = task.definition()
        assert json.loads(json.dumps(definition, allow_nan=False)) == json.loads(json.dumps(definition))
        assert (definition["name"], definition["n"], definition["p"], definition["H"]) == (name, task.n, task.p, task.H)
        rng = np.random.default_rng(1)
        policy = LinearPolicy(0.01 * rng.standard_normal((task.p, task.n)), np.zeros(task.n), np.ones(task.n))
        first = task.rollout(policy, KEY, H=5, shift=0.0, gather=True)
        assert first.finite
        assert 1 <= first.steps <= 5
        assert first.moments is not None
        assert first.moments.count == first.steps
        assert first.moments.mean.shape == first.moments.m2.shape == (task.n,)
        kept = first.moments.mean.copy()
        task.rollout(policy, KEY._replace(k=9), H=3, shift=0.0, gather=True)
        assert np.array_equal(first.moments.mean, kept)  # results are not views of buffers that are used again
        again = task.rollout(policy, KEY, H=5, shift=0.0, gather=True)
        assert again.moments is not None
        assert (again.reward, again.steps) == (first.reward, first.steps)
        assert again.moments.m2.tobytes() == first.moments.m2.tobytes()
        shifted = task.rollout(policy, KEY, H=5, shift=0.25, gather=False)
        assert shifted.moments is None
        assert shifted.reward == pytest.approx(first.reward - 0.25 * first.steps, abs=1e-9)
        assert type(first.reward) is float
        assert type(first.steps) is int
        assert type(first.finite) is bool
    finally:
        task.close()


@pytest.mark.parametrize("name", list(TASKS))
def test_both_paths_say_the_same_of_a_task(name: str) -> None:
    """A run that began compiled can be resumed in plain Python, and the other way round."""
    compiled, plain = (make(name, compiled=flag).definition() for flag in (True, False))
    assert json.dumps(compiled) == json.dumps(plain)


def test_registered_ids_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium's own `module:Id-v0`: importing the module registers the id."""
    (tmp_path / "registering.py").write_text(
        "import gymnasium\ngymnasium.register('Registered-v0', 'small_envs:Drift', max_episode_steps=5)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    task = make("registering:Registered-v0")
    try:
        assert (task.n, task.p, task.H) == (3, 2, 5)
    finally:
        del gymnasium.registry["Registered-v0"]


def test_mujoco_is_left_alone_where_nothing_needs_it() -> None:
    """Every worker of a small environment would wait for its import otherwise. The same for Numba in a short run."""
    code = (
        "import sys; import ars; list(ars.train('CartPole-v1', iterations=1, N=1, b=1, H=20, eval_every=0));"
        "print('mujoco' in sys.modules, 'numba' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False False\n"


def test_actions_of_a_users_mujoco_environment_are_clipped() -> None:
    """Gymnasium's own clamp controls themselves, and pay for the unclamped ones; a subclass may do anything."""
    import clamp_env

    task = make("clamp_env:Narrow")
    policy = LinearPolicy(np.full((3, 11), 5.0), np.zeros(11), np.ones(11))
    task.rollout(policy, Key(0, Stream.TEST, 0, 0), H=20, shift=0.0, gather=False)
    assert clamp_env.largest[0] == 0.1
    task.close()
