"""One iteration on a cluster, event by event: the driver hands out blocks, CPUs run them, the driver takes them in.

The cutting into blocks is the executor's own; times of rollouts and costs of the driver are measured (measure.py).
"""

import heapq
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.executors import Batch
from ars.executors.ray import cut
from ars.noise import Stream

CPUS_PER_NODE = 48  # the paper's m5.24xlarge
BANDWIDTH = 1.25e9  # bytes a second out of the driver's machine: 10 Gbit/s
CPUS = (1, 2, 4, 8, 18, 32, 48, 96, 192, 384, 768, 1440, 2880, 5760, 8192)


@dataclass(frozen=True)
class Costs:
    """Seconds."""

    call: float  # the driver's work for one block, half of it to send, half to receive
    latency: float  # one block, there and back, besides the work
    merge: float  # the driver's work to unpack and merge one part
    update: float  # and for the rest of the iteration
    batch_bytes: float


class Iteration(NamedTuple):
    """Seconds of one iteration; how long the driver worked; the longest rollout."""

    seconds: float
    driver: float
    longest: float


def costs(measured: dict[str, Any], *, gather: bool, N: int) -> Costs:
    driver = measured["driver"]
    return Costs(
        driver["call"],
        driver["latency"],
        driver["merge" if gather else "merge_without"],
        driver["update"] * N / driver["N"],
        8.0 * (driver["p"] * driver["n"] + 2 * driver["n"]),
    )


def simulate(times: NDArray[np.float64], cpus: int, N: int, cost: Costs) -> Iteration:
    """One iteration whose 2N rollouts take `times`: (N, 2)."""
    batch = Batch(np.zeros((1, 1)), np.zeros(1), np.ones(1), 1.0, N, (1, -1), Stream.TRAINING, 0, 0, 1, 0.0, True)
    blocks = cut(batch, cpus)
    column = {1: 0, -1: 1}
    work = deque(
        float(times[block.start : block.stop, [column[sign] for sign in block.signs]].sum()) for block in blocks
    )
    nodes = -(-cpus // CPUS_PER_NODE)
    clock = cost.batch_bytes * nodes / BANDWIDTH  # until the batch is everywhere
    busy = 0.0
    returns: list[float] = []  # when results arrive

    def hand_out() -> None:
        nonlocal clock, busy
        clock += cost.call / 2
        busy += cost.call / 2
        heapq.heappush(returns, clock + cost.latency + work.popleft())

    while work and len(returns) < cpus:
        hand_out()
    while returns:
        clock = max(clock, heapq.heappop(returns)) + cost.call / 2
        busy += cost.call / 2
        if work:
            hand_out()
    end = cost.merge * len(blocks) + cost.update
    return Iteration(clock + end, busy + end, float(times.max()))


def curve(measured: dict[str, Any], phase: str, N: int, *, gather: bool, repetitions: int = 20) -> list[Iteration]:
    """The mean iteration for each number of CPUs, with rollouts drawn from the measured ones."""
    rng = np.random.default_rng(0)
    found = np.array(measured["rollouts"][phase]["seconds" if gather else "seconds_without"])
    cost = costs(measured, gather=gather, N=N)
    samples = [rng.choice(found, (N, 2)) for _ in range(repetitions)]
    return [
        Iteration(*np.mean([simulate(times, cpus, N, cost) for times in samples], axis=0).tolist()) for cpus in CPUS
    ]


def mixed(gathering: list[Iteration], without: list[Iteration], K: int) -> list[Iteration]:
    """Iterations of a schedule: one of K gathers states."""
    return [
        Iteration(*((np.array(one) + (K - 1) * np.array(other)) / K).tolist())
        for one, other in zip(gathering, without, strict=True)
    ]


def stops_scaling(iterations: list[Iteration]) -> int:
    """The last number of CPUs in the list for which more of them, up to the next, still gave half of what they cost."""
    seconds = [iteration.seconds for iteration in iterations]
    last = 0
    for i in range(len(CPUS) - 1):
        if seconds[i] / seconds[i + 1] - 1 >= 0.5 * (CPUS[i + 1] / CPUS[i] - 1):
            last = i + 1
        else:
            break
    return CPUS[last]
