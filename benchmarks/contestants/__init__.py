"""The contestants, by their names in tables and `--only`."""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from benchmarks.contest import Contestant
from benchmarks.workload import Work


class Entry(NamedTuple):
    """The place of a contestant's class, what it does, and the package that it needs."""

    path: str
    title: str
    package: str | None = None

    def __call__(self, work: Work) -> Contestant:
        """Create it, in its own process, so that its imports stay there."""
        module, name = self.path.split(":")
        return getattr(import_module(f"benchmarks.contestants.{module}"), name)(work)

    def missing(self, task: str) -> str:
        """Why it cannot take part; empty if it can."""
        if self.package and find_spec(self.package) is None:
            return f"{self.package} is not installed (the extra `bench` has it)"
        if not self.path.startswith(("limit", "ours")) and task.endswith("-v1"):
            return "only our code has the paper's -v1 tasks"
        return ""


ENTRIES = {
    "limit": Entry("limit:Limit", "mujoco.rollout replaying our controls, open loop"),
    "ours": Entry("ours:Rollouts", "our rollouts"),
    "iteration": Entry("ours:Iterations", "our whole training iterations"),
    "gymnasium": Entry("gymnasium_loop:GymnasiumLoop", "Gymnasium and NumPy, one process per core"),
    "sb3-sync": Entry("sb3:Sync", "sb3-contrib's ARS", "sb3_contrib"),
    "sb3-async": Entry("sb3:Async", "sb3-contrib's ARS with AsyncEval", "sb3_contrib"),
    "envpool": Entry("envpool_lockstep:EnvPoolLockstep", "EnvPool in lockstep, batched NumPy policies", "envpool"),
}
