"""Run folders: what is in them, and that neither kills, nor damage, nor a second process can hurt a run."""

import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import ars
import small_envs
from ars import runs
from ars.errors import ArsError, FileError, SettingError, TaskError
from ars.policy import LinearPolicy
from ars.records import CLOCKS
from ars.runs import Run
from ars.versions import machine

DRIFT = "small_envs:Drift"
SETTINGS: dict[str, Any] = {
    "variant": "V2-t", "alpha": 0.1, "nu": 0.3, "N": 4, "b": 2, "seed": 5, "protocol": "paper",
    "eval_every": 3, "eval_episodes": 3,
}  # fmt: skip
FILES = {"config.json", "records.jsonl", "checkpoint.npz", "policy.npz", "best.npz"}


def start(out: Path, **settings: Any) -> Any:
    return ars.train(DRIFT, **{**SETTINGS, "iterations": 8, "out": out, **settings})


def go_on(out: Path, **rules: Any) -> Any:
    return ars.resume(out, task=DRIFT, **rules)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 8 iterations, for tests that only read or copy it."""
    out = tmp_path_factory.mktemp("finished") / "run"
    assert len(list(start(out))) == 8
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def lines(out: Path) -> list[dict[str, Any]]:
    """The records without their clock."""
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    return [{name: value for name, value in record.items() if name not in CLOCKS} for record in records]


def checkpoint(out: Path) -> dict[str, Any]:
    """The checkpoint without its clock, which is in the records and so in their hash, too."""
    with np.load(out / "checkpoint.npz", allow_pickle=False) as arrays:
        return {
            name: (arrays[name].dtype, arrays[name].tobytes())
            for name in arrays.files
            if name not in ("seconds", "last_line", "records_size", "records_sha256")
        }


def same(out: Path, other: Path) -> None:
    """Two folders with the same run, to the bit."""
    assert lines(out) == lines(other)
    assert checkpoint(out) == checkpoint(other)
    for file in ("policy.npz", "best.npz"):
        assert (out / file).read_bytes() == (other / file).read_bytes()


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file but the lock, with its time of change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


# -- contents --------------------------------------------------------------------------------------------------------


def test_contents_of_a_folder(finished: Path) -> None:
    """These five files, and nothing else but the lock."""
    assert {path.name for path in finished.iterdir()} - {".lock"} == FILES


def test_fields_of_the_records(finished: Path) -> None:
    """A line an iteration; at an evaluation also its summary."""
    always = {
        "iteration", "episodes", "timesteps", "seconds", "sigma_R", "reward_mean", "reward_max", "update_norm",
        "dropped",
    }  # fmt: skip
    at_evaluations = {"eval_mean", "eval_std", "eval_min", "eval_max", "eval_episodes"}
    records = [json.loads(line) for line in (finished / "records.jsonl").read_text().splitlines()]
    assert [record["iteration"] for record in records] == list(range(1, 9))
    for record in records:
        assert always <= set(record)
        assert (at_evaluations <= set(record)) is (record["iteration"] % 3 == 0)
        assert at_evaluations.isdisjoint(record) is (record["iteration"] % 3 != 0)
    evaluation = records[2]
    assert evaluation["eval_min"] <= evaluation["eval_mean"] <= evaluation["eval_max"]
    assert evaluation["eval_episodes"] == 3


def test_config_says_everything(finished: Path) -> None:
    """Every setting, the task's definition, package versions."""
    saved = json.loads((finished / "config.json").read_text())
    names = ("task", "search", "normalise", "H", "shift", "seed", "eval_every", "eval_episodes", "start")
    assert set(saved["config"]) == {*names, "noise", "table_size", "stats_every"}
    assert saved["config"]["task"] == DRIFT
    assert saved["config"]["search"] == {"name": "ars", "alpha": 0.1, "nu": 0.3, "N": 4, "b": 2, "scaled": True}
    assert (saved["config"]["normalise"], saved["config"]["seed"], saved["config"]["eval_every"]) == (True, 5, 3)
    assert (saved["task"]["n"], saved["task"]["p"]) == (3, 2)
    [session] = saved["sessions"]
    assert {"ars-rl", "numpy", "mujoco", "gymnasium", "python"} <= set(session["versions"])
    assert session["versions"]["numpy"] == np.__version__
    assert (session["iteration"], session["machine"]) == (0, machine())


