"""The process of a command: its signals, and output that is full, closed or not read by anybody."""

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import _exit  # ours, whatever an environment or training.py makes of os._exit
from types import FrameType
from typing import Any

from ars.errors import Interrupt, OutputError

_received: list[int] = []  # signals of the current command
SAME_SIGNAL = 1.0  # seconds within which a second signal is taken for the first: `timeout` and terminals send two


@contextmanager
def signals() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP interrupt the command once, by an Interrupt with the signal's number: it saves,
    ends its workers and says how to continue. A later signal ends the process at once, even if code in C hangs: what
    is on disk is valid at every moment. A signal that is ignored (nohup) stays ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    caught = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    _received.clear()

    def interrupt(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        if len(_received) == 1:
            raise Interrupt(number)

    here, there = os.pipe()
    os.set_blocking(there, False)
    threading.Thread(target=_end_at_second, args=(here, caught), daemon=True).start()
    before = {number: signal.signal(number, interrupt) for number in caught}
    descriptor = signal.set_wakeup_fd(there, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        with suppress(OSError):  # an environment has closed it
            os.close(there)  # which ends the thread


def _end_at_second(pipe: int, caught: list[signal.Signals]) -> None:
    """Python writes a byte per signal to the pipe, whatever the main thread does."""
    first = None
    with suppress(OSError):  # an environment has closed it
        while content := os.read(pipe, 1):
            if content[0] in caught:
                now = time.monotonic()
                first = now if first is None else first
                if now - first > SAME_SIGNAL:
                    _exit(128 + content[0])
        os.close(pipe)


def interrupt_code() -> int:
    """The exit code of a command that was interrupted. Not from the exception, which Ray replaces by its own."""
    return 128 + (_received[0] if _received else signal.SIGINT)


class _Standard(io.FileIO):
    """Standard output raises an OutputError where a file raises an OSError; standard error is silent then, because
    there is nowhere to complain."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            if self.fileno() == 2:
                return memoryview(content).nbytes
            raise OutputError(f"Cannot write to standard output: {error.strerror}.") from error


def guard_output() -> None:
    """Make errors of standard output sentences. A descriptor that is closed is occupied by one that cannot be written:
    otherwise the next file would get its number, and whatever a library prints."""
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number
    if sys.stdout is sys.__stdout__:  # otherwise somebody captures what we print
        sys.stdout = _guarded(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _guarded(2, sys.stderr)


def _guarded(descriptor: int, file: Any) -> io.TextIOWrapper:
    """`file` is what Python made of the descriptor, None if it was closed."""
    if file is not None:
        file.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Standard(descriptor, "w", closefd=False)),
        encoding=file.encoding if file else "utf-8",
        errors="backslashreplace",  # a file name need not be valid Unicode
        line_buffering=file.line_buffering if file else True,
        write_through=file.write_through if file else False,
    )


def flush_or_give_up() -> None:
    """For the end of a command that failed: what cannot be written goes nowhere, also when Python ends."""
    try:
        sys.stdout.flush()
    except OutputError:
        if (null := os.open(os.devnull, os.O_WRONLY)) != 1:
            os.dup2(null, 1)
            os.close(null)
