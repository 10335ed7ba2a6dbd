"""The shared noise table of section 4.1, and the schedule of statistics that section 4.4 suggests."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars import noise
from ars.config import DEFAULT_TABLE_SIZE, Config
from ars.errors import SettingError
from ars.executors import Batch, SerialExecutor
from ars.executors.processes import ProcessExecutor
from ars.executors.threads import ThreadExecutor
from ars.noise import SharedTable, direction, draw_table, forget_tables, table
from ars.presets import make_config
from ars.records import Record
from ars.saved_config import read_config
from ars.tasks import factory
from batches import batch as make_batch

DRIFT = "small_envs:Drift"
SIZE = 1000


def train(**settings: Any) -> list[Record]:
    small = {"variant": "V2", "alpha": 0.1, "nu": 0.3, "N": 4, "eval_episodes": 2, "iterations": 6, "seed": 5}
    return list(ars.train(DRIFT, **{**small, **settings}))


def policies(records: list[Record]) -> list[bytes]:
    return [b"".join(a.tobytes() for a in (r.policy.M, r.policy.mu, r.policy.sigma)) for r in records]


# -- the table -------------------------------------------------------------------------------------------------------


def test_directions_are_windows_of_the_table() -> None:
    """Contiguous, of the right shape, at every index from first to last, and not to be written to."""
    numbers = draw_table(3, 20)
    starts = set()
    for k in range(300):
        delta = direction(3, 0, k, 2, 3, table_size=20)
        assert delta.shape == (2, 3)
        start = int(np.flatnonzero(numbers == delta[0, 0])[0])
        assert np.array_equal(delta.ravel(), numbers[start : start + 6])
        starts.add(start)
        with pytest.raises(ValueError, match="read-only"):
            delta[0, 0] = 0.0
    assert starts == set(range(15))


def test_the_table_is_standard_normal_and_belongs_to_its_seed() -> None:
    numbers = draw_table(1, 100_000)
    assert abs(numbers.mean()) < 5 / np.sqrt(len(numbers))
    assert abs(numbers.var() - 1) < 5 * np.sqrt(2 / len(numbers))
    assert np.array_equal(draw_table(1, 100_000), numbers)
    assert not np.isin(draw_table(2, 100_000), numbers).any()


def test_a_table_shares_no_numbers_with_other_streams() -> None:
    assert not np.isin(direction(1, 0, 0, 100, 100), draw_table(1, 100_000)).any()


def test_pinned_table() -> None:
    """A change would break resume: let it be noticed."""
    pinned = [-0.45017549350521674, 0.3291636870622134, -0.6902363402197318, -1.4320708737046965]
    assert draw_table(237, 4).tolist() == pinned
    assert direction(237, 2, 1, 1, 2, table_size=4)[0].tolist() == pinned[1:3]


def test_threads_share_one_table_that_closing_frees() -> None:
    forget_tables()
    executor = ThreadExecutor(factory(DRIFT), 2)
    executor.run(a_batch())
    assert table(11, SIZE) is table(11, SIZE)
    assert list(noise._tables) == [(11, SIZE)]
    executor.close()
    assert not noise._tables


def a_batch(size: int = 6) -> Batch:
    M, mu, sigma = np.zeros((2, 3)), np.zeros(3), np.ones(3)
    return make_batch(M, mu, sigma, nu=0.1, size=size, H=12, gather=True, table_size=SIZE)


def test_same_bits_for_every_executor() -> None:
    batch = a_batch()
    executors = [
        SerialExecutor(factory(DRIFT)),
        ThreadExecutor(factory(DRIFT), 2),
        ProcessExecutor(factory(DRIFT), 2),
    ]
    results = []
    for executor in executors:
        try:
            rollouts = executor.run(batch)
        finally:
            executor.close()
        m = rollouts.moments
        results.append([a.tobytes() for a in (rollouts.rewards, rollouts.steps, np.asarray(m.count), m.mean, m.m2)])
    assert results[0] == results[1] == results[2]
    counter = SerialExecutor(factory(DRIFT)).run(replace(batch, table_size=0))
    assert counter.rewards.tobytes() != results[0][0]


def test_training_with_a_table_is_the_same_however_it_runs(tmp_path: Path) -> None:
    """One worker, processes, and a run that was interrupted and continued."""
    settings: dict[str, Any] = {"noise": "table", "table_size": SIZE}
    expected = policies(train(**settings))
    assert policies(train(**settings, workers=2)) == expected
    run = tmp_path / "run"
    first = train(**settings, out=run, iterations=3)
    rest = list(ars.resume(run, task=DRIFT, iterations=6))
    assert policies(first + rest) == expected
    assert policies(train()) != expected


def test_children_read_the_parents_memory() -> None:
    """One table a machine: not a copy for every worker, and nobody can write to it."""
    shared = SharedTable(7, SIZE)
    try:
        assert shared.path is not None
        assert np.array_equal(table(7, SIZE), draw_table(7, SIZE))
        code = f"""
import numpy as np
from ars import noise
noise.attach_table(7, {SIZE}, {shared.path!r})
numbers = noise.table(7, {SIZE})
assert isinstance(numbers.base, np.memmap) and not numbers.flags.writeable
print(numbers.tobytes().hex())
"""
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert bytes.fromhex(out.strip()) == draw_table(7, SIZE).tobytes()
    finally:
        shared.close()
        forget_tables()


def test_memory_needs_no_cleaning_up(tmp_path: Path) -> None:
    """Nobody complains at the end of a run, nor of one that is killed: the table has no name that could outlive it."""
    script = """