def test_the_machines_that_trained_are_kept(run: Path) -> None:
    """Not the one that reads; each from the iteration on that it went on from, and not twice in a row."""
    saved = json.loads((run / "config.json").read_text())
    saved["sessions"][0]["machine"] = "another machine"
    (run / "config.json").write_text(json.dumps(saved))
    for iterations in (9, 10):
        list(go_on(run, iterations=iterations))
    assert [(s["iteration"], s["machine"]) for s in json.loads((run / "config.json").read_text())["sessions"]] == [
        (0, "another machine"), (8, machine()),
    ]  # fmt: skip


def test_a_run_that_is_at_its_end_names_no_other_machine(run: Path) -> None:
    """Resuming it trains nothing."""
    saved = json.loads((run / "config.json").read_text())
    saved["sessions"][0]["machine"] = "another machine"
    (run / "config.json").write_text(json.dumps(saved))
    assert list(go_on(run)) == []
    assert [s["machine"] for s in json.loads((run / "config.json").read_text())["sessions"]] == ["another machine"]


def test_a_search_that_is_not_there_is_a_sentence_of_its_own(run: Path) -> None:
    saved = json.loads((run / "config.json").read_text())
    saved["config"]["search"]["name"] = "sign"
    (run / "config.json").write_text(json.dumps(saved))
    refuse(run, "is of the search sign: this ars has ars")
    saved["config"]["search"]["name"] = "ars"
    del saved["config"]["search"]["b"]
    (run / "config.json").write_text(json.dumps(saved))
    refuse(run, "is of an earlier ars, without b: train anew, or continue it with the version of ars that made it")


@pytest.mark.parametrize("file", ["checkpoint.npz", "config.json", "records.jsonl"])
def test_a_file_of_another_run_is_refused(run: Path, tmp_path: Path, file: str) -> None:
    """The same settings but the seed: resuming such a mixture would give bits that belong to no run."""
    list(start(tmp_path / "other", seed=6))
    shutil.copy(tmp_path / "other" / file, run / file)
    refuse(run, "another run")


def test_nothing_is_pickled(finished: Path) -> None:
    for file in ("checkpoint.npz", "policy.npz", "best.npz"):
        with np.load(finished / file, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)


def test_records_yielded_and_written_agree(tmp_path: Path) -> None:
    """The generator's records are the file's lines; a line is there when its record is yielded."""
    for record in start(tmp_path / "run"):
        written = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
        assert written[-1] == json.loads(json.dumps(record.to_dict()))
        assert len(written) == record.iteration


def test_policy_is_the_latest_and_best_the_best(finished: Path, tmp_path: Path) -> None:
    records = list(start(tmp_path / "run"))
    policy = LinearPolicy.load(tmp_path / "run" / "policy.npz")
    for name in ("M", "mu", "sigma"):
        assert getattr(policy, name).tobytes() == getattr(records[-1].policy, name).tobytes()
    evaluated = [record for record in records if record.evaluation]
    assert len(evaluated) == 2
    best = max(evaluated, key=lambda record: record.eval_mean)
    assert LinearPolicy.load(tmp_path / "run" / "best.npz").M.tobytes() == best.policy.M.tobytes()
    same(tmp_path / "run", finished)


