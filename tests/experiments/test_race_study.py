"""The study of races: whom it chooses, by hand; small races from end to end; and its table."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ars.cli import main
from ars.errors import FileError, SettingError
from ars.experiments import race, race_study
from ars.experiments.engine import Job, Outcome, run_all, to_do
from ars.experiments.race import Result
from ars.experiments.race_study import Chosen, Plan, Raced, best_of, read_study, run_study
from ars.experiments.study import seen_seeds
from ars.paper.races import draw_races, table
from ars.races import RaceFile, Round, Standing

SMALL = Plan(task="CartPole-v1", races=2, seeds=2, budget=1200, walks=50.0)


def record(timesteps: int, reward: float, evaluation: float | None = None) -> dict[str, Any]:
    return {"timesteps": timesteps, "reward_mean": reward, "eval_mean": evaluation}


def test_the_best_restart_is_chosen_by_training_and_judged_by_its_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    one = [record(10, 1.0, 5.0), record(95, 2.0), record(105, 4.0, 30.0), record(500, 900.0, 900.0)]
    two = [record(60, 9.0, 80.0), record(100, 3.5)]
    wild = [record(10, 1e9, 1e9)]  # diverged after it
    files = {"one": one, "two": two, "wild": wild, "none": []}
    monkeypatch.setattr(race, "read_records", lambda path: files[path.parent.name])
    monkeypatch.setattr(race_study, "read_records", lambda path: files[path.parent.name])
    monkeypatch.setattr(race, "load", lambda file: SimpleNamespace(failed=file in ("wild", "none")))

    def best(**seeds: str) -> Chosen | None:
        jobs: Any = {
            int(seed[1:]): SimpleNamespace(folder=Path(name), file=name, spec=SimpleNamespace(until=None))
            for seed, name in seeds.items()
        }
        return best_of(jobs, 100)

    assert best(s7="one", s5="two") == Chosen(5, 100, 80.0)  # 3.5 beats (2 + 4) / 2
    assert best(s7="one", s3="wild", s2="none") == Chosen(7, 105, 30.0)  # what came later does not count
    assert best(s7="two", s5="two") == Chosen(5, 100, 80.0)
    assert best(s3="wild", s2="none") is None


def test_no_seed_is_used_twice_and_none_chose_a_setting() -> None:
    seeds = [seed for k in range(1, 11) for seed in Plan().seeds_of(k)]
    assert len({*seeds}) == 80
    assert not {*seeds} & {*seen_seeds("Walker2d")}
    assert seeds[:8] == [1229, 6264, 8652, 4807, 3259, 4199, 4776, 2162]  # whatever else is drawn anew


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
    won, restart = found[1]
    assert won is not None
    assert restart is not None
    assert won.seed in first["seeds"]
    assert won.timesteps >= 600
    assert restart.timesteps >= 600
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


def test_the_table() -> None:
    raced = {
        1: Raced(Chosen(5, 1900, 60.0), Chosen(6, 500, 40.0)),
        2: Raced(Chosen(7, 1800, 50.0), None),
    }
    drawn = table(SMALL, raced)
    assert drawn.rows[0] == ["1", "5", "1,900", "60", "6", "500", "40"]
    assert drawn.rows[1][4:] == ["–", "–", "diverged"]
    assert "races 2 of 2 (34% to 100%), for restarts 0 of 2 (0% to 66%)" in drawn.notes[0]


def test_all_seeds_may_diverge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = (Round(600, (Standing(1, 5, None, False), Standing(2, 5, None, False))),)
    decided = SMALL.race(1, tmp_path).decided_by()
    monkeypatch.setattr(race_study, "run_race", lambda race, run, say: Result(RaceFile(decided, rounds), ()))
    monkeypatch.setattr(race_study, "to_do", lambda jobs: [])
    monkeypatch.setattr(race_study, "best_of", lambda jobs, share: None)
    plan = SMALL._replace(races=1)
    assert run_study(plan, tmp_path / "races", tmp_path / "runs", lambda jobs: []) == ()
    assert read_study(plan, tmp_path / "races") == {1: Raced(None, None)}


def test_files_that_are_damaged_or_of_another_study_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "1.json"
    there = {"format": 1, **SMALL.race(1, tmp_path).decided_by(), "race": None, "restarts": None}
    for value, message in (
        ({**there, "restarts": {"seed": 1, "timesteps": 5, "reward": "nan"}}, r"1\.json is damaged: reward = 'nan'"),
        ({**there, "restarts": {"seed": -1, "timesteps": 5, "reward": 1.0}}, r"1\.json is damaged: -1 is not a count"),
        ({**there, "format": 2}, "damaged: its format is unknown"),
    ):
        file.write_text(json.dumps(value))
        with pytest.raises(FileError, match=message):
            read_study(SMALL, tmp_path)
    file.write_text(json.dumps({**there, "config": {**there["config"], "H": 7}}))
    with pytest.raises(SettingError, match=r"is of races with other settings: remove it, or give another --out"):
        run_study(SMALL, tmp_path, tmp_path / "runs", run)


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
    assert "--stage applies to ars study searches only" in text
    assert say("--jobs", "1", "--quiet")[0] == 0
    assert (tmp_path / "races.csv").is_file()
