"""Ray on two real nodes, separate raylets on this machine: the same bits as one worker, whatever dies."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
import small_envs
from ars.cli.process import interrupt_code, signals
from ars.errors import ArsError, Interrupt, SettingError, TaskError, WorkerError
from ars.executors import Batch, SerialExecutor, make_executor, run_block
from ars.tasks import TaskLike, factory, make
from batches import batch_of, bits
from linux_processes import LOOPBACK, alive, descendants, listening
from small_runs import SMALL_SEARCHES, run_bits

ray = pytest.importorskip("ray")
from ars.executors.ray import Block, BlockScheduler, RayExecutor, connect, pack, put_together, run_many, unpack  # noqa: E402

FIGURES = os.environ.get("ARS_TORTURE")  # the long form of `make torture`
ARS = str(Path(sys.executable).with_name("ars"))
TESTS = str(Path(__file__).parents[1])
DRIFT = "small_envs:Drift"
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


def expected(name: str, batch: Batch) -> tuple[bytes, ...]:
    executor = SerialExecutor(factory(name))
    try:
        return bits(executor.run(batch))
    finally:
        executor.close()


# -- cutting and putting together, without Ray -----------------------------------------------------------------------


def cut(batch: Batch, workers: list[int], losses: float = 0.0) -> list[Block]:
    """What workers with these threads get if they ask in random order and some of them die."""
    blocks_left, rng = BlockScheduler(batch, sum(workers)), np.random.default_rng(batch.size)
    blocks = []
    while blocks_left:
        block = blocks_left.take(workers[rng.integers(len(workers))])
        if rng.random() < losses:
            blocks_left.give_back(block)
        else:
            blocks.append(block)
    return blocks


WORKERS = [[1], [2], [48], [1, 1], [1] * 70, [2, 7], [1, 48, 3], [48] * 4]


@pytest.mark.parametrize("workers", WORKERS, ids=str)
@pytest.mark.parametrize("size", [1, 3, 64, 100, 230])
def test_blocks_are_aligned_powers_of_two_that_cover_everything(size: int, workers: list[int]) -> None:
    batch = batch_of(DRIFT, size=size)
    blocks = cut(batch, workers, losses=0.2)
    units = [(k, sign) for block in blocks for k in range(block.start, block.stop) for sign in block.signs]
    assert sorted(units) == sorted(batch.units())
    for block in blocks:
        length = 1 << (block.stop - block.start - 1).bit_length()  # the last may be shorter
        assert block.start % length == 0
        assert block.stop - block.start == length or block.stop == size
    if sum(workers) < size:
        assert all(block.signs == (1, -1) for block in blocks)


def test_few_messages_and_a_fine_end() -> None:
    """Humanoid's 230 directions on two threads take eight messages; the last of them is a single direction."""
    blocks = cut(batch_of(DRIFT, size=230), [2])
    assert len(blocks) == 8
    assert blocks[0].stop == 128
    assert blocks[-1].stop - blocks[-1].start == 1
    assert len(cut(batch_of(DRIFT, size=230), [48] * 4)) <= 30


@pytest.mark.parametrize("workers", WORKERS, ids=str)
@pytest.mark.parametrize("gather", [True, False])
def test_blocks_come_through_the_wire_to_the_same_bits(workers: list[int], gather: bool) -> None:
    """Single rollouts too, where a direction with one non-finite side counts nowhere."""
    name = "small_envs:SometimesNan"
    batch, task = batch_of(name, size=53, gather=gather), make(name)
    whole = run_block(task, batch, 0, 53)
    assert 0 < np.isnan(whole.rewards).sum() < 106
    parts = []
    for block in cut(batch, workers, losses=0.2):
        one = run_block(task, replace(batch, signs=block.signs), block.start, block.stop)
        content = pack(one, gather)
        assert len(content) == 8 * (2 * one.rewards.size + (1 + 2 * 3) * gather)
        parts.append((block, unpack(content, block, 3, gather)))
    assert bits(put_together(batch, parts[::-1])) == bits(whole)


