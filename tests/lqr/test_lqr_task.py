"""LQR as a task: the compiled rollout against plain Python with the policy's own arithmetic, bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ars.executors import SerialExecutor, make_executor
from ars.lqr import Problem
from ars.noise import Key, Stream, generator
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.records import State
from ars.tasks import Rollout, factory
from ars.tasks.lqr import LqrTask
from ars.training import iterate


def plain_rollout(problem: Problem, policy: LinearPolicy, key: Key, H: int, shift: float) -> tuple[float, np.ndarray]:
    """Reward and states, in Python's floats and in the same order of sums."""
    A, B, Q, R = (getattr(problem, name).tolist() for name in "ABQR")
    noise = generator(key).standard_normal((H + 1, problem.n)).tolist()
    x, reward, states = noise[0], 0.0, []
    for w in noise[1:]:
        states.append(x)
        u = [float(a) for a in policy.act(x)]
        cost = 0.0
        for S, v in ((Q, x), (R, u)):
            total = 0.0
            for i in range(len(v)):
                for j in range(len(v)):
                    total += v[i] * S[i][j] * v[j]
            cost += total
        reward += -cost - shift
        after = []
        for i in range(problem.n):
            total = 0.0
            for j in range(problem.n):
                total += A[i][j] * x[j]
            for j in range(problem.p):
                total += B[i][j] * u[j]
            after.append(total + w[i])
        x = after
    return reward, np.array(states)


@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000), st.integers(1, 30), st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def test_rollout_against_plain_python(n: int, p: int, seed: int, H: int, shift: float) -> None:
    problem = Problem.random(n, p, 1.05, seed)
    rng = np.random.default_rng(seed)
    policy = LinearPolicy(0.1 * rng.standard_normal((p, n)), rng.standard_normal(n), np.exp(rng.standard_normal(n)))
    key = Key(seed, Stream.TRAINING, 3, 1, -1)
    rollout = LqrTask(problem).rollout(policy, key, H=H, shift=shift, gather=True)
    reward, states = plain_rollout(problem, policy, key, H, shift)
    assert (rollout.reward, rollout.steps, rollout.finite) == (reward, H, True)
    assert rollout.moments is not None
    assert rollout.moments.count == H
    assert rollout.moments.mean == pytest.approx(states.mean(axis=0))
    assert rollout.moments.m2 == pytest.approx(states.var(axis=0) * H, rel=1e-6, abs=1e-9)


def policy_of(K: np.ndarray) -> LinearPolicy:
    n = K.shape[1]
    return LinearPolicy(K, np.zeros(n), np.ones(n))


def roll(task: LqrTask, K: np.ndarray, sign: int = 0, H: int = 302) -> Rollout:
    return task.rollout(policy_of(K), Key(1, Stream.TRAINING, 0, 0, sign), H=H, shift=0.0, gather=False)


def test_the_average_reward_of_a_long_rollout_is_the_exact_cost(paper: Problem) -> None:
    K, H = -0.1 * np.eye(3), 400_000
    rollout = roll(LqrTask(paper, H=H), K, H=H)
    assert -rollout.reward / H == pytest.approx(paper.cost(K), rel=0.01)


def test_the_average_cost_of_an_offset(paper: Problem) -> None:
    W, H = -0.1 * np.eye(3), 400_000
    policy = LinearPolicy(W, np.array([3.0, -2.0, 1.0]), np.ones(3))
    task = LqrTask(paper, H=H)
    rollout = task.rollout(policy, Key(1, Stream.TEST, 0, 0), H=H, shift=0.0, gather=False)
    assert -rollout.reward / H == pytest.approx(paper.cost(policy.W, policy.c), rel=0.01)
    expected = (paper.cost(policy.W, policy.c) - paper.J_star) / paper.J_star
    assert task.measure(policy) == {"relative_cost": expected}


def test_the_task_is_the_papers_instance() -> None:
    task = LqrTask()
    assert (task.name, task.n, task.p, task.H, task.survival_bonus) == ("lqr", 3, 3, 302, 0.0)
    assert task.definition()["lqr"] == Problem.paper().to_dict()


def test_a_longer_rollout_starts_with_the_shorter_one(paper: Problem) -> None:
    task, K = LqrTask(paper), np.zeros((3, 3))
    assert [roll(task, K, H=H).steps for H in (1, 10, 400)] == [1, 10, 400]
    assert task.time_limit is None
    tail = roll(task, K, H=11).reward - roll(task, K, H=10).reward
    assert tail < 0


def test_a_rollout_that_diverges_is_not_finite_and_ends(paper: Problem) -> None:
    rollout = roll(LqrTask(paper), 5.0 * np.eye(3))
    assert not rollout.finite
    assert rollout.steps < 100
    assert not roll(LqrTask(paper), 1e300 * np.eye(3)).finite


def test_common_noise_is_an_option(paper: Problem) -> None:
    K = -0.1 * np.eye(3)
    plus, minus = (roll(LqrTask(paper), K, sign) for sign in (+1, -1))
    assert plus.reward != minus.reward
    plus, minus = (roll(LqrTask(paper, common_noise=True), K, sign) for sign in (+1, -1))
    assert plus.reward == minus.reward


def test_measure_of_an_unstable_policy(paper: Problem) -> None:
    assert LqrTask(paper).measure(policy_of(np.zeros((3, 3)))) == {"relative_cost": np.inf}


def test_training_learns_to_stabilise(paper: Problem) -> None:
    task = LqrTask(paper)
    config = make_config(
        "lqr", H=task.H, shift=0.0, variant="V1", alpha=0.0025, nu=0.01, N=4, seed=3, eval_every=0
    )  # fmt: skip
    records = iterate(config, State.initial(config.search, 3, 3), SerialExecutor(lambda: task), task.definition())
    costs = [task.measure(next(records).policy)["relative_cost"] for _ in range(60)]
    assert costs[0] == np.inf
    assert costs[-1] < 0.2


def test_workers_do_not_change_the_bits(paper: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ars.tasks.make", lambda name, **_: LqrTask(paper))
    states = []
    for workers in (1, 3):
        task = LqrTask(paper)
        config = make_config("lqr", H=task.H, shift=0.0, variant="V2", alpha=0.01, nu=0.01, N=5, eval_every=0)
        executor = make_executor(factory("lqr"), workers)
        records = iterate(config, State.initial(config.search, 3, 3), executor, task.definition())
        states.append([next(records).state for _ in range(4)][-1])
        executor.close()
    one, three = states
    assert one.M.tobytes() == three.M.tobytes()
    assert one.moments.m2.tobytes() == three.moments.m2.tobytes()