def test_the_best_stays_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """best.npz is kept over worse evaluations and over a resume."""
    monkeypatch.setattr(runs, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    seen = []
    for session in (lambda: start(tmp_path / "run", eval_every=1), lambda: go_on(tmp_path / "run", iterations=16)):
        for record in session():
            seen.append(record)
            best = max(seen, key=lambda r: (r.eval_mean, -r.iteration))
            saved = LinearPolicy.load(tmp_path / "run" / "best.npz")
            assert saved.task["iteration"] == best.iteration
            assert saved.M.tobytes() == best.policy.M.tobytes()
    assert best.iteration < 16  # a later one was worse, so this test can tell


# -- resume ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_stopped_and_resumed_equals_uninterrupted(finished: Path, tmp_path: Path, cut: int) -> None:
    """After any interruption: the same bits, from one number of iterations to the next."""
    out = tmp_path / "run"
    first = list(start(out, iterations=cut))
    rest = list(go_on(out, iterations=8))
    assert [record.iteration for record in (*first, *rest)] == list(range(1, 9))
    same(out, finished)


def test_leaving_the_generator_saves(finished: Path, tmp_path: Path) -> None:
    """Ctrl-C or break after the third record: nothing of the three is lost."""
    records = start(tmp_path / "run")
    third = list(itertools.islice(records, 3))[-1]
    records.close()
    with np.load(tmp_path / "run" / "checkpoint.npz") as arrays:
        assert arrays["j"] == 3
        assert arrays["param.M"].tobytes() == third.state.M.tobytes()
    assert len(list(go_on(tmp_path / "run"))) == 5
    same(tmp_path / "run", finished)


def test_resume_starts_from_the_saved_weights(run: Path) -> None:
    """stable-baselines3-contrib re-zeroes the weights on loading, so continued training starts from scratch."""
    with np.load(run / "checkpoint.npz") as arrays:
        M, count = arrays["param.M"], int(arrays["count"])
    assert np.abs(M).min() > 0.0
    record = next(iter(go_on(run, iterations=9)))
    assert record.iteration == 9
    assert record.update_norm == pytest.approx(np.linalg.norm(record.state.M - M), rel=1e-9)
    assert record.update_norm < np.linalg.norm(M)
    assert record.state.moments.count > count


def test_seconds_go_on(run: Path) -> None:
    before = json.loads((run / "records.jsonl").read_text().splitlines()[-1])["seconds"]
    after = list(go_on(run, iterations=10))
    assert before < after[0].seconds < after[1].seconds < before + 60


def test_a_finished_run_has_nothing_to_resume(run: Path, finished: Path) -> None:
    assert list(go_on(run)) == []
    same(run, finished)


@pytest.mark.parametrize(
    ("rules", "more"), [({"iterations": 10}, 2), ({"episodes": 88}, 3), ({"minutes": 1e-9}, 0), ({"until": -1e9}, 0)]
)
def test_new_stopping_rules_replace_the_old(run: Path, rules: dict[str, Any], more: int) -> None:
    """All count from the start of the run; config.json keeps them for the next time."""
    before = json.loads((run / "config.json").read_text())
    assert len(list(go_on(run, **rules))) == more
    after = json.loads((run / "config.json").read_text())
    assert after["stop"] == rules
    assert {**after, "stop": None} == {**before, "stop": None}


def test_resume_without_rules_keeps_the_old(finished: Path, tmp_path: Path) -> None:
    records = start(tmp_path / "run")
    next(records)
    records.close()
    assert len(list(go_on(tmp_path / "run"))) == 7
    same(tmp_path / "run", finished)


@pytest.mark.parametrize(
    ("task", "words"), [(None, r"confirm.*small_envs:Drift"), ("CartPole-v1", "not of CartPole-v1")]
)
def test_a_file_does_not_decide_what_code_is_imported(run: Path, task: str | None, words: str) -> None:
    """A run of module:factory needs that name again."""
    before = snapshot(run)
    with pytest.raises(SettingError, match=words):
        ars.resume(run, task=task, iterations=20)
    assert snapshot(run).keys() == before.keys()
    assert json.loads((run / "config.json").read_text())["stop"] == {"iterations": 8}


def test_a_registered_task_needs_no_name(tmp_path: Path) -> None:
    settings = {**SETTINGS, "H": 10, "eval_every": 0}
    list(ars.train("CartPole-v1", **settings, iterations=1, out=tmp_path / "run"))
    assert [record.iteration for record in ars.resume(tmp_path / "run", iterations=2)] == [2]


def test_a_task_that_has_changed_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another environment under the same name would not be the same run."""
    monkeypatch.setattr(small_envs.Drift, "action_space", spaces.Box(-1.0, 1.0, (2,)))
    with pytest.raises(TaskError, match="not what it was"):
        go_on(run, iterations=10)


def test_other_versions_are_noted(run: Path) -> None:
    """The bits may differ then; the run says so instead of keeping still."""
    saved = json.loads((run / "config.json").read_text())
    saved["sessions"][0]["versions"]["numpy"] = "1.0"
    (run / "config.json").write_text(json.dumps(saved))
    with Run.open(run) as opened:
        assert any("numpy was 1.0" in note for note in opened.notes)


# -- kills -----------------------------------------------------------------------------------------------------------

DRIVER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
import ars
import small_envs
from ars import runs
runs.SECONDS_BETWEEN_CHECKPOINTS = {interval}
out = Path({out!r})
if (out / "config.json").exists():
    records = ars.resume(out, task={task!r}, workers=1)
else:
    records = ars.train({task!r}, **{settings!r}, out=out, workers=1)
for record in records:
    print(record.iteration, record.seconds, flush=True)
"""


def launch(out: Path, interval: float, settings: dict[str, Any]) -> subprocess.Popen[str]:
    code = DRIVER.format(
        tests=str(Path(__file__).parent), out=str(out), interval=interval, task=DRIFT, settings=settings
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("interval", "iterations"), [(0.0, 120), (0.03, 300)])
def test_killed_at_random_moments(tmp_path: Path, interval: float, iterations: int) -> None:
    """SIGKILL, again and again, in the middle of writing (interval 0: it hardly does anything else) or of simulating:
    little is lost each time, and the end is that of an uninterrupted run, to the bit."""
    settings = {**SETTINGS, "iterations": iterations}
    list(ars.train(DRIFT, **settings, out=tmp_path / "uninterrupted"))
    moments = random.Random(f"kills {interval}")
    out, kills, begun = tmp_path / "killed", 0, 0.0
    for _ in range(6):
        with launch(out, interval, settings) as process:
            assert process.stdout is not None
            printed = list(itertools.islice(process.stdout, moments.randint(1, 20)))
            until = begun + moments.uniform(0.0, 3 * interval)
            for line in process.stdout:
                printed.append(line)
                if float(line.split()[1]) >= until:
                    break
            time.sleep(moments.uniform(0.0, 0.01))  # not always just after a record
            process.kill()
            printed = [
                line for line in (*printed, *process.stdout) if line.endswith("\n")
            ]  # the last may be half a line
        kills += process.returncode == -signal.SIGKILL
        with Run.open(out) as run:  # as any other program may do in between
            iteration, seconds = printed[-1].split()
            assert run.state.j <= int(iteration) + 1
            assert float(seconds) - run.seconds <= interval + 0.5
            assert [record["iteration"] for record in lines(out)] == list(range(1, run.state.j + 1))
            begun, reached = run.seconds, run.state.j
            if reached == iterations:
                break
    assert kills >= 2
    assert reached > 0
    with launch(out, interval, settings) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    same(out, tmp_path / "uninterrupted")


def test_a_kill_loses_half_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations of a tenth of a second by a clock of our own: the checkpoint is never further behind than that."""
    now = [1000.0]
    monkeypatch.setattr(runs.time, "monotonic", lambda: now[0])
    behind = []
    for record in start(tmp_path / "run", iterations=30, eval_every=0):
        now[0] += 0.1
        with np.load(tmp_path / "run" / "checkpoint.npz") as saved:
            behind.append(record.iteration - int(saved["j"]))
    assert 2 <= max(behind) <= 5


@pytest.mark.parametrize("moment", ["config", "checkpoint", "policy", "records", "replace"])
def test_killed_at_every_step_of_the_beginning(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A new folder is made in several steps; a kill between any two leaves what can be resumed or begun anew."""

    class Killed(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    place = {
        "config": (Run, "_write_config"), "checkpoint": (Run, "save"), "policy": (Run, "_write_policies"),
        "records": (Run, "_records"), "replace": (Path, "replace"),
    }[moment]  # fmt: skip
    monkeypatch.setattr(*place, die)
    with pytest.raises(Killed):
        start(tmp_path / "run")
    monkeypatch.undo()
    records = go_on(tmp_path / "run") if (tmp_path / "run" / "config.json").exists() else start(tmp_path / "run")
    assert len(list(records)) == 8
    same(tmp_path / "run", finished)


def test_what_a_killed_write_left_is_cleared_away(run: Path) -> None:
    """A kill in the middle of a write leaves its temporary file; a run that is killed often must not fill the disk."""
    (run / ".checkpoint.npz.99999.tmp").write_bytes(b"half a check")
    list(go_on(run, iterations=9))
    assert {path.name for path in run.iterdir()} - {".lock"} == FILES


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],  # the last newline is missing
        lambda content: content[:-30],  # half a last line
        lambda content: content[: content[:-1].rfind(b"\n") + 1],  # no last line at all
        lambda content: content[: content[:-1].rfind(b"\n") + 1] + b"\0" * 40 + b"\n",  # what a power cut may leave
        lambda content: content + b'{"iteration": 9, "episodes": 72}\n',  # a line past the checkpoint
        lambda content: content + b'{"iteration": 9, "epis',  # half a line past the checkpoint
        lambda content: content + b"\0" * 1000,
        lambda content: content + content,
    ],
)
def test_the_end_of_the_records_is_mended(finished: Path, run: Path, damage: Any) -> None:
    """Records are cut back to the checkpoint, which has the last line too."""
    path = run / "records.jsonl"
    good = path.read_bytes()
    path.write_bytes(damage(good))
    Run.open(run).close()
    assert path.read_bytes() == good
    same(run, finished)


