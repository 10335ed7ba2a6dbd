"""Runs of rivals made by hand."""

from collections.abc import Sequence
from pathlib import Path

from ars.curves import Curve, load
from ars.rivals.curve import Ending, Point, Recorder
from ars.rivals.roster import RIVALS, Spec

MEASURES = {"parameters": 33.0, "bytes": 440.0, "microseconds": 8.4}


def curve_of(
    folder: Path, spec: Spec, rewards: Sequence[float], *, cpu: float = 100.0, status: str = "finished"
) -> Curve:
    """A run whose evaluations are equally far apart, in timesteps and in the `cpu` seconds of the whole, ten episodes
    each; the last is 500 timesteps beyond the budget."""
    path = folder / f"{spec.name}.json"
    recorder = Recorder(
        path, learner=spec.rival, label=RIVALS[spec.rival].title, task=spec.task, seed=spec.seed,
        settings=spec.settings,
    )  # fmt: skip
    count = len(rewards)
    for i, reward in enumerate(rewards, 1):
        beyond = 500 if i == count else 0
        recorder.add(Point(spec.timesteps * i // count + beyond, 100 * i, (reward,) * 10, cpu * i / count))
    if status != "unfinished":
        recorder.end(Ending({"used": 1}, MEASURES), status)
    return load(path)
