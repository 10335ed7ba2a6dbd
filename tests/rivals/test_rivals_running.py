"""Which runs are asked for, and that they are run, resumed and priced; a made-up Python stands for that of torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rival_curves import curve_of

from ars.curves import load
from ars.errors import DivergedError, SettingError
from ars.experiments.seeds import PAPER_SEEDS
from ars.experiments.study import ROBOTS as STUDIED
from ars.experiments.study import seen_seeds
from ars.rivals import child, roster, running, zoo
from ars.rivals.curve import Point, Recorder
from ars.rivals.roster import Spec
from command_here import ars_here as ars

PPO = Spec("ppo", "Hopper-v1", 7, 40_000)
PYTHON = """#!{python}
import sys, pathlib
if sys.argv[1] == "-c":
    sys.exit(0)
from ars.rivals.curve import Ending, Point, Recorder
from ars.rivals.roster import Spec
here, spec = pathlib.Path(__file__).parent, Spec.from_json(sys.argv[3])
with (here / "calls").open("a") as calls:
    calls.write(spec.name + "\\n")
run = Recorder(pathlib.Path(sys.argv[4]), learner=spec.rival, label="", task=spec.task, seed=spec.seed,
               settings=spec.settings)
run.add(Point(20_000, 5, (1.0, 1.0), 2.0))
if (here / "broken").exists():
    sys.exit("the first line\\nout of luck")
run.add(Point(40_000, 9, (3.0, 3.0), 4.0))
run.end(Ending({{}}, {{}}))
"""


def fake_python(folder: Path) -> Path:
    path = folder / "python"
    path.write_text(PYTHON.format(python=sys.executable))
    path.chmod(0o755)
    return path


def test_the_plan() -> None:
    """Ours first; three seeds of four tasks; SAC and DDPG, which are dear, less."""
    specs = roster.specs()
    counts = {name: sum(spec.rival == name for spec in specs) for name in roster.RIVALS}
    assert counts == {name: {"sac": 2, "ddpg": 1}.get(name, 12) for name in roster.RIVALS}
    kinds = [spec.kind for spec in specs]
    assert kinds.index("sb3") == len(kinds) - kinds.count("sb3")
    assert len({spec.name for spec in specs}) == len(specs)
    assert [spec.task for spec in specs[:4]] == list(roster.TASKS)
    assert len({spec.seed for spec in specs[:4]}) == 1
    used = {spec.seed for spec in specs}
    assert not used & {*PAPER_SEEDS, *(seed for robot in STUDIED for seed in seen_seeds(robot))}
    assert {spec.task for spec in roster.specs(["sac"], ["Walker2d"], 2)} == {"Walker2d-v1"}
    external = {name: one for name, one in roster.RIVALS.items() if one.kind == "sb3"}
    assert {one.algorithm or name for name, one in external.items()} == set(zoo.DEFAULTS)


def test_settings_of_the_zoo() -> None:
    """A robot's own, on the learner's default; as JSON in every spec."""
    assert zoo.settings("trpo", "HalfCheetah")["target_kl"] == 0.04
    assert zoo.settings("trpo", "HalfCheetah")["cg_max_steps"] == 25
    assert zoo.settings("a2c", "Hopper") == {"normalize": True}
    for name in zoo.DEFAULTS:
        assert roster.RIVALS[name].kind == "sb3"
    for spec in roster.specs():
        assert json.loads(json.dumps(spec.settings)) == spec.settings
        assert spec.settings["eval_episodes"] == 10


def test_a_spec_is_its_text() -> None:
    assert Spec.from_json(PPO.to_json()) == PPO
    for text in ("[]", "{", '{"rival": "ppo"}', PPO.to_json().replace("Hopper-v1", "Hopper-v5"),
                 PPO.to_json().replace("ppo", "mine"), PPO.to_json().replace("40000", "0")):  # fmt: skip
        with pytest.raises(SettingError):
            Spec.from_json(text)


def test_a_curve_is_written_as_it_goes(tmp_path: Path) -> None:
    curve = curve_of(tmp_path, PPO, [1.0, 3.0], status="unfinished")
    assert (curve.status, curve.timesteps, curve.episodes, curve.seconds) == ("unfinished", 40_500, 200, 100.0)
    assert curve.columns["at_seconds"].tolist() == [50.0, 100.0]
    assert not curve.measures
    whole = curve_of(tmp_path, PPO, [1.0, 3.0])
    assert whole.status == "finished"
    assert whole.measures["bytes"] == 440
    assert whole.measures["cpu_seconds"] > 0
    assert whole.settings["used"] == 1
    assert whole.settings["n_steps"] == 512  # the zoo's


def test_which_runs_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of other settings is not this run; a damaged one is made again; a diverged run is a result."""
    [job] = running.make_jobs([PPO], tmp_path)
    job.file.parent.mkdir()
    assert running.missing([job]) == [job]
    curve_of(job.file.parent, PPO, [1.0], status="unfinished")
    assert not job.done()
    curve_of(job.file.parent, PPO, [1.0], status="diverged: it is not finite")
    assert job.done()
    monkeypatch.setitem(zoo.TUNED["ppo"], "Hopper", {"n_steps": 1})
    assert running.missing([job]) == [job]
    monkeypatch.undo()
    job.file.write_text("{")
    assert running.missing([job]) == [job]


