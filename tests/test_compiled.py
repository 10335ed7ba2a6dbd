"""Compiled code on disk: whatever is wrong with its folder costs time only, and another user's code is not loaded."""

import os
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
from numba.core.caching import CacheImpl

from ars import compiled
from ars.executors.processes import ProcessExecutor
from ars.tasks import factory


def double(x: float) -> float:
    return x + x


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Numba's folder."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Numba finds no folder that it may write to, except the one that it is given."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", CacheImpl._locator_classes[:1])
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(compiled, "_made", [])
    monkeypatch.setenv("ARS_CACHE", "")
    compiled._private_folder.cache_clear()
    yield
    for made in compiled._made:
        made.cleanup()
    compiled._private_folder.cache_clear()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_was_compiled_is_loaded(folder: Path) -> None:
    said: list[bool] = []
    with compiled.compiling(said.append):
        assert compiled.compiled(double)(2.0) == 4.0
        assert said == [True, False]
        assert compiled.compiled(double)(3.0) == 6.0
    assert said == [True, False]
    assert {path.suffix for path in files(folder)} == {".nbi", ".nbc"}


@pytest.mark.parametrize("content", [b"", b"\x80\x04nonsense"])
def test_a_damaged_file_is_ignored(content: bytes, folder: Path) -> None:
    compiled.compiled(double)(2.0)
    for path in files(folder):
        path.write_bytes(content)
    assert compiled.compiled(double)(2.0) == 4.0


def test_a_file_that_cannot_be_written_is_ignored(folder: Path) -> None:
    """As on a full disk, or among files of another owner."""
    compiled.compiled(double)(2.0)
    for path in files(folder):
        path.unlink()
        path.mkdir()
    assert compiled.compiled(double)(2.0) == 4.0


def test_a_private_folder_where_there_is_no_other(nowhere: None, capfd: pytest.CaptureFixture[str]) -> None:
    """One for all functions, with one note; it ends with the process."""
    first, second = compiled.compiled(double), compiled.compiled(files)
    assert first(2.0) == 4.0
    [made] = compiled._made
    assert Path(made.name).stat().st_mode & 0o777 == 0o700
    assert files(Path(made.name))
    assert Path(first._cache.cache_path).is_relative_to(made.name)
    assert Path(second._cache.cache_path).is_relative_to(made.name)
    assert os.environ["ARS_CACHE"] == made.name
    assert numba.config.CACHE_DIR == ""
    assert capfd.readouterr().err == compiled._NOTE + "\n"
    made.cleanup()


def test_no_folder_at_all(nowhere: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(**_: object) -> None:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(compiled, "TemporaryDirectory", refuse)
    assert compiled.compiled(double)(2.0) == 4.0
    assert compiled.compiled(double)(2.0) == 4.0
    assert capfd.readouterr().err == compiled._NOTE + "\n"


def test_a_workers_folder_must_be_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the parent is used only if no other user can have written to it: its name may have become free."""
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(ours)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open", "missing"):
        assert not compiled._is_ours(str(tmp_path / name)), name
    assert compiled._is_ours(str(ours))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert not compiled._is_ours(str(ours))


def test_a_worker_uses_the_folder_of_its_parent(
    nowhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    monkeypatch.setenv("ARS_CACHE", str(ours))
    assert compiled.compiled(double)(2.0) == 4.0
    assert files(ours)
    assert compiled._made == []
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("nowhere")
def test_worker_processes_are_told_of_the_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise each would compile for itself, and nobody would say why."""
    monkeypatch.setattr(os, "access", lambda *_: False)  # the package is of root's
    ProcessExecutor(factory("CartPole-v1"), 2).close()
    assert Path(os.environ["ARS_CACHE"]).is_dir()
    assert capsys.readouterr().err.count("NUMBA_CACHE_DIR") == 1
