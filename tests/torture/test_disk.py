"""The disk fills up, breaks or becomes read-only in mid-run: one sentence, a good checkpoint, and on with it later."""

import errno
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from torture_runs import DRIFT, SETTINGS, call, flags, refused, same, size, start
from torture_steps import Steps, count, fail_at

import ars
from ars import runs
from ars.errors import FileError
from ars.runs import Run

FAULTS = {
    "the disk is full": (errno.ENOSPC, True),
    "the disk is full for a moment": (errno.ENOSPC, False),
    "the folder is read-only": (errno.EROFS, True),
    "the disk is broken": (errno.EIO, True),
}


def begin_or_go_on(out: Path, iterations: int) -> None:
    if (out / "config.json").exists():
        list(ars.resume(out, task=DRIFT, iterations=iterations))
    else:
        list(ars.train(DRIFT, **SETTINGS, iterations=iterations, out=out))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_every_step_on_disk(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Callable[..., None]
) -> None:
    """Before each step that changes a file, and in the middle of each write."""
    monkeypatch.setattr(runs, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    number, for_good = FAULTS[fault]
    whole, faults = tmp_path / "uninterrupted", 0
    with Steps(whole, count()) as steps:
        begin_or_go_on(whole, 5)
    for when in range(1, steps.count + 1, size(7, 1)):
        out = tmp_path / str(when)
        said = None
        with Steps(out, fail_at(when, number, for_good=for_good)):
            try:
                begin_or_go_on(out, 5)
            except FileError as error:
                said = str(error)
        if said is not None:  # deleting what is not there may fail unseen
            faults += 1
            assert os.strerror(number) in said
            assert str(out) in said
            assert "\n" not in said
        if (out / "config.json").exists():
            Run.open(out, mend=False).release()
        begin_or_go_on(out, 5)  # once there is room again
        same(out, whole)
    assert faults > 0.25 * len(range(1, steps.count + 1, size(7, 1)))
    figure(f"disk_{errno.errorcode[number]}_{for_good}", faults=faults)


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The kernel's own refusal in the middle of a line, of which nothing is left: no root and no injection needed."""
    out = tmp_path / "run"
    words = ("--task", DRIFT, "--quiet", "--workers", "1")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_001, 20_001))

    settings = (*flags(SETTINGS), "--iterations", "500", "--quiet", "--workers", "1")
    no_bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}  # Python would leave half of a file, and stumble over it ever after
    said = refused("train", DRIFT, "--out", str(out), *settings, cwd=tmp_path, preexec_fn=limit, env=no_bytecode)
    assert said == f"ars: Cannot write {out}/records.jsonl: File too large.\n"
    assert 19_000 < (out / "records.jsonl").stat().st_size < 20_001
    assert (out / "records.jsonl").read_bytes().endswith(b"\n")
    with Run.open(out, mend=False) as run:
        done = run.state.j
    assert done > 20
    call("resume", str(out), *words, "--iterations", str(done + 5), cwd=tmp_path)
    whole = tmp_path / "whole"
    settings = (*flags(SETTINGS), "--iterations", str(done + 5), "--quiet", "--workers", "1")
    call("train", DRIFT, "--out", str(whole), *settings, cwd=tmp_path)
    same(out, whole)


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """A file system of 160 kB in memory, where we may mount one: room for some hundred records."""
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "ars-torture", path], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here; test_a_fault_at_every_step_on_disk covers the faults")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("mount"), reason="only root can mount a small file system")
def test_a_real_disk_is_full_then_read_only(tmp_path: Path) -> None:
    """Full in mid-run; then read-only when it is resumed; then with room again."""
    with small_disk(tmp_path / "disk") as disk:
        out = disk / "run"
        settings = (*flags(SETTINGS), "--iterations", "100000", "--quiet", "--workers", "1")
        said = refused("train", DRIFT, "--out", str(out), *settings, cwd=tmp_path)
        assert said.startswith(f"ars: Cannot write {out}/")
        assert said.endswith(": No space left on device.\n")
        with Run.open(out, mend=False) as run:
            done = run.state.j
        assert done > 20
        words = ("resume", str(out), "--task", DRIFT, "--quiet", "--workers", "1")
        remount(disk, "ro")
        said = refused(*words, cwd=tmp_path)
        assert "Read-only file system" in said
        remount(disk, "rw,size=10m")
        call(*words, "--iterations", str(done + 20), cwd=tmp_path)
        whole = tmp_path / "whole"
        settings = (*flags(SETTINGS), "--iterations", str(done + 20), "--quiet", "--workers", "1")
        call("train", DRIFT, "--out", str(whole), *settings, cwd=tmp_path)
        same(out, whole)


def test_the_folder_is_deleted_in_mid_run(tmp_path: Path) -> None:
    """A sentence, not a traceback; nothing can be saved any more."""
    out = tmp_path / "run"
    words = ("train", "small_envs:Slow", "--out", str(out), *flags(SETTINGS), "--iterations", "100000", "--quiet")
    with start(*words, "--workers", "1", cwd=tmp_path) as process:
        until = time.monotonic() + 60
        while not (out / "records.jsonl").exists() and time.monotonic() < until:
            time.sleep(0.01)
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    names = ("records.jsonl", "checkpoint.npz", "policy.npz", "best.npz")
    assert errors in [f"ars: Cannot write {out / name}: No such file or directory.\n" for name in names]
