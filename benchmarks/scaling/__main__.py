"""python -m benchmarks.scaling [--quick] [--simulate-only] [--out FOLDER]"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.scaling.simulate import CPUS, Iteration, curve, mixed, stops_scaling

RESULTS = Path(__file__).parent / "results"
K = 10
LARGE_N = 8192

# Tables 3 and 4 of the paper, and its section 4.4: minutes to an average reward of 6000 on Humanoid-v1.
PUBLISHED = [
    ("ARS V2, c5.9xlarge", 18, 41.0),
    ("ARS V2, m5.24xlarge", 48, 21.0),
    ("ES", 18, 657.0),
    ("ES", 1440, 10.0),
    ("ES on Ray", 8192, 3.7),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a trial")
    parser.add_argument("--simulate-only", action="store_true", help="use the measurements in the folder")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "measured.json"
    if not arguments.simulate_only:
        from benchmarks.scaling.measure import measure

        measured = measure(quick=arguments.quick, say=lambda text: print(text, "…", file=sys.stderr, flush=True))
        file.write_text(json.dumps(measured) + "\n")
    measured = json.loads(file.read_text())
    curves = all_curves(measured, repetitions=3 if arguments.quick else 20)
    text = report(measured, curves)
    (arguments.out / "scaling.md").write_text(text)
    draw(curves, arguments.out)
    print(text)


def all_curves(measured: dict[str, Any], repetitions: int) -> dict[tuple[str, int, int], list[Iteration]]:
    """(phase, N, stats-every) → the iteration for each number of CPUs."""
    curves = {}
    for phase, N, count in (("start", 230, repetitions), ("learnt", 230, repetitions), ("learnt", LARGE_N, 2)):
        gathering = curve(measured, phase, N, gather=True, repetitions=count)
        without = curve(measured, phase, N, gather=False, repetitions=count)
        curves[phase, N, 1] = gathering
        curves[phase, N, K] = mixed(gathering, without, K)
    return curves


def report(measured: dict[str, Any], curves: dict[tuple[str, int, int], list[Iteration]]) -> str:
    """The tables, in Markdown."""
    overhead, driver = measured["overhead"], measured["driver"]
    machine = f"{measured['cores']} cores; " + ", ".join(f"{k} {v}" for k, v in measured["versions"].items())
    lines = [
        "<!-- Written by python -m benchmarks.scaling -->",
        f"Measured on {machine}{' (quick)' if measured['quick'] else ''}.",
        "",
        "## Ray against threads, two CPUs",
        f"{overhead['task']}, N = {overhead['N']}, whole iterations in turns, "
        f"best of {len(overhead['seconds']['ray'])}: "
        f"threads {overhead['best']['threads']:.3f} s, Ray {overhead['best']['ray']:.3f} s, "
        f"overhead {100 * overhead['overhead']:.1f} %.",
        "",
        f"## Driver, {driver['task']}, N = {driver['N']}",
        "| iteration | bytes out | bytes in | driver, processor seconds |",
        "|---|---:|---:|---:|",
    ]
    for name, label in (("gathering", "gathers states"), ("without", "does not")):
        row = driver[name]
        lines.append(f"| {label} | {row['wire_bytes_out']:,} | {row['wire_bytes_in']:,} | {row['seconds']:.3f} |")
    lines += [
        "",
        f"In {driver['blocks']} blocks of directions, on one node with two CPUs. The simulation takes from here: "
        f"{1e3 * driver['call']:.2f} ms of the driver a block, {1e3 * driver['latency']:.2f} ms there and back, "
        f"{1e6 * driver['merge']:.1f} µs to unpack and merge a block with statistics "
        f"({1e6 * driver['merge_without']:.1f} µs without), {1e3 * driver['update']:.1f} ms for the update.",
        "",
        "## Rollouts of Humanoid-v5, processor seconds",
        "| phase | mean | longest | mean without statistics | mean steps | longest steps |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for phase, rollouts in measured["rollouts"].items():
        seconds, without = rollouts["seconds"], rollouts["seconds_without"]
        lines.append(
            f"| {phase} | {sum(seconds) / len(seconds):.4f} | {max(seconds):.4f} | {sum(without) / len(without):.4f} | "
            f"{rollouts['mean_steps']:.0f} | {rollouts['longest_steps']} |"
        )
    keys = list(curves)
    lines += [
        "",
        "## Simulated seconds an iteration",
        "| CPUs | " + " | ".join(f"{phase}, N = {N}, K = {k}" for phase, N, k in keys) + " |",
        "|---:|" + "---:|" * len(keys),
    ]
    for i, cpus in enumerate(CPUS):
        lines.append(f"| {cpus} | " + " | ".join(f"{curves[key][i].seconds:.4f}" for key in keys) + " |")
    lines += ["", "K is `--stats-every`. More CPUs still give at least half of what they cost, up to:", ""]
    for key in keys:
        cpus = stops_scaling(curves[key])
        at = curves[key][CPUS.index(cpus)]
        last = curves[key][-1]
        lines.append(
            f"- {key[0]}, N = {key[1]}, K = {key[2]}: {cpus} CPUs, {at.seconds:.3f} s, of which the driver works "
            f"{at.driver:.3f} s for {at.blocks:.0f} blocks, and the longest rollout takes {at.longest:.3f} s; "
            f"with {CPUS[-1]} CPUs {last.seconds:.3f} s."
        )
    lines += [
        "",
        "## Beside what is published",
        "Minutes to a reward of 6000 on Humanoid-v1 (the paper's tables and section 4.4), their speed-up over 18 CPUs",
        "(ES on Ray: over ES), and ours of one iteration in the simulation.",
        "",
        "| | CPUs | minutes | speed-up | ideal | ours, N = 230 | ours, N = 8192 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    base = {"ARS": 41.0, "ES": 657.0}
    for name, cpus, minutes in PUBLISHED:
        ours = [
            curves["learnt", N, 1][CPUS.index(18)].seconds / curves["learnt", N, 1][CPUS.index(cpus)].seconds
            for N in (230, LARGE_N)
        ]
        lines.append(
            f"| {name} | {cpus} | {minutes:g} | {base[name.split()[0]] / minutes:.1f} | {cpus / 18:.1f} | "
            + " | ".join(f"{value:.1f}" for value in ours)
            + " |"
        )
    return "\n".join(lines) + "\n"


def draw(curves: dict[tuple[str, int, int], list[Iteration]], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    colours = {("start", 230): "C0", ("learnt", 230): "C1", ("learnt", LARGE_N): "C2"}
    for (phase, N, k), iterations in curves.items():
        seconds = [iteration.seconds for iteration in iterations]
        style = "-" if k == 1 else "o"  # the two hardly differ: circles on a line
        label = f"{phase}, N = {N}, stats-every {k}"
        axes.loglog(CPUS, seconds, style, color=colours[phase, N], fillstyle="none", markersize=4, label=label)
        if k == 1:
            axes.loglog(CPUS, [seconds[0] / cpus for cpus in CPUS], ":", color=colours[phase, N], linewidth=0.8)
    for cpus, label in ((18, "ARS 18"), (48, "ARS 48"), (1440, "ES 1440"), (8192, "ES on Ray 8192")):
        axes.axvline(cpus, color="0.8", linewidth=0.8, zorder=0)
        axes.text(cpus, 1.01, label, transform=axes.get_xaxis_transform(), ha="center", fontsize=7)
    axes.set(xlabel="CPUs", ylabel="seconds an iteration (simulated)", ylim=(1e-2, None))
    axes.legend(fontsize=7)
    for kind in ("png", "svg"):
        figure.savefig(out / f"scaling.{kind}", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
