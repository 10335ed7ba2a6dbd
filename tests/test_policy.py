"""The linear policy: its arithmetic, its stable-baselines3 interface, its file."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ars.errors import ArsError, FileError, SettingError
from ars.noise import Key, Stream
from ars.policy import Actions, LinearPolicy
from ars.tasks import make


def random_policy(p: int, n: int, seed: int = 0, task: Any = None) -> LinearPolicy:
    rng = np.random.default_rng(seed)
    return LinearPolicy(rng.standard_normal((p, n)), rng.standard_normal(n), rng.uniform(0.1, 3.0, n), task or {})


def plain_loop(policy: LinearPolicy, x: Any) -> list[float]:
    """The documented arithmetic, in Python floats: W = M/sigma, c = W mu, a_i = −c_i + Σ_j W_ij x_j in order."""
    M, mu, sigma = policy.M.tolist(), policy.mu.tolist(), policy.sigma.tolist()
    actions = []
    for row in M:
        W = [m / s for m, s in zip(row, sigma, strict=True)]
        c = W[0] * mu[0]
        for w, m in zip(W[1:], mu[1:], strict=True):
            c += w * m
        a = -c
        for w, value in zip(W, x, strict=True):
            a += w * float(value)
        actions.append(a)
    return actions


# -- act -------------------------------------------------------------------------------------------------------------


def test_act_by_hand() -> None:
    """M = [1, 2], mu = (1, 2), sigma = (1, 2), x = (4, 5): 1·3 + 2·1.5 = 6."""
    policy = LinearPolicy(np.array([[1.0, 2.0]]), np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert policy.act([4.0, 5.0]).tolist() == [6.0]


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 10**6))
def test_act_is_the_papers_formula(p: int, n: int, seed: int) -> None:
    """π(x) = M diag(Sigma)^(−1/2) (x − mu), Algorithm 2, line 5, to rounding."""
    policy = random_policy(p, n, seed)
    x = np.random.default_rng(seed + 1).standard_normal(n) * 5
    Sigma_diag = policy.sigma**2
    expected = policy.M @ np.diag(Sigma_diag**-0.5) @ (x - policy.mu)
    np.testing.assert_allclose(policy.act(x), expected, rtol=1e-9, atol=1e-10)


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 10**6))
def test_act_is_the_plain_loop_bit_for_bit(p: int, n: int, seed: int) -> None:
    """No BLAS, no pairwise sums, no fused multiply-add: any language can give the same actions."""
    policy = random_policy(p, n, seed)
    x = np.random.default_rng(seed + 1).standard_normal(n) * 5
    assert policy.act(x).tolist() == plain_loop(policy, x)


@pytest.mark.parametrize(("p", "n"), [(1, 1), (1, 5), (5, 1), (17, 376)])
def test_batches_are_singles_bit_for_bit(p: int, n: int) -> None:
    """An action must not depend on what else is in the batch."""
    policy = random_policy(p, n)
    xs = np.random.default_rng(1).standard_normal((3, 4, n))
    batch = policy.act(xs)
    assert batch.shape == (3, 4, p)
    for index in np.ndindex(3, 4):
        assert batch[index].tobytes() == policy.act(xs[index]).tobytes()
    assert policy.act(xs[:0]).shape == (0, 4, p)
    transposed = np.asfortranarray(xs)  # another memory layout
    assert policy.act(transposed).tobytes() == batch.tobytes()


def test_an_ignored_coordinate_has_no_influence() -> None:
    """sigma infinite: the reference loses the mask of constant coordinates when it saves."""
    policy = LinearPolicy(np.ones((2, 3)), np.array([1.0, 50.0, 2.0]), np.array([1.0, np.inf, 2.0]))
    assert policy.act([3.0, 50.0, 4.0]).tolist() == policy.act([3.0, -1e9, 4.0]).tolist() == [3.0, 3.0]


def test_act_takes_lists_and_float32() -> None:
    """Computed in float64 whatever comes."""
    policy = random_policy(2, 3)
    x = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    assert policy.act(x).dtype == np.float64
    assert policy.act(x).tolist() == plain_loop(policy, x)


@pytest.mark.parametrize("shape", [(), (2,), (4,), (3, 2), (3, 1)])
def test_act_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    """Broadcasting would give a wrong action without a word."""
    with pytest.raises(SettingError, match="3 numbers"):
        random_policy(2, 3).act(np.zeros(shape))


# -- predict ---------------------------------------------------------------------------------------------------------


class VecEnv:
    """What stable-baselines3's evaluate_policy sees of its DummyVecEnv: batched observations, auto-reset."""

    def __init__(self, factories: list[Any]) -> None:
        self.envs = [factory() for factory in factories]
        self.num_envs = len(self.envs)

    @staticmethod
    def _stacked(observations: list[Any]) -> Any:
        if isinstance(observations[0], dict):
            keys = sorted(observations[0])  # the order of gymnasium's Dict space
            return {key: np.stack([obs[key] for obs in observations]) for key in keys}
        if isinstance(observations[0], tuple):
            return tuple(np.stack(leaves) for leaves in zip(*observations, strict=True))
        return np.stack(observations)

    def reset(self) -> Any:
        return self._stacked([env.reset(seed=i)[0] for i, env in enumerate(self.envs)])

    def step(self, actions: Any) -> Any:
        assert len(actions) == self.num_envs
        outcomes = []
        for env, action in zip(self.envs, actions, strict=True):
            assert env.action_space.shape == np.shape(action)
            obs, reward, terminated, truncated, _ = env.step(action)
            done = terminated or truncated
            outcomes.append((env.reset()[0] if done else obs, reward, done))
        observations, rewards, dones = zip(*outcomes, strict=True)
        return self._stacked(list(observations)), np.array(rewards), np.array(dones), [{}] * self.num_envs


