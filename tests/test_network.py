"""Networks: the equation by hand, the same bits in every path, files, training, and what refuses them."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars.ask_tell import AskTell
from ars.config import Config
from ars.errors import ArsError, FileError, SettingError, TaskError
from ars.layers import count, hidden_layers
from ars.network import CLIP, MLPPolicy, act_mlp, initial, load_policy
from ars.noise import Key, Stream
from ars.page.report import commands, report_data
from ars.policies import open_any_policy, open_policy
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.run_files import read_run
from ars.runs import Run
from ars.sessions import evaluate
from ars.tasks import make
from small_runs import QUICK, run_bits

KEY = Key(3, Stream.TRAINING, 0, 0, +1)


def random_policy(n: int, p: int, hidden: tuple[int, ...] = (64, 64), seed: int = 0) -> MLPPolicy:
    random = np.random.default_rng(seed)
    M = initial((n, *hidden, p), seed)
    return MLPPolicy(
        M + 0.1 * random.standard_normal(M.shape), 0.1 * random.standard_normal(n), 1 + random.random(n), hidden
    )


def test_by_hand() -> None:
    """Two inputs, a layer of two, one output; weights are (inputs, neurons), then offsets."""
    theta = [0.5, -1.0, 2.0, 0.25, 0.1, -0.2, 3.0, -4.0, 0.7]
    policy = MLPPolicy(np.array([theta]), np.array([1.0, 0.0]), np.array([2.0, np.inf]), (2,))
    assert (policy.n, policy.p, policy.sizes) == (2, 1, (2, 2, 1))
    z = (5.0 - 1.0) / 2.0  # the other state is ignored
    h = math.tanh(0.1 + 0.5 * z), math.tanh(-0.2 - 1.0 * z)
    assert policy.act([5.0, 9.0]).tolist() == [pytest.approx(0.7 + 3.0 * h[0] - 4.0 * h[1], rel=1e-15)]
    assert policy.act([1e6, 0.0]).tolist() == policy.act([1.0 + 2.0 * CLIP, 0.0]).tolist()
    assert policy.act([-1e6, 0.0]).tolist() == policy.act([1.0 - 2.0 * CLIP, 0.0]).tolist()
    assert policy.act([[5.0, 9.0]] * 3).shape == (3, 1)
    with pytest.raises(SettingError, match="2 numbers"):
        policy.act([1.0])


@pytest.mark.parametrize("hidden", [(7,), (64, 64), (3, 5, 4)])
def test_the_function_of_the_loop_has_the_bits_of_act(hidden: tuple[int, ...]) -> None:
    policy, random = random_policy(11, 3, hidden), np.random.default_rng(1)
    a = np.empty(3)
    for _ in range(20):
        x = 3 * random.standard_normal(11)
        act_mlp(policy.parameters, x, a)
        assert a.tolist() == policy.act(x).tolist()


def test_episodes_have_the_same_bits_compiled_and_in_gymnasium() -> None:
    fast, plain = make("Hopper-v5"), make("Hopper-v5", compiled=False)
    for k in range(2):
        policy = random_policy(fast.n, fast.p, seed=k)
        keywords: dict[str, Any] = {"H": 100, "shift": 1.0, "gather": True}
        a, b = (task.rollout(policy, KEY._replace(k=k), **keywords) for task in (fast, plain))
        assert (a.reward, a.steps, a.finite) == (b.reward, b.steps, b.finite)
        assert a.moments is not None
        assert b.moments is not None
        assert a.moments.m2.tolist() == b.moments.m2.tolist()
    plain.close()


def test_linear_policies_and_networks_take_turns_in_one_task() -> None:
    task = make("Hopper-v5")
    linear = LinearPolicy(0.1 * np.ones((3, 11)), np.zeros(11), np.ones(11))
    keywords: dict[str, Any] = {"H": 50, "shift": 0.0, "gather": False}
    first = task.rollout(linear, KEY, **keywords).reward
    other = task.rollout(random_policy(11, 3), KEY, **keywords).reward
    assert task.rollout(linear, KEY, **keywords).reward == first != other


def test_the_first_weights() -> None:
    """Each neuron's have norm 1, each output's 0.01, and offsets are 0; they depend on the seed."""
    M = initial((5, 8, 3), seed=1)[0]
    assert M.shape == (count((5, 8, 3)),) == (5 * 8 + 8 + 8 * 3 + 3,)
    np.testing.assert_allclose(np.linalg.norm(M[:40].reshape(5, 8), axis=0), 1.0)
    np.testing.assert_allclose(np.linalg.norm(M[48:72].reshape(8, 3), axis=0), 0.01)
    assert not M[40:48].any()
    assert not M[72:].any()
    assert (initial((5, 8, 3), seed=2) != M).any()


def test_sizes_as_text() -> None:
    assert hidden_layers("64,64") == (64, 64)
    assert hidden_layers("") == ()
    for text in ("0", "64,", "64x64", "a", "-3", "1,1,1,1,1,1,1,1,1", "100000"):
        with pytest.raises(ValueError, match="sizes"):
            hidden_layers(text)
        with pytest.raises(SettingError, match="hidden"):
            make_config("Hopper-v1", H=10, shift=0.0, search="es", hidden=text)


# -- training --------------------------------------------------------------------------------------------------------


SMALL: dict[str, Any] = {**QUICK, "search": "es", "hidden": "8,8", "seed": 3}


@pytest.mark.parametrize("search", ["es", "ars", "csa"])
def test_any_number_of_workers(search: str) -> None:
    settings = {**SMALL, "search": search, "iterations": 3}
    one, *others = (run_bits(ars.train("Hopper-v1", **settings, workers=workers)) for workers in (1, 2, 3))
    assert others == [one, one]  # threads
    assert one[0][1]["M"] != one[-1][1]["M"]


def test_any_number_of_processes() -> None:
    settings = {**SMALL, "iterations": 3}
    one, *others = (run_bits(ars.train("small_envs:Drift", **settings, workers=workers)) for workers in (1, 2, 3))
    assert others == [one, one]


def test_resumes_to_the_bit(tmp_path: Path) -> None:
    whole = list(ars.train("Hopper-v1", **SMALL, average=3, iterations=6, out=tmp_path / "whole"))
    first = list(ars.train("Hopper-v1", **SMALL, average=3, iterations=3, out=tmp_path / "parts"))
    second = list(ars.resume(tmp_path / "parts", iterations=6))
    assert run_bits([*first, *second]) == run_bits(whole)
    for name in ("policy.npz", "best.npz"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with Run.open(tmp_path / "whole") as run:
        saved = run.policy()
    assert isinstance(saved, MLPPolicy)
    assert saved.sizes == (11, 8, 8, 3)


def test_learns() -> None:
    """To balance a pole, which an untrained network does for some 10 or 20 of 500 steps."""
    settings = {"search": "es", "hidden": "16", "alpha": 0.05, "nu": 0.1, "N": 8, "H": 200, "protocol": "paper"}
    *_, last = ars.train("CartPole-v1", **settings, eval_every=8, eval_episodes=3, iterations=8, workers=1)
    assert last.eval_mean is not None
    assert last.eval_mean > 100


# -- files and commands ----------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    task = make("Hopper-v5")
    policy = replace(random_policy(11, 3), task=task.definition())
    policy.save(tmp_path / "a.npz")
    loaded = load_policy(tmp_path / "a.npz")
    assert isinstance(loaded, MLPPolicy)
    assert loaded.to_bytes() == policy.to_bytes()
    assert (loaded.hidden, loaded.task) == (policy.hidden, policy.task)
    assert repr(loaded) == "MLPPolicy(Hopper-v5, 11-64-64-3)"
    assert evaluate(loaded, episodes=2, workers=1).rewards.tolist() == evaluate(policy, episodes=2).rewards.tolist()
    linear = LinearPolicy(np.ones((1, 2)), np.zeros(2), np.ones(2))
    linear.save(tmp_path / "b.npz")
    assert isinstance(open_any_policy(tmp_path / "b.npz"), LinearPolicy)
    for opened in (LinearPolicy.load, open_policy):
        with pytest.raises(FileError, match=r"a\.npz is a network"):
            opened(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "damage",
    [
        {"theta": np.zeros(3)},
        {"theta": np.zeros((2, 2))},
        {"theta": np.full(9, np.nan)},
        {"theta": np.zeros(9, dtype=np.float32)},
        {"mu": np.zeros(3)},
        {"sigma": np.zeros(2)},
        {"task": np.array("{}")},
        {"task": np.array('{"format": 1, "kind": "mlp", "hidden": "2"}')},
        {"task": np.array('{"format": 1, "kind": "mlp", "hidden": [0]}')},
        {"task": np.array('{"format": 1, "kind": "mlp", "hidden": [3]}')},
        {"task": np.array('{"format": 9, "kind": "mlp", "hidden": [2]}')},
        {"task": np.array(3.0)},
    ],
    ids=str,
)
def test_damaged_files(tmp_path: Path, damage: dict[str, Any]) -> None:
    good = {"theta": np.zeros(9), "mu": np.zeros(2), "sigma": np.ones(2)}
    good["task"] = np.array('{"format": 1, "kind": "mlp", "hidden": [2]}')
    np.savez(tmp_path / "good.npz", **good)
    assert load_policy(tmp_path / "good.npz").p == 1
    np.savez(tmp_path / "bad.npz", **{**good, **damage})
    with pytest.raises(FileError, match="damaged"):
        load_policy(tmp_path / "bad.npz")


def test_what_is_for_linear_policies_refuses_in_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    list(ars.train("Hopper-v1", **SMALL, iterations=2, out=folder))
    refusals = (
        lambda: open_policy(folder),  # exports, robustness, gallery, warm starts
        lambda: list(ars.train("Hopper-v1", start=folder, iterations=1)),
        lambda: AskTell.open(folder),
        lambda: AskTell.create(tmp_path / "asked", "Hopper-v1", hidden="8"),
        lambda: ars.train("Walker2d-v1", **SMALL, mirror=True),
        lambda: ars.train("Hopper-v1", **SMALL, steady=True),
    )
    for refuse in refusals:
        with pytest.raises(ArsError, match="network"):
            refuse()
    with pytest.raises(TaskError, match="linear policies"):
        list(ars.train("lqr", **{**SMALL, "H": 5}, iterations=1))
    assert not (tmp_path / "asked").exists()


def test_pages_show_its_run_without_the_matrix(tmp_path: Path) -> None:
    list(ars.train("Hopper-v1", **SMALL, iterations=2, out=tmp_path))
    run = read_run(tmp_path)
    shown = report_data([run], task=None, seconds=0.1)["runs"][0]
    assert shown["policy"] is None
    assert any("--hidden 8,8" in line for _, line in commands(run))


def test_settings_of_linear_runs_are_written_as_before() -> None:
    config = make_config("Hopper-v1", H=10, shift=0.0, search="es")
    assert "hidden" not in config.to_dict()
    assert config.label == "es"
    network = make_config("Hopper-v1", H=10, shift=0.0, search="es", hidden="64,64")
    assert network.label == "es-mlp64x64"
    assert not network.steady
    assert Config.from_dict(network.to_dict()) == network
    assert (network.shape(3, 11), config.shape(3, 11)) == ((1, 11 * 64 + 64 + 64 * 64 + 64 + 64 * 3 + 3), (3, 11))