def test_lost_records_are_a_sentence(run: Path) -> None:
    """Rows that are gone cannot be made up."""
    (run / "records.jsonl").write_bytes(b"")
    before = snapshot(run)
    with pytest.raises(FileError, match=r"records\.jsonl has lost"):
        Run.open(run)
    assert snapshot(run) == before


@pytest.mark.parametrize("file", ["policy.npz", "best.npz"])
@pytest.mark.parametrize("content", [None, b"", b"rubbish"])
def test_policies_are_made_anew(finished: Path, run: Path, file: str, content: bytes | None) -> None:
    """Missing or damaged: the checkpoint has them."""
    (run / file).unlink() if content is None else (run / file).write_bytes(content)
    Run.open(run).close()
    same(run, finished)


def refuse(run: Path, words: str = "") -> None:
    """Neither resume nor anything else touches the folder."""
    before = snapshot(run)
    with pytest.raises(FileError, match=words):
        go_on(run, iterations=20)
    assert snapshot(run) == before


@pytest.mark.parametrize("content", [b"", b"rubbish", b"PK\x03\x04"])
def test_a_bad_checkpoint_is_a_sentence(run: Path, content: bytes) -> None:
    (run / "checkpoint.npz").write_bytes(content)
    refuse(run, r"checkpoint\.npz is damaged")


