"""The command line as a user meets it: real processes, their output, exit codes and folders."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ars.policy import LinearPolicy
from ars.tasks import make
from command_here import ars_here

ARS = str(Path(sys.executable).with_name("ars"))
QUICK = ("--N", "2", "--H", "20", "--protocol", "paper", "--eval-every", "2", "--eval-episodes", "2", "--workers", "1")


def ars(*arguments: str, cwd: Path, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([ARS, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert check is None or result.returncode == check, result.stderr
    return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    ars("train", "Swimmer-v5", "--iterations", "4", "--out", "a run", *QUICK, cwd=folder)
    return folder / "a run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A small finished run, of this test alone."""
    return Path(shutil.copytree(finished, tmp_path / "a run"))


def test_train_writes_a_run_and_says_what_to_type_next(tmp_path: Path) -> None:
    result = ars("train", "Swimmer-v5", "--iterations", "4", *QUICK, cwd=tmp_path)
    folder = tmp_path / "runs" / "Swimmer-v5-V1-seed0"
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {"config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz"}
    assert "iteration 2 | reward" in result.stdout
    assert "ars evaluate runs/Swimmer-v5-V1-seed0/best.npz" in result.stdout
    assert "ars resume runs/Swimmer-v5-V1-seed0" in result.stdout
    again = ars("train", "Swimmer-v5", "--iterations", "1", *QUICK, cwd=tmp_path)  # a second run gets its own folder
    assert "runs/Swimmer-v5-V1-seed0-2" in again.stdout


def test_every_override_reaches_the_configuration(tmp_path: Path) -> None:
    out = tmp_path / "r"
    own = {"alpha": 0.5, "nu": 0.25, "N": 3, "b": 2}
    shared = {"H": 7, "shift": -1.5, "seed": 9, "eval-every": 2, "eval-episodes": 5, "noise": "table",
              "table-size": 999, "stats-every": 4, "protocol": "frugal", "average": 6}  # fmt: skip
    flags = {"search": "ars", "variant": "V2-t", **own, **shared}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    run = ("train", "Hopper-v1", "--iterations", "1", "--out", str(out), "--quiet", "--workers", "1")
    assert ars_here(*run, *words) == 0
    config = json.loads((out / "config.json").read_text())["config"]
    assert config.pop("search") == {"name": "ars", "scaled": True, **own}
    assert (config.pop("task"), config.pop("normalise"), config.pop("start")) == ("Hopper-v1", True, "")
    assert config == {name.replace("-", "_"): value for name, value in shared.items()}


def test_normalisation_and_scaling_by_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a variant's name: the preset of the variant that they make."""
    words = ("train", "Hopper-v1", "--iterations", "1", "--quiet", "--H", "20", "--workers", "1")
    for name, flags, expected in (
        ("a", ["--no-normalise"], (False, {"name": "ars", "alpha": 0.01, "nu": 0.025, "N": 8, "b": 4, "scaled": True})),
        ("b", ["--no-scaled", "--no-normalise", "--N", "2"],
         (False, {"name": "ars", "alpha": 0.00025, "nu": 0.02, "N": 2, "b": 2, "scaled": False})),
    ):  # fmt: skip
        assert ars_here(*words, "--out", str(tmp_path / name), *flags) == 0
        config = json.loads((tmp_path / name / "config.json").read_text())["config"]
        assert (config["normalise"], config["search"]) == expected
    assert ars_here(*words, "--out", str(tmp_path / "c"), "--variant", "V2", "--no-normalise") == 2
    assert "contradict" in capsys.readouterr().err


def test_json_is_one_record_a_line_and_quiet_is_silent(tmp_path: Path) -> None:
    result = ars("train", "Swimmer-v5", "--iterations", "3", "--json", "--out", "r", *QUICK, cwd=tmp_path)
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert printed == [json.loads(line) for line in (tmp_path / "r" / "records.jsonl").read_text().splitlines()]
    result = ars("train", "Swimmer-v5", "--iterations", "3", "--quiet", "--out", "q", *QUICK, cwd=tmp_path)
    assert result.stdout == result.stderr == ""


def test_evaluate_prints_words_or_one_json_object(run: Path) -> None:
    words = ars("evaluate", str(run / "best.npz"), "--episodes", "3", cwd=run.parent).stdout
    assert re.search(r"reward +mean .* std .* min .* max", words)
    assert "length   mean 1000.0" in words
    text = ars("evaluate", str(run / "best.npz"), "--episodes", "3", "--seed", "5", "--json", cwd=run.parent).stdout
    value = json.loads(text)
    assert set(value) == {"mean", "std", "min", "max", "episodes", "timesteps"}
    assert (value["episodes"], value["timesteps"]) == (3, 3000)
    more = ars("evaluate", str(run / "best.npz"), "--episodes", "3", "--seed", "5", "--json", "--workers", "1",
               cwd=run.parent).stdout  # fmt: skip
    assert more == text  # the number of workers changes nothing