# -- two nodes -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A head without CPUs, which the driver talks to; nodes come and go."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_health_check_period_ms", "500")  # of 3000, five of which in a row make a node dead
        patch.setenv("KILL_MARKER", str(tmp_path_factory.mktemp("kill") / "marker"))
        cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "num_cpus": 0, "include_dashboard": False})
        try:
            yield cluster
        finally:
            if ray.is_initialized():
                ray.shutdown()
            cluster.shutdown()


@pytest.fixture
def cluster(whole_cluster: Any) -> Any:
    """Two nodes with a CPU each."""
    while len(whole_cluster.worker_nodes) < 2:
        whole_cluster.add_node(**SMALL)
    return whole_cluster


@pytest.fixture
def executor_of(cluster: Any) -> Iterator[Callable[[TaskLike], RayExecutor]]:
    made: list[RayExecutor] = []

    def start(task: TaskLike) -> RayExecutor:
        made.append(RayExecutor(factory(task), 1, cluster.address))
        return made[-1]

    yield start
    for executor in made:
        executor.close()


def workers_of(node: Any) -> list[int]:
    """The processes of our actors on a node."""
    raylet = node.all_processes["raylet"][0].process.pid
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == raylet and (entry / "cmdline").read_bytes().startswith(b"ray::Worker"):
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def during_the_next_iteration(act: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(0.2, act)
    timer.start()
    yield
    assert not timer.is_alive(), "the iteration was over too soon"
    timer.join()


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("name", "task"),
    [("Hopper-v1", "Hopper-v1"), ("small_envs:SometimesNan", lambda: small_envs.SometimesNan())],
    ids=["compiled", "Python"],
)
def test_same_bits_as_one_worker(name: str, task: TaskLike, executor_of: Callable[[TaskLike], RayExecutor]) -> None:
    """A compiled task on one actor a node, an environment in Python on one a CPU: here of a function that no worker
    could import."""
    executor = executor_of(task)
    executor.run(batch_of(name, size=200))
    for batch in (batch_of(name), batch_of(name, size=7, evaluation=True), batch_of(name, size=70, gather=False)):
        rollouts = executor.run(batch)
        assert bits(rollouts) == expected(name, batch)
        assert rollouts.wire is not None
        p, n = batch.policy.M.shape
        values = 8 * (p * n + 2 * n)
        assert values < rollouts.wire[0] < 2 * (values + 600) + 40 * 2 * batch.size
        numbers, statistics = 2 * rollouts.rewards.size, batch.gather * (1 + 2 * n)
        assert 8 * (numbers + statistics) <= rollouts.wire[1] <= 8 * (numbers + statistics * batch.size)


def test_every_search_has_the_same_bits(executor_of: Callable[[TaskLike], RayExecutor]) -> None:
    executor = executor_of(DRIFT)
    for search, own in SMALL_SEARCHES.items():
        settings: dict[str, Any] = {"search": search, **own, "seed": 3, "iterations": 5}
        over_ray = list(ars.train(DRIFT, **settings, executor=executor))
        assert over_ray[-1].to_dict()["wire_bytes_out"] > 0
        assert run_bits(over_ray) == run_bits(ars.train(DRIFT, **settings, workers=1)), search


def test_a_robot_in_scenarios_has_the_same_bits(executor_of: Callable[[TaskLike], RayExecutor]) -> None:
    """Its terms and worlds are the user's; workers import them by name."""
    settings: dict[str, Any] = {"N": 4, "least_timesteps": 0, "eval_episodes": 2, "seed": 3, "iterations": 3}
    name = "own_robots:ROUGH"
    here = run_bits(ars.train(name, **settings, workers=1))  # first, because it compiles once for all workers
    assert run_bits(ars.train(name, **settings, executor=executor_of(name))) == here


