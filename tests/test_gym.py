"""The registered environments are our tasks, and pass Gymnasium's own check."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ars.gym import IDS
from ars.noise import Key, Stream, environment_seed
from ars.policy import LinearPolicy
from ars.tasks import make

KEY = Key(3, Stream.TEST, 0, 1)


@pytest.mark.parametrize("name", IDS)
def test_the_environment_is_the_compiled_task(name: str) -> None:
    """The same policy from the same seed: the reward to the bit, and the observations by their moments."""
    task, env = make(name), gymnasium.make(IDS[name])
    random = np.random.default_rng(2)
    M = 0.1 * random.standard_normal((task.p, task.n))
    policy = LinearPolicy(M, np.zeros(task.n), np.ones(task.n))
    ours = task.rollout(policy, KEY, H=task.H, shift=0.0, gather=True)
    x, _ = env.reset(seed=environment_seed(KEY))
    states, reward, over = [], 0.0, False
    while not over:
        states.append(x)
        x, r, terminated, truncated, _ = env.step(policy.act(x))
        reward += float(r)
        over = terminated or truncated
    assert (ours.reward, ours.steps) == (reward, len(states))
    assert ours.moments is not None
    np.testing.assert_allclose(ours.moments.mean, np.mean(states, axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.moments.m2 / ours.steps, np.var(states, axis=0), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum)")  # as Gymnasium's own robots
def test_gymnasium_finds_no_fault(name: str) -> None:
    env = gymnasium.make(IDS[name])
    assert env.spec is not None
    assert env.spec.max_episode_steps == 1000
    check_env(env.unwrapped, skip_render_check=True)


def test_a_name_with_the_module_needs_no_import() -> None:
    code = "import gymnasium; print(gymnasium.make('ars.gym:ars/Hopper-v1').spec.id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "ars/Hopper-v1\n"