def test_tasks_lists_the_twelve_and_lqr(tmp_path: Path) -> None:
    rows = json.loads(ars("tasks", "--json", cwd=tmp_path).stdout)
    assert len(rows) == 13
    humanoid = next(row for row in rows if row["task"] == "Humanoid-v1")
    assert (humanoid["n"], humanoid["p"], humanoid["H"], humanoid["survival_bonus"]) == (376, 17, 1000, 5.0)
    assert humanoid["preset"] == {"alpha": 0.02, "nu": 0.0075, "N": 230, "b": 230}
    assert (humanoid["threshold"], humanoid["variant"]) == (6000.0, "V2")
    said = ars("tasks", cwd=tmp_path).stdout
    for text in ("HalfCheetah-v5", "-v1  the paper's", "-v5  Gymnasium's", "Humanoid-v1               6898.8 ± 1139.0"):
        assert text in said
    assert humanoid["policies"] == {"Humanoid-v1": pytest.approx(6898.78, abs=0.01)}
    for row in rows:  # none is made for the list
        with closing(make(row["task"])) as task:
            shown = {"n": task.n, "p": task.p, "H": task.H, "survival_bonus": task.survival_bonus}
        assert {name: row[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "Hoper-v1"], "Hopper-v1"),
        (["train", "Hopper-v5", "--b", "99"], "b = 99 is larger than N = 8"),
        (["train", "Hopper-v5", "--variant", "V2", "--b", "2"], "b = 2 < N = 4"),
        (["train", "Hopper-v5", "--nu", "0"], "nu = 0 must be larger than 0"),
        (["train", "Hopper-v5", "--nu", "nan"], "nu = nan"),
        (["train", "Hopper-v5", "--N", "3.5"], "'3.5' is not a whole number"),
        (["train", "Hopper-v5", "--seed", "-1"], "seed = -1"),
        (["train", "Hopper-v5", "--workers", "0"], "workers = 0"),
        (["train", "Hopper-v5", "--iterations", "0"], "iterations = 0"),
        (["train", "Hopper-v5", "--variant", "V3"], "V3"),
        (["train", "Hopper-v5", "--frequency", "3"], "--frequency"),
        (["train"], "TASK"),
        (["fly"], "fly"),
        (["train", "no_such_module:make"], "no_such_module"),
        (["evaluate", "nothing.npz"], "nothing.npz"),
        (["evaluate", "notes.txt"], "notes.txt is damaged"),
        (["evaluate", "a run/best.npz", "--task", "Ant-v5"], "2 × 8 and Ant-v5 needs 8 × 105"),
        (["evaluate", "a run/best.npz", "--episodes", "0"], "episodes = 0"),
        (["resume", "."], "is not a run folder"),
        (["resume", "a run", "--task", "Ant-v5"], "is a run of Swimmer-v5"),
        (["train", "Swimmer-v5", "--out", "a run"], "ars resume"),
        (["train", "Swimmer-v5", "--out", "notes.txt"], "notes.txt"),
    ],
)
def test_a_mistake_is_one_sentence_and_touches_nothing(
    run: Path, words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    here = run.parent
    (here / "notes.txt").write_text("not a policy")
    monkeypatch.chdir(here)

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}

    before = files()
    assert ars_here(*words) == 2
    said, error = capfd.readouterr()
    assert said == ""
    assert error.startswith("ars: ")
    assert error.count("\n") == 1
    assert expected in error
    assert "Traceback" not in error
    assert files() == before


@pytest.mark.parametrize("words", [["fly"], ["train", "Hopper-v5", "--b", "99"], ["resume", "."]])
def test_a_mistake_is_one_sentence_of_a_process(words: list[str], tmp_path: Path) -> None:
    """Nothing is added by the end of the interpreter."""
    result = ars(*words, cwd=tmp_path, check=2)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert result.stderr.startswith("ars: ")
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    assert "Traceback" in ars("train", "Hoper-v1", "--debug", cwd=tmp_path, check=None).stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_say_how_to_resume(tmp_path: Path, number: signal.Signals, code: int) -> None:
    words = [ARS, "train", "Swimmer-v5", "--iterations", "100000", "--out", "r", "--json", *QUICK]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.send_signal(number)
        printed, said = process.communicate(timeout=60)
        assert process.returncode == code
    assert "ars resume r" in said
    saved = len((tmp_path / "r" / "records.jsonl").read_text().splitlines())
    assert saved >= 1
    result = ars("resume", "r", "--iterations", str(saved + 2), "--workers", "1", "--json", cwd=tmp_path)
    assert [json.loads(line)["iteration"] for line in result.stdout.splitlines()] == [saved + 1, saved + 2]
    assert printed.count("\n") + 1 >= saved


