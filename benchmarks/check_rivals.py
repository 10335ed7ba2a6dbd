"""Check the learners of stable-baselines3 on our tasks: `python -m benchmarks.check_rivals`, or with their names.

Separate from the tests because it needs torch (the extra `rivals`). A short run of each, twice, to the same rewards;
and that their evaluator gives a policy the reward that ours gives it, to the bit.
"""

import sys
import tempfile
from pathlib import Path

import gymnasium
import numpy as np

from ars.curves import Curve, load
from ars.gym import IDS
from ars.noise import Key, Stream, environment_seed
from ars.policy import LinearPolicy
from ars.rivals import child, external
from ars.rivals.roster import Spec
from ars.tasks import make

TASK = "Hopper-v1"
TIMESTEPS = {"sac": 10_200, "ddpg": 10_200}  # both begin to learn after 10 000; the others need 2000


def check_evaluator() -> None:
    task, env, key = make(TASK), gymnasium.make(IDS[TASK]), Key(1, Stream.TEST, 3, 5)
    M = 0.1 * np.random.default_rng(0).standard_normal((task.p, task.n))
    policy = LinearPolicy(M, np.zeros(task.n), np.ones(task.n))
    ours = task.rollout(policy, key, H=task.H, shift=0.0, gather=False).reward
    theirs = external.episode_reward(env, policy.act, environment_seed(key))
    assert ours == theirs, (ours, theirs)
    print(f"{TASK}: one policy, two evaluators: {ours!r}")


def check_learner(name: str, folder: Path) -> None:
    spec, file = Spec(name, TASK, 1, TIMESTEPS.get(name, 2000)), folder / f"{name}.json"
    first, second = (run(spec, file) for _ in range(2))
    assert (first.status, first.eval_episodes) == ("finished", 10)
    assert first.timesteps >= spec.timesteps
    assert first.rewards.tolist() == second.rewards.tolist(), "the seed does not decide the run"
    milliseconds = 1000 * first.seconds / first.timesteps
    print(f"{name}: reward {first.rewards[-1]:.1f}, {milliseconds:.2f} CPU ms per timestep, {dict(first.measures)}")


def run(spec: Spec, file: Path) -> Curve:
    child.run(spec, file)
    return load(file)


def main() -> int:
    check_evaluator()
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or ["ppo"]:
            check_learner(name, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
