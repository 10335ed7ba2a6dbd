"""Dashboards: the tags people know, a curve that goes on after a resume, and no influence on the training."""

import json
import math
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ars.cli import main
from ars.dashboards import TensorBoard, check_installed, open_dashboards, scalars
from ars.errors import SettingError
from ars.records import SYMPTOMS, Evaluation, Record, State
from ars.runs import Run
from ars.searches.ars import ARS
from ars.sessions import train

SETTINGS = [
    "--search",
    "ars",
    "--N",
    "2",
    "--protocol",
    "paper",
    "--eval-every",
    "2",
    "--eval-episodes",
    "3",
    "--workers",
    "1",
]


def ars(*words: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*words])
    assert exit_.value.code == 0


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Tag → (step, value) as TensorBoard shows them."""
    read = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    read.Reload()
    return {tag: [(event.step, event.value) for event in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def test_the_tags_of_stable_baselines3(tmp_path: Path) -> None:
    """One value an iteration, at its timesteps, equal to records.jsonl in the float32 that event files have."""
    ars(
        "train", "CartPole-v1", "--iterations", "4", "--tensorboard", "--quiet", "--out", str(tmp_path / "r"), *SETTINGS
    )
    shown, lines = curves(tmp_path / "r"), records(tmp_path / "r")
    pairs = {
        "rollout/ep_rew_mean": "reward_mean", "time/iterations": "iteration", "time/total_timesteps": "timesteps",
        "train/sigma_R": "sigma_R", "train/update_norm": "update_norm", "eval/mean_reward": "eval_mean",
    }  # fmt: skip
    for tag, name in pairs.items():
        expected = [(line["timesteps"], np.float32(line[name])) for line in lines if name in line]
        assert shown[tag] == expected, tag
    assert len(shown["eval/mean_reward"]) == 2
    assert {"time/fps", "rollout/ep_len_mean", "eval/mean_ep_length", "time/time_elapsed"} <= set(shown)
    lengths = np.diff([0, *(line["timesteps"] for line in lines)]) / 4  # N = 2: four rollouts an iteration
    assert [value for _, value in shown["rollout/ep_len_mean"]] == pytest.approx(lengths.tolist())


def test_after_a_resume_the_curve_goes_on(tmp_path: Path) -> None:
    """Steps only grow, each once, also where a killed session had shown more than its checkpoint keeps."""
    folder = tmp_path / "r"
    ars("train", "CartPole-v1", "--iterations", "4", "--tensorboard", "--quiet", "--out", str(folder), *SETTINGS)
    steps = [line["timesteps"] for line in records(folder)]
    with (folder / "events.out.tfevents.000001").open("rb") as file:
        content = file.read()
    with Run.open(folder) as run:  # what a kill after two more iterations leaves: events without a checkpoint
        lost = TensorBoard(folder, run.state)
        for more in (1, 2):
            lost.write({"rollout/ep_rew_mean": -1.0}, steps[-1] + more)
        lost.close()
    assert (folder / "events.out.tfevents.000001").read_bytes() == content
    with (folder / "events.out.tfevents.000002").open("ab") as file:
        file.write(content[:20])  # cut off in the middle of an event
    assert curves(folder)["rollout/ep_rew_mean"][-1][1] == -1.0
    ars("resume", str(folder), "--iterations", "8", "--tensorboard", "--quiet", "--workers", "1")
    shown = [step for step, _ in curves(folder)["rollout/ep_rew_mean"]]
    assert shown == [line["timesteps"] for line in records(folder)]
    assert len(shown) == 8
    assert shown == sorted(set(shown))


def test_nothing_to_do_writes_nothing(tmp_path: Path) -> None:
    ars("train", "CartPole-v1", "--iterations", "2", "--quiet", "--out", str(tmp_path / "r"), *SETTINGS)
    ars("resume", str(tmp_path / "r"), "--tensorboard", "--quiet", "--workers", "1")
    assert not list((tmp_path / "r").glob("events*"))


def test_it_does_not_influence_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same policy and the same records, but for the seconds."""
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb())
    for name, flags in (("with", ["--tensorboard", "--wandb"]), ("without", [])):
        ars("train", "CartPole-v1", "--iterations", "4", "--quiet", "--out", str(tmp_path / name), *SETTINGS, *flags)
    for file in ("policy.npz", "best.npz"):
        assert (tmp_path / "with" / file).read_bytes() == (tmp_path / "without" / file).read_bytes()
    one, other = (
        [line | {"seconds": 0, "train_seconds": 0, "eval_seconds": 0} for line in records(tmp_path / name)]
        for name in ("with", "without")
    )
    assert one == other


