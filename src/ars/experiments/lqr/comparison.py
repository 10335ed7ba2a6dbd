"""The comparison of section 4.3 behind `ars lqr`: nominal control, LSPI and ARS for equal numbers of timesteps.

A trial is a function of (instance, method, seed, trial). Trials run in blocks; a finished block is a file in `blocks/`,
which a restarted comparison reuses. lqr.csv, the table and the plots are made from all blocks.
"""

import csv
import io
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ars.errors import ArsError, FileError, WorkerError
from ars.experiments.lqr import report
from ars.experiments.lqr.lspi import Lspi, initial_controller
from ars.experiments.lqr.nominal import Nominal
from ars.experiments.lqr.random_search import RandomSearch
from ars.experiments.lqr.statistics import Result
from ars.files import make_folder, one_line, read_bytes, read_json, write_json
from ars.lqr.problem import Problem
from ars.lqr.streams import trial_seed
from ars.settings import LARGEST_SEED, whole_number
from ars.workers import run_many

FloatArray = NDArray[np.float64]

FORMAT = 1
BLOCK = 10  # trials; the most that a kill can lose per worker
FIRST_CHECKPOINT = 100
GRID = (1, 1.5, 2, 3, 4, 5, 6, 8)  # checkpoints per decade


class Method(Protocol):
    """A method is one line of the plots; its timesteps are multiples of `unit`."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def unit(self) -> int: ...

    def run(self, problem: Problem, seed: int, timesteps: Sequence[int]) -> list[float]: ...


class Progress(NamedTuple):
    """A block is done; `reused` if it was found in the folder."""

    label: str
    done: int
    total: int
    reused: bool


@dataclass(frozen=True)
class Comparison:
    """All results, and the table as Markdown."""

    problem: Problem
    results: list[Result]
    table: str


def methods(problem: Problem) -> list[Method]:
    """The paper's methods, in its order of sample efficiency."""
    low, high = (_K0(problem, gamma) for gamma in (0.98, 1.0))
    return [
        Nominal("nominal-6", "Nominal, 6-step rollouts", 6),
        Nominal("nominal-302", "Nominal, 302-step rollouts", 302, sigma_0=1.0),
        Lspi("lspi-v1", "LSPI v1, γ = .98", 1, 0.98, 10, low),
        Lspi("lspi-v2", "LSPI v2, γ = .98", 2, 0.98, 5, low),
        Lspi("lspi-v1-undiscounted", "LSPI v1, γ = 1, stable K₀", 1, 1.0, 10, high),
        Lspi("lspi-v2-undiscounted", "LSPI v2, γ = 1, stable K₀", 2, 1.0, 5, high),
        RandomSearch("ars-v1", "ARS V1, N = 4", "V1"),
        RandomSearch("ars-v1-16", "ARS V1, N = 16", "V1", N=16),
        RandomSearch("ars-v2", "ARS V2", "V2"),
    ]


def extensions(problem: Problem) -> list[Method]:
    """Methods that are not in the paper."""
    K0 = _K0(problem, 0.98)
    return [
        Lspi("lspi-v1-annealed", "LSPI v1, γ from .98 to 1", 1, 0.98, 10, K0, annealed=True),
        Lspi("lspi-v2-annealed", "LSPI v2, γ from .98 to 1", 2, 0.98, 5, K0, annealed=True),
        RandomSearch("ars-v1-decaying", "ARS V1, decaying α", "V1", alpha=0.005, decay=10.0),
        RandomSearch("ars-v1-common", "ARS V1, common noise", "V1", common_noise=True),
        RandomSearch(
            "ars-v1-decaying-common", "ARS V1, decaying α, common noise", "V1", alpha=0.005, decay=10.0,
            common_noise=True,
        ),
    ]  # fmt: skip


def _K0(problem: Problem, gamma: float) -> tuple[tuple[float, ...], ...]:
    """LSPI's special initialisation: −.02 I or −.1 I for the paper's instance, initial_controller for others."""
    if problem.to_dict() == Problem.paper().to_dict():
        K = (-0.02 if gamma < 1 else -0.1) * np.eye(problem.n)
    else:
        K = initial_controller(problem, gamma)
    return tuple(tuple(row) for row in K.tolist())


