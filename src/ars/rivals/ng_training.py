"""NG-lin and NG-rbf: iterations of ng.py over the compiled robots.

Declared, because the publication does not say: batches of at least 10 000 timesteps of whole episodes, and the number
of random features, of which it tried 100, 250 and 500. The width of features is that of the first batch, in which the
policy is still W = 0 and does not depend on it. As everywhere, the bits depend on the seed alone.
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ars.errors import DivergedError, TaskError
from ars.executors.threads import TaskThreads
from ars.noise import Key, Stream, generator
from ars.rivals import ng
from ars.rivals.curve import Ending, Point, action_cost
from ars.rivals.ng_policy import GaussianPolicy
from ars.rivals.roster import EPISODES, EVERY, RIVALS, Spec
from ars.settings import LARGEST_SEED, whole_number
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.find import find_robot

FloatArray = NDArray[np.float64]

BATCH = 10_000  # timesteps, at least
DELTA, GAMMA, LAMBDA = 0.05, 0.995, 0.97


class Episode(NamedTuple):
    """states: (T, n), actions: (T, p), rewards: (T,); whether it ended by itself, and whether all was finite."""

    states: FloatArray
    actions: FloatArray
    rewards: FloatArray
    ended: bool
    finite: bool


class Learner(NamedTuple):
    """All that the next iteration depends on, besides the seed."""

    theta: ng.Parameters
    features: ng.Features
    baseline: ng.Baseline

    @property
    def mean_policy(self) -> GaussianPolicy:
        return GaussianPolicy(self.theta, self.features, np.zeros((0, len(self.theta.W))))


class Robots:
    """A robot for each of several threads; episodes come in the order of k."""

    def __init__(self, name: str, workers: int) -> None:
        if (robot := find_robot(name)) is None:
            raise TaskError(f"{name} does not hand out trajectories: NG needs one of the robots (`ars tasks`).")
        self._threads = TaskThreads(lambda: MujocoTask(robot, name), workers)
        self.n, self.p, self.H = self._threads.submit(lambda task: (task.n, task.p, task.H)).result()
        self.close = self._threads.close

    def train(self, learner: Learner, seed: int, j: int, ks: range) -> list[Episode]:
        """Episodes k of iteration j with stochastic actions."""

        def one(task: MujocoTask, k: int) -> Episode:
            xi = generator(Key(seed, Stream.ACTION, j, k)).standard_normal((self.H, self.p))
            policy = GaussianPolicy(learner.theta, learner.features, xi)
            rollout, rewards = task.trajectory(policy, Key(seed, Stream.TRAINING, j, k), H=self.H)
            states, actions = policy.states[: rollout.steps].copy(), policy.actions[: rollout.steps].copy()
            return Episode(states, actions, rewards, task.stopped, rollout.finite)

        return [future.result() for future in [self._threads.submit(one, k) for k in ks]]

    def test(self, learner: Learner, seed: int, count: int, episodes: int, H: int) -> list[float]:
        """Rewards of the mean actions in evaluation `count`, NaN where not finite."""

        def one(task: MujocoTask, k: int) -> float:
            rollout = task.rollout(learner.mean_policy, Key(seed, Stream.TEST, count, k), H=H, shift=0.0, gather=False)
            return rollout.reward if rollout.finite else math.nan

        return [future.result() for future in [self._threads.submit(one, k) for k in range(episodes)]]


def learn(spec: Spec, evaluated: Callable[[Point], None]) -> Ending:
    """One run of `ars rivals`, on one thread."""
    features = RIVALS[spec.rival].settings(spec.task)["features"]
    learner = train_ng(
        spec.task, seed=spec.seed, timesteps=spec.timesteps, features=features, every=EVERY, workers=1,
        evaluated=evaluated,
    )  # fmt: skip
    policy = learner.mean_policy
    numbers = [learner.theta.W, *learner.features]
    count, size = sum(array.size for array in numbers), sum(array.nbytes for array in numbers)
    cost = action_cost(lambda: policy.act(np.ones(policy.n)), count, size)
    return Ending({"batch": BATCH, "delta": DELTA, "gamma": GAMMA, "lambda": LAMBDA}, cost)


def train_ng(
    task: str,
    *,
    seed: int,
    timesteps: int,
    features: int | None,
    every: int,
    workers: int,
    evaluated: Callable[[Point], None],
) -> Learner:
    """Train for at least so many timesteps: NG-lin, or NG-rbf with so many random features. Every `every` of them,
    after the first iteration that ends beyond, `evaluated` gets 10 episodes with mean actions, whose steps and time do
    not count."""
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    timesteps = whole_number("timesteps", timesteps, 1)
    if features is not None:
        features = whole_number("features", features, 1, 10_000)
    every = whole_number("every", every, 1)
    with ExitStack() as stack:
        robots = Robots(task, whole_number("workers", workers, 1, 4096))
        stack.callback(robots.close)
        stack.enter_context(threadpool_limits(1))  # the bits of BLAS depend on its threads
        learner = first_learner(robots, features, seed)
        robots.test(learner, seed, 0, 1, H=1)  # compiles
        done = episodes = j = count = 0
        due, cpu = every, 0.0
        while done < timesteps:
            began = time.process_time()
            batch = gather(robots, learner, seed, j)
            done, episodes = done + sum(len(one.rewards) for one in batch), episodes + len(batch)
            if j == 0 and features is not None:
                nu = ng.width(np.concatenate([one.states for one in batch]))
                learner = learner._replace(features=ng.random_features(features, nu, robots.n, seed))
            learner = improved(learner, [one for one in batch if one.finite], task, j)
            cpu, j = cpu + time.process_time() - began, j + 1
            if done >= min(due, timesteps):
                count, due = count + 1, done // every * every + every
                rewards = tuple(robots.test(learner, seed, count, EPISODES, robots.H))
                evaluated(Point(done, episodes, rewards, cpu))
    return learner


def first_learner(robots: Robots, features: int | None, seed: int) -> Learner:
    """W = 0 and σ = 1; the width of random features is not known yet."""
    chosen = ng.linear_features(robots.n) if features is None else ng.random_features(features, 1.0, robots.n, seed)
    theta = ng.Parameters(np.zeros((robots.p, chosen.size)), np.zeros(robots.p))
    return Learner(theta, chosen, ng.Baseline())


def gather(robots: Robots, learner: Learner, seed: int, j: int) -> list[Episode]:
    """Whole episodes until there are BATCH timesteps: each time as many as are needed if none ends early, so that
    their number does not depend on the workers."""
    batch: list[Episode] = []
    while (missing := BATCH - sum(len(one.rewards) for one in batch)) > 0:
        more = robots.train(learner, seed, j, range(len(batch), len(batch) - (-missing // robots.H)))
        batch += more
        if not any(len(one.rewards) for one in more):
            raise DivergedError(f"In iteration {j + 1} no episode has a finite step.")
    return batch


def improved(learner: Learner, batch: list[Episode], task: str, j: int) -> Learner:
    """One step of the policy, and then the baseline's fit.  # algorithm 1"""
    if not batch:
        raise DivergedError(f"In iteration {j + 1} none of the episodes of {task} stayed finite.")
    seen = [learner.baseline.features(one.states) for one in batch]
    values = [learner.baseline.predict(part) for part in seen]
    A = ng.whitened(np.concatenate([
        ng.advantages(one.rewards, V, one.ended, GAMMA, LAMBDA) for one, V in zip(batch, values, strict=True)
    ]))  # fmt: skip
    phi = learner.features(np.concatenate([one.states for one in batch]))
    theta = ng.step(learner.theta, phi, np.concatenate([one.actions for one in batch]), A, DELTA)
    if not all(np.isfinite(part).all() for part in theta):
        raise DivergedError(f"The update of iteration {j + 1} on {task} is not finite.")
    returns = np.concatenate([ng.discounted(one.rewards, GAMMA) for one in batch])
    return Learner(theta, learner.features, ng.Baseline.fit(np.concatenate(seen), returns))
