"""Training that starts from a policy instead of M = 0, on the same task or another one of the same shape.

The policy's statistics count as `weight` states, to which training adds its own; with a weight of 0, training starts
with fresh statistics. The run's configuration records the file's hash and the weight.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ars.config import Config
from ars.errors import SettingError
from ars.files import read_bytes
from ars.mirror import Mirror
from ars.moments import Moments
from ars.policies import open_policy, policy_file
from ars.policy import LinearPolicy
from ars.records import State
from ars.settings import whole_number

DEFAULT_WEIGHT = 2**14  # states; one iteration of HalfCheetah has 16 000. A power of two keeps the bits of sigma
LARGEST_WEIGHT = 10**12


@dataclass(frozen=True)
class WarmStart:
    """A policy, the SHA-256 of its file, and how many states its statistics count for."""

    policy: LinearPolicy
    sha256: str
    weight: int

    @property
    def name(self) -> str:
        """The text that the configuration records."""
        return f"{self.sha256}:{self.weight}"

    def apply(self, config: Config, state: State, mirror: Mirror | None = None) -> State:
        """The initial state of a run, with this policy's M and statistics; `mirror` is what the run keeps."""
        policy = self.policy
        if policy.task and policy.observe != config.observe:
            raise SettingError(
                f"The policy to start from sees the entries {policy.observe} of its observation: observe = "
                f"{config.observe} must be the same."
            )
        if policy.M.shape != state.M.shape:
            raise SettingError(
                f"The policy to start from is {policy.p} × {policy.n}, and {config.task} needs "
                f"{state.M.shape[0]} × {state.M.shape[1]}."
            )
        if mirror is not None and not mirror.keeps(policy.M, policy.mu, policy.sigma):
            raise SettingError(
                "The policy to start from is not symmetric: start from one that was trained with mirror, or train "
                "without it."
            )
        if not config.normalise:
            if np.any(policy.c != 0.0):
                raise SettingError(
                    "The policy to start from subtracts a mean, which needs normalised states: train with normalise "
                    "(V2 or V2-t)."
                )
            return replace(state, params={**state.params, "M": policy.W})
        moments = state.moments
        if self.weight:
            with np.errstate(over="ignore"):
                Sigma_diag = np.where(np.isinf(policy.sigma), 0.0, np.square(policy.sigma))
            moments = Moments(np.asarray(self.weight, dtype=np.int64), policy.mu, self.weight * Sigma_diag)
            if not np.isfinite(moments.m2).all():
                raise SettingError("The policy to start from has too large a sigma: give start_weight = 0.")
        mu = policy.mu if config.steady and self.weight else None
        return replace(state, params={**state.params, "M": policy.M}, moments=moments, mu=mu)


def warm_start_of(policy: str | Path | LinearPolicy | None, weight: int | None, task: str) -> WarmStart | None:
    """A warm start from a policy, its file, a run folder, or the name of a shipped policy, as in `ars evaluate`."""
    if policy is None:
        if weight is not None:
            raise SettingError(f"start_weight = {weight} needs a policy to start from.")
        return None
    weight = DEFAULT_WEIGHT if weight is None else whole_number("start_weight", weight, 0, LARGEST_WEIGHT)
    if isinstance(policy, LinearPolicy):
        return WarmStart(policy, hashlib.sha256(policy.to_bytes()).hexdigest(), weight)
    file = policy_file(policy)
    return WarmStart(open_policy(file, task), hashlib.sha256(read_bytes(file)).hexdigest(), weight)
