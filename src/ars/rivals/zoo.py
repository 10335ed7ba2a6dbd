"""Settings of the learners of stable-baselines3 and sb3-contrib on MuJoCo's robots, as tuned by RL Baselines3 Zoo.

Source: rl_zoo3 2.9.2, hyperparams/{ppo,a2c,trpo,sac,ddpg}.yml, the `-v4` robots. Where the zoo has nothing for a robot,
its MuJoCo default of that learner applies; what is not listed is the default of stable-baselines3. `normalize` is
VecNormalize of observations and rewards, with the learner's gamma; `noise_std` is normal noise on actions.
"""

from collections.abc import Mapping
from typing import Any

WIDE = {
    "log_std_init": -2, "ortho_init": False, "activation_fn": "ReLU",
    "net_arch": {"pi": [256, 256], "vf": [256, 256]},
}  # fmt: skip

# Learner → the MuJoCo default.
DEFAULTS: dict[str, dict[str, Any]] = {
    "ppo": {"normalize": True},
    "a2c": {"normalize": True},
    "trpo": {
        "normalize": True, "n_envs": 2, "batch_size": 128, "n_steps": 1024, "gamma": 0.99, "gae_lambda": 0.95,
        "sub_sampling_factor": 1, "cg_max_steps": 25, "cg_damping": 0.1, "n_critic_updates": 20,
        "learning_rate": 1e-3,
    },
    "sac": {"learning_starts": 10_000},
    "ddpg": {
        "learning_starts": 10_000, "noise_std": 0.1, "train_freq": 1, "gradient_steps": 1, "learning_rate": 1e-3,
        "batch_size": 256, "policy_kwargs": {"net_arch": [400, 300]},
    },
}  # fmt: skip

# Learner → robot → what differs.
TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "ppo": {
        "Swimmer": {
            "gamma": 0.9999, "n_envs": 4, "n_steps": 1024, "batch_size": 256, "learning_rate": 6e-4,
            "gae_lambda": 0.98,
        },
        "Hopper": {
            "batch_size": 32, "n_steps": 512, "gamma": 0.999, "learning_rate": 9.80828e-05, "ent_coef": 0.00229519,
            "clip_range": 0.2, "n_epochs": 5, "gae_lambda": 0.99, "max_grad_norm": 0.7, "vf_coef": 0.835671,
            "policy_kwargs": WIDE,
        },
        "HalfCheetah": {
            "batch_size": 64, "n_steps": 512, "gamma": 0.98, "learning_rate": 2.0633e-05, "ent_coef": 0.000401762,
            "clip_range": 0.1, "n_epochs": 20, "gae_lambda": 0.92, "max_grad_norm": 0.8, "vf_coef": 0.58096,
            "policy_kwargs": WIDE,
        },
        "Walker2d": {
            "batch_size": 32, "n_steps": 512, "gamma": 0.99, "learning_rate": 5.05041e-05, "ent_coef": 0.000585045,
            "clip_range": 0.1, "n_epochs": 20, "gae_lambda": 0.95, "max_grad_norm": 1, "vf_coef": 0.871923,
        },
        "Humanoid": {
            "batch_size": 256, "n_steps": 512, "gamma": 0.95, "learning_rate": 3.56987e-05, "ent_coef": 0.00238306,
            "clip_range": 0.3, "n_epochs": 5, "gae_lambda": 0.9, "max_grad_norm": 2, "vf_coef": 0.431892,
            "policy_kwargs": WIDE,
        },
    },
    "a2c": {"Swimmer": {"gamma": 0.9999}},
    "trpo": {"Swimmer": {"gamma": 0.9999}, "HalfCheetah": {"target_kl": 0.04}},
    "sac": {"Swimmer": {"gamma": 0.999}},
    "ddpg": {"Swimmer": {"gamma": 0.9999}},
}  # fmt: skip


def settings(learner: str, robot: str) -> Mapping[str, Any]:
    """The zoo's settings of a learner for a robot, as JSON."""
    return DEFAULTS[learner] | TUNED[learner].get(robot, {})
