"""Records for TensorBoard (event files) and Weights & Biases. Dashboards never affect training.

The tags are those of stable-baselines3 where it has one, and the step is the number of training timesteps. A dashboard
that fails is reported once and dropped; training continues.
"""

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from ars.config import Config
from ars.errors import SettingError
from ars.files import one_line, read_bytes, write_atomic
from ars.records import Record, State
from ars.timing import SpeedMeter


class Dashboard(Protocol):
    def write(self, values: dict[str, float], step: int) -> None: ...

    def close(self) -> None: ...


THEIR_NAMES = {"sigma_R": "rollout/return_std"}  # what stable-baselines3 calls a search's telemetry


def scalars(record: Record, speed: float | None) -> dict[str, float]:
    """Tag → value for one iteration; values that are not finite are left out."""
    values: dict[str, float | None] = {
        "rollout/ep_rew_mean": record.reward_mean,
        "rollout/ep_rew_max": record.reward_max,
        "rollout/ep_len_mean": record.length_mean,
        "time/iterations": record.iteration,
        "time/episodes": record.episodes,
        "time/total_timesteps": record.timesteps,
        "time/time_elapsed": record.seconds,
        "time/fps": speed,
        "train/dropped": record.dropped,
    }
    values |= {f"train/{name}": value for name, value in record.telemetry.items()}
    values |= {tag: record.telemetry[name] for name, tag in THEIR_NAMES.items() if name in record.telemetry}
    if record.evaluation:
        summary = record.evaluation.summary()
        values |= {f"eval/{name}_reward": summary[name] for name in ("mean", "std", "min", "max")}
        values["eval/mean_ep_length"] = float(record.evaluation.steps.mean())
    if record.confirmation:
        values["eval/confirmed_mean_reward"] = record.best_known_mean
    values |= {f"measure/{name}": value for name, value in record.measures.items()}
    return {tag: float(value) for tag, value in values.items() if value is not None and math.isfinite(value)}


class TensorBoard:
    """An event file in the run folder. TensorBoard reads the files of a folder in the order of their names."""

    def __init__(self, folder: Path, state: State) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._Event, self._Summary = Event, Summary
        number = 1 + len(list(folder.glob("events.out.tfevents.*")))
        path = folder / f"events.out.tfevents.{number:06d}"
        self._file = RecordWriter(path.open("xb", buffering=0))  # a kill leaves whole events
        try:
            self._event(file_version="brain.Event:2")
            if state.j:  # hides what a killed session wrote after its last checkpoint
                self._event(step=state.timesteps + 1, session_log=SessionLog(status=SessionLog.START))
        except BaseException:
            self._file.close()
            raise

    def write(self, values: dict[str, float], step: int) -> None:
        entries = [self._Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._event(step=step, summary=self._Summary(value=entries))

    def _event(self, **content: Any) -> None:
        self._file.write(self._Event(wall_time=time.time(), **content).SerializeToString())

    def close(self) -> None:
        self._file.close()


class WeightsAndBiases:
    """A wandb run named after the folder, which stores its id so that a resumed run continues it.

    wandb ignores steps that it already has; a resumed run repeats the same numbers, so nothing is lost.
    """

    def __init__(self, folder: Path, state: State, config: Config) -> None:
        import wandb

        self._run = wandb.init(
            project="ars",
            name=folder.name,
            id=_wandb_id(folder / "wandb-id", state),
            resume="allow",
            dir=str(folder),
            config=config.to_dict(),
        )

    def write(self, values: dict[str, float], step: int) -> None:
        self._run.log(values, step=step)

    def close(self) -> None:
        self._run.finish()


def _wandb_id(file: Path, state: State) -> str:
    if state.j and file.exists():
        known = read_bytes(file)[:64].decode("ascii", errors="replace").strip()
        if known.isalnum():
            return known
    new = secrets.token_hex(8)
    write_atomic(file, new.encode() + b"\n")
    return new


def check_installed(names: Sequence[str]) -> None:
    """Raise an error before a run begins if a package is missing; flag, package and extra have the same name."""
    for name in names:
        if find_spec(name) is None:
            raise SettingError(
                f"--{name} needs the package {name}, which is not installed: pip install 'ars-rl[{name}]'."
            )


class Dashboards:
    """The requested dashboards, opened at the first record and dropped when they fail."""

    def __init__(self, makers: dict[str, Callable[[], Dashboard]], say: Callable[[str], None]) -> None:
        self._makers, self._say, self._speed = makers, say, SpeedMeter()
        self._open: dict[str, Dashboard] = {}

    def record(self, record: Record) -> None:
        for name in list(self._makers):
            with self._guard(name):
                self._open[name] = self._makers.pop(name)()
        values = scalars(record, self._speed.add(record)) if self._open else {}
        for name, dashboard in list(self._open.items()):
            with self._guard(name):
                dashboard.write(values, record.timesteps)

    def close(self) -> None:
        for name in list(self._open):
            with self._guard(name):
                self._open.pop(name).close()

    @contextmanager
    def _guard(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # anything: the package, the disk or the network may fail
            reason = f"{type(error).__name__}: {one_line(error)}"
            self._say(f"Note: {name} failed and is dropped; training continues ({reason}).")
            if failed := self._open.pop(name, None):
                with suppress(Exception):
                    failed.close()


@contextmanager
def open_dashboards(
    names: Sequence[str], folder: Path, config: Config, state: State, *, say: Callable[[str], None]
) -> Iterator[Dashboards]:
    """The named dashboards (tensorboard, wandb) of a run folder, closed at the end whatever happens."""
    makers: dict[str, Callable[[], Dashboard]] = {
        "tensorboard": lambda: TensorBoard(folder, state),
        "wandb": lambda: WeightsAndBiases(folder, state, config),
    }
    opened = Dashboards({name: makers[name] for name in names}, say)
    try:
        yield opened
    finally:
        opened.close()
