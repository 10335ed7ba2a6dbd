"""Any Gymnasium environment as a task, in plain Python; also the oracle for the compiled loop.

Box observations (Dict and Tuple are flattened), Box or Discrete actions. The environment is reset once per episode.
"""

import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ars.errors import ArsError, TaskError
from ars.files import one_line
from ars.moments import Moments
from ars.noise import Key, environment_seed
from ars.policy import Actions, LinearPolicy
from ars.tasks import Rollout, define, locomotion, user_code

FloatArray = NDArray[np.float64]

DEFAULT_H = 1000  # for an environment without a time limit


class GymnasiumTask:
    """The environment `name`: one of the six robots, a registered id, or `module:factory`."""

    releases_gil = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._env = make_env(name)
        self._flatten = _flattener(name, self._env.observation_space)
        self._robot = locomotion.TASKS.get(name)
        self._mujoco: Any = self._env.unwrapped if _is_mujoco(self._env) else None
        self.actions, self.p = _actions(name, self._env.action_space, clip=self._mujoco is None)
        self.n = int(spaces.flatdim(self._env.observation_space))
        self.time_limit = self._env.spec.max_episode_steps if self._env.spec else None
        self.H = self.time_limit or DEFAULT_H
        self.survival_bonus = self._robot.survival_bonus if self._robot else 0.0

    def definition(self) -> dict[str, Any]:
        robot = {"locomotion": locomotion.describe(self._robot)} if self._robot else {}
        observation = _structure(self._env.observation_space)
        return define(self, observation=observation, actions=self.actions.to_dict(), **robot)

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        step, reward, stage = 0, 0.0, "reset"
        try:
            obs, _ = self._env.reset(seed=environment_seed(key))
            x = self._flatten(obs)
            x_first, s1, s2 = x, np.zeros(self.n), np.zeros(self.n)
            finite = bool(np.isfinite(x).all())
            while finite and step < H:
                if gather:  # Alg. 2, line 8: states that are acted on, around the first one (decision 0003)
                    d = x - x_first
                    s1 += d
                    s2 += d * d
                a = policy.act(x)
                finite = bool(np.isfinite(a).all())
                if not finite:
                    break
                stage = f"step {step + 1}"
                obs, r, terminated, truncated, _ = self._env.step(self.actions.apply(a))
                step += 1
                reward += _number(r) - shift
                x = self._flatten(obs)
                finite = bool(np.isfinite(reward) and np.isfinite(x).all()) and not self._diverged()
                if terminated or truncated:
                    break
        except ArsError:
            raise
        except BaseException as error:  # whatever the environment raises
            if user_code.is_interrupt(error):
                raise
            raise TaskError(f"{self.name} failed in {stage} of an episode: {_describe(error)}") from error
        moments = Moments.from_sums(step, x_first, s1, s2) if gather else None
        return Rollout(reward, step, moments, finite)

    def _diverged(self) -> bool:
        return self._mujoco is not None and locomotion.diverged(self._mujoco.data)

    def close(self) -> None:
        self._env.close()


def watch_steps(task: Any, beats: Any) -> None:
    """Count the resets and steps of this task's environment in beats[0], an int64, as they begin."""
    env, count = task._env, memoryview(beats).cast("B").cast("q")

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(*arguments: Any, **more: Any) -> Any:
            count[0] += 1
            return call(*arguments, **more)

        return count_and_call

    env.reset, env.step = counted(env.reset), counted(env.step)


def registered() -> list[str]:
    """All ids that gymnasium.make takes."""
    return list(gymnasium.registry)


def is_registered(name: str) -> bool:
    return name in gymnasium.registry


