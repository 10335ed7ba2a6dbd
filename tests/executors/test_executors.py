"""One contract for every executor: the same bits as one worker, whatever happens to the others."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.errors import SettingError, TaskError, WorkerError
from ars.executors import (
    Executor,
    SerialExecutor,
    assemble,
    join,
    make_executor,
    run_block,
)
from ars.executors.processes import ProcessExecutor
from ars.executors.threads import ThreadExecutor
from ars.moments import Moments, merge_tree, stack
from ars.noise import Key, Stream, direction
from ars.policy import LinearPolicy
from ars.tasks import Rollout, factory, make
from batches import batch as make_batch
from batches import batch_of, bits


def serial(name: str, workers: int) -> Executor:
    return SerialExecutor(factory(name))


def threads(name: str, workers: int) -> Executor:
    """With plain-Python tasks too: they gain no speed, but must lose no bits."""
    return ThreadExecutor(factory(name), workers)


def processes(name: str, workers: int) -> Executor:
    return ProcessExecutor(factory(name), workers)


# -- the same bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CartPole-v1", "Hopper-v1"])
@pytest.mark.parametrize(
    ("kind", "workers"), [(threads, 1), (threads, 2), (threads, 4), (processes, 2), (processes, 4)]
)
def test_same_bits_for_every_executor_and_number_of_workers(
    name: str, kind: Callable[[str, int], Executor], workers: int
) -> None:
    """The reference's seeds belong to workers, so its results change with their number."""
    one, other = serial(name, 1), kind(name, workers)
    try:
        for batch in (batch_of(name), batch_of(name, size=7, evaluation=True), batch_of(name, size=1, gather=False)):
            expected = one.run(batch)
            assert np.isfinite(expected.rewards).all()
            assert bits(other.run(batch)) == bits(expected)
    finally:
        one.close()
        other.close()


def test_rollouts_are_those_of_algorithm_2() -> None:
    """Rows are k, columns + and −; each rollout is of M ± nu delta_k, from its own key."""
    name = "small_envs:Drift"
    batch, task = batch_of(name, size=3), make(name)
    rollouts = serial(name, 1).run(batch)
    assert rollouts.rewards.shape == rollouts.steps.shape == (3, 2)
    for k in range(3):
        for column, sign in enumerate((1, -1)):
            M = batch.policy.M + sign * 0.05 * direction(11, 4, k, 2, 3)
            policy = LinearPolicy(M, batch.policy.mu, batch.policy.sigma)
            key = Key(11, Stream.TRAINING, 4, k, sign)
            expected = task.rollout(policy, key, H=batch.H, shift=batch.shift, gather=True)
            assert rollouts.rewards[k, column] == expected.reward
            assert rollouts.steps[k, column] == expected.steps
    assert rollouts.moments.count == rollouts.steps.sum()


@pytest.mark.parametrize("q", [0, 1, 2, 3])
def test_blocks_join_to_the_same_bits(q: int) -> None:
    """A worker may run and merge any aligned block of 2**q directions."""
    name = "small_envs:SometimesNan"
    batch, task = batch_of(name, size=13), make(name)
    whole = run_block(task, batch, 0, 13)
    parts = [run_block(task, batch, start, min(start + 2**q, 13)) for start in range(0, 13, 2**q)]
    assert bits(join(parts)) == bits(whole)
    assert 0 < np.isnan(whole.rewards).sum() < 26