def checkpoints(budget: int, unit: int) -> list[int]:
    """Checkpoints spread evenly on a logarithmic scale, each rounded down to a multiple of `unit`."""
    decades = range(math.floor(math.log10(FIRST_CHECKPOINT)), math.ceil(math.log10(budget)) + 1)
    grid = [round(step * 10**decade) for decade in decades for step in GRID]
    return sorted({t // unit * unit for t in [*grid, budget] if unit <= t <= budget})


def compare(
    problem: Problem | None = None,
    *,
    out: str | Path,
    trials: int = 100,
    budget: int = 1_000_000,
    seed: int = 0,
    with_extensions: bool = False,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Run what is not done yet, and write lqr.csv, table.md and the plots into the folder `out`.

    The results depend on the instance, the budget and the seed, not on `workers` or on interruptions.
    """
    trials = whole_number("trials", trials, 1, 10**6)
    budget = whole_number("budget", budget, FIRST_CHECKPOINT, 10**9)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    workers = whole_number("workers", workers, 1, 4096)
    problem, out = problem or Problem.paper(), Path(out)
    _claim(out, {"format": FORMAT, "problem": problem.to_dict(), "budget": budget, "seed": seed})
    paper, ours = methods(problem), extensions(problem) if with_extensions else []
    chosen = [*paper, *ours]
    blocks = [
        TrialBlock(method, problem, seed, budget, start, min(start + BLOCK, trials), out / "blocks")
        for method in chosen
        for start in range(0, trials, BLOCK)
    ]
    costs: dict[Path, FloatArray] = {}
    with closing(_run_all(blocks, workers)) as finished:  # closing it after an interruption ends the workers
        for block, block_costs, reused in finished:
            costs[block.path] = block_costs
            if progress:
                progress(Progress(block.method.label, len(costs), len(blocks), reused))
    results = [
        Result(
            method.name,
            method.label,
            method in ours,
            checkpoints(budget, method.unit),
            np.concatenate([costs[block.path] for block in blocks if block.method is method]),
        )
        for method in chosen
    ]
    return Comparison(problem, results, report.write(out, results, budget))


def read_results(path: Path, problem: Problem | None = None) -> list[Result]:
    """The results in lqr.csv (six digits), so that the table and plots can be redrawn without running trials."""
    problem = problem or Problem.paper()
    paper, ours = methods(problem), extensions(problem)
    costs: dict[str, dict[int, dict[int, float]]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_bytes(path).decode())):
            trial = costs.setdefault(row["method"], {}).setdefault(int(row["trial"]), {})
            trial[int(row["timesteps"])] = float(row["relative_cost"])
        results = [
            Result(
                method.name,
                method.label,
                method in ours,
                list(costs[method.name][0]),
                np.array([[trial[t] for t in costs[method.name][0]] for trial in costs[method.name].values()]),
            )
            for method in (*paper, *ours)
            if method.name in costs
        ]
        if not results:
            raise ValueError("it contains no method of the comparison")
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else one_line(error)
        raise FileError(
            f"{path} is damaged ({why}): remove it and run `ars lqr --out {path.parent}` to restore it."
        ) from error
    return results


@dataclass(frozen=True)
class TrialBlock:
    """Some trials of one method."""

    method: Method
    problem: Problem
    seed: int
    budget: int
    start: int
    stop: int
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / f"{self.method.name}-{self.start:04d}-{self.stop:04d}.json"

    def description(self) -> dict[str, Any]:
        """What the costs depend on, besides the folder's description: a method with other settings has other blocks."""
        settings = asdict(self.method)  # type: ignore[call-overload]
        del settings["label"]
        return {"format": FORMAT, "timesteps": checkpoints(self.budget, self.method.unit), "method": _json(settings)}

    def load(self) -> FloatArray | None:
        """The costs, if the same method has computed them before and the file is valid."""
        if not self.path.exists():
            return None
        try:
            saved = read_json(self.path)
            rows = saved.pop("relative_cost")
            if saved != self.description():
                return None
            costs = np.array([[math.inf if cost is None else float(cost) for cost in row] for row in rows])
        except (ArsError, KeyError, TypeError, ValueError):
            return None
        shape = (self.stop - self.start, len(saved["timesteps"]))
        return costs.reshape(shape) if costs.size == shape[0] * shape[1] and not np.isnan(costs).any() else None

    def compute(self) -> FloatArray:
        """Run the trials and save their costs."""
        from threadpoolctl import threadpool_limits

        timesteps = checkpoints(self.budget, self.method.unit)
        seeds = [trial_seed(self.seed, trial) for trial in range(self.start, self.stop)]
        with threadpool_limits(1):  # for small matrices, threads only cost time and could change bits
            costs = [self.method.run(self.problem, seed, timesteps) for seed in seeds]
        rows = [[cost if math.isfinite(cost) else None for cost in row] for row in costs]
        write_json(self.path, {**self.description(), "relative_cost": rows})
        return np.array(costs).reshape(len(seeds), len(timesteps))


def _claim(out: Path, description: dict[str, Any]) -> None:
    """Reserve the folder for one comparison: another instance, budget or seed needs another folder."""
    make_folder(out / "blocks")
    path = out / "comparison.json"
    if path.exists():
        saved = read_json(path)
        differs = [name for name, value in description.items() if saved.get(name) != value]
        if differs:
            raise FileError(f"{out} contains a comparison with another {differs[0]}: choose another --out.")
    else:
        write_json(path, description)


def _run_all(blocks: list[TrialBlock], workers: int) -> Generator[tuple[TrialBlock, FloatArray, bool], None, None]:
    """Each block with its costs and whether they were reused."""
    left = []
    for block in blocks:
        costs = block.load()
        if costs is None:
            left.append(block)
        else:
            yield block, costs, True
    if workers == 1 or len(left) < 2:
        for block in left:
            yield block, block.compute(), False
        return
    with closing(run_many(TrialBlock.compute, left, workers=workers)) as results:
        for i, result in results:
            if isinstance(result, WorkerError):
                raise WorkerError(f"{result} Finished blocks are saved: the same command continues.")
            if isinstance(result, ArsError):
                raise result
            yield left[i], result, False


def _json(value: Any) -> Any:
    """Tuples as lists, as JSON returns them."""
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list | tuple) else value
