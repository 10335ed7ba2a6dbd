"""Check that stable-baselines3's `evaluate_policy` takes our LinearPolicy: `python -m benchmarks.check_sb3`.

Separate from the tests because it needs torch. Continuous and discrete actions, on Gymnasium's own environments.
"""

import sys
import warnings

import gymnasium
from stable_baselines3.common.evaluation import evaluate_policy

import ars


def check(task: str, iterations: int, episodes: int = 5) -> None:
    *_, record = ars.train(task, iterations=iterations, eval_every=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Monitor.*")
        mean, spread = evaluate_policy(record.policy, gymnasium.make(task), n_eval_episodes=episodes)
    ours = ars.evaluate(record.policy, episodes=100).summary()["mean"]
    print(f"{task}: evaluate_policy gives {mean:.1f} ± {spread:.1f}, ars.evaluate {ours:.1f}")


def main() -> int:
    check("CartPole-v1", iterations=10)
    check("Hopper-v5", iterations=20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
