"""A run as one small file: the same from the run folder, and back from disk."""

import json
from pathlib import Path

import numpy as np
import pytest

import ars
from ars.curves import Curve, from_run, load, load_all, save_if_further
from ars.errors import FileError
from ars.run_files import read_records
from curve_maker import curve


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curves") / "run"
    settings = {"variant": "V2", "N": 2, "H": 20, "protocol": "paper", "eval_every": 2, "eval_episodes": 3}
    for _ in ars.train("Swimmer-v5", seed=3, iterations=6, out=folder, **settings):
        pass
    return folder


def test_a_run_folder_gives_its_evaluations(run: Path) -> None:
    found, lines = from_run(run), read_records(run / "records.jsonl")
    assert found.status == "finished"
    assert (found.iterations, found.episodes, found.timesteps) == (6, 24, lines[-1]["timesteps"])
    np.testing.assert_array_equal(found.columns["at_iteration"], [2, 4, 6])
    np.testing.assert_array_equal(found.rewards, [line["eval_mean"] for line in lines if "eval_mean" in line])
    np.testing.assert_array_equal(found.telemetry["sigma_R"], [line["sigma_R"] for line in lines])


def test_a_curve_survives_its_file(run: Path, tmp_path: Path) -> None:
    found = from_run(run)
    found.save(tmp_path / "curve.json")
    again = load(tmp_path / "curve.json")
    assert (again.identity, again.label, again.eval_episodes) == (found.identity, "V2", 3)
    np.testing.assert_allclose(again.rewards, found.rewards, atol=1e-4)
    assert (tmp_path / "curve.json").stat().st_size < 4000


