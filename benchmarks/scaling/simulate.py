"""One iteration on a cluster, event by event: the driver sends blocks, nodes run them, the driver collects the results.

The executor's own code divides the batch into blocks; times of rollouts and costs of the driver are measured
(measure.py); nodes and network are assumed (below).
"""

import heapq
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.executors import Batch
from ars.executors.ray import Block, BlockScheduler, wants_more
from ars.noise import Stream
from ars.policy import LinearPolicy

CPUS_PER_NODE = 48  # the paper's m5.24xlarge
BANDWIDTH = 1.25e9  # bytes per second out of the driver's machine: 10 Gbit/s
CPUS = (1, 2, 4, 8, 18, 32, 48, 96, 192, 384, 768, 1440, 2880, 5760, 8192)


@dataclass(frozen=True)
class Costs:
    """Seconds."""

    call: float  # of the driver for one block, half to send and half to receive
    latency: float  # round trip of one block, besides the work
    merge: float  # of the driver to unpack and merge one block
    update: float  # of the driver for the rest of the iteration
    batch_bytes: float


class Iteration(NamedTuple):
    """Seconds of one iteration, of the driver's work and of the longest rollout; number of blocks."""

    seconds: float
    driver: float
    longest: float
    blocks: float


def costs(measured: dict[str, Any], *, gather: bool, N: int) -> Costs:
    driver = measured["driver"]
    return Costs(
        driver["call"],
        driver["latency"],
        driver["merge" if gather else "merge_without"],
        driver["update"] * N / driver["N"],
        8.0 * (driver["p"] * driver["n"] + 2 * driver["n"]),
    )


class Node:
    """`threads` CPUs that take the rollouts of its blocks one by one, in order."""

    def __init__(self, threads: int) -> None:
        self.threads, self.blocks, self.rollouts = threads, 0, 0
        self._free = [0.0] * threads  # when each thread becomes idle

    def run(self, times: NDArray[np.float64], arrival: float) -> float:
        """When all of these rollouts are done."""
        ends = []
        for seconds in times.ravel().tolist():
            ends.append(max(heapq.heappop(self._free), arrival) + seconds)
            heapq.heappush(self._free, ends[-1])
        return max(ends)


def nodes_of(cpus: int) -> list[Node]:
    whole, rest = divmod(cpus, CPUS_PER_NODE)
    return [Node(CPUS_PER_NODE) for _ in range(whole)] + ([Node(rest)] if rest else [])


def simulate(times: NDArray[np.float64], cpus: int, cost: Costs) -> Iteration:
    """One iteration whose 2N rollouts take `times`: (N, 2)."""
    N = len(times)
    policy = LinearPolicy(np.zeros((1, 1)), np.zeros(1), np.ones(1))
    batch = Batch(policy=policy, size=N, signs=(1, -1), stream=Stream.TRAINING, seed=0, j=0, H=1, gather=True)
    left, nodes = BlockScheduler(batch, cpus), nodes_of(cpus)
    clock = cost.batch_bytes * len(nodes) / BANDWIDTH  # until every node has the batch
    busy, blocks = 0.0, 0
    answers: list[tuple[float, int, Block]] = []  # when they arrive, from which node
    hungry = deque(range(len(nodes)))
    while left or answers:
        while left and hungry:
            i = hungry.popleft()
            node, block = nodes[i], left.take(nodes[i].threads)
            clock += cost.call / 2
            busy += cost.call / 2
            blocks += 1
            node.blocks += 1
            node.rollouts += block.rollouts
            end = node.run(_of(times, block), clock + cost.latency / 2)
            heapq.heappush(answers, (end + cost.latency / 2, i, block))
            if wants_more(node.threads, node.blocks, node.rollouts):
                hungry.append(i)
        arrival, i, block = heapq.heappop(answers)
        nodes[i].blocks -= 1
        nodes[i].rollouts -= block.rollouts
        clock = max(clock, arrival) + cost.call / 2
        busy += cost.call / 2
        if i not in hungry:
            hungry.append(i)
    end = cost.merge * blocks + cost.update
    return Iteration(clock + end, busy + end, float(times.max()), blocks)


def _of(times: NDArray[np.float64], block: Block) -> NDArray[np.float64]:
    return times[block.start : block.stop, [(1, -1).index(sign) for sign in block.signs]]


def curve(measured: dict[str, Any], phase: str, N: int, *, gather: bool, repetitions: int = 20) -> list[Iteration]:
    """The mean iteration for each number of CPUs, with rollouts drawn from the measured ones."""
    rng = np.random.default_rng(0)
    seconds = np.array(measured["rollouts"][phase]["seconds" if gather else "seconds_without"])
    cost = costs(measured, gather=gather, N=N)
    samples = [rng.choice(seconds, (N, 2)) for _ in range(repetitions)]
    return [Iteration(*np.mean([simulate(times, cpus, cost) for times in samples], axis=0).tolist()) for cpus in CPUS]


def mixed(gathering: list[Iteration], without: list[Iteration], K: int) -> list[Iteration]:
    """The mean iteration of a schedule in which one of K iterations gathers states."""
    return [
        Iteration(*((np.array(one) + (K - 1) * np.array(other)) / K).tolist())
        for one, other in zip(gathering, without, strict=True)
    ]


def stops_scaling(iterations: list[Iteration]) -> int:
    """The largest number of CPUs up to which each increase still gave at least half of its ideal speed-up."""
    seconds = [iteration.seconds for iteration in iterations]
    last = 0
    for i in range(len(CPUS) - 1):
        if seconds[i] / seconds[i + 1] - 1 >= 0.5 * (CPUS[i + 1] / CPUS[i] - 1):
            last = i + 1
        else:
            break
    return CPUS[last]