# -- non-finite rollouts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [serial, threads, processes])
def test_directions_with_a_non_finite_rollout_enter_no_statistics(kind: Callable[[str, int], Executor]) -> None:
    """Neither side of such a direction: the statistics are of exactly the others."""
    name = "small_envs:SometimesNan"
    batch, task = batch_of(name, size=12), make(name)
    executor = kind(name, 2)
    try:
        rollouts = executor.run(batch)
    finally:
        executor.close()
    finite = np.isfinite(rollouts.rewards)
    assert (finite[:, 0] != finite[:, 1]).any()  # some directions lost one side only
    parts: list[Moments] = []
    for k in np.flatnonzero(finite.all(axis=1)):
        parts += [
            task.rollout(
                batch.candidate(int(k), sign), Key(11, Stream.TRAINING, 4, int(k), sign), H=40, shift=0.5, gather=True
            ).moments
            for sign in (1, -1)
        ]
    expected = merge_tree(stack(parts))
    assert rollouts.moments.count == expected.count == rollouts.steps[finite.all(axis=1)].sum()
    np.testing.assert_allclose(rollouts.moments.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(rollouts.moments.m2, expected.m2, rtol=1e-9)


def test_a_reward_that_is_not_finite_counts_as_such() -> None:
    """Even if a task forgets to say so."""
    nothing = Moments.from_sums(1, np.ones(1), np.zeros(1), np.zeros(1))
    batch = make_batch(np.zeros((1, 1)), np.zeros(1), np.ones(1), nu=1.0, size=2, H=1, gather=True)
    rollouts = assemble(batch, [Rollout(r, 1, nothing, True) for r in (1.0, np.inf, 2.0, 3.0)])
    assert rollouts.moments.count == 2


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [serial, threads, processes])
def test_an_environment_that_raises_is_a_sentence(kind: Callable[[str, int], Executor]) -> None:
    """In a worker as in the caller: TaskError with the environment's name and its own words."""
    executor = kind("small_envs:Raises", 2)
    try:
        with pytest.raises(TaskError, match=r"small_envs:Raises.*the motor is on fire"):
            executor.run(batch_of("small_envs:Raises"))
    finally:
        executor.close()


def test_a_killed_worker_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ray#4358: one dead worker must not end the run, nor change a bit of it."""
    marker = tmp_path / "killed"
    monkeypatch.setenv("KILL_MARKER", str(marker))
    name = "small_envs:KillsItsProcess"
    batch = batch_of(name, size=8)
    executor = processes(name, 2)
    try:
        rollouts = executor.run(batch)
        assert marker.exists()  # the kill did happen
        assert bits(rollouts) == bits(serial("small_envs:Drift", 1).run(batch))
        assert bits(executor.run(batch)) == bits(rollouts)  # and the new workers are well
    finally:
        executor.close()


def test_workers_that_always_die_are_a_sentence() -> None:
    """Not an endless loop, not a traceback of the pool."""
    executor = processes("small_envs:AlwaysKillsItsProcess", 2)
    try:
        with pytest.raises(WorkerError, match=r"small_envs:AlwaysKillsItsProcess died"):
            executor.run(batch_of("small_envs:AlwaysKillsItsProcess", size=2))
    finally:
        executor.close()


def test_workers_end_with_their_parent() -> None:
    """A killed run must not leave processes behind that eat the machine."""
    tests = str(Path(__file__).parents[1])
    script = f"""
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from ars.executors import Batch
from ars.executors.processes import ProcessExecutor
from ars.tasks import factory
from batches import batch as make_batch
if __name__ == "__main__":
    M, mu, sigma = np.zeros((2, 3)), np.zeros(3), np.ones(3)
    batch = make_batch(M, mu, sigma, nu=0.1, size=2, H=10)
    ProcessExecutor(factory("small_envs:TellsPid"), 2).run(batch)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = {int(parent.stdout.readline()) for _ in range(2)}  # both workers are in an episode now
    assert len(pids) == 2
    assert parent.pid not in pids
    parent.kill()
    rest, _ = parent.communicate(timeout=20)  # the pipe ends only when no worker holds it any more
    assert rest == ""


def test_a_worker_ends_after_the_import_of_glfw(tmp_path: Path) -> None:
    """`import mujoco` imports glfw, which asks a process of its own for a version. A worker that followed its killed
    parent in the middle of it would leave that process alone, and its traceback on the user's screen."""
    (tmp_path / "glfw.py").write_text(
        "import time\nprint('begun', flush=True)\ntime.sleep(1)\nprint('through', flush=True)"
    )
    script = """
import multiprocessing, time
from ars.workers import end_with_parent
def work():
    end_with_parent()
    import glfw
    time.sleep(60)
if __name__ == "__main__":
    multiprocessing.get_context("spawn").Process(target=work).start()
"""
    (tmp_path / "script.py").write_text(script)
    words = [sys.executable, "script.py"]
    parent = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    parent.kill()
    rest, _ = parent.communicate(timeout=20)
    assert rest == "through\n"