def test_reading_leaves_the_run_as_it_is(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    from_run(run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_line_that_is_being_written_does_not_count(run: Path, tmp_path: Path) -> None:
    for name in ("config.json", "records.jsonl"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"iteration": 7, "epi')
    assert from_run(tmp_path).iterations == 6


def test_a_damaged_line_is_named(run: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    lines = (run / "records.jsonl").read_text().splitlines()
    (tmp_path / "records.jsonl").write_text("\n".join([lines[0], "{", *lines[1:]]) + "\n")
    with pytest.raises(FileError, match=r"records.jsonl is damaged in line 2"):
        from_run(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 3),
        ("format", 1),  # it has other fields
        ("mean", [1.0]),
        ("mean", ["x", 1, 2]),
        ("mean", [None, 1, 2]),
        ("mean", ["1", 1, 2]),
        ("mean", [True, 1, 2]),
        ("format", 2.0),
        ("at_iteration", [2, 1, 3]),
        ("at_iteration", [1, 1, 3]),
        ("at_episodes", [0, 1e9, 1]),
        ("at_episodes", None),
        ("settings", 3),
        ("seed", "a"),
        ("telemetry", None),
        ("telemetry", {"episodes": [16], "sigma_R": []}),
        ("measures", [1.0]),
        ("measures", {"bytes": "many"}),
    ],
)
def test_a_damaged_curve_is_one_sentence(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "curve.json"
    curve([1.0, 2.0, 3.0]).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(FileError, match="not a run's curve"):
        load(path)


def format_1() -> dict[str, object]:
    """A curve as the first version wrote it: two evaluations of Hopper, 16 training rollouts per iteration."""
    config = {
        "task": "Hopper-v1", "variant": "V2-t", "alpha": 0.01, "nu": 0.025, "N": 8, "b": 4, "H": 1000, "shift": 1.0,
        "seed": 237, "eval_every": 1, "eval_episodes": 100, "noise": "counter", "table_size": 0, "stats_every": 1,
    }  # fmt: skip
    return {
        "format": 1, "status": "finished", "config": config, "versions": {"numpy": "2"}, "machine": "a machine",
        "stop": {"iterations": None, "episodes": 32, "timesteps": None, "minutes": None, "until": None},
        "iterations": 2, "episodes": 32, "timesteps": 3200, "seconds": 1.5, "eval_iteration": [1, 2],
        "eval_episodes": [16, 32], "eval_timesteps": [1600, 3200], "eval_seconds": [0.7, 1.5], "eval_mean": [5, 7.25],
        "eval_std": [1, 2], "sigma_R": [0.5, 0.25],
    }  # fmt: skip


def test_the_first_format_is_read(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(format_1()))
    old = load(tmp_path / "old.json")
    new = curve([5, 7.25], every=16, eval_every=1)
    assert (old.identity, old.label, old.eval_episodes) == (new.identity, "V2-t", 100)
    np.testing.assert_array_equal(old.columns["at_episodes"], [16, 32])
    np.testing.assert_array_equal(old.telemetry["episodes"], [16, 32])
    np.testing.assert_array_equal(old.telemetry["sigma_R"], [0.5, 0.25])
    assert old.reach(6.0, "seconds") == 1.5
    old.save(tmp_path / "new.json")
    again = load(tmp_path / "new.json")
    assert (again.identity, again.status, again.timesteps, again.best) == (old.identity, "finished", 3200, 7.25)


@pytest.mark.parametrize(
    ("field", "value"),
    [("eval_mean", [1.0]), ("eval_mean", ["x", 1]), ("config", {}), ("sigma_R", None), ("stop", 3), ("format", 2)],
)
def test_a_damaged_curve_of_the_first_format_is_one_sentence(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "curve.json"
    path.write_text(json.dumps({**format_1(), field: value}))
    with pytest.raises(FileError, match="not a run's curve"):
        load(path)


def test_another_learners_curve_needs_no_settings_of_ours(tmp_path: Path) -> None:
    """A rival enters the same tables: it has a name, a task, a seed and columns."""
    settings = {"learning_rate": 3e-4}
    rival = Curve("ppo", "Hopper-v1", 1, settings, curve([1.0, 9.0]).columns, label="PPO", episodes=320)
    rival.save(tmp_path / "ppo.json")
    again = load(tmp_path / "ppo.json")
    assert (again.learner, again.label, again.settings, again.reach(9.0)) == ("ppo", "PPO", settings, 320)
    assert again.identity == rival.identity != curve([1.0], seed=1).identity


def test_all_curves_of_a_folder_by_name(tmp_path: Path) -> None:
    for seed in (9, 1):
        curve([1.0], seed=seed).save(tmp_path / f"{seed}.json")
    assert [found.seed for found in load_all(tmp_path)[0]] == [1, 9]
    assert load_all(tmp_path / "nothing") == ([], [])


def test_one_damaged_curve_does_not_hide_the_others(tmp_path: Path) -> None:
    curve([1.0], seed=1).save(tmp_path / "1.json")
    (tmp_path / "2.json").write_text("{")
    (tmp_path / "3.json").mkdir()
    curves, problems = load_all(tmp_path)
    assert [found.seed for found in curves] == [1]
    assert "2.json is damaged" in problems[0]
    assert problems[0].endswith("; remove it, and its run is made again.")
    assert len(problems) == 2


def test_a_damaged_curve_is_set_aside_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.write_text("{")
    save_if_further(curve([1.0]), path)
    assert load(path).best == 1.0
    assert (tmp_path / "1.json.damaged").read_text() == "{"


def test_a_curve_cut_at_a_cap_is_that_of_a_run_which_ended_there() -> None:
    long = curve([1.0, 5.0, 9.0, 2.0])  # evaluations after 160, 320, 480, 640 episodes, 16 an iteration
    cut = long.up_to(330)  # ends with the 21st iteration
    assert (cut.iterations, cut.episodes, cut.timesteps, cut.best) == (21, 336, 32000, 5.0)
    assert {name: len(column) for name, column in cut.telemetry.items()} == {"episodes": 21, "sigma_R": 21}
    assert long.up_to(640) is long
    assert long.up_to(640, until=5.0).episodes == 320
    assert long.up_to(640, until=99.0) is long
    assert long.up_to(20).best == -float("inf")
