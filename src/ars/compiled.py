"""The one place that asks Numba to compile: functions that release the GIL, kept on disk for the next start.

Where Numba finds no folder to write to (a package of root's and no home, as in containers), they are kept in a private
temporary folder, which this process shares with its workers and removes when it ends.
"""

import os
import pickle
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import parent_process
from tempfile import TemporaryDirectory
from typing import Any

import numba
from numba import njit
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}  # without what nobody calls: it compiles sooner
_FOLDER = "ARS_CACHE"  # the environment variable by which workers learn of the private folder
_NOTE = """\
ars: Compiled code is not kept for the next start, because no folder for it is writable: set NUMBA_CACHE_DIR to one."""


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call, or load what an earlier process compiled."""
    dispatcher: Any = njit(**_OPTIONS)(function)
    with suppress(RuntimeError):  # of Numba, which cannot write to any folder
        dispatcher._cache = _cache_for(function)
    return dispatcher


def compiled_text(function: Callable[..., Any], digest: str) -> Any:
    """The same for a function of generated text, which has no file: it is kept under its digest."""
    dispatcher: Any = njit(**_OPTIONS)(function)
    with suppress(RuntimeError):
        folder = _cache_for(compiled_text)._impl.locator.get_cache_path()
        locator = type("Locator", (_TextLocator,), {"folder": folder, "digest": digest})
        impl = type("Impl", (CompileResultCacheImpl,), {"_locator_classes": [locator]})
        make: Any = type("TextCache", (_Cache,), {"_impl_class": impl})
        dispatcher._cache = make(function)
    return dispatcher


class _TextLocator(_CacheLocator):
    """The place of compiled code without a source file: beside that of this module."""

    folder: str
    digest: str

    def get_cache_path(self) -> str:
        return self.folder

    def get_source_stamp(self) -> str:
        return self.digest

    def get_disambiguator(self) -> str:
        return self.digest[:16]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_TextLocator":
        return cls()


def share_cache() -> None:
    """Find the folder for compiled code before workers are started, so that all of them use the same."""
    compiled(share_cache)


class _Cache(FunctionCache):
    """Numba's, where a file that cannot be read or written (full disk, another owner, damage) only costs time."""

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            yield


def _cache_for(function: Callable[..., Any]) -> Any:
    make: Any = _Cache
    try:
        with _no_folder_called_tilde():
            return make(function)
    except RuntimeError:
        config: Any = numba.config
        before, config.CACHE_DIR = config.CACHE_DIR, _private_folder()
    try:
        return make(function)
    finally:
        config.CACHE_DIR = before


@contextmanager
def _no_folder_called_tilde() -> Iterator[None]:
    """For a user whose home is unknown, Numba would create `~` in the current folder, and load what it finds there."""
    unknown = os.path.expanduser("~") == "~" and "XDG_CACHE_HOME" not in os.environ  # noqa: PTH111 (it would raise)
    if unknown:
        os.environ["XDG_CACHE_HOME"] = os.devnull
    try:
        yield
    finally:
        if unknown:
            del os.environ["XDG_CACHE_HOME"]


@cache
def _private_folder() -> str:
    """The folder of the process that started us, or a new one; empty if there is nowhere to write."""
    folder = os.environ.get(_FOLDER, "")
    if folder and _is_ours(folder):
        return folder
    try:
        made = TemporaryDirectory(prefix="ars-", ignore_cleanup_errors=True)  # a new name, and closed to other users
    except OSError:
        folder = ""
    else:
        _made.append(made)
        folder = os.environ[_FOLDER] = made.name
    if parent_process() is None and sys.stderr:  # once, not in every worker
        with suppress(OSError):
            print(_NOTE, file=sys.stderr)
    return folder


_made: list[TemporaryDirectory[str]] = []  # removed at exit


def _is_ours(folder: str) -> bool:
    """Whether no other user can have put code there: not even after the folder was removed and its name was free."""
    with suppress(OSError):
        found = os.lstat(folder)
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return False


class _Listener(event.Listener):
    """Counts nested compilations, so that the callback hears of the outermost only."""

    def __init__(self, said: Callable[[bool], None]) -> None:
        self._said, self._depth = said, 0

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._said(True)

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._said(False)


@contextmanager
def compiling(said: Callable[[bool], None]) -> Iterator[None]:
    """Call said(True) when a compilation begins and said(False) when it ends; a load from the cache is none."""
    with event.install_listener("numba:compile", _Listener(said)):
        yield