def make_env(name: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """The environment of a name, with its time limit; kwargs (such as render_mode) go to its constructor."""
    try:
        env = _make_env(name, **kwargs)
    except TaskError:
        raise
    except BaseException as error:
        if user_code.is_interrupt(error):
            raise
        raise TaskError(f"Cannot make {name}: {_describe(error)}") from error
    if "mujoco" in sys.modules:  # environments that do not use it need not wait for its import
        locomotion.silence_mujoco()
    return env


def _make_env(name: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    if name in locomotion.TASKS:
        from ars.tasks import paper_envs

        locomotion.silence_mujoco()
        return paper_envs.make(name, **kwargs)
    if ":" in name and (factory := user_code.load(name)) is not None:
        env = factory(**kwargs)
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"the factory returned {type(env).__name__}, not a gymnasium.Env")
        return env
    registered_id = name.rpartition(":")[2]
    if registered_id not in gymnasium.registry:
        raise AttributeError(f"{name} names neither a factory nor a registered id")
    if "mujoco" in str(gymnasium.registry[registered_id].entry_point):  # compiling its models gives warnings
        locomotion.silence_mujoco()
    return gymnasium.make(registered_id, disable_env_checker=True, **kwargs)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {one_line(error)}"


def _number(reward: Any) -> float:
    """A reward as a float; float() itself would also parse text and accept arrays with a warning."""
    if isinstance(reward, str | bytes) or np.ndim(reward) != 0:
        raise TypeError(f"the reward is {type(reward).__name__} of shape {np.shape(reward)}, not a number")
    return float(reward)


def _is_mujoco(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether not to clip actions: Gymnasium's MuJoCo environments clamp controls themselves, and their control cost is
    that of the unclamped controls."""
    bases = (f"{base.__module__}.{base.__qualname__}" for base in type(env.unwrapped).__mro__)
    return "gymnasium.envs.mujoco.mujoco_env.MujocoEnv" in bases


def _flattener(name: str, space: spaces.Space[Any]) -> Any:
    """A function from an observation to a float64 array (n,)."""
    if isinstance(space, spaces.Box):
        shape = space.shape

        def flat(obs: Any) -> FloatArray:
            x = np.asarray(obs)
            if x.shape != shape or x.dtype.kind not in "fiub":  # NumPy would parse text and drop imaginary parts
                raise TypeError(f"the observation has shape {x.shape} and dtype {x.dtype}, not {shape} and numbers")
            return x.astype(np.float64).reshape(-1)

        return flat
    if isinstance(space, spaces.Dict | spaces.Tuple) and space.is_np_flattenable:
        return lambda obs: np.asarray(spaces.flatten(space, obs), dtype=np.float64)
    raise TaskError(f"{name} has observations of kind {type(space).__name__}: ARS needs Box, or Dict or Tuple of Box.")


def _structure(space: spaces.Space[Any]) -> Any:
    """The space as JSON, in flattening order: a shape, {"n", "start"}, or a Dict or list of these."""
    if isinstance(space, spaces.Dict):
        return {"dict": [[key, _structure(part)] for key, part in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {"tuple": [_structure(part) for part in space.spaces]}
    if isinstance(space, spaces.Discrete):
        return {"n": int(space.n), "start": int(space.start)}
    return {"shape": [int(size) for size in space.shape or ()]}


def _actions(name: str, space: spaces.Space[Any], *, clip: bool) -> tuple[Actions, int]:
    if isinstance(space, spaces.Discrete):
        return Actions("discrete", start=int(space.start)), int(space.n)
    if isinstance(space, spaces.Box):
        shape = tuple(int(size) for size in space.shape)
        p = int(np.prod(shape))
        bounded = clip and bool(np.isfinite([space.low, space.high]).any())  # D5
        low, high = (_numbers(space.low), _numbers(space.high)) if bounded else (None, None)
        kind = str(space.dtype) if clip else None  # MuJoCo takes float64
        return Actions("box", shape=None if shape == (p,) else shape, low=low, high=high, dtype=kind), p
    raise TaskError(f"{name} has actions of kind {type(space).__name__}: ARS needs Box or Discrete.")


def _numbers(bounds: Any) -> tuple[float, ...]:
    return tuple(float(bound) for bound in np.ravel(bounds))
