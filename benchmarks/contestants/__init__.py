"""The contestants, by their names in tables and `--only`."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from benchmarks.contest import Contestant
from benchmarks.workload import Work


@dataclass(frozen=True)
class Entry:
    """The place of a contestant's class, what it does, and the package that it needs."""

    path: str
    title: str
    package: str | None = None
    tasks: tuple[str, ...] = ("",)  # how the names of its tasks end

    def __call__(self, work: Work) -> Contestant:
        """Create it, in its own process, so that its imports stay there."""
        module, name = self.path.split(":")
        made: Contestant = getattr(import_module(f"benchmarks.contestants.{module}"), name)(work)
        return made

    def missing(self, task: str) -> str:
        """Why it cannot take part; empty if it can."""
        if self.package and find_spec(self.package) is None:
            return f"{self.package} is not installed (the extra `bench` has it)"
        return "" if task.endswith(self.tasks) else "it does not have this task"


ENTRIES = {
    "limit": Entry("limit:Limit", "mujoco.rollout replaying our controls, open loop"),
    "ours": Entry("ours:Rollouts", "our rollouts"),
    "iteration": Entry("ours:Iterations", "our whole training iterations"),
    "gymnasium": Entry(
        "gymnasium_loop:GymnasiumLoop", "Gymnasium and NumPy, one process per core", None, ("-v5", "Quadruped-v1")
    ),
    "sb3-sync": Entry("sb3:Sync", "sb3-contrib's ARS", "sb3_contrib", ("-v5",)),
    "sb3-async": Entry("sb3:Async", "sb3-contrib's ARS with AsyncEval", "sb3_contrib", ("-v5",)),
    "envpool": Entry(
        "envpool_lockstep:EnvPoolLockstep", "EnvPool in lockstep, batched NumPy policies", "envpool", ("-v5",)
    ),
}
