"""Ask and tell: the bits of `ars train`, from rewards in any order, in parts, twice, and with kills between."""

import json
import random
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars.ask_tell import AskTell, Candidate, read_results
from ars.cli import main
from ars.errors import ArsError, FileError, SettingError
from ars.tasks import make
from test_runs import lines, same

SWIMMER: dict[str, Any] = {"N": 2, "H": 60, "eval_every": 2, "eval_episodes": 3, "seed": 3, "protocol": "paper"}


def measure(task: Any, candidate: Candidate, *, states: bool = False) -> dict[str, Any]:
    """What a lab sends back for a candidate; here the lab is a task of ours."""
    rollout = task.rollout(
        candidate.policy, candidate.unit, H=candidate.H, shift=candidate.shift, gather=candidate.states
    )
    result = {"key": candidate.key, "reward": rollout.reward if rollout.finite else None, "steps": rollout.steps}
    if candidate.states and rollout.finite:
        m = rollout.moments
        result["moments"] = {"count": int(m.count), "mean": m.mean.tolist(), "m2": m.m2.tolist()}
    return result


def shuffled(run: AskTell, task: Any, iterations: int, rng: random.Random) -> None:
    """Tell in any order, some results twice, some late again."""
    before: list[dict[str, Any]] = []
    while run.state.j < iterations:
        results = [measure(task, candidate) for candidate in run.ask()]
        rng.shuffle(results)
        while results:
            part, results = results[: (cut := rng.randint(1, 3))], results[cut:]
            run.tell([*part, *rng.sample(before, min(2, len(before))), part[0]])
            before += part


@pytest.mark.parametrize(
    "settings", [{"variant": "V1"}, {"variant": "V2"}, {"variant": "V2-t", "N": 3, "b": 2}], ids=str
)
def test_swimmer_equals_training_to_the_bit(tmp_path: Path, settings: dict[str, Any]) -> None:
    given = {**SWIMMER, **settings}
    list(ars.train("Swimmer-v5", iterations=5, out=tmp_path / "trained", **given))
    with closing(make("Swimmer-v5")) as task:
        with AskTell.create(tmp_path / "told", "Swimmer-v5", **given) as run:
            shuffled(run, task, 3, random.Random(1))
        with AskTell.open(tmp_path / "told") as run:
            shuffled(run, task, 5, random.Random(2))
    (tmp_path / "told" / "told.jsonl").unlink()
    same(tmp_path / "told", tmp_path / "trained")
    assert [record.iteration for record in ars.resume(tmp_path / "told", iterations=6)] == [6]


LAB = """
import random, sys
from contextlib import closing
from pathlib import Path
from ars.ask_tell import AskTell
from ars.tasks import make
sys.path.insert(0, {tests!r})
from test_ask_tell import SWIMMER, measure
folder = Path(sys.argv[1])
rng = random.Random(sys.argv[2])
new = not (folder / "config.json").exists()
with closing(make("Swimmer-v5")) as task:
    with (AskTell.create(folder, "Swimmer-v5", **SWIMMER) if new else AskTell.open(folder)) as run:
        print("open", flush=True)
        while run.state.j < 6:
            candidates = run.ask()
            rng.shuffle(candidates)
            for candidate in candidates:
                run.tell([measure(task, candidate)])
                print(candidate.key, flush=True)
"""


