"""Measurements: the overhead of Ray, its bytes, the driver's own work, and the times of rollouts."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import ars
from ars.config import Config
from ars.executors import Batch, Executor, Rollouts, cores, make_executor, run_one
from ars.executors.ray import Block, BlockScheduler, pack, put_together, unpack
from ars.moments import Moments
from ars.presets import make_config
from ars.records import State
from ars.tasks import factory, make
from ars.training import training_batch, update
from ars.versions import versions

OVERHEAD = "HalfCheetah-v5", 32
LARGE = "Humanoid-v5", 230


def measure(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """All measurements, ready for JSON."""
    say("overhead of Ray against threads")
    overhead = measure_overhead(repetitions=3 if quick else 10)
    say("bytes and driver seconds")
    driver = measure_driver(iterations=2 if quick else 6)
    say("rollout times")
    rollouts = {
        "start": rollout_times(trained(0), count=200 if quick else 920),
        "learnt": rollout_times(trained(40_000 if quick else 400_000), count=60 if quick else 460),
    }
    return {
        "versions": versions(), "cores": cores(), "quick": quick,
        "overhead": overhead, "driver": driver, "rollouts": rollouts,
    }  # fmt: skip


def settings(task: str, N: int, **others: Any) -> Config:
    made = make(task)
    return make_config(task, H=made.H, shift=made.survival_bonus, N=N, eval_every=0, **others)


def iteration(config: Config, state: State, executor: Executor) -> tuple[int, int]:
    """One whole iteration: batch, rollouts, update."""
    rollouts = executor.run(training_batch(config, state))
    update(config, state, rollouts)
    return rollouts.wire or (0, 0)


# -- Ray against threads ---------------------------------------------------------------------------------------------


def measure_overhead(repetitions: int) -> dict[str, Any]:
    """Whole iterations on two CPUs, in turns; the best counts, because noise only makes them slower."""
    task, N = OVERHEAD
    config = settings(task, N, variant="V2")
    state = State.initial(config.search, make(task).p, make(task).n)
    kinds = {"threads": make_executor(factory(task), 2), "ray": make_executor(factory(task), 2, kind="ray")}
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        for executor in kinds.values():
            iteration(config, state, executor)  # starts workers, compiles
        for _ in range(repetitions):
            for kind, executor in kinds.items():
                start = time.perf_counter()
                iteration(config, state, executor)
                seconds[kind].append(time.perf_counter() - start)
    finally:
        for executor in kinds.values():
            executor.close()
    best = {kind: min(values) for kind, values in seconds.items()}
    return {"task": task, "N": N, "seconds": seconds, "best": best, "overhead": best["ray"] / best["threads"] - 1}


# -- the driver ------------------------------------------------------------------------------------------------------


def measure_driver(iterations: int) -> dict[str, Any]:
    """Bytes and processor seconds of the driver (all its threads), in iterations with and without statistics."""
    task, N = LARGE
    config = settings(task, N, variant="V2", stats_every=2)
    state = State.initial(config.search, make(task).p, make(task).n)
    batch = training_batch(config, state)
    result: dict[str, Any] = {"task": task, "N": N, "p": state.M.shape[0], "n": state.M.shape[1]}
    executor = make_executor(factory(task), 2, kind="ray")
    try:
        iteration(config, state, executor)
        for name, at in (("gathering", state), ("without", replace(state, j=1))):
            seconds, wire = [], (0, 0)
            for _ in range(iterations):
                start = time.process_time()
                wire = iteration(config, at, executor)
                seconds.append(time.process_time() - start)
            result[name] = {"wire_bytes_out": wire[0], "wire_bytes_in": wire[1], "seconds": min(seconds)}
        result["blocks"] = count_blocks(batch)
        tiny = replace(batch, H=1, gather=False)
        few, many = (replace(tiny, size=size) for size in (1, N))
        spent = [best_of(20, partial(executor.run, one), clock=time.process_time) for one in (few, many)]
        result["call"] = (spent[1] - spent[0]) / (count_blocks(many) - count_blocks(few))
        result["latency"] = best_of(50, partial(executor.run, few))
    finally:
        executor.close()
    result["update"] = best_of(5, partial(update, config, state, fake(batch)))
    result["merge"] = merge_seconds(batch)
    result["merge_without"] = merge_seconds(replace(batch, gather=False))
    return result


def count_blocks(batch: Batch) -> int:
    """The number of blocks on one node with two CPUs."""
    left, count = BlockScheduler(batch, 2), 0
    while left:
        left.take(2)
        count += 1
    return count


def best_of(repetitions: int, call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    best = float("inf")
    for _ in range(repetitions):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def fake(batch: Batch) -> Rollouts:
    """Rollouts of the right shape."""
    rng = np.random.default_rng(0)
    shape, n = (batch.size, len(batch.signs)), batch.n
    moments = Moments(np.array(20, dtype=np.int64), rng.standard_normal(n), rng.random(n))
    return Rollouts(rng.standard_normal(shape), np.full(shape, 20, dtype=np.int64), moments)


def merge_seconds(batch: Batch) -> float:
    """The driver's time to unpack and merge one block of many."""
    n, gather = batch.n, batch.gather
    content = pack(fake(replace(batch, size=1)), gather)
    blocks = [Block(k, k + 1, batch.signs) for k in range(batch.size)]
    seconds = best_of(5, lambda: put_together(batch, [(block, unpack(content, block, n, gather)) for block in blocks]))
    return seconds / len(blocks)


# -- rollouts --------------------------------------------------------------------------------------------------------


def trained(timesteps: int) -> tuple[Config, State]:
    """Humanoid after a short training with its survival bonus, which teaches it to stand."""
    task, _ = LARGE
    config = settings(task, 32, variant="V2")
    state = State.initial(config.search, make(task).p, make(task).n)
    if timesteps:
        for record in ars.train(task, N=32, shift=0.0, eval_every=0, timesteps=timesteps, workers=cores()):
            state = record.state
    return config, state


def rollout_times(at: tuple[Config, State], *, count: int) -> dict[str, Any]:
    """Processor seconds of single rollouts with and without statistics, and their steps."""
    config, state = at
    task = make(config.task)
    batch = replace(training_batch(config, state), size=(count + 1) // 2)
    run_one(task, batch, 0, 1)
    times: dict[bool, list[float]] = {True: [], False: []}
    steps = []
    for k, sign in batch.units()[:count]:
        for gather in (True, False):
            start = time.thread_time()
            rollout = run_one(task, replace(batch, gather=gather), k, sign)
            times[gather].append(time.thread_time() - start)
        steps.append(rollout.steps)
    return {
        "seconds": times[True],
        "seconds_without": times[False],
        "mean_steps": statistics.mean(steps),
        "longest_steps": max(steps),
    }
