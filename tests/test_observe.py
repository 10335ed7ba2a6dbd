"""A subset of the observation: how it is chosen, that nothing else changes, and that it stays with runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars import subset
from ars.ask_tell import AskTell
from ars.config import Config
from ars.errors import ArsError, FileError, SettingError, TaskError
from ars.experiments.run_specs import first_episodes, run_spec
from ars.interop.exports import export
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.runs import free_folder
from ars.saved_config import read_config
from ars.searches.ars import ARS
from ars.tasks import make

DRIFT = "small_envs:Drift"
SMALL: dict[str, Any] = {"N": 2, "eval_every": 2, "eval_episodes": 2, "seed": 5, "workers": 1}


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.endswith("seconds")} for line in lines]


def test_text() -> None:
    for text, indices in (("0-2", [0, 1, 2]), ("5", [5]), ("0,2-3,9", [0, 2, 3, 9])):
        assert subset.to_text(indices) == text
        assert subset.to_indices(text, 10) == indices
        assert subset.size(text) == len(indices)
    for text in ("", "3-1", "1,0", "0,1", "0-2,2", "0-2,3", "01", "a", "0-", "٣", "1" * 10, "0-0"):
        with pytest.raises(ValueError, match="ascending"):
            subset.ranges(text)
    with pytest.raises(ValueError, match="beyond"):
        subset.to_indices("0-10", 10)


@pytest.mark.parametrize(
    ("task", "observe", "indices"),
    [
        ("Ant-v1", "qpos,qvel", "0-26"),
        ("Ant-v1", "qvel, qpos", "0-26"),
        ("Ant-v1", "qvel hip_1,positions: hip_4,0", "0,11,19"),
        ("Ant-v1", "ankle_4 force z", "110"),
        ("Ant-v1", "0-110", "all"),
        ("Humanoid-v1", "positions,velocities", "0-44"),
        (DRIFT, "x0,2", "0,2"),
        ("small_envs:DictObservation", "velocity,position 1", "1-2"),
    ],
)
def test_entries_are_chosen_by_index_range_and_name(task: str, observe: str, indices: str) -> None:
    made = make(task, observe=observe)
    definition = made.definition()
    found = definition.get("observe", "all")
    assert found == indices
    if found != "all":
        assert made.n == definition["n"] == subset.size(found)
        assert make(task, observe=found).definition() == definition
    made.close()


@pytest.mark.parametrize("observe", ["", "111", "3-1", "foo", "1,1", "qpos,0", "hip_1", "1,,2", "-1", "0 - 3", None, 3])
def test_a_wrong_choice_is_one_sentence(observe: Any) -> None:
    with pytest.raises(SettingError, match=r"^observe = .*[^.]\.$") as raised:
        make("Ant-v1", observe=observe)
    assert "\n" not in str(raised.value)
    if observe in ("", "111", "foo"):
        assert "0 to 110, qpos (0-12), qvel (13-26), cfrc_ext (27-110)" in str(raised.value)
    with pytest.raises(TaskError, match="leave out observe"):
        make("lqr", observe="0")


@pytest.mark.parametrize("task", ["Hopper-v1", DRIFT])
def test_a_subset_is_a_policy_with_zero_columns(task: str) -> None:
    """The same bits as with the whole observation, compiled and in plain Python."""
    observe = "1-2,4,7-9" if task != DRIFT else "0,2"
    whole, part, plain = make(task), make(task, observe=observe), make(task, observe=observe, compiled=False)
    indices = subset.to_indices(observe, whole.n)
    assert part.n == len(indices)
    random = np.random.default_rng(1)
    M, mu, sigma = random.standard_normal((part.p, part.n)), random.standard_normal(part.n), np.full(part.n, 2.0)
    full_M, full_mu, full_sigma = np.zeros((whole.p, whole.n)), np.zeros(whole.n), np.ones(whole.n)
    full_M[:, indices], full_mu[indices], full_sigma[indices] = M, mu, sigma
    key = Key(1, Stream.TRAINING, 0, 0, 1)
    wanted = whole.rollout(LinearPolicy(full_M, full_mu, full_sigma), key, H=50, shift=0.5, gather=True)
    assert wanted.moments is not None
    for made in (part, plain):
        rollout = made.rollout(LinearPolicy(M, mu, sigma), key, H=50, shift=0.5, gather=True)
        assert rollout[:2] == wanted[:2]
        np.testing.assert_array_equal(rollout.moments.mean, wanted.moments.mean[indices])  # type: ignore[union-attr]
        np.testing.assert_array_equal(rollout.moments.m2, wanted.moments.m2[indices])  # type: ignore[union-attr]
    for made in (whole, part, plain):
        made.close()


def test_it_stays_with_the_run_and_its_policies(tmp_path: Path) -> None:
    """Resume gives the same bits, whatever the number of workers; evaluate, export and predict need no flag."""
    settings = {**SMALL, "H": 50, "observe": "qvel,positions: rooty"}
    list(ars.train("Hopper-v1", **settings, iterations=4, out=tmp_path / "one"))
    list(ars.train("Hopper-v1", **{**settings, "observe": "1,5-10", "workers": 2}, iterations=2, out=tmp_path / "two"))
    list(ars.resume(tmp_path / "two", iterations=4, workers=1))
    assert rows(tmp_path / "one") == rows(tmp_path / "two")
    assert (tmp_path / "one/policy.npz").read_bytes() == (tmp_path / "two/policy.npz").read_bytes()
    saved = read_config(tmp_path / "one")
    assert saved.config.observe == saved.definition["observe"] == "1,5-10"
    assert saved.definition["n"] == 7
    assert free_folder(saved.config).name == "Hopper-v1-V2-observe1,5-10-seed5"

    policy = LinearPolicy.load(tmp_path / "one/best.npz")
    assert policy.observe == "1,5-10"
    assert ars.evaluate(policy, episodes=2, workers=1).rewards.size == 2
    x = np.random.default_rng(0).standard_normal((4, 11))
    np.testing.assert_array_equal(policy.predict(x)[0], policy.act(x[:, [1, *range(5, 11)]]))
    with pytest.raises(SettingError, match="7 numbers, entries 1,5-10 of its task's observation"):
        policy.act(x[0])
    written = json.loads(export(policy, "json"))
    assert written["entries"] == [1, 5, 6, 7, 8, 9, 10]
    assert written["names"]["observation"][:2] == ["positions: rooty", "velocities: rootx"]
    header = export(policy, "c").decode()
    assert "only the entries 1,5-10" in header
    assert 'observation[1]: "velocities: rootx", entry 5 of the task\'s' in header

    list(ars.train("Hopper-v1", **settings, iterations=1, start=policy))
    for other in ("all", "0,5-10"):
        with pytest.raises(SettingError, match=f"sees the entries 1,5-10.* observe = {other} must be the same"):
            ars.train("Hopper-v1", **{**settings, "observe": other}, iterations=1, start=policy)


def test_files_that_contradict_themselves_are_damaged(tmp_path: Path) -> None:
    list(ars.train(DRIFT, **SMALL, observe="0-1", iterations=1, out=tmp_path / "run"))
    config = tmp_path / "run/config.json"
    good = json.loads(config.read_text())
    for part, name, value in (
        ("config", "observe", "0"), ("config", "observe", "1,0"), ("task", "observe", "1-2"),
        ("config", "mirror", True), ("task", "n", 3), ("config", "observe", 7), ("config", "observe", "all"),
        ("task", "mirror", {}),
    ):  # fmt: skip
        config.write_text(json.dumps({**good, part: {**good[part], name: value}}))
        with pytest.raises(FileError, match="is damaged"):
            read_config(tmp_path / "run")
    policy = LinearPolicy.load(tmp_path / "run/policy.npz")
    for observe in ("1,0", "0-3", "0", 5, "0-999999999"):
        LinearPolicy(policy.M, policy.mu, policy.sigma, {**policy.task, "observe": observe}).save(tmp_path / "odd.npz")
        with pytest.raises(FileError, match="is damaged"):
            LinearPolicy.load(tmp_path / "odd.npz")


def test_what_files_held_before_is_unchanged() -> None:
    config = Config(task="Any-v0", search=ARS(), H=1, shift=0.0)
    assert not {"observe", "mirror"} & config.to_dict().keys()
    assert Config.from_dict(config.to_dict()) == config
    chosen = Config(task="Any-v0", search=ARS(), H=1, shift=0.0, observe="0-1", mirror=True)
    assert chosen.to_dict()["observe"] == "0-1"
    assert Config.from_dict(chosen.to_dict()) == chosen
    assert (config.label, chosen.label) == ("V2", "V2-observe0-1-mirror")


def test_experiments_and_ask_tell(tmp_path: Path) -> None:
    spec = run_spec("Ant-v1", 1, observe="qpos,qvel", search="csa")
    assert spec.config.observe == "0-26"
    assert "observe0-26" in spec.name
    assert spec.identity != run_spec("Ant-v1", 1, search="csa").identity
    assert first_episodes(spec.config) == 14  # of 27 observations; 18 for all of them
    with AskTell.create(tmp_path / "run", DRIFT, observe="0,2", N=1) as run:
        assert run.ask()[0].policy.n == 2
        with pytest.raises(ArsError, match=r"shape \(1, 2\)"):
            run.tell([{"key": run.ask()[0].key, "reward": 1.0, "steps": 1, "states": [[1.0, 2.0, 3.0]]}])
    with pytest.raises(SettingError, match="n is what the policy sees"):
        AskTell.create(tmp_path / "arm", "arm", n=3, p=1, observe="0")
