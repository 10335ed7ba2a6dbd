"""The one place that asks Numba to compile: functions that release the GIL, kept on disk for the next start."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core import event

compiled = njit(nogil=True, cache=True)


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