def test_a_truncated_checkpoint_is_a_sentence(run: Path) -> None:
    content = (run / "checkpoint.npz").read_bytes()
    for size in range(0, len(content), 97):
        (run / "checkpoint.npz").write_bytes(content[:size])
        refuse(run, r"checkpoint\.npz")


def test_a_lost_checkpoint_is_a_sentence(run: Path) -> None:
    """Starting again from zero would overwrite the records of the run."""
    (run / "checkpoint.npz").unlink()
    refuse(run, r"lost its checkpoint")


NUMBERS = ("j", "count", "episodes", "timesteps", "best_iteration")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, value) for name in NUMBERS for value in (-1, "x", [1, 2], np.nan)],
        *[(name, value) for name in ("param.M", "best_M") for value in (np.ones((2, 2)), np.full((2, 3), np.nan), 1.0)],
        *[(name, value) for name in ("mean", "best_mu") for value in (np.ones(2), np.full(3, np.inf), "x")],
        *[(name, v) for name in ("m2", "best_sigma") for v in (np.ones(2), -np.ones(3), np.full(3, np.nan), "x")],
        *[("seconds", value) for value in (-1.0, np.nan, np.inf, "x")],
        *[("best_mean", value) for value in (np.nan, np.inf, "x")],
        *[("format", value) for value in (0, 3, "x")],
        *[("run", value) for value in ("", "0" * 64, 1)],
        *[("records_size", value) for value in (-1, 0, 10**9, "x")],
        *[("records_sha256", value) for value in ("", "0" * 64, 1)],
    ],
    ids=lambda value: str(value).replace("\n", ""),
)  # fmt: skip
def test_a_checkpoint_with_impossible_contents_is_a_sentence(run: Path, name: str, value: Any) -> None:
    """Checked on the way in, before anything is written."""
    with np.load(run / "checkpoint.npz") as arrays:
        saved = dict(arrays)
    assert name in saved
    np.savez(run / "checkpoint.npz", **{**saved, name: np.array(value)})
    refuse(run, r"checkpoint\.npz|records\.jsonl")