def test_the_documentation_has_every_quantity(tmp_path: Path) -> None:
    """docs/algorithm.md explains each name in records.jsonl and each tag; and names none that is not there."""
    names: set[str] = {"wire_bytes_out", "wire_bytes_in", *SYMPTOMS}  # over Ray; in a run that does not learn
    names |= {"duel", "fresh_won"}  # of fresh starts: test_duel.py
    tags: set[str] = set()
    for task in ("CartPole-v1", "lqr"):
        for record in train(
            task, search="ars", iterations=2, N=2, eval_episodes=2, until=1.0
        ):  # CartPole's is confirmed
            names |= set(record.to_dict())
            tags |= set(scalars(record, 1.0))
    page = (Path(__file__).parent.parent / "docs" / "algorithm.md").read_text()
    rows = page.split("| records.jsonl |")[1].split("\n\n")[0].splitlines()[2:]
    explained = [set(re.findall(r"`([^`]+)`", cell)) for row in rows for cell in row.split("|")[1:3]]
    assert set.union(*explained[::2]) == names
    assert set.union(*explained[1::2]) == tags | {"measure/relative_cost"}


# -- Weights & Biases, by a stand-in -----------------------------------------------------------------------------------


def fake_wandb(fail: str = "") -> types.ModuleType:
    """The three calls that are used; `fail` names one that raises."""
    module = types.ModuleType("wandb")
    module.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    module.calls = []  # type: ignore[attr-defined]

    def call(name: str) -> Any:
        def record(*arguments: Any, **named: Any) -> Any:
            module.calls.append((name, arguments, named))
            if name == fail:
                raise ConnectionError("no network\nhere")
            return types.SimpleNamespace(log=call("log"), finish=call("finish"))

        return record

    module.init = call("init")  # type: ignore[attr-defined]
    return module


def test_wandb_gets_the_same_values_and_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = fake_wandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    ars("train", "CartPole-v1", "--iterations", "3", "--wandb", "--quiet", "--out", str(tmp_path / "r"), *SETTINGS)
    ars("resume", str(tmp_path / "r"), "--iterations", "5", "--wandb", "--quiet", "--workers", "1")
    assert [name for name, _, _ in wandb.calls] == ["init", *["log"] * 3, "finish", "init", *["log"] * 2, "finish"]
    first, second = (named for name, _, named in wandb.calls if name == "init")
    assert first["id"] == second["id"]
    assert first["config"]["task"] == "CartPole-v1"
    logged = [(arguments[0]["train/sigma_R"], named["step"]) for name, arguments, named in wandb.calls if name == "log"]
    assert logged == [(line["sigma_R"], line["timesteps"]) for line in records(tmp_path / "r")]
    ars("train", "CartPole-v1", "--iterations", "1", "--wandb", "--quiet", "--out", str(tmp_path / "s"), *SETTINGS)
    assert wandb.calls[-3][2]["id"] != first["id"]


@pytest.mark.parametrize("fail", ["init", "log", "finish"])
def test_a_sink_that_fails_is_said_once_and_training_goes_on(
    fail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(fail))
    flags = ["--wandb", "--tensorboard", "--quiet", "--out", str(tmp_path / "r")]
    ars("train", "CartPole-v1", "--iterations", "4", *flags, *SETTINGS)
    said = capsys.readouterr().err
    assert said == "Note: wandb failed and is dropped; training continues (ConnectionError: no network here).\n"
    assert len(records(tmp_path / "r")) == 4
    assert len(curves(tmp_path / "r")["train/sigma_R"]) == 4  # the other sink is not concerned


@pytest.mark.parametrize("room", [0, 2])
def test_a_disk_that_is_full_does_not_end_the_training(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first event on, or later: said once, and the file is closed."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    said: list[str] = []
    written: list[bytes] = []

    def write(_: RecordWriter, data: bytes) -> None:
        if len(written) == room:
            raise OSError(28, "No space left on device")
        written.append(data)

    monkeypatch.setattr(RecordWriter, "write", write)
    found = list(train("CartPole-v1", iterations=4, N=2))
    with open_dashboards(["tensorboard"], tmp_path, None, State.initial(ARS(), 2, 4), say=said.append) as sent:  # type: ignore[arg-type]
        for record in found:
            sent.record(record)
    assert len(written) == room
    assert len(said) == 1
    assert "No space left" in said[0]


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_missing_packages_are_a_sentence_before_anything_begins(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ars.dashboards.find_spec", lambda _: None)
    with pytest.raises(SettingError, match="pip install"):
        check_installed([name])
    with pytest.raises(SystemExit, match="2"):
        main(["train", "CartPole-v1", "--iterations", "1", f"--{name}", "--out", str(tmp_path / "r")])
    assert f"pip install 'ars-rl[{name}]'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_values_that_are_not_finite_are_left_out() -> None:
    """An LQR controller that does not stabilise has an infinite cost; an evaluation may have no finite rollout."""
    nothing = Evaluation(np.zeros(0), np.array([3, 5]), 2)
    record = Record(
        iteration=1, episodes=4, timesteps=40, seconds=0.0, reward_mean=2.0, reward_max=3.0, length_mean=10.0,
        dropped=1, evaluation=nothing, telemetry={"sigma_R": 1.0, "wild": math.nan},
        measures={"relative_cost": math.inf, "other": 2.0}, state=State.initial(ARS(), 1, 1), policy=None,  # type: ignore[arg-type]
    )  # fmt: skip
    values = scalars(record, None)
    assert values["measure/other"] == 2.0
    assert values["rollout/ep_len_mean"] == 10.0
    assert values["eval/mean_ep_length"] == 4.0
    assert not {"measure/relative_cost", "eval/mean_reward", "time/fps", "train/wild"} & set(values)