def evaluate_policy(model: Any, env: VecEnv, n_eval_episodes: int) -> tuple[list[float], list[int]]:
    """The loop of stable-baselines3.common.evaluation.evaluate_policy, calls and all."""
    episode_rewards, episode_lengths = [], []
    counts = np.zeros(env.num_envs, dtype="int")
    targets = np.array([(n_eval_episodes + i) // env.num_envs for i in range(env.num_envs)], dtype="int")
    current_rewards, current_lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype="int")
    observations = env.reset()
    states = None
    episode_starts = np.ones((env.num_envs,), dtype=bool)
    while (counts < targets).any():
        actions, states = model.predict(observations, state=states, episode_start=episode_starts, deterministic=True)
        observations, rewards, dones, _ = env.step(actions)
        current_rewards += rewards
        current_lengths += 1
        for i in range(env.num_envs):
            if counts[i] < targets[i]:
                episode_starts[i] = dones[i]
                if dones[i]:
                    episode_rewards.append(current_rewards[i])
                    episode_lengths.append(current_lengths[i])
                    counts[i] += 1
                    current_rewards[i] = current_lengths[i] = 0
    return episode_rewards, episode_lengths


@pytest.mark.parametrize("num_envs", [1, 2, 3])
@pytest.mark.parametrize(
    "name",
    ["Drift", "Choices", "Bounded", "Image", "DictObservation", "TupleObservation"],
)
def test_evaluate_policy_of_stable_baselines3_takes_ours(name: str, num_envs: int, calls: list[Any]) -> None:
    """Batches of one (its default) and of several, box, discrete and clipped actions, dict and tuple observations:
    the actions are those of the task's own rollouts."""
    import small_envs

    task = make(f"small_envs:{name}")
    policy = random_policy(task.p, task.n, 5, task.definition())
    factory = getattr(small_envs, name)
    rewards, lengths = evaluate_policy(policy, VecEnv([factory] * num_envs), n_eval_episodes=num_envs)
    assert len(rewards) == len(lengths) == num_envs
    through_predict = [call[1] for call in calls if call[0] == "step"][::num_envs][: lengths[0]]
    calls.clear()
    rollout = task.rollout(policy, Key(0, Stream.TEST, 0, 0), H=task.H, shift=0.0, gather=False)
    in_rollout = [call[1] for call in calls if call[0] == "step"]
    if name != "Drift":  # the others are deterministic, so all episodes are one
        assert rollout.steps == lengths[0] == 4
        assert [np.asarray(a).tolist() for a in through_predict] == [np.asarray(a).tolist() for a in in_rollout]


def test_predict_single_and_batch() -> None:
    """One observation gives one action; a batch gives a batch; both are act."""
    policy = random_policy(2, 3)
    xs = np.random.default_rng(2).standard_normal((5, 3))
    one, state = policy.predict(xs[0])
    assert one.shape == (2,)
    assert state is None
    many, _ = policy.predict(xs)
    assert many.shape == (5, 2)
    assert many.tolist() == policy.act(xs).tolist()
    assert one.tolist() == many[0].tolist()
    batch_of_one, _ = policy.predict(xs[:1])
    assert batch_of_one.shape == (1, 2)


def test_predict_n_1_and_p_1() -> None:
    """A batch of one number is not one observation of one number."""
    policy = random_policy(1, 1)
    assert policy.predict(np.zeros(1))[0].shape == (1,)
    assert policy.predict(np.zeros((1, 1)))[0].shape == (1, 1)
    assert policy.predict(np.zeros((4, 1)))[0].shape == (4, 1)


def test_predict_hands_the_state_through() -> None:
    """There is none of ours: what comes goes."""
    token = (object(),)
    policy = random_policy(1, 2)
    assert policy.predict(np.zeros(2), token, np.array([True]), False)[1] is token


def test_predict_discrete_with_start() -> None:
    """start + argmax, as integers; ties to the first."""
    policy = random_policy(3, 2, task={"actions": Actions("discrete", start=5).to_dict()})
    xs = np.random.default_rng(3).standard_normal((20, 2))
    actions, _ = policy.predict(xs)
    assert np.issubdtype(actions.dtype, np.integer)
    assert actions.tolist() == (5 + policy.act(xs).argmax(axis=1)).tolist()
    one, _ = policy.predict(xs[0])
    assert np.ndim(one) == 0
    assert one == actions[0]


def test_predict_clips_and_shapes() -> None:
    """Each entry to its own bounds, in the action space's shape."""
    actions = Actions("box", shape=(2, 1), low=(-1.0, -2.0), high=(1.0, 3.0))
    policy = LinearPolicy(np.array([[1.0], [1.0]]), np.zeros(1), np.ones(1), {"actions": actions.to_dict()})
    assert policy.predict(np.array([10.0]))[0].tolist() == [[1.0], [3.0]]
    assert policy.predict(np.array([[-10.0], [0.5]]))[0].tolist() == [[[-1.0], [-2.0]], [[0.5], [0.5]]]


def test_predict_dict_in_the_order_of_the_space(calls: list[Any]) -> None:
    """Gymnasium sorts a Dict space's keys and flattens in that order; an observation may come in any order."""
    task = make("small_envs:DictObservation")  # space: position (2), velocity (1)
    policy = LinearPolicy(np.array([[1.0, 10.0, 100.0]]), np.zeros(3), np.ones(3), task.definition())
    task.rollout(policy, Key(0, Stream.TEST, 0, 0), H=1, shift=0.0, gather=False)
    in_training = calls[-1][1].tolist()
    assert in_training == [1.0 + 20.0 + 1000.0]
    obs = {"velocity": np.array([10.0]), "position": np.array([1.0, 2.0])}  # as the environment gives it
    assert policy.predict(obs)[0].tolist() == in_training


@pytest.mark.parametrize("shape", [(4,), (2, 2), (2, 3, 3)])
def test_predict_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    """A policy of the wrong shape is a sentence, not a wrong action."""
    with pytest.raises(SettingError, match=r"\(3,\)"):
        random_policy(2, 3).predict(np.zeros(shape))


# -- the file --------------------------------------------------------------------------------------------------------


def test_save_and_load_to_the_bit(tmp_path: Path) -> None:
    """The saved policy is the evaluated one: M, mu, and sigma with its infinities (the reference loses the mask)."""
    policy = random_policy(3, 4, task={"actions": {"kind": "discrete"}, "name": "Any-v0"})
    policy.sigma[1] = np.inf
    policy.save(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    for name in ("M", "mu", "sigma"):
        assert getattr(loaded, name).tobytes() == getattr(policy, name).tobytes()
    assert loaded.task == policy.task
    x = np.random.default_rng(4).standard_normal((10, 4))
    assert loaded.act(x).tobytes() == policy.act(x).tobytes()


def test_same_policy_same_bytes(tmp_path: Path) -> None:
    """Files can be compared by checksum."""
    for name in ("a.npz", "b.npz"):
        random_policy(3, 4).save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_alone_can_use_it(tmp_path: Path) -> None:
    """Three lines on another machine, without ars and without pickle."""
    policy = random_policy(2, 3, task={"name": "Any-v0"})
    policy.sigma[0] = np.inf
    policy.save(tmp_path / "policy.npz")
    script = f"""
import sys
sys.modules["ars"] = None
import numpy as np
f = np.load({str(tmp_path / "policy.npz")!r}, allow_pickle=False)
print(*(f["M"] @ ((np.array([1.0, 2.0, 3.0]) - f["mu"]) / f["sigma"])))
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose([float(v) for v in out.split()], policy.act([1.0, 2.0, 3.0]), rtol=1e-12)


class Bomb:
    """Leaves a file behind when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("name", ["M", "mu", "sigma", "task"])
def test_pickles_are_refused_and_not_executed(tmp_path: Path, name: str) -> None:
    """A policy from the internet must not run code."""
    arrays: dict[str, Any] = {"M": np.ones((1, 1)), "mu": np.zeros(1), "sigma": np.ones(1), "task": np.array("{}")}
    arrays[name] = np.array([Bomb(tmp_path / "executed")], dtype=object)
    np.savez(tmp_path / "policy.npz", **arrays)
    with pytest.raises(FileError, match=r"policy\.npz"):
        LinearPolicy.load(tmp_path / "policy.npz")
    assert not (tmp_path / "executed").exists()
    np.load(tmp_path / "policy.npz", allow_pickle=True)[name]  # the bomb is armed
    assert (tmp_path / "executed").exists()


GOOD: dict[str, Any] = {"M": np.ones((2, 3)), "mu": np.zeros(3), "sigma": np.ones(3)}


@pytest.mark.parametrize(
    "change",
    [
        {"M": np.ones(3)},
        {"M": np.ones((2, 4))},
        {"M": np.ones((0, 3))},
        {"M": np.ones((2, 0)), "mu": np.zeros(0), "sigma": np.zeros(0)},
        {"M": np.full((2, 3), np.nan)},
        {"M": np.full((2, 3), np.inf)},
        {"M": np.ones((2, 3), dtype=np.float32)},
        {"M": np.ones((2, 3), dtype=complex)},
        {"M": np.full((2, 3), "1.0")},
        {"mu": np.zeros((3, 1))},
        {"mu": np.array([0.0, np.nan, 0.0])},
        {"sigma": np.zeros(3)},
        {"sigma": np.array([1.0, -1.0, 1.0])},
        {"sigma": np.array([1.0, np.nan, 1.0])},
        {"sigma": np.ones(2)},
        {"task": np.array("not JSON")},
        {"task": np.array("[1]")},
        {"task": np.array(7)},
        {"task": np.array(["{}", "{}"])},
        {"task": np.array("[" * 100_000)},
        {"task": np.array("{}")},
        {"task": np.array('{"format": 2}')},
        {"task": np.array('{"format": "1"}')},
        {"task": np.array('{"format": 1, "actions": {"kind": "dance"}}')},
        {"task": np.array('{"format": 1, "actions": {}}')},
        {"task": np.array('{"format": 1, "actions": 3}')},
        {"task": np.array('{"format": 1, "actions": null}')},
        {"task": np.array('{"format": 1, "actions": {"kind": "box", "shape": 5}}')},
        {"task": np.array('{"format": 1, "actions": {"kind": "box", "low": ["x"]}}')},
        {"task": np.array('{"format": 1, "observation": {"shape": 3}}')},
        {"task": np.array('{"format": 1, "observation": {"shape": ["3"]}}')},
        {"task": np.array('{"format": 1, "observation": {"shape": [-3]}}')},
    ],
    ids=lambda change: "-".join(f"{k}={str(v)[:40]}" for k, v in change.items()),
)
def test_contents_that_no_policy_has_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """Shapes, numbers and task text are checked on the way in: a FileError with the path, nothing else."""
    np.savez(tmp_path / "policy.npz", **{**GOOD, "task": np.array('{"format": 1}'), **change})
    with pytest.raises(FileError, match=r"policy\.npz"):
        LinearPolicy.load(tmp_path / "policy.npz")


@pytest.mark.parametrize(
    "task",
    [
        {"actions": {"kind": "box", "shape": [5, 7]}},  # of another size than p
        {"actions": {"kind": "box", "low": [0.0] * 5, "high": [1.0] * 5}},
        {"observation": {"shape": [4, 4]}},  # of another size than n
    ],
)
def test_a_task_that_does_not_fit_the_arrays_is_a_sentence(tmp_path: Path, task: dict[str, Any]) -> None:
    """A damaged description shows when the file is read or used, as one of our errors."""
    np.savez(tmp_path / "policy.npz", **GOOD, task=np.array(json.dumps({"format": 1, **task})))
    with pytest.raises(ArsError):
        LinearPolicy.load(tmp_path / "policy.npz").predict(np.zeros(3))


@pytest.mark.parametrize("name", ["M", "mu", "sigma", "task"])
def test_missing_arrays_are_named(tmp_path: Path, name: str) -> None:
    """A checkpoint, say, is not a policy."""
    arrays = {**GOOD, "task": np.array('{"format": 1}')}
    del arrays[name]
    np.savez(tmp_path / "policy.npz", **arrays)
    with pytest.raises(FileError, match=name):
        LinearPolicy.load(tmp_path / "policy.npz")


def test_unknown_format_names_both_versions(tmp_path: Path) -> None:
    """A file of the future asks for a newer ars."""
    np.savez(tmp_path / "policy.npz", **GOOD, task=np.array('{"format": 99}'))
    with pytest.raises(FileError, match=r"99.*reads 1"):
        LinearPolicy.load(tmp_path / "policy.npz")


def test_fortran_order_and_byte_order_do_not_matter(tmp_path: Path) -> None:
    """What NumPy may write for the same numbers gives the same policy, or a sentence."""
    M = np.random.default_rng(5).standard_normal((2, 3))
    np.savez(tmp_path / "f.npz", **{**GOOD, "M": np.asfortranarray(M)}, task=np.array('{"format": 1}'))
    assert LinearPolicy.load(tmp_path / "f.npz").act(np.ones(3)).tolist() == plain_loop(
        LinearPolicy(M, GOOD["mu"], GOOD["sigma"]), np.ones(3)
    )


def test_an_additional_array_is_refused(tmp_path: Path) -> None:
    """And not read: it may be a pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, **GOOD, task=np.array('{"format": 1}'))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("extra.npy", b"garbage")
    (tmp_path / "policy.npz").write_bytes(buffer.getvalue())
    with pytest.raises(FileError, match="an array 'extra'"):
        LinearPolicy.load(tmp_path / "policy.npz")
