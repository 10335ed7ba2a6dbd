"""Environments that misbehave in mid-run: the run names the environment and the step, goes on where it can, and stops
with a good checkpoint where it cannot."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torture_runs import SETTINGS, call, flags, refused, same

import ars
from ars.errors import ArsError, DivergedError, TaskError, WorkerError
from ars.runs import Run

FAILING = {
    "OtherShape": r"step 4 .*shape \(4,\)",
    "Transposed": r"step 4 .*shape \(1, 3\)",
    "Scalar": r"step 4 .*shape \(\)",
    "Ragged": r"step 4 ",
    "Text": r"step 4 .*dtype <U3",
    "Complex": r"step 4 .*complex128",
    "Objects": r"step 4 .*dtype object",
    "Nothing": r"step 4 .*dtype object",
    "TextReward": r"step 4 .*reward is str",
    "NoReward": r"step 4 ",
    "TwoRewards": r"step 4 .*reward is ndarray of shape \(2,\)",
    "OneRewardInAnArray": r"step 4 .*reward is ndarray of shape \(1,\)",
    "ComplexReward": r"step 4 ",
    "FourValues": r"step 4 .*not enough values to unpack",
    "RaisesInStep": r"step 4 .*RuntimeError: the motor is on fire",
    "RaisesOddly": r"step 4 .*KeyError",
    "Exits": r"step 4 .*SystemExit",
    "RaisesTheUnknown": r"step 4 .*Unknown: Unknown",
    "RaisesInReset": r"reset .*RuntimeError: no power",
    "ExitsInReset": r"reset .*SystemExit: no power",
}
NOT_FINITE = ("NanState", "InfiniteState", "NanReward", "InfiniteReward")
DYING = ("Segfaults", "Leaves")
OTHERS = (
    "HugeReward", "NeverEnds", "SegfaultsOnce", "Interrupts", "InterruptsWithWords", "ClosesOutput", "ClosesEverything",
    "Moves", "Sleeps", "SleepsInC", "ComputesInC",
)  # fmt: skip


@pytest.fixture
def misbehave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that changes everything."""
    monkeypatch.setenv("MISBEHAVE", str(tmp_path / "now"))
    return tmp_path / "now"


def begin(name: str, out: Path, *, workers: int = 1, **more: Any) -> Any:
    return ars.train(f"torture_envs:{name}", **{**SETTINGS, "iterations": 6, "workers": workers, "out": out, **more})


def uninterrupted(folder: Path) -> Path:
    """The same run of an environment that behaves; only its name differs."""
    list(begin("Misbehaving", folder / "whole"))
    return folder / "whole"


def check_and_finish(name: str, out: Path, misbehave: Path, done: int) -> None:
    """The checkpoint has what was done; once the environment behaves again, the end is as if nothing had happened."""
    with Run.open(out, mend=False) as run:
        assert run.state.j == done
    misbehave.unlink(missing_ok=True)
    assert len(list(ars.resume(out, task=f"torture_envs:{name}"))) == 6 - done
    whole = uninterrupted(out.parent)
    for file in ("policy.npz", "best.npz"):
        for array in ("M", "mu", "sigma"):
            ours, theirs = (getattr(ars.LinearPolicy.load(path / file), array) for path in (out, whole))
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_names_the_environment_and_the_step(name: str, tmp_path: Path, misbehave: Path) -> None:
    records = begin(name, tmp_path / "run")
    assert len(list(itertools.islice(records, 3))) == 3
    misbehave.touch()
    with pytest.raises(TaskError, match=rf"torture_envs:{name} failed in {FAILING[name]}") as error:
        list(records)
    assert "\n" not in str(error.value)
    check_and_finish(name, tmp_path / "run", misbehave, 3)


@pytest.mark.parametrize("name", ["OtherShape", "Exits", "RaisesTheUnknown", "Interrupts"])
def test_a_failure_in_a_worker_process_says_the_same(name: str, tmp_path: Path, misbehave: Path) -> None:
    """And a KeyboardInterrupt of the environment's own, which here cannot be taken for the user's."""
    records = begin(name, tmp_path / "run", workers=2)
    assert len(list(itertools.islice(records, 3))) == 3
    misbehave.touch()
    failure = FAILING.get(name, r"step 4 .*KeyboardInterrupt")
    with pytest.raises(TaskError, match=rf"torture_envs:{name} failed in {failure}"):
        list(records)
    check_and_finish(name, tmp_path / "run", misbehave, 3)


@pytest.mark.parametrize("name", NOT_FINITE)
def test_what_is_not_finite_is_left_out_and_then_a_sentence(name: str, tmp_path: Path, misbehave: Path) -> None:
    """Every episode that lasts for four steps is dropped; when nothing is left, the run stops and names the task."""
    records = begin(name, tmp_path / "run", H=12)
    assert len(list(itertools.islice(records, 3))) == 3
    misbehave.touch()
    dropped, said = 0, ""
    try:
        dropped = sum(record.dropped for record in records)
    except DivergedError as error:
        said = str(error)
    assert dropped or re.search(rf"In iteration \d .*torture_envs:{name}", said)
    Run.open(tmp_path / "run", mend=False).release()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rewards_beyond_all_measure_are_a_sentence(tmp_path: Path, misbehave: Path) -> None:
    misbehave.touch()
    with pytest.raises(ArsError, match="finite") as error:
        list(begin("HugeReward", tmp_path / "run"))
    assert "\n" not in str(error.value)
    Run.open(tmp_path / "run", mend=False).release()


