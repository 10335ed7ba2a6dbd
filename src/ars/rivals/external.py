"""Learners of stable-baselines3 and sb3-contrib on our tasks, with the settings of the roster. It needs the extra
`rivals`, and runs in a process of its own (child.py): nothing else imports torch.

Actions: stable-baselines3 clips or squashes what its policies give to the action space, in training and evaluation; the
environment then clamps controls, as always, and charges the control cost of the action that it is sent.
"""

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize

from ars.gym import IDS
from ars.noise import Key, Stream, environment_seed
from ars.rivals.curve import Ending, Point, action_cost
from ars.rivals.roster import EPISODES, EVERY, RIVALS, Spec

CLASSES = {
    "ppo": stable_baselines3.PPO,
    "a2c": stable_baselines3.A2C,
    "trpo": sb3_contrib.TRPO,
    "sac": stable_baselines3.SAC,
    "ddpg": stable_baselines3.DDPG,
}
PACKAGES = ("torch", "stable-baselines3", "sb3-contrib")


def learn(spec: Spec, evaluated: Callable[[Point], None]) -> Ending:
    """Train, and call `evaluated` after every EVERY timesteps and at the end."""
    torch.set_num_threads(1)
    model, normalise = make_model(spec)
    env = gymnasium.make(IDS[spec.task], disable_env_checker=True)
    episodes, count, cpu, began = 0, 0, 0.0, time.process_time()

    def evaluate() -> None:
        nonlocal count, cpu, began
        cpu += time.process_time() - began
        count += 1
        seeds = [environment_seed(Key(spec.seed, Stream.TEST, count, k)) for k in range(EPISODES)]
        rewards = tuple(episode_reward(env, lambda x: act(model, normalise, x), seed) for seed in seeds)
        evaluated(Point(model.num_timesteps, episodes, rewards, cpu))
        began = time.process_time()

    def on_step(variables: dict[str, Any], _: Any) -> bool:
        nonlocal episodes
        episodes += int(np.sum(variables["dones"]))
        if (count + 1) * EVERY <= min(model.num_timesteps, spec.timesteps - 1):  # the last one is of the final policy
            evaluate()
        return True

    model.learn(spec.timesteps, callback=on_step)
    evaluate()
    versions = {package: version(package) for package in PACKAGES}
    return Ending({}, _policy_cost(model, normalise, env.observation_space.shape or ()), versions)


def make_model(spec: Spec) -> tuple[Any, Callable[[Any], Any]]:
    """The learner, and its normalisation of an observation as it stands."""
    given = dict(RIVALS[spec.rival].settings(spec.task))
    normalize, envs, noise = given.pop("normalize", False), given.pop("n_envs", 1), given.pop("noise_std", None)
    env = make_vec_env(IDS[spec.task], envs, seed=spec.seed, env_kwargs={"disable_env_checker": True})
    if normalize:
        env = VecNormalize(env, **({"gamma": given["gamma"]} if "gamma" in given else {}))
    if network := dict(given.pop("policy_kwargs", {})):
        if "activation_fn" in network:
            network["activation_fn"] = getattr(torch.nn, network["activation_fn"])
        given["policy_kwargs"] = network
    if noise is not None:
        p = env.action_space.shape[0]
        given["action_noise"] = NormalActionNoise(np.zeros(p), noise * np.ones(p))
    model = CLASSES[RIVALS[spec.rival].algorithm or spec.rival]("MlpPolicy", env, seed=spec.seed, device="cpu", **given)
    return model, env.normalize_obs if normalize else lambda x: x


def act(model: Any, normalise: Callable[[Any], Any], x: Any) -> Any:
    """The deterministic action for an observation, with the statistics as they are."""
    return model.predict(normalise(x), deterministic=True)[0]


def episode_reward(env: Any, act: Callable[[Any], Any], seed: int) -> float:
    """The task's own reward of one episode, from the initial state that our evaluations have for the same key."""
    x, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        x, reward, terminated, truncated, _ = env.step(act(x))
        total, over = total + float(reward), terminated or truncated
    return total


def _policy_cost(model: Any, normalise: Callable[[Any], Any], shape: tuple[int, ...]) -> dict[str, float]:
    """Of what acts: the network from observations to mean actions, and the mean and variance of observations."""
    policy, x = model.policy, np.ones(shape)
    actor = getattr(policy, "actor", None)
    if actor is None:
        parts = [policy.mlp_extractor.policy_net, policy.action_net]
    else:
        parts = [actor.latent_pi, actor.mu] if hasattr(actor, "latent_pi") else [actor.mu]
    numbers = [number for part in parts for number in part.parameters()]
    statistics = 2 * 8 * x.size if model.get_vec_normalize_env() is not None else 0
    size = sum(number.numel() * number.element_size() for number in numbers) + statistics
    return action_cost(lambda: act(model, normalise, x), sum(number.numel() for number in numbers), size)