def test_killed_at_random_moments_nothing_told_is_lost(tmp_path: Path) -> None:
    """What `tell` returned from is never asked for again."""
    script, rng = LAB.format(tests=str(Path(__file__).parent)), random.Random(5)
    folder, told = tmp_path / "told", set[str]()
    for attempt in range(6):
        words = [sys.executable, "-c", script, str(folder), str(attempt)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            keys = []
            if attempt < 5:  # the last one comes to its end
                keys = [process.stdout.readline() for _ in range(rng.randint(1, 3))]
                time.sleep(rng.uniform(0.0, 0.01))
                process.kill()
            keys += process.stdout.read().splitlines(keepends=True)
        told_now = {key for key in keys if key.endswith("\n")}
        assert not told & told_now
        told |= told_now
    assert process.returncode == 0
    list(ars.train("Swimmer-v5", iterations=6, out=tmp_path / "trained", **SWIMMER))
    (folder / "told.jsonl").unlink()
    same(folder, tmp_path / "trained")


def test_states_give_the_bits_of_their_moments(tmp_path: Path) -> None:
    """Drift's own observations, sent as they are."""
    import small_envs

    settings = {"variant": "V2", "N": 2, "eval_every": 0, "seed": 4}
    list(ars.train("small_envs:Drift", iterations=3, out=tmp_path / "trained", **settings))
    with AskTell.create(tmp_path / "told", "small_envs:Drift", **settings) as run:
        while run.state.j < 3:
            for candidate in run.ask():
                env, states, reward, done = small_envs.Drift(), [], 0.0, False
                x, _ = env.reset(seed=candidate.seed)
                while not done:
                    states.append(x.tolist())
                    action = candidate.policy.actions.apply(candidate.policy.act(x))
                    x, r, terminated, truncated, _ = env.step(action)
                    reward, done = reward + (r - candidate.shift), terminated or truncated
                run.tell([{"key": candidate.key, "reward": reward, "steps": len(states), "states": states}])
    assert lines(tmp_path / "told") == lines(tmp_path / "trained")
    for file in ("policy.npz", "checkpoint.npz"):
        a, b = (np.load(tmp_path / name / file) for name in ("told", "trained"))
        for name in ("M", "mu", "sigma") if file == "policy.npz" else ("param.M", "count", "mean", "m2"):
            assert a[name].tobytes() == b[name].tobytes(), name


@pytest.fixture
def robot(tmp_path: Path) -> Any:
    """A robot that is not one of our tasks."""
    with AskTell.create(tmp_path / "robot", "arm", n=3, p=2, N=2, seed=1) as run:
        yield run


def results(run: AskTell) -> list[dict[str, Any]]:
    return [
        {"key": c.key, "reward": float(i), "steps": 2, "states": [[i, 1.0, 2.0], [0.5, i, 7.0]]}
        for i, c in enumerate(run.ask())
    ]


def test_a_robot_of_ones_own_needs_no_task(robot: AskTell, tmp_path: Path) -> None:
    assert [c.key for c in robot.ask()] == ["i1-k0-plus", "i1-k0-minus", "i1-k1-plus", "i1-k1-minus"]
    assert all(c.policy.M.shape == (2, 3) and c.states and c.H == 1000 for c in robot.ask())
    assert robot.config.eval_every == 0  # its episodes are dear
    [record] = robot.tell(results(robot))
    assert (record.iteration, record.episodes, record.timesteps, record.length_mean) == (1, 4, 8, 2.0)
    assert record.sigma_R > 0
    assert robot.policy.M.any()
    assert robot.ask()[0].key == "i2-k0-plus"
    assert robot.policy.task["name"] == "arm"
    robot.close()
    with pytest.raises(ArsError, match="continue this run with `ars ask"):
        ars.resume(robot.run.path)
    with pytest.raises(ArsError, match="'arm' is measured elsewhere"):
        ars.evaluate(robot.policy)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": "i1-k9-plus"}, "not one of the candidates"),
        ({"key": "i2-k0-plus"}, "not one of the candidates"),
        ({"key": "../x"}, "is not the key"),
        ({"key": 5}, "is not the key"),
        ({"reward": "much"}, "reward"),
        ({"reward": float("nan")}, "reward"),
        ({"steps": 0}, "steps"),
        ({"steps": 1001}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"states": [[1, 2, 3]]}, r"states must be finite numbers of shape \(2, 3\)"),
        ({"states": [[1, 2, 3], [1, 2, float("inf")]]}, "states"),
        ({"states": None}, "states"),
        ({"states": [["1", "2", "3"], [1, 2, 3]]}, "states"),
        ({"key": "i0-k0-plus"}, "is not the key"),
        ({"extra": 1}, "extra"),
        ({"moments": {"count": 2, "mean": [0] * 3, "m2": [1] * 3}}, "either states or moments of the states"),
    ],
    ids=str,
)
def test_a_wrong_result_is_one_sentence_and_none_is_taken(robot: AskTell, change: dict[str, Any], words: str) -> None:
    good = results(robot)
    with pytest.raises(SettingError, match=words):
        robot.tell([*good[:3], {**good[3], **change}])
    assert len(robot.ask()) == 4
    assert len(robot.tell(good)) == 1