def test_an_episode_that_never_ends_is_cut(tmp_path: Path) -> None:
    """At H, which is 1000 where nobody names one."""
    records = list(
        begin("NeverEnds", tmp_path / "run", iterations=1, N=1, b=1, eval_every=1, eval_episodes=1, protocol="paper")
    )
    assert records[0].timesteps == 2000
    assert records[0].evaluation.steps.tolist() == [1000]


def test_a_process_that_segfaults_once_is_replaced(tmp_path: Path, misbehave: Path) -> None:
    """To the same bits, and nobody has to resume."""
    records = begin("SegfaultsOnce", tmp_path / "run", workers=2)
    assert len(list(itertools.islice(records, 3))) == 3
    misbehave.touch()
    assert len(list(records)) == 3
    assert not misbehave.exists()
    check_and_finish("SegfaultsOnce", tmp_path / "run", misbehave, 6)


@pytest.mark.parametrize("name", DYING)
def test_processes_that_always_die_are_a_sentence(name: str, tmp_path: Path, misbehave: Path) -> None:
    records = begin(name, tmp_path / "run", workers=2)
    assert len(list(itertools.islice(records, 3))) == 3
    misbehave.touch()
    with pytest.raises(
        WorkerError, match=rf"torture_envs:{name} died 3 times in a row in iteration 4, direction \d"
    ) as error:
        list(records)
    assert "\n" not in str(error.value)
    check_and_finish(name, tmp_path / "run", misbehave, 3)


def test_a_segfault_of_the_only_process_leaves_the_checkpoint(
    tmp_path: Path, misbehave: Path, figure: Callable[..., None]
) -> None:
    """With one worker there is nobody to notice: the process is gone, and `ars resume` goes on."""
    out, name = tmp_path / "run", "torture_envs:SegfaultsOnce"
    words = (*flags(SETTINGS), "--quiet", "--workers", "1")
    call("train", name, "--out", str(out), "--iterations", "3", *words, cwd=tmp_path)
    misbehave.touch()
    call("resume", str(out), "--task", name, "--iterations", "6", "--workers", "1", cwd=tmp_path, code=-11)
    call("resume", str(out), "--task", name, "--iterations", "6", "--workers", "1", "--quiet", cwd=tmp_path)
    whole = tmp_path / "whole"
    call("train", name, "--out", str(whole), "--iterations", "6", *words, cwd=tmp_path)
    same(out, whole)
    figure("environments", kinds=sum(map(len, (FAILING, NOT_FINITE, DYING, OTHERS))))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Interrupts", "ars: torture_envs:Interrupts failed in step 4 of an episode: KeyboardInterrupt: "),
        ("InterruptsWithWords", "ars: torture_envs:InterruptsWithWords failed in step 4 of an episode: KeyboardInt"),
        ("Leaves", "ars: The environment ended this process by os._exit(0). Continue with "),
        ("ClosesOutput", "ars: Cannot write to standard output: Bad file descriptor. The run is saved: continue with "),
        ("ClosesEverything", ""),
    ],
)
def test_what_an_environment_does_to_the_only_process(name: str, words: str, tmp_path: Path, misbehave: Path) -> None:
    """It fails with exit code 2, with a sentence if there is a way to say it; and the run can be continued."""
    misbehave.touch()
    train = ("train", f"torture_envs:{name}", *flags(SETTINGS), "--iterations", "2", "--workers", "1", "--out", "run")
    _, said = call(*train, cwd=tmp_path, code=2)
    assert said.startswith(words)
    assert said.count("\n") == bool(words)
    misbehave.unlink()
    *_, last = ars.resume(tmp_path / "run", task=f"torture_envs:{name}")
    assert last.iteration == 2


@pytest.mark.parametrize("name", ["RaisesInStep", "InterruptsWithWords"])
def test_worker_processes_add_nothing_to_the_sentence(name: str, tmp_path: Path, misbehave: Path) -> None:
    """They are ended while they are busy with the same failure."""
    misbehave.touch()
    words = ("train", f"torture_envs:{name}", *flags(SETTINGS), "--iterations", "2", "--workers", "2", "--out", "run")
    _, said = call(*words, cwd=tmp_path, code=2)
    assert said.startswith(f"ars: torture_envs:{name} failed in step 4 of an episode: ")
    assert said.count("\n") == 1


def test_an_environment_that_changes_the_folder(tmp_path: Path) -> None:
    """All is written where the user was, and called by the names that the user gave."""
    words = ("train", "torture_envs:Moves", *flags(SETTINGS), "--iterations", "3", "--workers", "1", "--out", "a run")
    printed, _ = call(*words, cwd=tmp_path)
    assert "resume 'a run' --task" in printed
    assert (tmp_path / "a run" / "best.npz").exists()


def test_the_command_line_says_it_in_one_line(tmp_path: Path, misbehave: Path) -> None:
    """Whatever letters the environment's words are made of."""
    misbehave.touch()
    words = ("train", "torture_envs:RaisesInStep", *flags(SETTINGS), "--out", str(tmp_path / "run"), "--quiet")
    said = refused(*words, "--workers", "1", cwd=tmp_path)
    assert said.endswith(r"failed in step 4 of an episode: RuntimeError: the motor is on fire\x1b[31m" + "\n")


def test_an_environment_that_exits_when_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaving.py").write_text("import sys\ndef make():\n    sys.exit(0)\n")
    (tmp_path / "leaving_at_once.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("leaving:make", "leaving_at_once:make"):
        with pytest.raises(TaskError, match=rf"{name}.*SystemExit"):
            ars.train(name, iterations=1)
