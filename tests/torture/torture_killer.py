"""Kill a small training before, and in the middle of, its steps on disk, and finish it: the end must be the same.

A process of its own that forks for every life, because starting Python hundreds of times would take minutes. Prints a
JSON object with the number of kills.  Usage: torture_killer.py FOLDER STRIDE
"""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from torture_runs import DRIFT, SETTINGS, same  # noqa: E402
from torture_steps import Steps, count, die_at  # noqa: E402

import ars  # noqa: E402
from ars import runs  # noqa: E402

ITERATIONS = 7


def live(out: Path, act: Any) -> int:
    """One life of the run; how many steps on disk it took."""
    runs.SECONDS_BETWEEN_CHECKPOINTS = 0.0
    with Steps(out, act) as steps:
        if (out / "config.json").exists():
            list(ars.resume(out, task=DRIFT, workers=1))
        else:
            list(ars.train(DRIFT, **SETTINGS, iterations=ITERATIONS, out=out, workers=1))
    return steps.count


def killed(out: Path, when: int, *, half: bool) -> bool:
    """Whether a life in another process was killed, or came to its end before that step."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            live(out, die_at(when, half=half))
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise SystemExit(f"The life that was to be killed at step {when} ended with {status}.")
    return status == -signal.SIGKILL


def check(out: Path) -> None:
    """Whatever the kill left can be opened, if the run had begun."""
    if (out / "config.json").exists():
        runs.Run.open(out, mend=False).release()


def main(folder: Path, stride: int) -> None:
    reference = folder / "uninterrupted"
    steps = live(reference, count())
    kills: Counter[str] = Counter()
    for when in (*range(1, 13), *range(13, steps + 1, stride)):  # all of the beginning, where a run has no checkpoint
        for half in (False, True):
            out = folder / f"{when}-{half}"
            kills["first"] += killed(out, when, half=half)
            check(out)
            for again in (1 + when % 9, 1 + 7 * when % 31):  # a resume is killed in its own writes, too
                kills["in a resume"] += killed(out, again, half=half)
                check(out)
            live(out, count())
            same(out, reference)
    print(json.dumps({"steps": steps, "kills": kills.total(), **kills}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
