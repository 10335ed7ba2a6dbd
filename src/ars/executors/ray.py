"""Rollouts on the CPUs of a Ray cluster, or of a private Ray on this machine.

The batch is sent once per node; each call names a block of directions and returns its rewards, lengths and merged
moments. A worker that dies is replaced, a node that dies is dropped, and a node that joins is used; because results
depend on keys only, the bits do not change.
"""

import pickle
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars import workers
from ars.cluster import PATIENCE, brief, connect, disconnect, kill, nodes, on_node, put, ray
from ars.errors import ArsError, SettingError, WorkerError
from ars.executors.batch import Batch, Rollouts, join
from ars.executors.serial import SerialExecutor
from ars.executors.threads import ThreadExecutor
from ars.files import one_line
from ars.moments import Moments, merge_tree, stack
from ars.noise import draw_table, forget_tables, keep_table
from ars.tasks import TaskFactory
from ars.versions import versions
from ars.workers import MOST_DEATHS, prepare_node

MOST_BLOCKS = 8  # per worker at a time
START_SECONDS = 300.0  # to wait for the first worker: another job may occupy the CPUs

run_many = partial(workers.run_many, backend="ray")  # many calls instead of the rollouts of one run


# -- what is sent ----------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """Directions start … stop − 1, with one rollout per sign."""

    start: int
    stop: int
    signs: tuple[int, ...]

    @property
    def rollouts(self) -> int:
        return (self.stop - self.start) * len(self.signs)


