"""The paper's tables and figures: what each needs, and that each is drawn from small files alone."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ars.errors import SettingError
from ars.experiments.cost import costs, on_cores
from ars.experiments.run_specs import CAPS, RunSpec, run_spec
from ars.paper import ARTEFACTS, load_artefact
from ars.paper.artefact import pick
from ars.paper.reproduce import Request, chosen, draw, draw_all, names, run_missing, write_index
from ars.paper.table1 import variants
from ars.presets import PRESETS, make_config
from command_here import ars_here as ars
from curve_maker import curve


def test_every_table_and_figure_of_the_paper_is_there() -> None:
    paper = [*(f"table{i}" for i in range(1, 8)), *(f"figure{i}" for i in range(1, 6))]
    assert [name for name in names("all") if not load_artefact(name).beyond] == paper
    assert names("all")[len(paper) :] == ["ablation", "caps", "selection"]
    with pytest.raises(SettingError, match="table8"):
        names("table8")


def test_the_runs_of_the_targets(tmp_path: Path) -> None:
    request = Request(["table1"], tmp_path, ["Hopper"], None)
    plans = request.specs("table1")
    assert len(plans) == 15  # five variants on three seeds, the main one first
    assert {p.config.label for p in plans[:3]} == {"V2-t"}
    assert {p.config.seed for p in plans} == {237, 759, 959}
    assert len(Request(["figure3"], tmp_path, ["Swimmer-v1"]).specs("figure3")) == 100
    assert len(Request(["figure4"], tmp_path, ["Swimmer-v1"]).specs("figure4")) == 9 * 3
    plane = Request(["figure4"], tmp_path, ["HalfCheetah-v1"]).specs("figure4")[:27]  # of alpha and nu comes first
    assert {(one.config.search.N, one.config.search.b) for one in plane} == {(32, 4)}
    assert {one.config.seed for one in plane} == {237, 759, 959}
    assert variants("Swimmer-v1") == ["V1", "V2", "BRS"]
    assert chosen("table2", ["Ant-v1", "Hopper-v1"]) == ["Hopper-v1"]  # table 2 has no Ant
    with pytest.raises(SettingError, match="CartPole"):
        chosen("table1", ["CartPole-v1"])


def test_the_first_listed_seeds_of_an_artefact_are_those_it_needs() -> None:
    seeds = load_artefact("figure1").seeds
    assert seeds[:3] == (237, 759, 959)
    assert len(set(seeds)) == len(seeds)
    assert [one.config.seed for one in load_artefact("figure1").runs(["Humanoid-v1"], seeds)] == [237]
    assert [one.config.seed for one in load_artefact("figure1").runs(["Humanoid-v1"], (5, 6))] == [5, 6]
    assert [one.until for one in load_artefact("table6").runs(["Humanoid-v1"], (5, 6))] == [None, 6000.0]


def test_planning_imports_no_renderer(tmp_path: Path) -> None:
    """Nor does `ars --help` import a table or figure."""
    script = """
