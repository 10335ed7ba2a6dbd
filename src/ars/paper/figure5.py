"""Figure 5: nominal control, LSPI and ARS on LQR. It needs no runs, only the comparison of `ars lqr` in lqr/lqr.csv."""

from pathlib import Path

from ars.paper.artefact import Artefact, Shown

TRIALS, BUDGET, SEED = 100, 1_000_000, 0
COST = "about 10 min of one core (ars lqr)"


def is_there(out: Path) -> bool:
    return (out / "lqr" / "lqr.csv").exists()


def compare(out: Path) -> None:
    """Run the comparison on all cores, or continue an interrupted one."""
    from ars.experiments.lqr import comparison
    from ars.workers import cores

    comparison.compare(out=out / "lqr", trials=TRIALS, budget=BUDGET, seed=SEED, workers=cores())


def draw(shown: Shown) -> dict[str, bytes]:
    from ars.experiments.lqr.comparison import read_results
    from ars.experiments.lqr.report import files

    if not is_there(shown.out):
        return {}
    drawn = files(read_results(shown.out / "lqr" / "lqr.csv"), BUDGET)
    return {f"lqr/{name}": content for name, content in drawn.items()}


ARTEFACT = Artefact(
    "LQR: nominal control, LSPI and ARS",
    (),
    lambda tasks, seeds: [],
    draw,
    files=("lqr/table.md", "lqr/stabilising.png", "lqr/relative_cost.png"),
)
