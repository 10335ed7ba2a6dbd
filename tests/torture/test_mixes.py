"""Files of two runs in one folder, damage to older records, values of the wrong type, and files shared by hard links:
`ars resume` refuses them without a change on disk, or continues to the very bits; so do the commands that only read."""

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torture_damage import FOLDER
from torture_runs import DRIFT, SETTINGS, checkpoint, contents, size

import ars
from ars.ask_tell import AskTell
from ars.curves import from_run
from ars.errors import ArsError
from ars.folder import NAMES
from ars.run_files import read_run
from ars.runs import Run

PARTS = ("config.json", "records.jsonl", "checkpoint.npz")
OTHERS: dict[str, dict[str, Any]] = {  # each differs from the run in one way
    "seed": {"seed": 6}, "N": {"N": 5}, "task": {"task": "small_envs:Slow"}, "search": {"variant": "V2", "b": 4},
    "evaluations": {"eval_episodes": 4},
}  # fmt: skip
WRONG = [None, True, "8", [8], {"a": 8}, -1, 0.5, 10**30, "", "\x1b[31m"]


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for name, change in OTHERS.items():
        given = {"task": DRIFT, **SETTINGS, "iterations": 8, "out": tmp_path_factory.mktemp("other") / name, **change}
        list(ars.train(given.pop("task"), **given))
        folders[name] = given["out"]
    return folders


