"""Reading a run folder: unfinished lines, damage, locks, and that nothing is changed."""

import json
import shutil
from pathlib import Path

import pytest

import ars
from ars.errors import FileError
from ars.run_files import read_records, read_run, run_folders
from ars.runs import Run
from small_runs import train


@pytest.fixture
def run(runs: list[Path], tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(runs[0], tmp_path / "run"))


def test_a_run_is_read_whole(run: Path) -> None:
    found = read_run(run)
    assert (found.config.task, found.config.seed, found.policy_file) == ("HalfCheetah-v1", 0, "best.npz")
    assert [record["iteration"] for record in found.records] == list(range(1, 9))
    assert found.policy is not None
    assert found.policy.M.shape == (6, 17)
    assert found.versions["numpy"]
    (run / "best.npz").unlink()
    assert read_run(run).policy_file == "policy.npz"
    (run / "policy.npz").unlink()
    assert read_run(run).policy is None


def test_a_run_that_is_being_written_can_be_read_and_stays_as_it_is(run: Path) -> None:
    with (run / "records.jsonl").open("ab") as file:
        file.write(b'{"iteration": 9, "episo')
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()}
    with Run.open(shutil.copytree(run, run.parent / "open")) as held:  # locked by us: a reader does not care
        assert len(read_run(held.path).records) == 8
    assert len(read_run(run).records) == 8
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.iterdir()} == before


def test_a_run_without_records_yet(run: Path) -> None:
    for name in ("records.jsonl", "best.npz", "policy.npz", "checkpoint.npz"):
        (run / name).unlink()
    assert read_run(run).records == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "Expecting value"),
        (b"[1]", "a JSON object was expected"),
        (b'{"iteration": 3}', "episodes is not a count"),
        (
            b'{"iteration": true, "episodes": 1, "timesteps": 1, "seconds": 1, "sigma_R": 1}',
            "iteration is not a count",
        ),
        (b'{"iteration": 3, "episodes": 1, "timesteps": 1, "seconds": 1, "sigma_R": NaN}', "NaN is not JSON"),
        (
            b'{"iteration": 3, "episodes": 1, "timesteps": 1, "seconds": 1, "sigma_R": 1, "eval_mean": "<b>"}',
            "eval_mean",
        ),
        (b'{"iteration": 3, "episodes": 1, "timesteps": 1, "seconds": null, "sigma_R": 1}', "seconds is not a number"),
        (b'{"iteration": 4, "episodes": 1, "timesteps": 1, "seconds": 1, "sigma_R": 1}', "is not that of iteration 3"),
        (b"[" * 100_000, "is damaged"),
        (b"\xff\xfe", "is damaged"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes, reason: str) -> None:
    totals = {"episodes": 1, "timesteps": 1, "seconds": 1.0, "sigma_R": 1.0}
    first, second, fourth = (json.dumps({"iteration": i, **totals}).encode() for i in (1, 2, 4))
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"\n".join([first, second, line, fourth, b""]))
    with pytest.raises(FileError, match=r"records.jsonl is damaged in line 3") as raised:
        read_records(file)
    assert reason in str(raised.value)


def test_other_damage_is_one_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is not a run folder"):
        read_run(tmp_path)
    swimmer = train(tmp_path / "swimmer", "Swimmer-v5", iterations=2)
    shutil.copy(swimmer / "best.npz", run / "best.npz")
    with pytest.raises(FileError, match="it is 2 × 8, and its task needs 6 × 17"):
        read_run(run)
    (run / "best.npz").write_bytes(b"PK")
    with pytest.raises(FileError, match=r"best.npz is damaged"):
        read_run(run)
    (run / "config.json").write_text("{")
    with pytest.raises(FileError, match=r"config.json is damaged"):
        read_run(run)


def test_folders_of_runs_stand_for_their_runs(runs: list[Path], tmp_path: Path) -> None:
    assert run_folders([runs[0].parent]) == runs
    assert run_folders([runs[1], runs[0].parent]) == [runs[1], runs[0], runs[2]]
    (tmp_path / "sweep" / "runs").mkdir(parents=True)
    shutil.copytree(runs[0], tmp_path / "sweep" / "runs" / "a")
    assert run_folders([tmp_path / "sweep"]) == [tmp_path / "sweep" / "runs" / "a"]
    assert run_folders([tmp_path]) == [tmp_path]  # reading it then says what is wrong


def test_records_are_read_line_by_line(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of weeks has millions of lines, more than any other file of ours may have: it is read, and goes on."""
    read_whole = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        assert path.name != "records.jsonl"
        return read_whole(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert len(read_records(run / "records.jsonl")) == 8
    assert [record.iteration for record in ars.resume(run, iterations=10)] == [9, 10]
    assert len(read_run(run).records) == 10