def test_a_worker_and_a_node_are_killed_and_another_joins(
    cluster: Any, executor_of: Callable[[str], RayExecutor]
) -> None:
    """ray#4358 and what else happens in a long run: all of it in mid-iteration, and not a bit changes."""
    name = "HalfCheetah-v5"
    batch = batch_of(name, size=12, H=1000)
    right = expected(name, batch)
    executor = executor_of(name)
    first, second = cluster.worker_nodes
    executor.run(batch)
    wait_until(lambda: workers_of(first) and workers_of(second))
    killed = workers_of(first)

    with during_the_next_iteration(lambda: [os.kill(pid, signal.SIGKILL) for pid in killed]):
        assert bits(executor.run(batch)) == right
    wait_until(lambda: executor.run(batch) and workers_of(first))  # a new one is there
    assert killed != workers_of(first)

    with during_the_next_iteration(lambda: cluster.remove_node(first, allow_graceful=False)):
        assert bits(executor.run(batch)) == right
    alone = executor.run(batch)
    assert bits(alone) == right

    third = cluster.add_node(**SMALL)
    executor.run(batch)
    wait_until(lambda: workers_of(third))

    def both() -> bool:
        rollouts = executor.run(batch)
        assert bits(rollouts) == right
        assert rollouts.wire is not None
        assert alone.wire is not None
        return rollouts.wire[0] > alone.wire[0] + batch.policy.M.nbytes  # the batch went out twice

    wait_until(both)


def test_an_environment_that_kills_its_process_once(executor_of: Callable[[str], RayExecutor]) -> None:
    name = "small_envs:KillsItsProcess"
    batch = batch_of(name, size=8)
    executor = executor_of(name)
    assert bits(executor.run(batch)) == expected(DRIFT, batch)
    assert Path(os.environ["KILL_MARKER"]).exists()  # it did happen


def test_mistakes_arrive_as_they_are(executor_of: Callable[[str], RayExecutor]) -> None:
    """Without Ray's traceback; and an environment that always kills its process is a sentence in the end."""
    executor = executor_of("small_envs:Raises")
    with pytest.raises(TaskError, match=r"^[^\n]*small_envs:Raises[^\n]*the motor is on fire[^\n]*$"):
        executor.run(batch_of("small_envs:Raises"))
    executor.close()
    with pytest.raises(
        WorkerError, match=r"Workers of small_envs:AlwaysKillsItsProcess died 3 times while running direction \d"
    ):
        executor_of("small_envs:AlwaysKillsItsProcess").run(batch_of(DRIFT, size=4))


def test_the_table_lies_in_the_object_store_of_every_node(executor_of: Callable[[str], RayExecutor]) -> None:
    batch = replace(batch_of(DRIFT, size=30), table_size=1_000_000)
    executor = executor_of(DRIFT)
    assert bits(executor.run(batch)) == expected(DRIFT, batch)
    ready = [slot.node for slot in executor._slots.values() if slot.ready]  # a node of before may not be known as dead
    assert {*ready} <= {*executor._tables}
    rollouts = executor.run(batch)
    assert rollouts.wire is not None
    assert rollouts.wire[0] < 10_000  # 8 MB are not sent
    for node in ready:
        assert not ray.get(executor._tables[node]).flags.writeable


# -- runs ------------------------------------------------------------------------------------------------------------


