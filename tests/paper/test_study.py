"""The study of searches: its runs, its table by hand, and that a part of it can be run, continued and drawn."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cyclopts import App

from ars.cli.settings import Settings
from ars.config import Config
from ars.curves import Curve, curve_settings, load
from ars.errors import SettingError
from ars.experiments import study
from ars.experiments.run_specs import RunSpec, config_for
from ars.experiments.seeds import PAPER_SEEDS
from ars.paper.searches import cells, draw_study, known_until, make_study, summary, table
from ars.presets import PRESETS
from ars.searches import search_name
from command_here import ars_here as ars


def run_of(spec: RunSpec, rewards: list[float], *, every: int = 250_000, episodes: int = 100) -> Curve:
    """A run with an evaluation after every so many timesteps."""
    at = every * np.arange(1.0, len(rewards) + 1)
    count = np.arange(1.0, len(rewards) + 1)
    columns = {"at_iteration": count, "at_episodes": episodes * count, "at_timesteps": at, "at_seconds": at / 1e4,
               "mean": np.array(rewards), "std": np.zeros(len(rewards))}  # fmt: skip
    total = int(at[-1])
    return Curve(
        learner=search_name(spec.config.search), task=spec.task, seed=spec.config.seed, label=spec.config.label,
        settings=curve_settings(spec.config), columns=columns, iterations=len(rewards),
        episodes=episodes * len(rewards), timesteps=total, seconds=total / 1e4,
    )  # fmt: skip


def test_stages_have_different_seeds() -> None:
    for robot in study.ROBOTS:
        tuning, held_out = (study.study_seeds(stage, robot) for stage in study.STAGES)
        assert (len(tuning), len(held_out)) == (4, {"Ant": 5, "Humanoid": 3}.get(robot, 20))
        assert not set(tuning) & {*held_out, *PAPER_SEEDS}


def test_arms_are_equal_but_for_their_search() -> None:
    """Every run has a name of its own; ARS is the paper's preset; evaluations cost all arms the same."""
    names = []
    for stage in study.STAGES:
        for robot in study.ROBOTS:
            specs = {arm: study.study_specs(stage, f"{robot}-v1", arm) for arm in study.ARMS}
            assert (specs["cma"] == []) == (robot == "Humanoid")
            names += [spec.name for listed in specs.values() for spec in listed]
            caps = {(spec.episodes, spec.timesteps, spec.until) for listed in specs.values() for spec in listed}
            assert len(caps) == 1
            for listed in specs.values():
                for spec in listed[:1]:
                    assert (spec.config.protocol, spec.config.eval_every, spec.config.eval_episodes) == (
                        "frugal",
                        1,
                        10,
                    )
    assert len(set(names)) == len(names)
    walker = study.study_specs("held-out", "Walker2d-v1", "ars")[0]
    assert (walker.episodes, walker.timesteps, walker.until) == (None, 10**7, 4390.0)
    assert all(getattr(walker.config.search, k) == v for k, v in PRESETS["V2-t"]["Walker2d"]._asdict().items())


