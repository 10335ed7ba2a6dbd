"""race.json, the file of a race: what decides it, how its seeds stood after each round, and which one won.

`ars race` writes it after every round, and the report page shows it.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ars.errors import FileError
from ars.files import is_file, one_line, read_json, write_json

FORMAT = 1
NAME = "race.json"


@dataclass(frozen=True)
class Standing:
    """A seed after a round. `mean_return` is what seeds are ranked by; None if the run diverged."""

    seed: int
    timesteps: int  # of training, so far
    mean_return: float | None
    goes_on: bool  # to the next round; in the last one, whether it won


@dataclass(frozen=True)
class Round:
    """A round, in which every seed trained until it had spent `timesteps`; the best comes first."""

    timesteps: int
    standings: tuple[Standing, ...]

    def goes_on(self) -> bool:
        """Whether any seed does: otherwise all have diverged."""
        return any(standing.goes_on for standing in self.standings)


@dataclass(frozen=True)
class RaceFile:
    """A race so far. Without a winner it is under way, or no seed could go on."""

    decided_by: Mapping[str, Any]  # task, configuration, seeds, budget, threshold
    rounds: tuple[Round, ...] = ()
    winner: int | None = None

    def save(self, folder: Path) -> None:
        write_json(folder / NAME, {"format": FORMAT, **asdict(self)})

    def places(self) -> list[tuple[Standing, list[float | None]]]:
        """Every seed, the winner first, then those that went furthest: where it ended, and its mean return after each
        of its rounds."""
        last: dict[int, Standing] = {}
        returns: dict[int, list[float | None]] = {}
        for one in self.rounds:
            ranked = {standing.seed: standing for standing in one.standings}
            last = {**ranked, **{seed: standing for seed, standing in last.items() if seed not in ranked}}
            for standing in one.standings:
                returns.setdefault(standing.seed, []).append(standing.mean_return)
        return [(standing, returns[seed]) for seed, standing in last.items()]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The race as text, one row per seed: its mean return after each round, and what became of it."""
        heads = ["seed", *(f"return after {one.timesteps:,}" for one in self.rounds), "timesteps", "outcome"]
        rows = []
        for standing, returns in self.places():
            cells = ["diverged" if value is None else f"{value:z.1f}" for value in returns]
            cells += [""] * (len(self.rounds) - len(cells))
            outcome = "won" if standing.seed == self.winner else "goes on" if standing.goes_on else "stopped"
            rows.append([str(standing.seed), *cells, f"{standing.timesteps:,}", outcome])
        return heads, rows


def read_race(folder: Path) -> RaceFile | None:
    """The race of a folder, whoever wrote it; None if there is none."""
    path = folder / NAME
    if not is_file(path):
        return None
    value = read_json(path)
    try:
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']!r:.50} is unknown to this version of ars")
        rounds = tuple(
            Round(count(one["timesteps"]), tuple(_standing(standing) for standing in one["standings"]))
            for one in value["rounds"]
        )
        winner = value["winner"]
        return RaceFile(dict(value["decided_by"]), rounds, None if winner is None else count(winner))
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is damaged: {one_line(error)}.") from error


def _standing(value: Mapping[str, Any]) -> Standing:
    mean = value["mean_return"]
    if mean is not None and (type(mean) not in (int, float) or not math.isfinite(mean)):
        raise ValueError(f"mean_return = {mean!r:.50}")
    return Standing(count(value["seed"]), count(value["timesteps"]), mean, value["goes_on"] is True)


def count(value: Any) -> int:
    """A number of things in a file, or ValueError."""
    if type(value) is not int or not 0 <= value < 2**64:
        raise ValueError(f"{value!r:.50} is not a count")
    return value