@pytest.mark.parametrize("name", ["j", "param.M", "best_sigma", "last_line", "run", "records_sha256"])
def test_a_checkpoint_without_one_of_its_arrays_is_a_sentence(run: Path, name: str) -> None:
    with np.load(run / "checkpoint.npz") as arrays:
        saved = {key: arrays[key] for key in arrays.files if key != name}
    np.savez(run / "checkpoint.npz", **saved)
    refuse(run, name)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1}, {"format": 3}, {"format": None},
        {"config": {}}, {"config": None}, {"config": [1]}, {"task": None},
        {"task": {}},
        {"task": {"n": "3", "p": 2}}, {"task": {"n": -3, "p": 2}}, {"stop": {"iterations": 0}}, {"stop": {"when": 1}},
        {"stop": 5}, {"sessions": 7}, {"sessions": None}, {"sessions": []}, {"sessions": [{"iteration": 0}]},
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_config_is_a_sentence(run: Path, change: dict[str, Any]) -> None:
    saved = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**saved, **change}))
    refuse(run, r"config\.json is damaged")


def test_a_config_with_any_flipped_byte_never_escapes(run: Path) -> None:
    """One of our errors, or (in a version's name, say) an open run."""
    content = (run / "config.json").read_bytes()
    for position in range(0, len(content), 11):
        (run / "config.json").write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        try:
            Run.open(run).close()
        except ArsError as error:
            message = str(error)
        else:
            message = str(run)
        assert str(run) in message


def test_a_folder_that_is_not_a_run_is_a_sentence(tmp_path: Path) -> None:
    """And stays as it was: not even a lock is put there."""
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "notes.txt"):
        with pytest.raises(FileError, match=r"is not a run folder"):
            ars.resume(path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


# -- a second process ------------------------------------------------------------------------------------------------


def test_an_existing_run_is_not_overwritten(run: Path) -> None:
    before = snapshot(run)
    with pytest.raises(FileError, match=r"already holds.*ars resume"):
        start(run)
    assert snapshot(run) == before


@pytest.mark.parametrize("file", sorted(FILES))
def test_any_file_of_a_run_protects_a_folder(tmp_path: Path, file: str) -> None:
    """Also what is left of a run after someone deleted a part, or a policy.npz of one's own."""
    (tmp_path / file).write_text("mine")
    with pytest.raises(FileError, match=file):
        start(tmp_path)
    assert set(snapshot(tmp_path)) == {file}
    assert (tmp_path / file).read_text() == "mine"


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert len(list(start(tmp_path))) == 8
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_second_user_of_a_folder_is_refused(run: Path) -> None:
    """From the same process or another, while the first goes on undisturbed."""
    first = go_on(run, iterations=12)
    next(first)
    with pytest.raises(FileError, match="in use"):
        go_on(run, iterations=20)
    with pytest.raises(FileError, match="in use"):
        start(run)
    second = launch(run, 0.0, SETTINGS)
    _, errors = second.communicate(timeout=60)
    assert second.returncode != 0
    assert "in use by another process" in errors
    assert [record.iteration for record in first] == [10, 11, 12]
    assert [record["iteration"] for record in lines(run)] == list(range(1, 13))
    assert [record.iteration for record in go_on(run, iterations=13)] == [13]  # and then the folder is free


def test_a_stale_lock_is_harmless(finished: Path, tmp_path: Path, run: Path) -> None:
    """A file left by a dead process locks nothing: the lock is the kernel's."""
    (tmp_path / "new").mkdir()
    for folder in (tmp_path / "new", run):
        (folder / ".lock").write_text("12345")
    assert len(list(start(tmp_path / "new"))) == 8
    same(tmp_path / "new", finished)
    assert len(list(go_on(run, iterations=9))) == 1


def test_a_failed_start_lets_others_in(run: Path) -> None:
    """An error on the way must not keep the lock."""
    for _ in range(2):
        with pytest.raises(SettingError, match="workers"):
            ars.resume(run, task=DRIFT, workers=0, iterations=20)
    assert len(list(go_on(run, iterations=9))) == 1
