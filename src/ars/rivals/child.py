"""One run in a process of its own: `python -m ars.rivals.child SPEC FILE [PARENT]`, with Spec.to_json, the curve to
write, and the process with which it ends."""

import os
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

from ars.errors import ArsError, DivergedError, sentence
from ars.rivals.curve import Ending, Recorder
from ars.rivals.roster import LEARNERS, RIVALS, Spec
from ars.workers import use_one_thread

ORPHANED = 3  # the exit code of a run whose parent has ended


def main(text: str, file: str, parent: str | None = None) -> int:
    if parent is not None:
        threading.Thread(target=_end_with, args=(int(parent),), daemon=True).start()
    use_one_thread()
    try:
        run(Spec.from_json(text), Path(file))
    except ArsError as error:
        print(sentence(error), file=sys.stderr)
        return 2
    return 0


def run(spec: Spec, file: Path) -> None:
    """From the beginning to the end."""
    recorder = Recorder(
        file, learner=spec.rival, label=RIVALS[spec.rival].title, task=spec.task, seed=spec.seed,
        settings=spec.settings,
    )  # fmt: skip
    module, _, name = LEARNERS[spec.kind].partition(":")
    try:
        recorder.end(getattr(import_module(module), name)(spec, recorder.add))
    except DivergedError as error:  # is a result
        recorder.end(Ending({}, {}), f"diverged: {error}")


def _end_with(parent: int) -> None:
    """Without its parent a run would train on unseen."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(ORPHANED)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
