"""A run as one small file: the same from the run folder, and back from disk."""

import json
from pathlib import Path

import numpy as np
import pytest

import ars
from ars.curves import from_run, load, load_all, save_if_further
from ars.errors import FileError
from ars.run_files import read_records
from curve_maker import curve


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curves") / "run"
    settings = {"variant": "V2", "N": 2, "H": 20, "eval_every": 2, "eval_episodes": 3}
    for _ in ars.train("Swimmer-v5", seed=3, iterations=6, out=folder, **settings):
        pass
    return folder


def test_a_run_folder_gives_its_evaluations(run: Path) -> None:
    found, lines = from_run(run), read_records(run / "records.jsonl")
    assert found.status == "finished"
    assert (found.iterations, found.episodes, found.timesteps) == (6, 24, lines[-1]["timesteps"])
    np.testing.assert_array_equal(found.evaluations["iteration"], [2, 4, 6])
    np.testing.assert_array_equal(found.rewards, [line["eval_mean"] for line in lines if "eval_mean" in line])
    np.testing.assert_array_equal(found.sigma_R, [line["sigma_R"] for line in lines])


def test_a_curve_survives_its_file(run: Path, tmp_path: Path) -> None:
    found = from_run(run)
    found.save(tmp_path / "curve.json")
    again = load(tmp_path / "curve.json")
    assert (again.config, again.stop, again.identity) == (found.config, found.stop, found.identity)
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
    [("format", 2), ("eval_mean", [1.0]), ("eval_mean", ["x", 1, 2]), ("config", {}), ("sigma_R", None), ("stop", 3)],
)
def test_a_damaged_curve_is_one_sentence(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "curve.json"
    curve([1.0, 2.0, 3.0]).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(FileError, match="not a run's curve"):
        load(path)


def test_all_curves_of_a_folder_by_name(tmp_path: Path) -> None:
    for seed in (9, 1):
        curve([1.0], seed=seed).save(tmp_path / f"{seed}.json")
    assert [found.config.seed for found in load_all(tmp_path)[0]] == [1, 9]
    assert load_all(tmp_path / "nothing") == ([], [])


def test_one_damaged_curve_does_not_hide_the_others(tmp_path: Path) -> None:
    curve([1.0], seed=1).save(tmp_path / "1.json")
    (tmp_path / "2.json").write_text("{")
    (tmp_path / "3.json").mkdir()
    curves, problems = load_all(tmp_path)
    assert [found.config.seed for found in curves] == [1]
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
    assert len(cut.sigma_R) == 21
    assert long.up_to(640) is long
    assert long.up_to(640, until=5.0).episodes == 320
    assert long.up_to(640, until=99.0) is long
    assert long.up_to(20).best == -float("inf")
