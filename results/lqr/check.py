"""What the comparison must show, line by line, from lqr.csv beside this file: `python results/lqr/check.py`."""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from ars.experiments.lqr.statistics import Result, first, index_at, stabilising
from ars.statistics import percentile

NOMINAL = ("nominal-6", "nominal-302")
LSPI = ("lspi-v1", "lspi-v2", "lspi-v1-undiscounted", "lspi-v2-undiscounted")


def read(path: Path) -> dict[str, Result]:
    costs: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with path.open() as file:
        for row in csv.DictReader(file):
            costs[row["method"]][int(row["trial"])][int(row["timesteps"])] = float(row["relative_cost"])
    return {
        name: Result(name, name, False, list(trials[0]), np.array([list(trials[i].values()) for i in sorted(trials)]))
        for name, trials in costs.items()
    }


def main() -> int:
    results = read(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "lqr.csv")
    held = True

    def check(what: str, value: float, holds: bool) -> None:
        nonlocal held
        held = held and holds
        print(f"{'holds' if holds else 'FAILS'}  {what}: {value:g}")

    def share(name: str, t: int) -> float:
        result = results[name]
        i = index_at(result.timesteps, t)
        return float(stabilising(result.costs)[i])

    def median(name: str, t: int) -> float:
        result = results[name]
        i = index_at(result.timesteps, t)
        return float(percentile(result.costs, 50)[i])

    def at_least(name: str, t: int, least: float) -> None:
        check(f"{name} stabilises at {t}, at least {least:g}", share(name, t), share(name, t) >= least)

    def at_most(name: str, t: int, most: float, least: float = 0.0) -> None:
        value = median(name, t)
        check(f"{name} median at {t}, in [{least:g}, {most:g}]", value, least <= value <= most)

    at_least("nominal-6", 600, 0.85)
    at_least("nominal-6", 3000, 0.98)
    at_most("nominal-6", 3000, 0.10)
    at_least("nominal-302", 604, 0.98)
    at_most("nominal-302", 604, 0.02)
    at_least("lspi-v1", 10_000, 0.90)
    at_least("lspi-v1", 30_000, 0.98)
    at_most("lspi-v1", 100_000, 0.085, least=0.06)
    at_least("lspi-v2", 30_000, 0.93)
    at_most("lspi-v1-undiscounted", 30_000, 0.02)
    at_most("lspi-v2-undiscounted", 30_000, 0.035)
    at_least("ars-v1", 50_000, 0.90)
    at_least("ars-v1", 100_000, 0.99)
    at_most("ars-v1", 100_000, 0.10)
    at_most("ars-v1-16", 1_000_000, 0.03)
    if "ars-v1-decaying" in results:
        at_most("ars-v1-decaying", 200_000, 0.06)
        at_most("ars-v1-decaying", 1_000_000, 0.04)
    ever = float(stabilising(results["ars-v2"].costs).max())
    check("ars-v2 stabilises at any time, at most 0", ever, ever == 0)

    for goal, reached in (
        ("90% stabilising", lambda costs: stabilising(costs) >= 0.9),
        ("a median of .10", lambda costs: percentile(costs, 50) <= 0.1),
    ):
        times = {name: first(r.timesteps, reached(r.costs)) or np.inf for name, r in results.items()}
        slowest_nominal, lspi = max(times[name] for name in NOMINAL), [times[name] for name in LSPI]
        check(f"timesteps to {goal}: slowest nominal", slowest_nominal, slowest_nominal < min(lspi))
        check(f"timesteps to {goal}: fastest LSPI", min(lspi), slowest_nominal < min(lspi))
        check(f"timesteps to {goal}: slowest LSPI", max(lspi), max(lspi) < times["ars-v1"])
        check(f"timesteps to {goal}: ARS V1", times["ars-v1"], max(lspi) < times["ars-v1"])
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