class BlockScheduler:
    """Divides a batch into aligned blocks on demand: large ones first, to need few messages, then smaller and smaller
    ones, to balance short and long episodes."""

    def __init__(self, batch: Batch, cpus: int) -> None:
        self._N, self._signs, self._cpus = batch.size, batch.signs, cpus
        self._next = 0  # direction
        self._halves: list[Block] = []  # single rollouts of a direction, if CPUs would otherwise be idle
        self._lost: list[Block] = []  # to be run again

    def __bool__(self) -> bool:
        """Whether there are blocks left."""
        return bool(self._lost or self._halves or self._next < self._N)

    def take(self, threads: int) -> Block:
        """The next block for a worker with this many threads: about two thirds of its share of the rest."""
        for waiting in (self._lost, self._halves):
            if waiting:
                return waiting.pop()
        start, left = self._next, self._N - self._next
        if threads == 1 and self._cpus > self._N:
            self._next += 1
            self._halves = [Block(start, start + 1, (sign,)) for sign in self._signs]
            return self._halves.pop()
        size = power_of_two(max(2 * left * threads // (3 * self._cpus), threads // 2, 1))
        if start:
            size = min(size, start & -start)  # aligned
        self._next = min(start + size, self._N)
        return Block(start, self._next, self._signs)

    def give_back(self, block: Block) -> None:
        """Repeat a block as two parts, which isolates a direction that kills workers."""
        length = block.stop - block.start
        middle = block.start + power_of_two(length - 1) if length > 1 else block.start
        parts = [Block(middle, block.stop, block.signs), Block(block.start, middle, block.signs)]
        self._lost += [part for part in parts if part.rollouts]


def wants_more(threads: int, blocks: int, rollouts: int) -> bool:
    """Whether a worker with this many blocks and rollouts should get another block, so that no thread is idle."""
    return blocks < 2 or (rollouts < 2 * threads and blocks < MOST_BLOCKS)


def power_of_two(number: int) -> int:
    """The largest power of two up to a number."""
    return 1 << (number.bit_length() - 1)


def put_together(batch: Batch, parts: list[tuple[Block, Rollouts]]) -> Rollouts:
    """All blocks as one result."""
    by_start: dict[int, dict[tuple[int, ...], Rollouts]] = {}
    for block, rollouts in parts:
        by_start.setdefault(block.start, {})[block.signs] = rollouts
    return join([_join_signs(batch, by_start[start]) for start in sorted(by_start)])


def _join_signs(batch: Batch, by_signs: dict[tuple[int, ...], Rollouts]) -> Rollouts:
    """A block unchanged, or one direction from its single rollouts, as in `assemble`."""
    if batch.signs in by_signs:
        return by_signs[batch.signs]
    parts = [by_signs[sign,] for sign in batch.signs]
    rewards, steps = np.hstack([part.rewards for part in parts]), np.hstack([part.steps for part in parts])
    moments = merge_tree(stack([part.moments for part in parts]))
    if not np.isfinite(rewards).all():  # D3
        moments = Moments.empty(len(moments.mean))
    return Rollouts(rewards, steps, moments)


def pack(rollouts: Rollouts, gather: bool) -> bytes:
    """The numbers only, eight bytes each."""
    m = rollouts.moments
    arrays = [rollouts.rewards, rollouts.steps, *((m.count, m.mean, m.m2) if gather else ())]
    return b"".join(np.asarray(array).tobytes() for array in arrays)


def unpack(content: bytes, block: Block, n: int, gather: bool) -> Rollouts:
    """The inverse."""
    shape = block.stop - block.start, len(block.signs)
    count = shape[0] * shape[1]
    numbers: NDArray[np.float64] = np.frombuffer(content, np.float64)
    counts: NDArray[np.int64] = np.frombuffer(content, np.int64)
    moments = Moments.empty(n)
    if gather:
        mean, m2 = numbers[2 * count + 1 :].reshape(2, n)
        moments = Moments(counts[2 * count].reshape(()), mean, m2)
    return Rollouts(numbers[:count].reshape(shape), counts[count : 2 * count].reshape(shape), moments)


# -- in the workers --------------------------------------------------------------------------------------------------


class Worker:
    """A process on some node with one task per thread. An ArsError is returned, not raised, so that Ray does not wrap
    it in a traceback."""

    _executor: SerialExecutor | ThreadExecutor

    def start(
        self,
        path: list[str],
        pickled: bytes,
        threads: int,
        table: tuple[int, int],
        numbers: NDArray[np.float64] | None,
    ) -> dict[str, str] | ArsError:
        """Create the tasks; returns the versions that this node's results depend on."""
        prepare_node(path)
        try:
            factory: TaskFactory = pickle.loads(pickled)  # not earlier: it may need modules of that path
        except Exception as error:
            return WorkerError(f"A node cannot load the task: {type(error).__name__}: {one_line(error)}")
        if numbers is not None:
            keep_table(*table, numbers)
        try:
            self._executor = SerialExecutor(factory) if threads == 1 else ThreadExecutor(factory, threads)
        except ArsError as error:
            return error
        return versions()

    def run(self, payload: bytes, start: int, stop: int, signs: tuple[int, ...]) -> bytes | ArsError:
        batch: Batch = replace(pickle.loads(payload), signs=signs)
        try:
            return pack(self._executor.run_block(batch, start, stop), batch.gather)
        except ArsError as error:
            return error


# -- the executor ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Slot:
    """A place for a worker: a node with all its CPUs, or one of its CPUs."""

    node: str
    threads: int
    actor: Any = None
    ready: bool = False
    blocks: int = 0  # assigned to it
    rollouts: int = 0  # in these blocks
    failures: int = 0  # to start, in a row


class RayExecutor:
    """One actor per node with one thread per CPU if the task releases the GIL, otherwise one actor per CPU."""

    def __init__(self, factory: TaskFactory, workers: int, address: str | None) -> None:
        self._name, self._with_threads = factory.name, factory.releases_gil
        try:
            # cloudpickle also takes functions that cannot be imported
            self._pickled: bytes = ray.cloudpickle.dumps(factory)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise SettingError(
                f"{factory.name} cannot be sent to a cluster ({one_line(error)}): make it a function or class at the "
                "top level of a module."
            ) from error
        self._connected = connect(workers, address)
        self._slots: dict[tuple[str, int], Slot] = {}
        self._starting: dict[Any, Slot] = {}
        self._table = (0, 0)  # (seed, size) of the noise table
        self._tables: dict[str, Any] = {}  # node → the table in its object store

    def run(self, batch: Batch) -> Rollouts:
        if batch.table_size:
            self._table = batch.seed, batch.table_size
        self._follow_nodes()
        payload = pickle.dumps(batch)
        work = _BatchUnderWay(BlockScheduler(batch, sum(slot.threads for slot in self._slots.values())), put(payload))
        started = time.monotonic()
        while work.blocks or work.running:
            self._hand_out(work)
            waiting = [*work.running, *self._starting]
            if not waiting:
                raise WorkerError(f"No node could start a worker for {self._name}: {work.trouble}")
            done, _ = ray.wait(waiting, num_returns=1, timeout=PATIENCE)
            if not done:
                self._follow_nodes()
                if not work.running and time.monotonic() - started > START_SECONDS:
                    raise WorkerError(f"No CPU of the Ray cluster became free in {START_SECONDS:g} seconds.")
            for call in done:
                self._take(call, work)
        parts = [(block, unpack(content, block, batch.n, batch.gather)) for block, content in work.results.items()]
        sent = len(work.nodes) * len(payload) + work.sent
        return replace(put_together(batch, parts), wire=(sent, sum(map(len, work.results.values()))))

    def _hand_out(self, work: "_BatchUnderWay") -> None:
        """Give every idle worker a block, then more to those that need more."""
        ready = [slot for slot in self._slots.values() if slot.ready]
        for slot in ready:
            if work.blocks and not slot.blocks:
                self._send(slot, work)
        for slot in ready:
            while work.blocks and wants_more(slot.threads, slot.blocks, slot.rollouts):
                self._send(slot, work)

    def _send(self, slot: Slot, work: "_BatchUnderWay") -> None:
        block = work.blocks.take(slot.threads)
        call = slot.actor.run.remote(work.payload, *block)
        slot.blocks += 1
        slot.rollouts += block.rollouts
        work.running[call] = slot, block
        work.nodes.add(slot.node)
        work.sent += len(pickle.dumps(tuple(block)))

    def _take(self, call: Any, work: "_BatchUnderWay") -> None:
        """Handle a finished call: a result, a worker that is ready, an error of the task, or a death."""
        slot, block = work.running.pop(call, None) or (self._starting.pop(call), None)
        if block is not None:
            slot.blocks -= 1
            slot.rollouts -= block.rollouts
        try:
            answer = ray.get(call)
        except ray.exceptions.RayTaskError as error:  # not an ArsError: those are returned
            raise (error.cause or error) from None
        except ray.exceptions.RayError as error:
            work.trouble = brief(error)
            self._replace(slot, failed_to_start=block is None)
            if block is not None:
                work.blocks.give_back(block)
                work.deaths[block] += 1
                if work.deaths[block] >= MOST_DEATHS:
                    raise WorkerError(
                        f"Workers of {self._name} died {MOST_DEATHS} times while running direction {block.start}: "
                        f"{work.trouble}"
                    ) from error
            return
        if isinstance(answer, ArsError):
            raise answer
        if block is not None:
            work.results[block] = answer
        else:
            _check_versions(answer)
            slot.ready, slot.failures = True, 0

    def _follow_nodes(self) -> None:
        """Have one slot for every current node or CPU."""
        wanted = {
            (node, index): cpus if self._with_threads else 1
            for node, cpus in nodes().items()
            for index in range(1 if self._with_threads else cpus)
        }
        for gone in self._slots.keys() - wanted.keys():
            self._slots.pop(gone).ready = False
            self._tables.pop(gone[0], None)
        for key in wanted.keys() - self._slots.keys():
            self._slots[key] = Slot(key[0], wanted[key])
            self._start(self._slots[key])

    def _start(self, slot: Slot) -> None:
        where = on_node(slot.node)
        table = None
        if self._table[1]:
            if slot.node not in self._tables:  # drawn on the node instead of being sent there
                draw = ray.remote(draw_table).options(num_cpus=0, scheduling_strategy=where)
                self._tables[slot.node] = draw.remote(*self._table)
            table = self._tables[slot.node]
        threads = slot.threads
        at_once = 1 if threads == 1 else MOST_BLOCKS
        options = {"num_cpus": threads, "max_concurrency": at_once, "scheduling_strategy": where}
        slot.actor = ray.remote(Worker).options(**options).remote()
        self._starting[slot.actor.start.remote(sys.path, self._pickled, threads, self._table, table)] = slot

    def _replace(self, slot: Slot, *, failed_to_start: bool) -> None:
        """Replace a worker that died, unless it was replaced already, its node is gone, or it never starts."""
        if not slot.ready and not failed_to_start:
            return
        slot.ready = False
        slot.failures += failed_to_start
        kill(slot.actor)  # it may be alive but unreachable
        self._follow_nodes()
        if slot in self._slots.values() and slot.failures < MOST_DEATHS:
            self._start(slot)

    def close(self) -> None:
        for slot in self._slots.values():
            kill(slot.actor)
        self._slots.clear()
        self._starting.clear()
        self._tables.clear()
        if self._connected:
            disconnect()
        self._connected = False
        forget_tables()


class _BatchUnderWay:
    """The progress of a batch: blocks left, running calls, and results."""

    def __init__(self, blocks: BlockScheduler, payload: Any) -> None:
        self.blocks, self.payload = blocks, payload
        self.running: dict[Any, tuple[Slot, Block]] = {}
        self.results: dict[Block, bytes] = {}
        self.deaths: Counter[Block] = Counter()  # of workers, by the block that they ran
        self.nodes: set[str] = set()  # that received the batch
        self.sent = 0  # bytes, besides the batch
        self.trouble = ""


def _check_versions(theirs: dict[str, str]) -> None:
    ours = versions()
    for name, version in ours.items():
        if theirs.get(name) != version:
            raise WorkerError(
                f"A node of the cluster has {name} {theirs.get(name)} and this one has {version}: "
                "install the same versions everywhere, so that the bits agree."
            )
