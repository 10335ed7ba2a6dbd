"""Table 7: minutes to 6000 on Humanoid, by percentile over seeds. Its published values are those of table 6."""

from ars.paper.artefact import ENOUGH, NOTHING, PERCENTILES, Artefact, Shown, Table
from ars.paper.table6 import PUBLISHED, SEEDS, humanoids, minutes, notes, our_name, runs


def table(shown: Shown) -> Table:
    group = humanoids(shown)
    rows = [
        [m.algorithm, m.instance, str(m.cpus), *(NOTHING if x is None else str(x) for x in m.minutes)]
        for m in PUBLISHED
        if m.algorithm != "ES"
    ]
    if len(group) >= ENOUGH:
        rows.append([*our_name(group, shown), *(f"{more}{time:.0f}" for more, time in minutes(group, PERCENTILES))])
    elif group:
        rows.append([*our_name(group, shown), *[NOTHING] * len(PERCENTILES)])
    else:
        rows.append(["ours, V2", *[NOTHING] * (2 + len(PERCENTILES))])
    columns = ["algorithm", "machine", "CPUs", *(f"{percent}th" for percent in PERCENTILES)]
    return Table(f"Table 7: minutes to 6000 on {shown.tasks[0]}, by percentile", columns, rows, notes(group))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table7")


ARTEFACT = Artefact("Time to 6000 on Humanoid, by percentile", ("Humanoid",), runs, draw, SEEDS, many=True)
