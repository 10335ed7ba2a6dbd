"""Searches on our engine as rivals: one thread, by the same training as `ars train`, evaluated as all rivals are."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from ars.curves import curve_settings
from ars.executors import Executor
from ars.network import AnyPolicy
from ars.noise import Stream
from ars.rivals.curve import Ending, Point, action_cost
from ars.rivals.roster import EPISODES, EVERY, RIVALS, Spec
from ars.sessions import new_session
from ars.stopping import Stop
from ars.training import evaluation_batch


def learn(spec: Spec, evaluated: Callable[[Point], None]) -> Ending:
    """Train, and call `evaluated` after every EVERY timesteps, or the first iteration that ends beyond them."""
    given = {**RIVALS[spec.rival].settings(spec.task), "seed": spec.seed, "eval_every": 0}
    session = new_session(spec.task, given, workers=1, stop=Stop(timesteps=spec.timesteps))
    config, H = session.config, session.definition["H"]
    first = session.state.policy(normalised=config.normalise, task={}, hidden=config.hidden)
    _rewards(session.executor, first, spec.seed, 0, H)  # loads compiled code, which is no cost of training
    cpu, count, due, policy = 0.0, 0, EVERY, first
    with closing(session.records()) as records:
        began = time.process_time()
        for record in records:
            cpu += time.process_time() - began
            policy = record.policy
            if record.timesteps >= min(due, spec.timesteps):
                count, due = count + 1, record.timesteps // EVERY * EVERY + EVERY
                rewards = _rewards(session.executor, policy, spec.seed, count, H)
                evaluated(Point(record.timesteps, record.episodes, rewards, cpu))
            began = time.process_time()
    return Ending(_settings(config), _policy_cost(policy))


def _rewards(executor: Executor, policy: AnyPolicy, seed: int, j: int, H: int) -> tuple[float, ...]:
    batch = evaluation_batch(policy, episodes=EPISODES, H=H, seed=seed, j=j, stream=Stream.TEST)
    return tuple(executor.run(batch).rewards[:, 0].tolist())


def _settings(config: Any) -> dict[str, Any]:
    """Those of the training; the evaluations are not its own."""
    own = ("protocol", "eval_every", "eval_episodes")
    return {name: value for name, value in curve_settings(config).items() if name not in own}


def _policy_cost(policy: AnyPolicy) -> dict[str, float]:
    """It acts with M, or the numbers of its layers, and mu and sigma."""
    x = policy.mu + 1.0
    arrays = policy.M, policy.mu, policy.sigma
    return action_cost(lambda: policy.act(x), policy.M.size, sum(array.nbytes for array in arrays))
