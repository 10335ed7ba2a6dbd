"""The caps: the runs of table 1 and figure 3 that failed within our cap of episodes go on to the authors' 1000
iterations. They are the same runs, continued; the other tables and figures show them up to their cap."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ars.curves import Curve
from ars.experiments.run_specs import CAPS, RunSpec, choose_curves, first_episodes
from ars.experiments.seeds import PAPER_SEEDS
from ars.paper import figure3, table1
from ars.paper.artefact import MANY, NOTHING, ROBOTS, Artefact, Shown, Table
from ars.presets import THRESHOLDS, paper_robot

ITERATIONS = 1000  # the fewest in the authors' published logs of Humanoid


def within_cap(tasks: Sequence[str], seeds: Sequence[int]) -> list[RunSpec]:
    """The runs of the paper's table 1 and figure 3, up to the threshold: BRS is in neither."""
    specs = table1.runs(tasks, [seed for seed in seeds if seed in PAPER_SEEDS])
    specs += figure3.runs(tasks, [seed for seed in seeds if seed in MANY])
    return [to_threshold(spec) for spec in specs if spec.config.label != "BRS"]


def to_threshold(spec: RunSpec) -> RunSpec:
    return replace(spec, until=THRESHOLDS[paper_robot(spec.task)])


def longer(spec: RunSpec) -> RunSpec:
    return replace(spec, episodes=authors_cap(spec))


def authors_cap(spec: RunSpec) -> int:
    """In episodes."""
    return ITERATIONS * first_episodes(spec.config)


def outcomes(specs: Sequence[RunSpec], curves: Sequence[Curve]) -> dict[RunSpec, Curve]:
    """The runs whose outcome within our cap is known, each with its whole curve."""
    there = {curve.identity: curve for curve in choose_curves(specs, curves)}
    found = {spec: there[spec.identity] for spec in specs if spec.identity in there}
    return {spec: curve for spec, curve in found.items() if spec.met_by(curve)}


def failed(spec: RunSpec, curve: Curve) -> bool:
    """Whether a run did not arrive within our cap and can go on: with few directions, 1000 iterations are within it."""
    cap = CAPS[paper_robot(spec.task)]
    goes_on = not curve.failed and authors_cap(spec) > cap
    return goes_on and curve.up_to(cap).best < THRESHOLDS[paper_robot(spec.task)]


def going_on(tasks: Sequence[str], seeds: Sequence[int], curves: Sequence[Curve]) -> list[RunSpec]:
    known = outcomes(within_cap(tasks, seeds), curves)
    return [longer(spec) for spec, curve in known.items() if failed(spec, curve)]


def table(shown: Shown) -> Table:
    known = outcomes(within_cap(shown.tasks, shown.seeds), shown.curves)
    groups: dict[tuple[str, str], dict[RunSpec, Curve]] = {}
    for spec, curve in known.items():
        groups.setdefault((spec.task, spec.config.label), {})[spec] = curve
    rows = []
    for (task, label), group in sorted(groups.items(), key=lambda item: shown.tasks.index(item[0][0])):
        threshold = THRESHOLDS[paper_robot(task)]
        left = {spec: curve for spec, curve in group.items() if failed(spec, curve)}
        done = [curve.up_to(authors_cap(spec)) for spec, curve in left.items() if longer(spec).met_by(curve)]
        later = sorted(filter(math.isfinite, (c.reach(threshold) for c in done)))
        each = f": {', '.join(f'{episodes:.0f}' for episodes in later)}" if later else ""
        cap = CAPS[paper_robot(task)]
        arrived = sum(curve.up_to(cap).best >= threshold for curve in group.values())
        iterations = cap // first_episodes(next(iter(group)).config)
        went_on = f"{len(later)} of {len(done)}{each}" if done else NOTHING
        rows.append([task, label, str(iterations), f"{arrived} of {len(group)}", str(len(left)), went_on])
    note = (
        "Runs of table 1 and figure 3 whose outcome within our cap is known, on all their seeds. Those that did not "
        f"arrive can go on, unless they diverged or our cap is {ITERATIONS} iterations or more. The last column says "
        f"how many of those that went on to {ITERATIONS} iterations arrived, each after so many episodes. The authors' "
        "published logs of Humanoid have as many or more."
    )
    columns = ["task", "variant", "our cap, iterations", "arrived within it", "can go on", "arrived later"]
    return Table(f"The failed seeds, to {ITERATIONS} iterations", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("caps")


ARTEFACT = Artefact(
    f"The failed seeds, to {ITERATIONS} iterations", ROBOTS, lambda tasks, seeds: [], draw, (*PAPER_SEEDS, *MANY),
    many=True, then=going_on, beyond=True, whole=True,
)  # fmt: skip