import os, signal, ars
if __name__ == "__main__":
    for record in ars.train("CartPole-v1", noise="table", table_size=100_000, iterations=3, workers=2, eval_every=0):
        pass
    print("done", flush=True)
    for record in ars.train("CartPole-v1", noise="table", table_size=100_000, iterations=3, workers=2, eval_every=0):
        os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "script.py").write_text(script)
    words = [sys.executable, "-W", "error", "script.py"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (-9, "done\n", "")


# -- its settings ----------------------------------------------------------------------------------------------------


def test_a_table_has_a_size_by_default() -> None:
    config = make_config(DRIFT, H=10, shift=0.0, noise="table")
    assert (config.noise, config.table_size) == ("table", DEFAULT_TABLE_SIZE)
    config = make_config(DRIFT, H=10, shift=0.0)
    assert (config.noise, config.table_size, config.stats_every) == ("counter", 0, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": "table", "table_size": 5}, r"table_size = 5 is smaller than one direction.*2 · 3"),
        ({"table_size": 100}, r"noise = counter and table_size = 100"),
        ({"noise": "table", "table_size": 0}, r"noise = table and table_size = 0"),
        ({"noise": "tabel"}, r"noise = 'tabel' is unknown: choose counter or table"),
        ({"noise": True}, r"noise = True is unknown"),
        ({"noise": "table", "table_size": 10**12}, r"table_size = 1000000000000 must"),
        ({"noise": "table", "table_size": 1e6}, r"table_size = 1000000.0 must"),
        ({"noise": "table", "table_size": -1}, r"table_size = -1 must"),
        ({"stats_every": 0}, r"stats_every = 0 must"),
        ({"stats_every": 1.5}, r"stats_every = 1.5 must"),
        ({"stats_every": 2, "variant": "V1"}, r"stats_every = 2 needs statistics, and V1 has none"),
        ({"executor": "rya"}, r"executor = 'rya' is unknown: choose local or ray"),
        ({"address": "auto"}, r"address = 'auto' needs the executor ray"),
    ],
)
def test_mistakes_are_sentences(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=words):
        train(**settings, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_table_that_is_too_small_for_its_task_in_a_file(tmp_path: Path) -> None:
    train(noise="table", table_size=SIZE, out=tmp_path / "run", iterations=1)
    file = tmp_path / "run" / "config.json"
    file.write_text(file.read_text().replace(f'"table_size": {SIZE}', '"table_size": 3'))
    with pytest.raises(ars.ArsError, match=r"config.json is damaged: table_size = 3 is smaller"):
        ars.resume(tmp_path / "run", task=DRIFT, iterations=2)


def test_configurations_from_before_these_settings_can_be_read(tmp_path: Path) -> None:
    expected = policies(train(out=tmp_path / "run", iterations=2, protocol="paper"))
    file = tmp_path / "run" / "config.json"
    content = json.loads(file.read_text())
    config, block = content["config"], content["config"].pop("search")
    for name in ("noise", "table_size", "stats_every", "normalise", "start"):
        del config[name]
    config |= {name: block[name] for name in ("alpha", "nu", "N", "b")} | {"variant": "V2"}
    versions = content.pop("sessions")[0]["versions"]
    file.write_text(json.dumps({**content, "format": 1, "versions": versions}))
    config = read_config(tmp_path / "run").config
    assert (config.noise, config.table_size, config.stats_every) == ("counter", 0, 1)
    rest = policies(list(ars.resume(tmp_path / "run", task=DRIFT, iterations=4)))
    assert expected + rest == policies(train(iterations=4, protocol="paper"))


# -- the schedule of statistics --------------------------------------------------------------------------------------


def test_states_are_gathered_when_j_mod_K_is_zero() -> None:
    """mu and sigma change after iterations 0, 3, … alone, and the counts are of those iterations' states."""
    records = train(stats_every=3, iterations=7)
    counts = [int(record.state.moments.count) for record in records]
    steps = np.diff([0, *(record.timesteps for record in records)])
    assert counts == np.cumsum([step if j % 3 == 0 else 0 for j, step in enumerate(steps)]).tolist()
    statistics = [record.policy.mu.tobytes() + record.policy.sigma.tobytes() for record in records]
    assert statistics[0] == statistics[1] == statistics[2] != statistics[3]
    assert statistics[3] == statistics[4] == statistics[5] != statistics[6]


def test_a_schedule_of_one_is_algorithm_2() -> None:
    assert policies(train(stats_every=1)) == policies(train())
    assert policies(train(stats_every=2)) != policies(train())


def test_the_schedule_survives_a_resume(tmp_path: Path) -> None:
    first = train(stats_every=3, iterations=2, out=tmp_path / "run")
    rest = list(ars.resume(tmp_path / "run", task=DRIFT, iterations=6, workers=2))
    assert policies(first + rest) == policies(train(stats_every=3))
    assert Config.from_dict(json.loads((tmp_path / "run" / "config.json").read_text())["config"]).stats_every == 3
