"""NG-lin and NG-rbf: every equation by hand or by another way, trajectories against Gymnasium, bits and learning."""

from typing import Any

import numpy as np
import pytest

from ars.errors import SettingError, TaskError
from ars.noise import Key, Stream, environment_seed
from ars.rivals import ng, ng_training
from ars.rivals.curve import Point
from ars.rivals.ng_policy import GaussianPolicy
from ars.rivals.ng_training import Learner, Robots, train_ng
from ars.tasks import make, paper_envs
from ars.tasks.mujoco_loop import MujocoTask

KEY = Key(3, Stream.TRAINING, 0, 0)


@pytest.fixture
def batch() -> tuple[ng.Parameters, np.ndarray, np.ndarray, np.ndarray]:
    """Parameters, features, actions that they took, and whitened advantages that favour some of them."""
    random = np.random.default_rng(0)
    theta = ng.Parameters(random.standard_normal((2, 5)), np.array([-0.5, 0.2]))
    phi = ng.linear_features(4)(random.standard_normal((400, 4)) * [1.0, 2.0, 0.5, 1.0])
    actions = phi @ theta.W.T + np.exp(theta.log_sigma) * random.standard_normal((400, 2))
    A = ng.whitened(actions[:, 0] * phi[:, 0] - np.square(actions[:, 1]) + random.standard_normal(400))
    return theta, phi, actions, A


def log_density(theta: ng.Parameters, phi: np.ndarray, actions: np.ndarray) -> np.ndarray:
    sigma = np.exp(theta.log_sigma)
    z = (actions - phi @ theta.W.T) / sigma
    return -(np.square(z) / 2 + np.log(sigma) + np.log(2 * np.pi) / 2).sum(axis=1)