import sys
import ars.cli
assert not [name for name in sys.modules if name.startswith("ars.paper")]
from pathlib import Path
from ars.paper.reproduce import Request, names
Request(names("all"), Path(sys.argv[1]), ["Swimmer-v1"]).to_do()
assert "ars.paper.figure4" in sys.modules
assert not {"matplotlib", "ars.plotting"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_a_preset_is_told_from_other_settings() -> None:
    """By all that decides a run, not by its label: V2-t with b = N is V2, and another H is another run."""
    wanted = curve([1.0], task="Walker2d-v1", variant="V2")
    same = curve([1.0], task="Walker2d-v1", variant="V2-t", **PRESETS["V2"]["Walker2d"]._asdict())
    others = [curve([1.0], task="Walker2d-v1", variant="V2", **more) for more in ({"alpha": 0.5}, {"eval_every": 5})]
    others += [curve([1.0], task=task, variant=variant) for task, variant in (("Walker2d-v5", "V2"), ("Ant-v1", "V2"))]
    others += [curve([1.0], task="Walker2d-v1", variant=variant) for variant in ("V2-t", "V1", "BRS")]
    assert wanted.identity == same.identity
    assert pick([*others, wanted], "Walker2d-v1", "V2", (237,)) == [wanted]
    assert pick([*others, same], "Walker2d-v1", "V2", (237,)) == [same]
    assert pick([replace(wanted, learner="another")], "Walker2d-v1", "V2", (237,)) == []


def test_a_script_reproduces_without_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPS, "Swimmer", 20)
    said: list[str] = []
    compared: list[Path] = []
    request = Request(["table2", "figure5"], tmp_path / "results", ["Swimmer-v1"], (1,))
    more = {"runs": tmp_path / "runs", "say": said.append, "compare": compared.append}
    [outcome] = run_missing(request, cores=1, **more)
    assert outcome.curve is not None
    assert outcome.curve.episodes == 20
    assert compared == [tmp_path / "results"]
    assert said[0].startswith("table2   1 run, 0 there: about ")
    assert said[1] == "figure5  about 10 min of one core (ars lqr)"
    assert said[2].startswith("together 1 runs: ")
    said.clear()
    assert run_missing(request, cores=1, **more) == []
    draw_all(request, say=said.append)
    assert said[0] == "table2   1 run, 1 there: nothing to run"
    assert [Path(line).name for line in said[2].splitlines()] == ["table2-seeds1.md", "table2-seeds1.csv"]
    assert said[3:] == [
        "figure5 has no results yet: run ars reproduce figure5.", str(tmp_path / "results" / "index.md")
    ]  # fmt: skip


def test_to_cap_goes_on_beyond_the_threshold(tmp_path: Path) -> None:
    to_threshold, to_cap = (Request(["figure3"], tmp_path, ["Hopper-v1"], (1,), to_cap=cap) for cap in (False, True))
    reached = curve([3200], seed=1, eval_episodes=10)
    reached.save(tmp_path / "runs" / "a.json")
    assert to_threshold.to_do() == []
    assert len(to_cap.to_do()) == 1


@pytest.mark.parametrize("target", [name for name in ARTEFACTS if name != "figure5"])
def test_every_target_is_drawn_with_nothing_and_with_something(tmp_path: Path, target: str) -> None:
    request = Request([target], tmp_path)
    before = {path: path.read_bytes() for path in draw(request, target)}
    assert before
    curves = [curve([0, 4000], seed=s) for s in (237, 759)] + [curve([0, 1], task="Humanoid-v1", variant="V2")]
    for i, one in enumerate(curves):
        one.save(tmp_path / "runs" / f"{i}.json")
    after = {path: path.read_bytes() for path in draw(request, target)}
    assert set(after) == set(before)
    if target not in ("figure3", "ablation", "selection"):  # which have other seeds or tasks
        assert after != before
    assert f"`ars reproduce {target}`" in write_index(tmp_path).read_text()


def test_narrowing_runs_less_and_draws_the_whole_target(tmp_path: Path) -> None:
    request = Request(["table1"], tmp_path, ["Swimmer-v1"])
    assert {one.task for one in request.specs("table1")} == {"Swimmer-v1"}
    [table, *_] = draw(request, "table1")
    assert [table.name, table.read_text().count("-v1 |")] == ["table1.md", 6]
    [own, *_] = draw(Request(["table1"], tmp_path, ["Hopper-v5"], (1, 2)), "table1")
    assert own.name == "table1-v5-seeds1-2.md"
    assert "Hopper-v5" in own.read_text()
    with pytest.raises(SettingError, match="table2 has no Ant-v1"):
        Request(["table2"], tmp_path, ["Ant-v1"]).check()


def test_figure_1_shows_the_papers_seeds_before_others(tmp_path: Path) -> None:
    others = load_artefact("table6").seeds[1:4]
    for seed in (*others, 237, 1):  # 1 is of no target
        curve([0, 1], task="Humanoid-v1", variant="V2", seed=seed).save(tmp_path / "runs" / f"{seed}.json")
    [svg] = [path for path in draw(Request(["figure1"], tmp_path), "figure1") if path.suffix == ".svg"]
    named = re.findall(r"seed (\d+)", svg.read_text())
    assert list(map(int, named)) == [237, *others[:2]]