def test_workers_use_one_thread_each() -> None:
    """ray#7287: BLAS with a thread for every core in every worker brings a machine to its knees."""
    name = "small_envs:CountsThreads"
    executor = processes(name, 2)
    try:
        rollouts = executor.run(batch_of(name, size=2, evaluation=True))
    finally:
        executor.close()
    assert rollouts.rewards.tolist() == rollouts.steps.tolist()  # one a step


# -- factories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "releases_gil"),
    [("lqr", True), ("Hopper-v1", True), ("Hopper-v5", True), ("CartPole-v1", False), ("small_envs:Drift", False)],
)
def test_a_factory_knows_what_it_will_make(name: str, releases_gil: bool) -> None:
    """Without making it; and it can be sent to a worker."""
    made = pickle.loads(pickle.dumps(factory(name)))()
    assert (made.name, made.releases_gil, factory(name).releases_gil) == (name, releases_gil, releases_gil)
    made.close()


@pytest.mark.parametrize("name", ["Hoper-v1", "nothing", "no_such_module:Env", ""])
def test_an_unknown_name_is_the_same_sentence_from_both(name: str) -> None:
    said = []
    for call in (factory, make):
        with pytest.raises(TaskError) as error:
            call(name)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_threads_close_their_tasks_if_one_cannot_be_made() -> None:
    closed: list[int] = []

    class Closes:
        def close(self) -> None:
            closed.append(1)

    def third_fails() -> Any:
        if made[0] == 2:
            raise TaskError("No third one.")
        made[0] += 1
        return Closes()

    made = [0]
    with pytest.raises(TaskError, match="No third one"):
        ThreadExecutor(third_fails, 4)
    assert len(closed) == 2


# -- which executor --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "workers", "kind"),
    [
        ("CartPole-v1", 1, SerialExecutor),
        ("CartPole-v1", 2, ProcessExecutor),
        ("Hopper-v5", 1, SerialExecutor),
        ("Hopper-v5", 3, ThreadExecutor),
    ],
)
def test_make_executor(name: str, workers: int, kind: type) -> None:
    """Threads where rollouts run without the GIL, processes elsewhere."""
    executor = make_executor(factory(name), workers)
    assert type(executor) is kind
    executor.close()


def test_an_executor_of_the_users_own_is_taken_as_it_is() -> None:
    executor = serial("CartPole-v1", 1)
    try:
        assert make_executor(factory("CartPole-v1"), 2, kind=executor) is executor
    finally:
        executor.close()


@pytest.mark.parametrize("kind", ["rya", None, 1, SerialExecutor, object()])
def test_what_is_no_executor_is_a_sentence(kind: Any) -> None:
    with pytest.raises(
        SettingError, match=r"executor = .* is unknown: choose local or ray, or give an object with run"
    ):
        make_executor(factory("CartPole-v1"), 1, kind=kind)


@pytest.mark.parametrize("workers", [0, -1, 1.0, 2.5, True, False, "2", 10**6, float("nan"), [2]])
def test_bad_numbers_of_workers_are_a_sentence(workers: Any) -> None:
    with pytest.raises(SettingError) as error:
        make_executor(factory("CartPole-v1"), workers)
    assert f"workers = {workers!r}" in str(error.value)