def test_resume_without_anything_left_says_so(run: Path) -> None:
    assert "Nothing to do: 4 iterations are done" in ars("resume", str(run), cwd=run.parent).stdout


def test_an_environment_of_ones_own(tmp_path: Path) -> None:
    """module:factory is found where the user is, and must be confirmed when only a file names it."""
    (tmp_path / "mine.py").write_text("import gymnasium\ndef make():\n    return gymnasium.make('CartPole-v1')\n")
    ars("train", "mine:make", "--iterations", "2", "--out", "r", "--quiet", *QUICK, cwd=tmp_path)
    for words in (["resume", "r"], ["evaluate", "r/best.npz"]):
        assert "--task mine:make" in ars(*words, cwd=tmp_path, check=2).stderr
    ars("evaluate", "r/best.npz", "--task", "mine:make", "--episodes", "2", "--workers", "2", cwd=tmp_path)
    ars("resume", "r", "--task", "mine:make", "--iterations", "3", "--quiet", "--workers", "1", cwd=tmp_path)


def test_lqr_compares_and_continues(tmp_path: Path) -> None:
    words = ("lqr", "--trials", "2", "--budget", "3000", "--out", "cmp", "--workers", "1", "--quiet")
    table = ars(*words, cwd=tmp_path).stdout
    assert "| Nominal, 6-step rollouts |" in table
    names = {path.name for path in (tmp_path / "cmp").iterdir()}
    assert {"lqr.csv", "table.md", "stabilising.png", "relative_cost.svg"} <= names
    header = (tmp_path / "cmp" / "lqr.csv").read_text().splitlines()[0]
    assert header == "method,trial,timesteps,relative_cost"
    assert ars(*words, cwd=tmp_path).stdout == table
    other = ars(*words, "--seed", "3", cwd=tmp_path, check=2)  # another comparison's folder is not touched
    assert other.stderr.startswith("ars: ")
    (tmp_path / "bad.json").write_text('{"A": 1}')
    assert "bad.json" in ars("lqr", "--instance", "bad.json", cwd=tmp_path, check=2).stderr


def test_lqr_is_a_task(tmp_path: Path) -> None:
    ars("train", "lqr", "--iterations", "60", "--out", "r", "--quiet", "--workers", "1", cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "r" / "records.jsonl").read_text().splitlines()]
    assert lines[0]["relative_cost"] is None  # not stabilising yet: infinite, which JSON does not have
    assert lines[-1]["relative_cost"] < 0.3


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    command = (
        f"{ARS} train Swimmer-v5 --json --out r --iterations 2000 --N 1 --H 5 --eval-every 0 --workers 1 | head -1"
    )
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in result.stderr


def test_on_a_terminal_progress_is_live(tmp_path: Path) -> None:
    main, side = pty.openpty()
    words = [ARS, "train", "Swimmer-v5", "--iterations", "6", *QUICK]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(words, cwd=tmp_path, stdout=side, stderr=side, env=environment) as process:
        os.close(side)
        shown = b""
        try:
            while part := os.read(main, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == 0
    os.close(main)
    text = shown.decode()
    for word in ("\x1b[", "reward", "episodes", "timesteps", "steps/s", "Stopped: 6 iterations are done"):
        assert word in text


def test_help_is_instant_and_shows_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Loading NumPy, MuJoCo or Numba for help would take a second: the check is on what is loaded, not on a clock."""
    code = "import sys; from ars.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('numpy', 'numba', 'mujoco', 'gymnasium', 'matplotlib') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    for command in ("train", "resume", "evaluate", "tasks"):
        assert ars_here(command, "--help") == 0
        assert f"ars {command}" in capsys.readouterr().out


def test_listing_the_tasks_loads_no_compiler(tmp_path: Path) -> None:
    code = "import sys; from ars.cli import main\ntry: main(['tasks'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('numba', 'llvmlite', 'ars.tasks.mujoco_loop') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_python_m_ars_is_the_same_command(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ars", "tasks"]
    result = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert result.stdout == ars("tasks", cwd=tmp_path).stdout


def test_minutes_stop_a_run(tmp_path: Path) -> None:
    started = time.monotonic()
    result = ars("train", "Swimmer-v5", "--minutes", "0.02", "--out", "r", *QUICK, cwd=tmp_path)
    assert "0.02 minutes are over" in result.stdout
    assert time.monotonic() - started < 60
    assert LinearPolicy.load(tmp_path / "r" / "policy.npz").task["name"] == "Swimmer-v5"
