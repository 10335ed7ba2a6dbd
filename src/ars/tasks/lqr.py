"""The linear quadratic regulator as a task: 302 steps from x_0 ~ N(0, I), reward −(x'Qx + u'Ru) before the transition.

`lqr` is the paper's instance (section 4.3); LqrTask takes any instance. The rollouts are compiled.
"""

from typing import Any

from ars.errors import TaskError
from ars.lqr.problem import Problem
from ars.moments import Moments
from ars.noise import Key, generator
from ars.policy import Actions, LinearPolicy
from ars.tasks import Policy, Rollout, define

DEFAULT_H = 302


class LqrTask:
    """The states are observed; with common_noise the rollouts of +delta_k and −delta_k share their random numbers.

    Common noise is our extension, for comparisons only.
    """

    name = "lqr"
    survival_bonus = 0.0
    time_limit = None  # H is the length of rollouts; the task itself has no end
    releases_gil = True

    def __init__(self, problem: Problem | None = None, *, H: int = DEFAULT_H, common_noise: bool = False) -> None:
        self.problem = problem or Problem.paper()
        self.n, self.p, self.H = self.problem.n, self.problem.p, H
        self._common_noise = common_noise

    def definition(self) -> dict[str, Any]:
        actions, problem = Actions().to_dict(), self.problem.to_dict()
        return define(self, observation={"shape": [self.n]}, actions=actions, lqr=problem)

    def rollout(self, policy: Policy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        from ars.lqr import loops

        policy = _linear(policy)
        if self._common_noise:
            key = key._replace(sign=0)
        noise = generator(key).standard_normal((H + 1, self.n))
        problem = self.problem
        reward, steps, finite, s1, s2 = loops.rollout(
            problem.A, problem.B, problem.Q, problem.R, policy.W, policy.c, noise, shift
        )
        moments = Moments.from_sums(steps, noise[0], s1, s2) if gather else None
        return Rollout(reward, steps, moments, finite)

    def measure(self, policy: Policy) -> dict[str, float]:
        """The exact relative cost of u = W x − c, over infinite time; infinite if W does not stabilise."""
        policy = _linear(policy)
        return {"relative_cost": self.problem.relative_cost(policy.W, policy.c)}

    def close(self) -> None:
        pass


def _linear(policy: Policy) -> LinearPolicy:
    if not isinstance(policy, LinearPolicy):
        raise TaskError("lqr is for linear policies, which its costs are computed of.")
    return policy