def test_features_by_hand() -> None:
    states = np.array([[1.0, 2.0], [0.0, -1.0]])
    assert ng.linear_features(2)(states).tolist() == [[1.0, 2.0, 1.0], [0.0, -1.0, 1.0]]
    features = ng.Features(np.array([[0.5, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(features(states)[0], [np.sin(0.6), np.sin(4.2), np.sin(3.3), 1.0])
    assert (features.size, ng.linear_features(2).size) == (4, 3)
    wide, narrow = (ng.random_features(2000, nu, 3, seed=1) for nu in (4.0, 1.0))
    np.testing.assert_allclose(4.0 * wide.P_over_nu, narrow.P_over_nu)
    assert narrow.P_over_nu.std() == pytest.approx(1.0, rel=0.05)
    assert -np.pi <= narrow.phases.min() < -3.0 < 3.0 < narrow.phases.max() < np.pi
    assert (ng.random_features(3, 1.0, 3, seed=2).P_over_nu != ng.random_features(3, 1.0, 3, seed=1).P_over_nu).all()


def test_width_by_hand() -> None:
    assert ng.width(np.array([[0.0], [3.0], [4.0]])) == pytest.approx((3 + 4 + 1) / 3)
    assert ng.width(np.ones((4, 2))) == 1.0  # nothing to go by
    random = np.random.default_rng(0).standard_normal((20_000, 1))  # E|x − y| = 2/√π
    assert ng.width(random) == pytest.approx(2 / np.sqrt(np.pi), rel=0.05)


def test_advantages_by_hand() -> None:
    rewards, values = np.array([1.0, 2.0]), np.array([0.5, 0.25])
    assert ng.discounted(np.array([1.0, 2.0, 4.0]), 0.5).tolist() == [3.0, 4.0, 4.0]
    # ended: δ_1 = 2 − 0.25, δ_0 = 1 + 0.5·0.25 − 0.5
    assert ng.advantages(rewards, values, True, 0.5, 0.5).tolist() == [0.625 + 0.25 * 1.75, 1.75]
    # time was up: δ_1 = 2 + 0.5·0.25 − 0.25
    assert ng.advantages(rewards, values, False, 0.5, 0.5).tolist() == [0.625 + 0.25 * 1.875, 1.875]
    A = ng.whitened(np.array([1.0, 2.0, 6.0]))
    assert (A.mean(), A.std()) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0, rel=1e-5))


def test_baseline() -> None:
    found = ng.Baseline.features(np.array([[1.0, 20.0], [2.0, -30.0]]))
    assert found[1].tolist() == pytest.approx([0.2, -1.0, 0.04, -0.2, 1.0, 1.0, 1e-3, 1e-6, 1e-9, 1e-12])
    assert ng.Baseline.features(np.zeros((3, 200))).shape == (3, 200 + 200 + 5)  # squares only
    random = np.random.default_rng(0)
    states = random.standard_normal((2000, 2))
    returns = 3.0 + states[:, 0] * states[:, 1] - 2.0 * np.square(states[:, 1]) + 0.01 * np.arange(2000)
    features = ng.Baseline.features(states)
    assert not ng.Baseline().predict(features).any()
    fit = ng.Baseline.fit(features, returns).predict(features)
    assert np.abs(fit - returns).max() < 0.02 * np.ptp(returns)  # the ridge draws it to 0 a little


def test_gradient_is_that_of_the_surrogate(batch: Any) -> None:
    """Finite differences of mean(A π_θ(a|s)/π_old(a|s))."""
    theta, phi, actions, A = batch
    old = log_density(theta, phi, actions)

    def surrogate(vector: np.ndarray) -> float:
        moved = ng.Parameters(vector[:10].reshape(2, 5), vector[10:])
        return float((A * np.exp(log_density(moved, phi, actions) - old)).mean())

    here = np.concatenate([theta.W.ravel(), theta.log_sigma])
    expected = [(surrogate(here + e) - surrogate(here - e)) / 2e-5 for e in 1e-5 * np.eye(12)]
    g = ng.gradient(theta, phi, actions, A)
    np.testing.assert_allclose(np.concatenate([g.W.ravel(), g.log_sigma]), expected, rtol=1e-6, atol=1e-8)


def test_exact_solve_equals_conjugate_gradients(batch: Any) -> None:
    theta, phi, actions, A = batch
    g = ng.gradient(theta, phi, actions, A)
    variances = np.exp(2 * theta.log_sigma)

    def fisher(v: np.ndarray) -> np.ndarray:
        """F v, one state after the other, with the damping of W."""
        W = v[:10].reshape(2, 5)
        rows = sum(np.outer(W @ one / variances, one) for one in phi) / len(phi) + ng.DAMPING * W
        return np.concatenate([rows.ravel(), 2.0 * v[10:]])

    b = np.concatenate([g.W.ravel(), g.log_sigma])
    x, r = np.zeros(12), b.copy()
    q = r.copy()
    for _ in range(30):
        if (rr := r @ r) < 1e-26:
            break
        Fq = fisher(q)
        x, r = x + rr / (q @ Fq) * q, r - rr / (q @ Fq) * Fq
        q = r + (r @ r) / rr * q
    d = ng.natural(theta, phi, g)
    np.testing.assert_allclose(np.concatenate([d.W.ravel(), d.log_sigma]), x, rtol=1e-4)


@pytest.mark.parametrize("delta", [0.05, 0.005])
def test_a_step_has_a_divergence_of_half_delta(batch: Any, delta: float) -> None:
    """KL of normal distributions: Σ ln(σ'/σ) + (σ² + Δμ²)/(2σ'²) − ½, mean over states."""
    theta, phi, actions, A = batch
    after = ng.step(theta, phi, actions, A, delta)
    old, new = np.exp(theta.log_sigma), np.exp(after.log_sigma)
    moved = phi @ (after.W - theta.W).T
    KL = (np.log(new / old) + (old**2 + moved**2) / (2 * new**2) - 0.5).sum(axis=1).mean()
    assert pytest.approx(delta / 2, rel=3 * np.sqrt(delta)) == KL
    g = ng.gradient(theta, phi, actions, A)
    assert g.dot(ng.Parameters(after.W - theta.W, after.log_sigma - theta.log_sigma)) > 0


def test_deviations_have_a_floor_and_flat_rewards_no_step(batch: Any) -> None:
    theta, phi, actions, _ = batch
    low = ng.Parameters(theta.W, np.array([-2.999, -2.999]))
    near = phi @ low.W.T  # actions near the mean are better: σ shrinks
    for _ in range(3):
        low = ng.step(low, phi, near, ng.whitened(np.arange(400.0)) + 1.0, 0.05)
    assert low.log_sigma.min() == -3.0
    assert ng.step(theta, phi, actions, np.zeros(400), 0.05) is theta


# -- in the loop -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hopper() -> MujocoTask:
    task = make("Hopper-v1")
    assert isinstance(task, MujocoTask)
    return task


def policy_of(f: int | None, xi: np.ndarray, n: int = 11) -> GaussianPolicy:
    features = ng.linear_features(n) if f is None else ng.random_features(f, 2.0, n, seed=1)
    W = 0.3 * np.random.default_rng(2).standard_normal((xi.shape[1], features.size))
    return GaussianPolicy(ng.Parameters(W, np.array([-1.0, 0.0, -2.0])), features, xi)


@pytest.mark.parametrize("f", [None, 6])
def test_trajectories_are_those_of_gymnasium(hopper: MujocoTask, f: int | None) -> None:
    """Its environment, given the recorded actions, has the recorded states and rewards; the actions are W φ + σ ξ."""
    xi = np.random.default_rng(0).standard_normal((1000, 3))
    policy = policy_of(f, xi)
    rollout, rewards = hopper.trajectory(policy, KEY, H=1000)
    T = rollout.steps
    assert hopper.stopped
    assert 5 < T < 1000
    assert rewards.shape == (T,)
    env = paper_envs.make("Hopper-v1").unwrapped
    x, _ = env.reset(seed=environment_seed(KEY))
    for t in range(T):
        np.testing.assert_array_equal(policy.states[t], x)
        x, reward, ended, *_ = env.step(policy.actions[t])
        assert (rewards[t], t == T - 1) == (float(reward), bool(ended))
    means = policy.features(policy.states[:T]) @ policy.theta.W.T
    noise = np.exp(policy.theta.log_sigma) * xi[:T]
    np.testing.assert_allclose(policy.actions[:T], means + noise, rtol=1e-12, atol=1e-12)
    assert not policy.states[T:].any()
    assert rollout.reward == pytest.approx(rewards.sum())
    np.testing.assert_allclose(policy.act(policy.states[0]), means[0])
    again = hopper.rollout(policy, KEY, H=1000, shift=0.0, gather=False)  # which records no rewards
    assert (again.reward, len(hopper.arrays.rewards)) == (rollout.reward, 0)


def test_mean_actions_need_no_noise(hopper: MujocoTask) -> None:
    mean, quiet = policy_of(6, np.zeros((0, 3))), policy_of(6, np.zeros((50, 3)))
    expected = hopper.rollout(quiet, KEY, H=50, shift=0.0, gather=False)
    assert hopper.rollout(mean, KEY, H=50, shift=0.0, gather=False) == expected


def points(monkeypatch: pytest.MonkeyPatch, size: int, task: str = "Hopper-v1", **more: Any) -> list[Point]:
    monkeypatch.setattr(ng_training, "BATCH", size)
    found: list[Point] = []
    train_ng(task, **{"seed": 3, "workers": 1, "features": None, "every": 100, **more}, evaluated=found.append)
    return found


@pytest.mark.parametrize("features", [None, 7])
def test_any_number_of_workers(monkeypatch: pytest.MonkeyPatch, features: int | None) -> None:
    one, two, three = (
        [
            point._replace(cpu_seconds=0.0)
            for point in points(monkeypatch, 150, timesteps=1000, workers=workers, features=features)
        ]
        for workers in (1, 2, 3)
    )
    assert one == two == three
    assert len({point.mean for point in one}) > 1
    assert one[0].timesteps >= 150
    assert one[-1].timesteps >= 1000
    other = points(monkeypatch, 150, timesteps=1000, seed=4, features=features)
    assert other[0].mean != one[0].mean


def test_a_batch_is_whole_episodes() -> None:
    robots = Robots("Hopper-v1", 1)
    features = ng.linear_features(11)
    learner = Learner(ng.Parameters(np.zeros((3, 12)), np.zeros(3)), features, ng.Baseline())
    batch = ng_training.gather(robots, learner, 0, 0)
    steps = [len(one.rewards) for one in batch]
    assert sum(steps) >= ng_training.BATCH > sum(steps) - 1000
    assert all(one.ended and len(one.states) == len(one.actions) == len(one.rewards) for one in batch)
    assert len({one.states[0].tobytes() for one in batch}) == len(batch)
    robots.close()


def test_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    found = points(monkeypatch, 200, timesteps=50_000 // 10)
    assert all(len(point.rewards) == 10 for point in found)
    assert all(point.mean == pytest.approx(np.mean(point.rewards)) for point in found)
    gaps = np.diff([point.timesteps for point in found])
    assert 20 <= len(found) <= 50
    assert gaps.min() > 0
    assert [point.cpu_seconds for point in found] == sorted(point.cpu_seconds for point in found)


@pytest.mark.parametrize("features", [None, 50])
def test_learns(monkeypatch: pytest.MonkeyPatch, features: int | None) -> None:
    """To stay up: after the first of 20 small batches Hopper's mean action earns less than 180."""
    first, *_, last = points(monkeypatch, 1000, timesteps=20_000, features=features, every=1000)
    assert first.mean < 180 < last.mean
    assert first.timesteps < 2000


def test_mistakes_are_one_sentence() -> None:
    given: dict[str, Any] = {
        "seed": 0, "timesteps": 10, "workers": 1, "features": None, "every": 5, "evaluated": print,
    }  # fmt: skip
    for task in ("CartPole-v1", "lqr"):
        with pytest.raises(TaskError, match="trajectories"):
            train_ng(task, **given)
    for change in ({"features": 0}, {"timesteps": 0}, {"workers": 0}, {"seed": -1}, {"every": 0}):
        with pytest.raises(SettingError, match=next(iter(change))):
            train_ng("Hopper-v1", **{**given, **change})