@pytest.fixture(scope="module")
def bits(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of the run after one more iteration."""
    out = shutil.copytree(finished, tmp_path_factory.mktemp("bits") / "run")
    list(ars.resume(out, task=DRIFT, iterations=9))
    return checkpoint(out)


def fresh(source: Path, out: Path) -> Path:
    shutil.rmtree(out, ignore_errors=True)
    return Path(shutil.copytree(source, out, ignore=shutil.ignore_patterns(".lock")))


def resume(folder: Path, task: str | None = DRIFT, iterations: int = 9) -> None:
    list(ars.resume(folder, task=task, iterations=iterations))


def refusal(read: Callable[..., Any], folder: Path, *more: Any) -> str:
    """The sentence of a refusal that changed nothing; empty if there was none."""
    before = contents(folder)
    try:
        read(folder, *more)
    except ArsError as error:
        said = str(error)
    else:
        return ""
    assert said
    assert "\n" not in said
    assert contents(folder) == before
    return said


def resumed(folder: Path, bits: dict[str, Any]) -> bool:
    """Whether the run was refused; if not, it continues to the very bits."""
    if refusal(resume, folder):
        return True
    assert checkpoint(folder) == bits
    return False


def readings(folder: Path) -> Iterator[str]:
    for read in (read_run, from_run):
        yield refusal(read, folder)


def test_mixes_of_two_runs(
    finished: Path, others: dict[str, Path], tmp_path: Path, figure: Callable[..., None]
) -> None:
    """Every choice of configuration, records and checkpoint from the one and the other."""
    mixes = 0
    for other in others.values():
        for parts in (parts for k in (1, 2) for parts in itertools.combinations(PARTS, k)):
            run = fresh(finished, tmp_path / "run")
            for part in parts:
                shutil.copy(other / part, run / part)
            mixes += 1
            task = json.loads((run / "config.json").read_text())["config"]["task"]
            assert refusal(resume, run, task), parts
            assert all(readings(run)), parts
    figure("mixes", cases=mixes)


def test_the_best_policy_of_another_run(others: dict[str, Path], run: Path) -> None:
    """A report would show it; resuming writes our own again."""
    shutil.copy(others["seed"] / "best.npz", run / "best.npz")
    assert "another run" in refusal(read_run, run)
    Run.open(run).close()
    read_run(run)


def damaged(content: bytes, number: int) -> bytes:
    """One to three flipped, deleted or inserted bytes, or lines that are swapped, doubled, removed or renumbered."""
    r = random.Random(f"records {number}")
    if r.random() < 0.3:
        lines = content.splitlines(keepends=True)
        at, to = r.sample(range(len(lines)), 2)
        match r.randrange(4):
            case 0:
                lines[at], lines[to] = lines[to], lines[at]
            case 1:
                lines.insert(to, lines[at])
            case 2:
                del lines[at]
            case _:
                lines[at] = lines[at].replace(b'"iteration": ', b'"iteration": -')
        return b"".join(lines)
    changed = bytearray(content)
    for _ in range(r.randint(1, 3)):
        at = r.randrange(len(changed))
        match r.randrange(3):
            case 0:
                changed[at] ^= 1 << r.randrange(8)
            case 1:
                del changed[at]
            case _:
                changed.insert(at, r.choice(b'0123456789eE+-., {}"\n'))
    return bytes(changed)


def test_damage_to_older_records(
    finished: Path, bits: dict[str, Any], tmp_path: Path, figure: Callable[..., None]
) -> None:
    """Before the last line, which the checkpoint has too, all of it is noticed; behind it, all is cut off."""
    good = (finished / "records.jsonl").read_bytes()
    last = good[:-1].rfind(b"\n") + 1
    cases = size(40, 450)
    for number in range(cases):
        run = fresh(finished, tmp_path / "run")
        older = damaged(good[:last], number)
        if older != good[:last]:
            (run / "records.jsonl").write_bytes(older + good[last:])
            assert resumed(run, bits), number
            assert all(readings(run)), number
    for number in range(size(3, 50)):
        run = fresh(finished, tmp_path / "run")
        (run / "records.jsonl").write_bytes(good[:last] + damaged(good, number))
        assert not resumed(run, bits), number
    figure("damage_older_records", cases=cases)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(part, dict | list):
            yield from places(part)


def test_values_of_the_wrong_type(
    finished: Path, bits: dict[str, Any], tmp_path: Path, figure: Callable[..., None]
) -> None:
    """In every field of a configuration and of a record, in turn."""
    cases, r = 0, random.Random(0)
    saved = json.loads((finished / "config.json").read_text())
    lines = (finished / "records.jsonl").read_text().splitlines()
    for holder, key in places(saved):
        for wrong in r.sample(WRONG, size(1, len(WRONG))):
            good, holder[key] = holder[key], wrong
            if type(wrong) is not type(good):
                run = fresh(finished, tmp_path / "run")
                (run / "config.json").write_text(json.dumps(saved))
                cases += 1
                if not resumed(run, bits):  # only words that nothing depends on
                    assert isinstance(wrong, str) or type(good) is float, (key, wrong)
            holder[key] = good
    record = json.loads(lines[2])  # with an evaluation
    for key in record:
        for wrong in r.sample(WRONG, size(2, len(WRONG))):
            if record[key] is wrong:
                continue
            run = fresh(finished, tmp_path / "run")
            (run / "records.jsonl").write_text(
                "\n".join([*lines[:2], json.dumps({**record, key: wrong}), *lines[3:], ""])
            )
            cases += 1
            assert resumed(run, bits), (key, wrong)
            assert all(readings(run)), (key, wrong)
    figure("damage_wrong_types", cases=cases)


@pytest.mark.parametrize("part", ["config", "config.stop", "config.task", "config.config", "config.sessions"])
def test_parts_that_do_not_belong(run: Path, part: str) -> None:
    """Unknown names, and names given twice, of which json.loads would take the last."""
    path = run / "config.json"
    saved = json.loads(path.read_text())
    inner = saved if part == "config" else saved[part.partition(".")[2]]
    inner = inner[0] if isinstance(inner, list) else inner
    good = json.dumps(inner)
    first = next(iter(inner))
    for bad in ('{"x": 1, ' + good[1:], "{" + f"{json.dumps(first)}: {json.dumps(inner[first])}, " + good[1:]):
        path.write_text(json.dumps(saved).replace(good, bad))
        assert refusal(resume, run)
        assert all(readings(run)) or part == "config.task"


def test_a_large_configuration_is_not_parsed(run: Path) -> None:
    path = run / "config.json"
    saved = json.loads(path.read_text())
    path.write_text(json.dumps({**saved, "task": {**saved["task"], "x": "x" * 15_000_000}}))
    assert "larger than" in refusal(read_run, run)


# -- format 1, which has no hashes -----------------------------------------------------------------------------------


def old(tmp_path: Path, name: str = "lqr") -> Path:
    return fresh(FOLDER / name, tmp_path / "old")


def test_what_can_be_checked_in_format_1(tmp_path: Path) -> None:
    """Types and order of all records; their rollouts, evaluations and best evaluation; line j in both files."""
    good = (FOLDER / "lqr" / "records.jsonl").read_text()
    lines = good.splitlines()
    j = len(lines)
    changes = {
        "another N": lambda row: {**row, "episodes": 2 * row["episodes"]},
        "no evaluation": lambda row: {name: value for name, value in row.items() if not name.startswith("eval_")},
        "another evaluation": lambda row: {**row, **({"eval_mean": 1.0} if "eval_mean" in row else {})},
        "fewer steps": lambda row: {**row, "timesteps": row["timesteps"] // row["iteration"] ** 2},
        "a bool": lambda row: {**row, "reward_mean": True},
        "negative": lambda row: {**row, "iteration": -row["iteration"]},
    }
    for what, change in changes.items():
        run = old(tmp_path)
        changed = [json.dumps(change(json.loads(line))) for line in lines]
        (run / "records.jsonl").write_text("\n".join([*changed, ""]))
        assert refusal(resume, run, None, j + 1), what
        assert all(readings(run)), what
    for order in ([1, 0, *range(2, j)], [0, 0, *range(1, j)], [*range(j - 1), 0]):
        run = old(tmp_path)
        (run / "records.jsonl").write_text("".join(f"{lines[i]}\n" for i in order))
        if order[-1] != 0:  # line j itself is mended
            assert refusal(resume, run, None, j + 1)
    run = old(tmp_path)
    with np.load(run / "checkpoint.npz") as arrays:
        content = dict(arrays)
    np.savez(run / "checkpoint.npz", **{**content, "best_mean": np.array(1.0)})
    assert refusal(resume, run, None, j + 1)


# -- links -----------------------------------------------------------------------------------------------------------


def test_hard_links_are_refused(run: Path, tmp_path: Path) -> None:
    """`cp -al` makes a folder whose records are those of the original."""
    copy = tmp_path / "copy"
    shutil.copytree(run, copy, copy_function=os.link)
    for folder in (run, copy):
        assert "`cp -a`" in refusal(resume, folder)
    read_run(copy)
    for name in NAMES:  # each by itself
        one = fresh(run, tmp_path / "one")
        os.link(one / name, tmp_path / f"another {name}")
        assert "hard link" in refusal(Run.open, one)
    shutil.rmtree(copy)
    list(ars.resume(run, task=DRIFT, iterations=9))


def test_a_run_folder_may_be_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run)
    assert [record.iteration for record in ars.resume(tmp_path / "link", task=DRIFT, iterations=9)] == [9]
    assert len(read_run(run).records) == 9


def test_links_among_the_asked_files(tmp_path: Path) -> None:
    """`ars ask` writes through links elsewhere, but a folder from someone else must not choose the file."""
    with AskTell.create(tmp_path / "run", "arm", n=2, p=1, N=1) as made:
        files = made.write_asked()
    victim = tmp_path / "precious"
    victim.write_text("precious")
    files[0].unlink()
    files[0].symlink_to(victim)
    with pytest.raises(ArsError, match="is not a plain file"):
        AskTell.open(tmp_path / "run")
    assert victim.read_text() == "precious"


def test_told_twice(tmp_path: Path) -> None:
    """A result that told.jsonl has twice could be either."""
    with AskTell.create(tmp_path / "run", "arm", n=2, p=1, N=1, variant="V1") as made:
        key = made.ask()[0].key
        made.tell([{"key": key, "reward": 1.0, "steps": 1}])
    told = tmp_path / "run" / "told.jsonl"
    told.write_text(told.read_text() + told.read_text().replace("1.0", "2.0"))
    with pytest.raises(ArsError, match="told twice"):
        AskTell.open(tmp_path / "run")


# -- what a refusal leaves -------------------------------------------------------------------------------------------


def test_a_refused_run_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArsError, match="M would be"):
        AskTell.create(tmp_path / "runs" / "a", "arm", n=10_000_000, p=10_000_000)
    monkeypatch.setattr("ars.saved_config.LARGEST_M", 5)
    with pytest.raises(ArsError, match="M would be"):
        ars.train(DRIFT, out=tmp_path / "runs" / "b")
    monkeypatch.undo()
    monkeypatch.setattr("ars.runs.write_json", lambda *_: (_ for _ in ()).throw(ars.ArsError("The disk is full.")))
    with pytest.raises(ArsError, match="full"):
        ars.train(DRIFT, out=tmp_path / "runs" / "c")
    assert list(tmp_path.iterdir()) == []
