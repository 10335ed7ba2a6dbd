"""The study of races: whom it chooses, by hand; small races from end to end; and its table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ars.cli import main
from ars.errors import FileError
from ars.experiments import race_study
from ars.experiments.engine import Job, Outcome, run_all, to_do
from ars.experiments.race_study import Chosen, Plan, Raced, at, read_study, restarts_of, run_study
from ars.experiments.study import study_seeds
from ars.paper.races import draw_races, table

SMALL = Plan(task="CartPole-v1", races=2, seeds=2, budget=1200, walks=50.0)


def record(timesteps: int, reward: float, evaluation: float | None = None) -> dict[str, Any]:
    return {"timesteps": timesteps, "reward_mean": reward, "eval_mean": evaluation}


def test_the_best_restart_is_chosen_by_training_and_judged_by_its_evaluation() -> None:
    one = [record(10, 1.0, 5.0), record(95, 2.0), record(105, 4.0, 30.0), record(500, 900.0, 900.0)]
    two = [record(60, 9.0, 80.0), record(100, 3.5)]
    assert at(one, 100) == (3.0, 105, 30.0)  # the iterations that end after 90, and no later ones
    assert at(two, 100) == (3.5, 100, 80.0)
    assert restarts_of({7: one, 5: two}, 100) == Chosen(5, 100, 80.0)
    assert restarts_of({7: two, 5: two}, 100).seed == 5


def test_no_seed_is_used_twice() -> None:
    seeds = [seed for k in range(1, 11) for seed in Plan().seeds_of(k)]
    assert len({*seeds}) == 80
    assert not {*seeds} & {*study_seeds("tuning", "Walker2d"), *study_seeds("held-out", "Walker2d")}
    assert Plan(races=3).seeds_of(2) == Plan().seeds_of(2)


def run(jobs: Sequence[Job]) -> list[Outcome]:
    return list(run_all(to_do(jobs), workers=1))


def test_races_from_end_to_end(tmp_path: Path) -> None:
    out, runs, said = tmp_path / "races", tmp_path / "runs", list[str]()
    assert run_study(SMALL, out, runs, run, said.append) == ()
    assert said[0] == "Race 1 of 2."
    first = json.loads((out / "1.json").read_text())
    found = read_study(SMALL, out)
    assert [*found] == [1, 2]
    assert first["seeds"] == [*SMALL.seeds_of(1)]
    assert found[1].race.seed in first["seeds"]
    assert 600 <= found[1].race.timesteps < found[1].spent >= 1200
    assert found[1].restarts.timesteps >= 600
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "2.json").unlink()
    said.clear()
    run_study(SMALL, out, runs, run, said.append)  # only what is missing, and the same again
    assert said[0] == "Race 2 of 2."
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    lines: list[str] = []
    draw_races(SMALL, out, lines.append)
    assert lines == [str(tmp_path / "races.md"), str(tmp_path / "races.csv")]
    assert "2 of 2 races are complete" in (tmp_path / "races.md").read_text()


def test_a_race_that_is_stopped_has_no_file(tmp_path: Path) -> None:
    assert run_study(SMALL, tmp_path / "races", tmp_path / "runs", lambda jobs: []) == []
    assert not list((tmp_path / "races").iterdir())


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raced = {
        1: Raced(Chosen(5, 1900, 60.0), Chosen(6, 500, 40.0), 4000),
        2: Raced(Chosen(7, 1800, 50.0), Chosen(7, 500, -3.0), 4001),
    }
    monkeypatch.setattr("ars.paper.races.read_study", lambda plan, out: raced)
    drawn = table(SMALL, tmp_path)
    assert drawn.rows[0] == ["1", "5", "1,900", "60", "6", "500", "40"]
    assert "races 2 of 2 (34% to 100%), for restarts 0 of 2 (0% to 66%)" in drawn.notes[0]


def test_files_of_another_study_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"format": 1, "seeds": [1, 2], "budget": 1200}')
    with pytest.raises(FileError, match=r"1\.json is damaged: it is of another study"):
        read_study(SMALL, tmp_path)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(race_study, "Plan", lambda: SMALL)

    def say(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["study", "races", "--out", str(tmp_path), "--runs", str(tmp_path / "runs"), *words])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out + captured.err

    assert say("--dry-run")[1].startswith("2 of 2 races are missing: 2,400 timesteps of CartPole-v1")
    assert "There are no races yet" in say("--draw")[1]
    code, text = say("--stage", "held-out")
    assert code == 2
    assert "has no --stage" in text
    assert say("--jobs", "1", "--quiet")[0] == 0
    assert (tmp_path / "races.csv").is_file()