def command(*words: str, cwd: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": TESTS}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([ARS, *words], cwd=cwd, env=environment, **pipes)


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return out + err


def lines_of(run: Path) -> list[dict[str, Any]]:
    """The records, without what depends on the machine."""
    with contextlib.suppress(FileNotFoundError):
        lines = (run / "records.jsonl").read_text().splitlines()
        changing = ("seconds", "train_seconds", "eval_seconds", "wire_bytes_out", "wire_bytes_in")
        return [{k: v for k, v in json.loads(line).items() if k not in changing} for line in lines]
    return []


SETTINGS = ("--N", "6", "--alpha", "0.1", "--nu", "0.3", "--protocol", "paper", "--eval-every", "4",
            "--eval-episodes", "3", "--seed", "5")  # fmt: skip


def test_a_killed_driver_is_resumed_to_the_same_bits(cluster: Any, tmp_path: Path) -> None:
    """Killed on the cluster, continued there; the whole equals a local run."""
    there = ("--executor", "ray", "--address", cluster.address)
    local, run = tmp_path / "local", tmp_path / "run"
    name = "small_envs:Slow"
    driver = command("train", name, *SETTINGS, "--iterations", "400", "--out", str(run), *there, cwd=tmp_path)
    wait_until(lambda: len(lines_of(run)) >= 5)
    driver.kill()
    driver.communicate()
    end = "--iterations", str(len(lines_of(run)) + 4)
    finish(command("resume", str(run), "--task", name, *end, *there, "--quiet", cwd=tmp_path))
    last = json.loads((run / "records.jsonl").read_text().splitlines()[-1])
    assert last["wire_bytes_out"] > 0
    assert 8 * (2 * 6 * 2 + 2 * (1 + 2 * 3)) <= last["wire_bytes_in"] <= 8 * (2 * 6 * 2 + 6 * (1 + 2 * 3))
    finish(command("train", name, *SETTINGS, *end, "--out", str(local), cwd=tmp_path))
    assert lines_of(run) == lines_of(local)
    for file in ("policy.npz", "best.npz"):
        assert (run / file).read_bytes() == (local / file).read_bytes()
    assert "wire_bytes_out" not in json.loads((local / "records.jsonl").read_text().splitlines()[-1])


def test_all_nodes_gone_is_a_sentence_and_the_run_goes_on_without_them(cluster: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    name = "small_envs:Slow"
    there = ("--executor", "ray", "--address", cluster.address)
    driver = command(
        "train", name, *SETTINGS, "--iterations", "400", "--out", str(run), *there, "--quiet", cwd=tmp_path
    )
    wait_until(lambda: len(lines_of(run)) >= 3)
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node, allow_graceful=False)
    words = finish(driver, code=2)
    assert words.startswith("ars: The Ray cluster at ")
    assert "`ars resume`" in words
    assert words.count("\n") == 1
    done = len(lines_of(run))
    again = ("resume", str(run), "--task", name, "--iterations", str(done + 3), "--quiet")
    finish(command(*again, "--workers", "1", cwd=tmp_path))
    settings = {"N": 6, "alpha": 0.1, "nu": 0.3, "protocol": "paper", "eval_every": 4, "eval_episodes": 3, "seed": 5}
    whole = list(ars.train(name, iterations=done + 3, **settings))  # type: ignore[arg-type]
    assert ars.LinearPolicy.load(run / "policy.npz").M.tobytes() == whole[-1].policy.M.tobytes()


def train_and_count(seed: int) -> int:
    records = list(ars.train(DRIFT, seed=seed, N=2, iterations=3, eval_every=0, workers=1))
    if seed == 2:
        raise TaskError("This one is broken.")
    return records[-1].timesteps


def test_many_runs_side_by_side(cluster: Any) -> None:
    """Each gives what it gives alone; a mistake ends one of them and not the others."""
    results = dict(run_many(train_and_count, [0, 1, 2, 3], address=cluster.address))
    assert sorted(results) == [0, 1, 2, 3]
    assert isinstance(results[2], TaskError)
    assert [results[i] for i in (0, 1, 3)] == [train_and_count(i) for i in (0, 1, 3)]


# -- a Ray of our own ------------------------------------------------------------------------------------------------


def test_without_an_address_ray_stays_on_loopback_and_ends_with_us(tmp_path: Path) -> None:
    """Nobody outside can reach what it starts, which ends with it even if it is killed (but two idle agents of Ray's,
    which take a minute to notice); and the run goes on without Ray."""
    run, name = tmp_path / "run", "small_envs:Slow"
    driver = command("train", name, *SETTINGS, "--iterations", "400", "--out", str(run), "--executor", "ray", "--json",
                     "--workers", "2", cwd=tmp_path)  # fmt: skip
    wait_until(lambda: len(lines_of(run)) >= 3)
    family = descendants(driver.pid)
    assert len(family) >= 4
    assert listening([driver.pid, *family])
    assert listening([driver.pid, *family]) <= LOOPBACK
    driver.kill()
    out, _ = driver.communicate()
    assert all(json.loads(line)["wire_bytes_out"] for line in out.splitlines())
    wait_until(lambda: all(is_agent(pid) for pid in family if alive(pid)))
    for pid in filter(alive, family):
        os.kill(pid, signal.SIGKILL)
    end = len(lines_of(run)) + 2
    finish(
        command("resume", str(run), "--task", name, "--iterations", str(end), "--quiet", "--workers", "1", cwd=tmp_path)
    )
    assert len(lines_of(run)) == end


@pytest.mark.parametrize("server", ["raylet"] if FIGURES is None else ["raylet", "gcs_server"])
def test_a_ray_of_our_own_that_dies_is_a_sentence(server: str, tmp_path: Path) -> None:
    """At once, and not when Ray itself ends the process; and none of its processes is left."""
    run, name = tmp_path / "run", "small_envs:Slow"
    driver = command("train", name, *SETTINGS, "--iterations", "400", "--out", "run", "--executor", "ray", "--quiet",
                     "--workers", "1", cwd=tmp_path)  # fmt: skip
    wait_until(lambda: len(lines_of(run)) >= 2)
    family = descendants(driver.pid)
    [pid] = [pid for pid in family if (Path("/proc") / str(pid) / "comm").read_text().strip() == server]
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    words = finish(driver, code=2)
    assert time.monotonic() - began < 12  # Ray takes 15 seconds to notice
    assert words.startswith("ars: The Ray that this run started has died. `ars resume` continues")
    assert words.count("\n") == 1
    wait_until(lambda: not any(map(alive, family)), 10.0)
    assert len(list(ars.resume(run, task=name, iterations=len(lines_of(run)) + 1))) == 1


def test_a_signal_while_ray_starts_is_still_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own handler of SIGTERM would end the command with code 15 and without a word."""
    from ars import cluster

    def init(**_: Any) -> None:
        sys.exit(signal.SIGTERM)  # as Ray's handler does

    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "init", init)
    with signals(), pytest.raises(Interrupt):
        connect(1, None)
    assert interrupt_code() == 128 + signal.SIGTERM
    with pytest.raises(SystemExit):  # without a handler of ours
        connect(1, None)


def is_agent(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"Agent" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    return True


# -- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", r"Cannot connect to a Ray cluster at 127.0.0.1:1: "),
        ("nonsense", r"Cannot connect to a Ray cluster at nonsense: "),
        ("ray://127.0.0.1:10001", r"must be host:port or auto"),
        ("host.invalid:6379", r"Cannot connect to a Ray cluster at host.invalid:6379: "),
    ],
)
def test_addresses_where_there_is_no_cluster(address: str, words: str) -> None:
    with pytest.raises(ArsError, match=words) as error:
        make_executor(factory(DRIFT), 1, kind="ray", address=address)
    assert "\n" not in str(error.value)
    assert not ray.is_initialized()


def test_workers_and_address_contradict(tmp_path: Path) -> None:
    words = command("train", DRIFT, "--executor", "ray", "--address", "auto", "--workers", "2", cwd=tmp_path)
    assert "workers = 2 is for this machine" in finish(words, code=2)


def test_without_ray_one_sentence_says_what_to_install() -> None:
    code = """
import sys
sys.modules["ray"] = None
from ars.cli import main
main(["train", "CartPole-v1", "--executor", "ray", "--iterations", "1"])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr == ("ars: The executor ray needs Ray, which is not installed: pip install 'ars-rl[ray]'.\n")


def test_a_connection_of_the_users_own_is_left_alone(cluster: Any) -> None:
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        assert not connect(2, None)
        executor = RayExecutor(factory(DRIFT), 2, None)
        batch = batch_of(DRIFT)
        assert bits(executor.run(batch)) == expected(DRIFT, batch)
        executor.close()
        assert ray.is_initialized()
    finally:
        ray.shutdown()
    with pytest.raises(SettingError):
        connect(1, "ray://somewhere")