def test_one_damaged_file_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve([3200]).save(tmp_path / "runs" / "1.json")
    (tmp_path / "runs" / "2.json").write_text("{")
    assert ars("reproduce", "table1", "--draw", "--out", str(tmp_path)) == 0
    assert "160 (1 seed) / 1973" in (tmp_path / "tables" / "table1.md").read_text()
    assert "Left out: " in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"method,trial,timesteps,relative_cost\n", b"\x00 garbage", None])
def test_what_is_missing_or_damaged_of_figure_5_is_said(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Path(__file__).parents[2] / "results" / "lqr" / "lqr.csv"
    (tmp_path / "lqr").mkdir()
    half = b"".join(kept.read_bytes().splitlines(keepends=True)[:-3])
    (tmp_path / "lqr" / "lqr.csv").write_bytes(half if content is None else content)
    assert ars("reproduce", "figure5", "--draw", "--out", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert "lqr.csv is damaged (" in error
    assert error.count("\n") == 1
    (tmp_path / "lqr" / "lqr.csv").unlink()
    assert ars("reproduce", "figure5", "--draw", "--out", str(tmp_path)) == 0
    assert "figure5 has no results yet: run ars reproduce figure5." in capsys.readouterr().out


def test_long_lists_of_seeds_have_files_of_their_own(tmp_path: Path) -> None:
    lists = [tuple(range(1000, end)) for end in (1030, 1040)]
    [one, other] = [Request(["table1"], tmp_path, None, seeds).suffix("v1") for seeds in lists]
    assert one != other
    assert len(one) < 100


def test_a_number_of_seeds_is_for_targets_that_have_many(tmp_path: Path) -> None:
    request = Request(["table1", "figure3", "table6"], tmp_path, ["Humanoid-v1"], first=3)
    request.check()
    assert {one.config.seed for one in request.specs("table1")} == {237, 759, 959}
    assert len({one.config.seed for one in request.specs("figure3")}) == 3
    assert request.specs("table6")[0].config.seed == 237
    assert len(request.specs("table6")) == 3
    assert len(Request(["table6"], tmp_path).specs("table6")) == len(load_artefact("table6").seeds)


def test_the_runs_of_all_targets_are_each_asked_for_once(tmp_path: Path) -> None:
    plans = Request(names("all"), tmp_path, ["Hopper-v1"]).to_do()
    assert len({one.identity for one in plans}) == len(plans)


def test_figure_5_is_drawn_from_its_numbers(tmp_path: Path) -> None:
    kept = Path(__file__).parents[2] / "results" / "lqr"
    (tmp_path / "lqr").mkdir()
    (tmp_path / "lqr" / "lqr.csv").write_bytes((kept / "lqr.csv").read_bytes())
    assert draw(Request(["figure5"], tmp_path), "figure5")
    assert (tmp_path / "lqr" / "table.md").read_text() == (kept / "table.md").read_text()


def test_a_target_runs_what_is_missing_and_then_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setitem(CAPS, "Swimmer", 20)
    folders = "--out", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")
    command = ["reproduce", "table2", "--tasks", "Swimmer-v1", "--seed-list", "1,2", *folders]
    assert ars(*command, "--dry-run") == 0
    assert "2 runs, 0 there: about" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()
    assert ars(*command) == 0
    assert "Swimmer-v1" in (tmp_path / "results" / "tables" / "table2-seeds1-2.md").read_text()
    capsys.readouterr()
    assert ars(*command) == 0
    assert "2 runs, 2 there: nothing to run" in capsys.readouterr().out


def test_sweep_chooses_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = "--episodes", "20", "--eval-episodes", "1", "--threshold", "-1000", "--final-seeds", "1"
    command = ["sweep", "Swimmer-v5", "--seeds", "2", "--grid", "alpha=0.01,0.02", *few, "--out", str(tmp_path / "s")]
    assert ars(*command) == 0
    out = capsys.readouterr().out
    assert "Rollouts: 20 of training, 1 of evaluation, besides 84 for tuning." in out
    assert len(list((tmp_path / "s" / "curves").iterdir())) == 5
    assert len((tmp_path / "s" / "final.csv").read_text().splitlines()) == 2
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "curves").iterdir()}
    assert ars(*command) == 0  # nothing is run again
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "curves").iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["sweep", "Swimmer-v5", "--seeds", "2", "--seed-list", "1"],
        ["sweep", "Swimmer-v5", "--seed-list", "1,1"],
        ["sweep", "Swimmer-v5", "--seed-list", "a"],
        ["sweep", "Swimmer-v5", "--grid", "beta=1"],
        ["sweep", "Swimmer-v5", "--jobs", "0"],
        ["sweep", "Swimmer-v5", "--seeds", "0"],
        ["sweep", "Swimmer-v5", "--final-seeds", "-1"],
        ["sweep", "Swimmer-v5", "--grid", "N=0"],
        ["reproduce", "table1", "--dry-run", "--draw"],
        ["reproduce", "table2", "--tasks", "Ant-v1"],
        ["reproduce", "table2", "--jobs", "-1"],
        ["reproduce", "table2", "--minutes", "nan"],
        ["reproduce", "table2", "--minutes", "-1", "--dry-run"],
        ["reproduce", "table1", "--seeds", "2"],
        ["reproduce", "figure3", "--seeds", "0"],
        ["reproduce", "figure3", "--seeds", "101", "--dry-run"],
        ["reproduce", "figure3", "--seeds", "2", "--seed-list", "1"],
        ["reproduce", "table1", "--tasks", "Swimmer-v9", "--draw"],
        ["reproduce", "table2", "--tasks", "Humanoid-v1", "--draw"],
        ["reproduce", "table9"],
        ["reproduce", "table4", "--tasks", "Swimmer-v1", "Ant-v1", "--draw"],
        ["reproduce", "table4", "--draw", "--tasks"],
        ["reproduce", "table4", "--address", "nowhere:1", "--dry-run"],
        ["reproduce", "table4", "--draw", "--out", "resluts"],
        ["reproduce", "table4", "--tasks", "Swimmer-v1", "--minutes", "0.001", "--out", "/dev/null/nothing"],
        ["sweep", "Swimmer-v5", "--episodes", "20", "--eval-episodes", "1", "--out", "/dev/null/nothing"],
        ["reproduce", "table1", "--tasks", "CartPole-v1"],
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ars(*arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_when_the_minutes_are_over_it_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = "--out", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")
    assert ars("reproduce", "table5", "--tasks", "Ant-v1", "--minutes", "0.02", *folders, "--quiet") == 0
    assert "0.02 minutes are over: 3 of 3 runs are left; the same command continues." in capsys.readouterr().out
    assert ars("reproduce", "figure5", "--minutes", "1", *folders) == 0
    assert "run ars reproduce figure5" in capsys.readouterr().out


def test_one_thread_a_run_is_the_least() -> None:
    assert [on_cores(seconds, 2) for seconds in ([], [10.0], [10.0, 4.0, 8.0])] == [0.0, 10.0, 11.0]


@pytest.mark.parametrize("name", ["small_envs:RaisesAtReset", "small_envs:NanFirstObservation"])
def test_a_bad_environment_has_some_cost(name: str) -> None:
    """Its runs will fail, and say so; a sweep must get that far."""
    config = make_config(name, variant="V1", N=1, seed=1, H=10, shift=0.0, eval_episodes=1)
    spec = RunSpec(config, episodes=40)
    [found] = costs([spec]).values()
    assert 0 < found < math.inf


def test_costs_in_words() -> None:
    few, many = (run_spec("Swimmer-v1", 1, variant="V1", eval_episodes=n) for n in (10, 100))
    found = costs([few, many])  # 500 episodes and 25 evaluations
    assert found[many] / found[few] == pytest.approx((500 + 2500) / (500 + 250))


def test_a_failed_run_is_reported_and_not_fatal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", "Swimmer-v5", "--seed-list", "1,2", "--episodes", "20", "--eval-episodes", "1", "--quiet"]
    command += ["--final-seeds", "1"]  # they are run all the same
    blocked = tmp_path / "s" / "runs" / "Swimmer-v5-V1-alpha0.01-nu0.03-N1-b1-seed1-eval1"
    blocked.mkdir(parents=True)
    (blocked / "config.json").write_text("{")
    assert ars(*command, "--out", str(tmp_path / "s")) == 1
    out = capsys.readouterr().out
    assert "seed1-eval1: FAILED: " in out
    assert "1 of 3 runs failed" in out
    assert len(list((tmp_path / "s" / "curves").iterdir())) == 2
