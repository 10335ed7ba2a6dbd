"""Batches and configurations by hand, for tests below the level of training."""

from typing import Any

import numpy as np

from ars.config import Config
from ars.executors import Batch, Rollouts
from ars.noise import Stream
from ars.policy import LinearPolicy
from ars.searches.ars import ARS, VARIANTS
from ars.tasks import make


def batch(M: Any, mu: Any, sigma: Any, *, size: int, nu: float | None = 0.05, **more: Any) -> Batch:
    """A training batch of ARS around M; an evaluation of M without nu."""
    policy = LinearPolicy(np.asarray(M), np.asarray(mu), np.asarray(sigma))
    if nu is None:
        return Batch(policy=policy, size=size, **{"stream": Stream.EVALUATION, "seed": 11, "j": 4, **more})
    search = ARS(nu=nu, N=size)
    training = {"search": search, "params": {"M": policy.M}, "signs": search.signs, "stream": Stream.TRAINING}
    return Batch(policy=policy, size=size, **{**training, "seed": 11, "j": 4, **more})


def paper_config(variant: str = "V2", **settings: Any) -> Config:
    """A configuration of ARS by the paper's symbols, every one of them given."""
    own = {name: settings.pop(name) for name in ("alpha", "nu", "N", "b") if name in settings}
    scaled, normalise, _ = VARIANTS[variant]
    return Config(
        **{
            "protocol": "paper",
            "task": "Any-v0",
            "search": ARS(scaled=scaled, **own),
            "normalise": normalise,
            **settings,
        }
    )


def batch_of(name: str, *, size: int = 5, H: int = 40, gather: bool = True, evaluation: bool = False) -> Batch:
    """Directions around a small random policy of a task; with evaluation=True, episodes of it."""
    task = make(name)
    rng = np.random.default_rng(3)
    M, mu, sigma = 0.01 * rng.standard_normal((task.p, task.n)), rng.standard_normal(task.n), np.ones(task.n)
    task.close()
    if evaluation:
        return batch(M, mu, sigma, nu=None, size=size, H=H)
    return batch(M, mu, sigma, size=size, H=H, shift=0.5, gather=gather)


def bits(rollouts: Rollouts) -> tuple[bytes, ...]:
    m = rollouts.moments
    return tuple(np.asarray(a).tobytes() for a in (rollouts.rewards, rollouts.steps, m.count, m.mean, m.m2))