@pytest.mark.parametrize("page", ["searches.md", "observe.md"])
def test_the_documented_command_for_ant_is_the_arm(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text()
    [line] = [line for line in text.splitlines() if line.startswith("    ars train Ant-v1 --search csa")]
    found: list[Config] = []

    def train(task: str, /, *, settings: Settings = Settings()) -> None:  # noqa: B008 (frozen)
        found.append(config_for(task, **settings.given()))

    app = App()
    app.command(train)
    app(line.removesuffix(" --seed S").split()[1:], exit_on_error=False, result_action="return_value")
    arm = study.study_specs("held-out", "Ant-v1", "csa-observe")[0].config
    assert found == [replace(arm, seed=found[0].seed)]


def test_cells_by_hand() -> None:
    """Of four seeds one reaches 3120 after 0.5e6 timesteps, one never, one is under way, one has not begun."""
    specs = study.study_specs("tuning", "Hopper-v1", "csa")
    curves = [
        run_of(specs[0], [100.0, 3200.0]), run_of(specs[1], [50.0, 60.0, 70.0, 80.0]), run_of(specs[2], [1.0, 2.0]),
    ]  # fmt: skip
    assert cells(specs, curves) == [
        "2 of 4, 1 under way", "1 of 2", "9% to 91%", "5.00e5", "–", "50", "1640 (80 to 3200)", "–", "–", "–", "75",
    ]  # fmt: skip
    assert cells(specs, []) == ["0 of 4", *["–"] * 10]


def test_the_summary_by_hand(tmp_path: Path) -> None:
    made = make_study("tuning", out=tmp_path, tasks=["Hopper", "Humanoid"], arms=["csa", "cma"])
    specs = study.study_specs("tuning", "Hopper-v1", "csa")
    curves = [run_of(specs[0], [100.0, 3200.0]), run_of(specs[1], [50.0, 60.0, 70.0, 80.0])]
    drawn = summary(made, curves)
    assert drawn.columns == ("task", "threshold", "csa", "cma")
    assert drawn.rows == [["Hopper-v1", "3120", "1 of 2 (5.00e5); 1640", "–"], ["Humanoid-v1", "6000", "–", "–"]]
    under_way = summary(made, [*curves, run_of(specs[2], [1.0, 2.0])])
    assert under_way.rows[0][2] == "1 of 2, 1 under way (5.00e5); 1640"


def test_six_runs_have_an_interval_of_the_median() -> None:
    specs = study.study_specs("held-out", "Hopper-v1", "csa")[:7]
    early = [run_of(spec, [0.0] * i + [3200.0]) for i, spec in enumerate(specs[:4])]
    never = [run_of(spec, [0.0] * 12) for spec in specs[4:]]
    found = cells(specs, [*early, *never])
    assert found[1:6] == ["4 of 7", "25% to 84%", "1.00e6", "2.50e5 to never", "100"]
    assert found[6:8] == ["1829 (0 to 3200)", "1829 (0 to 3200)"]


def test_the_figure_ends_where_a_run_is_under_way() -> None:
    specs = study.study_specs("held-out", "Walker2d-v1", "csa")[:2]
    walks, under_way = run_of(specs[0], [9.0] * 40), run_of(specs[1], [1.0, 2.0], episodes=20_000)
    assert cells(specs, [walks, under_way])[0] == "1 of 2, 1 under way"  # however many episodes it has had
    assert known_until(specs, [walks, under_way]) == 500_000
    assert known_until(specs, [walks]) == 10**7


def test_published_values_are_beside_ours(tmp_path: Path) -> None:
    made = make_study("held-out", out=tmp_path, tasks=["Ant"], arms=["ars", "cma"])
    rows = table(made, []).rows
    assert [row[1] for row in rows] == ["ars", "cma", "cma, Wong"]
    assert rows[-1][8:12] == ["–", "–", "2820 (2260 to 3510)", "–"]


def test_a_part_is_run_continued_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = dict.fromkeys(study.ROBOTS, 1)
    small = study.STAGES["tuning"]._replace(seeds=few, timesteps=dict.fromkeys(study.ROBOTS, 12_000))
    monkeypatch.setitem(study.STAGES, "tuning", small)
    assert {spec.pause for spec in make_study("tuning", pause=500).specs("Swimmer-v1")} == {500}
    flags = ["--tasks", "Swimmer", "--arms", "ars,csa", "--out", str(tmp_path / "out"), "--runs", str(tmp_path / "r")]
    assert ars("study", "searches", *flags, "--dry-run") == 0
    assert "Swimmer-v1 2 runs, 0 there: about " in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert ars("study", "searches", *flags, "--pause", "1000", "--quiet") == 0
    assert "Each run up to 1,000 timesteps, for now:" in capsys.readouterr().out
    assert {load(path).status for path in (tmp_path / "out" / "runs").iterdir()} == {"unfinished"}
    assert ars("study", "searches", *flags, "--quiet") == 0
    assert {load(path).status for path in (tmp_path / "out" / "runs").iterdir()} == {"finished"}
    assert ars("study", "searches", *flags) == 0
    assert "2 runs, 2 there: nothing to run" in capsys.readouterr().out
    files = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert files == {*(f"tuning.{kind}" for kind in ("md", "csv", "png", "svg")), "tuning-summary.md"}
    before = (tmp_path / "out" / "tuning.md").read_text()
    assert before.count("\n| Swimmer-v1 | ") == 3  # ars, csa and Wong's csa; no arm without a run
    draw_study(make_study("tuning", out=tmp_path / "out", tasks=["Ant"]))  # draws the whole stage in any case
    assert (tmp_path / "out" / "tuning.md").read_text() == before
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2


def test_mistakes_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, match in {
        ("--arms", "best"): "arms = best is unknown",
        ("--tasks", "CartPole-v1"): "CartPole",
        ("--draw", "--dry-run"): "contradict",
        ("--draw",): "is not a folder",
        ("--draw", "--pause", "100"): "pause and draw contradict",
        ("--pause", "0"): "pause = 0",
        ("--stage", "late"): "late",
    }.items():
        assert ars("study", "searches", "--out", str(tmp_path / "none"), *words) == 2
        said = capsys.readouterr().err
        assert match in said
        assert said.count("\n") == 1
    with pytest.raises(SettingError, match="stage = 'late'"):
        make_study("late")
    assert list(tmp_path.iterdir()) == []