@pytest.mark.parametrize(
    "moments",
    [{}, {"count": 3, "mean": [0] * 3, "m2": [1] * 3}, {"count": 2, "mean": [0] * 3, "m2": [-1] * 3}],
)
def test_wrong_moments_are_a_sentence(robot: AskTell, moments: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="i1-k0-plus"):
        robot.tell([{"key": "i1-k0-plus", "reward": 1.0, "steps": 2, "moments": moments}])


def test_a_rollout_that_was_not_finite_drops_its_direction(robot: AskTell) -> None:
    """D3, as in training."""
    found = results(robot)
    del found[0]["states"]
    [record] = robot.tell([{**found[0], "reward": None}, *found[1:]])
    assert record.dropped == 1
    assert record.state.moments.count == 4


@pytest.mark.parametrize("damage", [b"rubbish\n", b'{"key": 1}\n', b'{"key": "i1-k0-plus", "steps": 2}\n', b"[]\n"])
def test_a_damaged_file_is_a_sentence(robot: AskTell, damage: bytes) -> None:
    robot.tell(results(robot)[:2])
    robot.close()
    path = robot.run.path / "told.jsonl"
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(FileError, match=r"told\.jsonl is damaged in line 3"):
        AskTell.open(robot.run.path)
    path.write_bytes(path.read_bytes()[: -len(damage)] + b'{"key": "i1')  # what a kill leaves
    with AskTell.open(robot.run.path) as again:
        assert len(again.ask()) == 2