def test_costs_are_estimated_until_they_are_measured(tmp_path: Path) -> None:
    here, there = PPO, Spec("ppo", "Swimmer-v1", 7, 10**6)
    assert running.seconds_of([there], [])[there] == 60 * roster.RIVALS["ppo"].minutes
    curve = curve_of(tmp_path, here, [1.0])
    rate = curve.measures["cpu_seconds"] / 40_500
    assert running.seconds_of([here, there], [curve]) == {here: 40_000 * rate, there: 1e6 * rate}


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert ars("rivals", "--dry-run", "--out", str(out), "--rivals", "ars,sac", "--jobs", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "ars      12 runs, 0 there: 0.40 core hours (estimated)",
        "sac      2 runs, 0 there: 10.00 core hours (estimated)",
        "together 14 runs: 10.40 core hours, about 5 h 12 min on 2 cores",
    ]
    assert not out.exists()


def test_a_failed_run_begins_again_and_a_finished_one_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, out = fake_python(tmp_path), tmp_path / "out"
    words = ["rivals", "--rivals", "ppo", "--tasks", "Hopper", "--seeds", "2", "--timesteps", "4e4", "--jobs", "1",
             "--out", str(out), "--python", str(python)]  # fmt: skip
    (tmp_path / "broken").touch()
    assert ars(*words) == 1
    said = capsys.readouterr().err
    assert ": out of luck\n" in said
    assert "2 of 2 runs failed" in said
    (tmp_path / "broken").unlink()
    assert ars(*words) == 0
    assert "finished, reward 3.0, best 3.0, 4 s of training" in capsys.readouterr().err
    assert ars(*words) == 0
    assert "2 runs, 2 there: nothing to run" in capsys.readouterr().out
    first, second = roster.seeds(2)
    names = [f"ppo-Hopper-v1-seed{seed}-40000" for seed in (first, second)]
    assert (tmp_path / "calls").read_text().splitlines() == names * 2
    assert {path.stem for path in (out / "runs").iterdir()} == set(names)
    assert "| PPO | " not in (out / "rivals-scores.md").read_text()  # its runs are shorter than 1e6


def test_without_torch_there_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    for words, match in {
        ("--rivals", "ppo"): "pip install 'ars-rl[rivals]'",
        ("--python", str(tmp_path / "none")): "cannot be run",
        ("--rivals", "sql"): "rivals = 'sql' is unknown",
        ("--tasks", "Hopper-v5"): "choose a -v1 robot",
        ("--tasks", "CartPole-v1"): "CartPole",
        ("--draw",): "has no runs",
        ("--draw", "--dry-run"): "contradict",
        ("--minutes", "0"): "minutes = 0",
        ("--timesteps", "0"): "timesteps = 0",
    }.items():
        assert ars("rivals", "--out", str(tmp_path / "out"), *words) == 2
        said = capsys.readouterr().err
        assert match in said
        assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_core_never_imports_torch() -> None:
    code = "import sys, ars.cli, ars.rivals.draw, ars.rivals.running; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


def test_a_run_ends_with_its_parent(tmp_path: Path) -> None:
    """Its parent is given as another process than the one that starts it: as if the parent had ended before."""
    spec = Spec("ars", "Swimmer-v1", 1, 10**9).to_json()
    gone = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    words = [sys.executable, "-m", "ars.rivals.child", spec, str(tmp_path / "run.json"), gone]
    assert subprocess.run(words, timeout=60).returncode == child.ORPHANED


def test_rewards_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.json", learner="ars", label="ARS", task="Hopper-v1", seed=1, settings={})
    recorder.add(Point(20_000, 5, (1.0, float("nan"), 3.0, float("-inf")), 2.0))
    found = load(tmp_path / "run.json")
    assert (found.rewards.tolist(), found.columns["std"].tolist()) == ([2.0], [1.0])
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(DivergedError, match="No reward of the evaluation after 40000 timesteps is finite"):
        recorder.add(Point(40_000, 9, (float("nan"),) * 2, 4.0))
    assert (tmp_path / "run.json").read_bytes() == before


def test_divergence_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(spec: Spec, evaluated: object) -> None:
        raise DivergedError("It is not finite.")

    monkeypatch.setattr("ars.rivals.ours.learn", diverge)
    child.run(Spec("ars", "Swimmer-v1", 1, 1000), tmp_path / "run.json")
    assert load(tmp_path / "run.json").status == "diverged: It is not finite."
