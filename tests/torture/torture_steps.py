"""Every step that changes something on disk, one after the other: count them, and die or fail at one of them.

`Steps` stands in for the functions that Python gives us for opening, writing, syncing, renaming, cutting and deleting
files and for making folders, as long as it is used as a context; paths outside `folder` are left alone.
"""

import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Steps:
    """act(kind, k) is called before the k-th step; if it returns True, a write writes half of its bytes only, and then
    act is called again with the kind "half"."""

    def __init__(self, folder: Path, act: Callable[[str, int], bool | None]) -> None:
        self.count, self._folder, self._act = 0, str(folder), act
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> "Steps":
        for name in ("replace", "unlink", "truncate", "mkdir"):
            self._patch.setattr(os, name, self._counted(name, getattr(os, name)))
        fsync = os.fsync

        def synced(descriptor: int) -> None:
            if self._inside(_path_of(descriptor)):
                self.step("fsync")
            fsync(descriptor)

        self._patch.setattr(os, "fsync", synced)
        self._patch.setattr(os, "fdopen", self._fdopen)
        self._patch.setattr(Path, "open", self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def step(self, kind: str) -> bool:
        self.count += 1
        return bool(self._act(kind, self.count))

    def half(self) -> None:
        self._act("half", self.count)

    def _inside(self, path: Any) -> bool:
        return os.fspath(path).startswith(self._folder)

    def _counted(self, kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def function(path: Any, *rest: Any, **more: Any) -> Any:
            if not isinstance(path, int) and self._inside(path):
                self.step(kind)
            return real(path, *rest, **more)

        return function

    def _open(self) -> Callable[..., Any]:
        steps, real = self, Path.open

        def open(self: Path, mode: str = "r", buffering: int = -1, *rest: Any, **more: Any) -> Any:
            if mode not in ("xb", "wb", "ab") or not steps._inside(self):
                return real(self, mode, buffering, *rest, **more)
            steps.step("open")
            file = _File(steps, self, mode.replace("b", ""))
            return file if buffering == 0 else io.BufferedWriter(file)

        return open

    def _fdopen(self, descriptor: int, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if mode != "r+b" or not self._inside(_path_of(descriptor)):
            return open(descriptor, mode, *rest, **more)
        return io.BufferedRandom(_File(self, descriptor, "r+"))


class _File(io.FileIO):
    """A file whose writes and cuts are steps."""

    def __init__(self, steps: Steps, file: Path | int, mode: str) -> None:
        super().__init__(file, mode)
        self._steps = steps

    def write(self, content: Any) -> int:
        if self._steps.step("write"):
            super().write(bytes(content)[: len(content) // 2])
            self._steps.half()
        return super().write(content)

    def truncate(self, size: int | None = None) -> int:
        self._steps.step("truncate")
        return super().truncate(size)


def _path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def count() -> Callable[[str, int], None]:
    """Nothing happens: for counting."""
    return lambda kind, k: None


def die_at(when: int, *, half: bool) -> Callable[[str, int], bool | None]:
    """SIGKILL to this process before step `when`; in the middle of it, if it is a write and half is asked for."""

    def act(kind: str, k: int) -> bool | None:
        if k == when and kind == "write" and half:
            return True
        if k == when:
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    return act


def fail_at(when: int, number: int, *, for_good: bool) -> Callable[[str, int], bool | None]:
    """OSError at step `when`, with half of the bytes written if it is a write; from then on always, or only once.
    A full disk still lets files be deleted and cut; one that became read-only does not."""

    def act(kind: str, k: int) -> bool | None:
        if k < when or (k > when and not for_good):
            return None
        if number == errno.ENOSPC and kind in ("unlink", "truncate", "replace"):
            return None
        if kind == "write":
            return True
        raise OSError(number, os.strerror(number))

    return act