def test_a_link_in_place_of_the_file_is_refused(robot: AskTell, tmp_path: Path) -> None:
    robot.close()
    (tmp_path / "other").write_text("")
    (robot.run.path / "told.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(ArsError, match="plain file"):
        AskTell.open(robot.run.path)


def test_by_files_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a lab without Python: NumPy's files and JSON."""
    folder = tmp_path / "arm"
    words = ["ask", str(folder), "--task", "arm", "--n", "3", "--p", "2", "--N", "2", "--variant", "V1"]
    for _ in range(3):
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--json"])
        words = ["ask", str(folder)]
        asked = json.loads(capsys.readouterr().out)
        assert json.loads((folder / "asked" / "asked.json").read_text()) == asked
        told = []
        for candidate in asked["candidates"]:
            M = np.load(folder / "asked" / candidate["file"])["M"]
            told.append({"key": candidate["key"], "reward": -float(np.square(M - 1).sum()), "steps": 10})
        (tmp_path / "results.json").write_text(json.dumps(told))
        with pytest.raises(SystemExit, match="0"):
            main(["tell", str(folder), str(tmp_path / "results.json")])
        assert "complete" in capsys.readouterr().out
    with AskTell.open(folder) as run:
        assert run.state.j == 3
    shutil.rmtree(folder / "asked")
    (tmp_path / "results.json").write_text('{"results": [{"key": "i4-k0-plus", "reward": 1, "steps": 1}]}')
    with pytest.raises(SystemExit, match="0"):
        main(["tell", str(folder), str(tmp_path / "results.json")])
    assert "3 of 4" in capsys.readouterr().out
    (tmp_path / "results.json").write_text("5")
    with pytest.raises(SystemExit, match="2"):
        main(["tell", str(folder), str(tmp_path / "results.json")])
    assert capsys.readouterr().err.count("\n") == 1


# -- faults ----------------------------------------------------------------------------------------------------------


def test_a_link_out_of_the_folder_is_not_followed(robot: AskTell, tmp_path: Path) -> None:
    """Candidates are written into `asked`, and old ones deleted: nowhere else."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "i1-k0-plus.npz").write_text("mine")
    robot.close()
    (robot.run.path / "asked").symlink_to(tmp_path / "victim")
    with pytest.raises(FileError, match="plain file"):
        AskTell.open(robot.run.path)
    assert (tmp_path / "victim" / "i1-k0-plus.npz").read_text() == "mine"


def test_only_candidates_are_deleted(robot: AskTell, tmp_path: Path) -> None:
    for name in ("ice.npz", "i7-k3-minus.npz", "i1-k0-plus.npz"):
        (tmp_path / name).write_text("old")
    files = robot.write_asked(tmp_path)
    assert {path.name for path in tmp_path.glob("*.npz")} == {"ice.npz", *(file.name for file in files)}
    assert np.load(files[0])["M"].shape == (2, 3)  # also what lay there under the same name is new


def test_results_that_leave_no_direction_are_not_taken(robot: AskTell) -> None:
    """Else the run could never be opened again."""
    nothing = [{"key": c.key, "reward": None, "steps": 2} for c in robot.ask()]
    assert robot.tell(nothing[:3]) == []
    with pytest.raises(ArsError, match="none of the 2 directions"):
        robot.tell(nothing)
    huge = [{"key": "i1-k1-minus", "reward": 1.0, "steps": 2, "states": [[1e200, 0, 0], [-1e200, 0, 0]]}]
    with pytest.raises(ArsError, match="too large for their variance"):
        robot.tell(huge)
    robot.close()
    with AskTell.open(robot.run.path) as again:
        assert [c.key for c in again.ask()] == ["i1-k1-minus"]


def test_statistics_that_overflow_are_not_taken(robot: AskTell) -> None:
    far = [{**result, "states": [[(-1) ** i * 1e200, 0, 0]] * 2} for i, result in enumerate(results(robot))]
    with pytest.raises(ArsError, match="not finite"):
        robot.tell(far)
    assert len(robot.tell(results(robot))) == 1


def test_a_write_that_fails_half_way_leaves_nothing(robot: AskTell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk takes a part of a line: what is told afterwards must not be glued to it."""
    good = results(robot)
    robot.tell(good[:1])

    def full(file: Any, content: bytes) -> None:
        file.write(content[:20])
        file.truncate(file.tell() - 20)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ars.ask_tell.append_whole", full)
        with pytest.raises(FileError, match="No space left"):
            robot.tell(good[1:2])
    robot.tell(good[1:3])
    robot.close()
    with AskTell.open(robot.run.path) as again:
        assert [c.key for c in again.ask()] == ["i1-k1-minus"]


def test_files_of_an_earlier_run_are_not_taken_over(robot: AskTell, tmp_path: Path) -> None:
    robot.tell(results(robot)[:1])
    robot.close()
    for name in ("config.json", "records.jsonl", "checkpoint.npz", "policy.npz"):
        (robot.run.path / name).unlink()
    with pytest.raises(FileError, match=r"already holds told\.jsonl"):
        AskTell.create(robot.run.path, "arm", n=3, p=2, N=2, seed=2)


@pytest.mark.parametrize("text", ["", "5", '{"a": 1}', '[], "x": 1', '{"results": 5}', "[1", '{"results": [NaN]}'])
def test_a_file_without_results_is_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(FileError, match=r"r\.json has no results"):
        read_results(tmp_path / "r.json")


def test_settings_that_cannot_work_are_a_sentence(tmp_path: Path) -> None:
    for settings, words in (
        ({"task": "Swimmer-v5", "H": 5000}, "H = 5000 is longer"),
        ({"task": "a\nb", "n": 2, "p": 1}, "task = "),
        ({"task": "arm", "n": 2}, "p = None"),
        ({"task": "arm", "n": 0, "p": 1}, "n = 0"),
        ({"task": "arm"}, "no task 'arm'"),
    ):
        with pytest.raises(ArsError, match=words):
            AskTell.create(tmp_path / "never", **settings)
    assert not (tmp_path / "never").exists()
    with AskTell.create(tmp_path / "run", "arm", n=2, p=1, eval_every=None) as run:
        assert run.config.eval_every == 0
