"""Any Gymnasium environment as a task; in plain Python it is also the oracle for the compiled loop.

Box observations (Dict and Tuple are flattened), Box or Discrete actions. The environment is reset once per episode.
What the policy does in a step is in actors.py, plain for a task's first steps and then compiled.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ars.errors import ArsError, SettingError, TaskError
from ars.files import one_line
from ars.noise import Key, environment_seed
from ars.policy import Actions, LinearPolicy
from ars.subset import ALL
from ars.tasks import Policy, Rollout, define, locomotion, user_code
from ars.tasks.actors import CompiledActor, PlainActor, load
from ars.tasks.axis_names import structure_groups
from ars.tasks.observations import View, make_view
from ars.tasks.robot_views import robot_view

FloatArray = NDArray[np.float64]

DEFAULT_H = 1000  # for an environment without a time limit
PLAIN_STEPS = 30_000  # of one task object before it loads compiled code: about 0.5 s, at some 20 µs saved per step
NUMBERS = (float, int, np.floating, np.integer)


class GymnasiumTask:
    """The environment `name`: one of the six robots, a registered id, or `module:factory`; or what `own` makes."""

    releases_gil = False

    def __init__(
        self,
        name: str,
        own: Callable[[], gymnasium.Env[Any, Any]] | None = None,
        *,
        plain_steps: float = PLAIN_STEPS,
        observe: str = ALL,
        mirror: bool = False,
    ) -> None:
        self.name = name
        self._env = make_env(name, own)
        space = self._env.observation_space
        whole = np.empty(int(spaces.flatdim(space)))
        self._observe = _observer(name, space, whole)
        self._robot = locomotion.TASKS.get(name)
        self._mujoco: Any = self._env.unwrapped if _is_mujoco(self._env) else None
        self._view = self._make_view(len(whole), observe, mirror)
        self._x = whole if self._view.indices is None else np.empty(len(self._view.indices))
        if self._view.indices is not None:
            self._observe = _subset_observer(self._observe, whole, self._view.indices, self._x)
        self.n = len(self._x)
        self.actions, self.p = _actions(name, self._env.action_space, clip=not _clamps_itself(self._env))
        self._plain = PlainActor(self.actions, self.n, self.p)  # for policies of any kind
        self._actor: PlainActor | CompiledActor = self._plain
        self._plain_steps = plain_steps  # that are left
        self.time_limit = self._env.spec.max_episode_steps if self._env.spec else None
        self.H = self.time_limit or DEFAULT_H
        self.survival_bonus = self._robot.survival_bonus if self._robot else 0.0

    def _make_view(self, n: int, observe: str, mirror: bool) -> View:
        if self._robot:
            return robot_view(
                self._robot, self.name, self._mujoco.model, self._mujoco.data, observe=observe, mirror=mirror
            )
        if mirror:
            raise TaskError(
                f"mirror = True is for robots whose description declares their sides, which {self.name} has not."
            )
        return make_view(self.name, observe, n, lambda: structure_groups(_structure(self._env.observation_space), n))

    def definition(self) -> dict[str, Any]:
        robot = {"locomotion": locomotion.describe(self._robot)} if self._robot else {}
        observation = _structure(self._env.observation_space)
        more = robot | self._view.definition()
        return define(self, observation=observation, actions=self.actions.to_dict(), **more)

    def rollout(self, policy: Policy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        if (policy.p, policy.n) != (self.p, self.n):
            raise SettingError(f"This policy is {policy.p} × {policy.n} and {self.name} needs {self.p} × {self.n}.")
        if self._plain_steps <= 0 and isinstance(self._actor, PlainActor) and load():
            self._actor = CompiledActor(self.actions, self.n, self.p)
        x = self._x
        actor: Any = self._actor if isinstance(policy, LinearPolicy) else self._plain
        step, reward, finite = 0, 0.0, True
        try:
            obs, _ = self._env.reset(seed=environment_seed(key))
            self._observe(obs)  # into x
            actor.begin(policy, x, gather=gather)
            while step < H:
                action = actor.act(x)
                if action is None:
                    finite = False
                    break
                step += 1
                obs, r, terminated, truncated, _ = self._env.step(action)
                reward += _number(r) - shift
                self._observe(obs)
                finite = math.isfinite(reward) and not self._diverged()
                if terminated or truncated or not finite:
                    break
        except ArsError:
            raise
        except BaseException as error:  # whatever the environment raises
            if user_code.is_interrupt(error):
                raise
            stage = f"step {step}" if step else "reset"
            raise TaskError(f"{self.name} failed in {stage} of an episode: {_describe(error)}") from error
        self._plain_steps -= step
        finite = finite and bool(np.isfinite(x).all())  # the last state too, on which nobody acts
        return Rollout(reward, step, actor.moments(step) if gather else None, finite)

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


def make_env(
    name: str, own: Callable[..., gymnasium.Env[Any, Any]] | None = None, **kwargs: Any
) -> gymnasium.Env[Any, Any]:
    """The environment of a name, with its time limit; kwargs (such as render_mode) go to its constructor."""
    try:
        env = _make_env(name, own, **kwargs)
    except TaskError:
        raise
    except BaseException as error:
        if user_code.is_interrupt(error):
            raise
        raise TaskError(f"Cannot make {name}: {_describe(error)}") from error
    if "mujoco" in sys.modules:  # environments that do not use it need not wait for its import
        locomotion.silence_mujoco()
    return env


def _make_env(name: str, own: Callable[..., gymnasium.Env[Any, Any]] | None, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    if name in locomotion.TASKS:
        from ars.tasks import paper_envs

        locomotion.silence_mujoco()
        return paper_envs.make(name, **kwargs)
    if ":" in name and (factory := own or user_code.load(name)) is not None:
        env = factory(**kwargs)
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"the factory returned {type(env).__name__}, not a gymnasium.Env")
        for space in ("observation_space", "action_space"):
            if not hasattr(env, space):
                raise TypeError(f"the environment has no {space}")
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
    if not isinstance(reward, NUMBERS) and (isinstance(reward, str | bytes) or np.ndim(reward) != 0):
        raise TypeError(f"the reward is {type(reward).__name__} of shape {np.shape(reward)}, not a number")
    return float(reward)


def _clamps_itself(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether not to clip actions: Gymnasium's MuJoCo environments and ours clamp controls themselves, and their
    control cost is that of the unclamped controls. A user's subclass may do anything with its actions."""
    module = type(env.unwrapped).__module__
    return _is_mujoco(env) and module.startswith(("gymnasium.envs.mujoco.", "ars.tasks."))


def _is_mujoco(env: gymnasium.Env[Any, Any]) -> bool:
    bases = (f"{base.__module__}.{base.__qualname__}" for base in type(env.unwrapped).__mro__)
    return "gymnasium.envs.mujoco.mujoco_env.MujocoEnv" in bases


def _observer(name: str, space: spaces.Space[Any], x: FloatArray) -> Callable[[Any], None]:
    """A function that writes an observation into x, a float64 array (n,)."""
    if isinstance(space, spaces.Box):
        shape, shaped = space.shape, x.reshape(space.shape)

        def observe(obs: Any) -> None:
            obs = np.asarray(obs)
            if obs.shape != shape or obs.dtype.kind not in "fiub":  # NumPy would parse text and drop imaginary parts
                raise TypeError(f"the observation has shape {obs.shape} and dtype {obs.dtype}, not {shape} and numbers")
            shaped[...] = obs

        return observe
    if isinstance(space, spaces.Dict | spaces.Tuple) and space.is_np_flattenable:
        return _part_observer(space, x)
    raise TaskError(f"{name} has observations of kind {type(space).__name__}: ARS needs Box, or Dict or Tuple of Box.")


def _subset_observer(
    observe: Callable[[Any], None], whole: FloatArray, indices: Sequence[int], x: FloatArray
) -> Callable[[Any], None]:
    """The same for a subset: `observe` writes into `whole`, of which x gets these entries."""
    chosen = np.array(indices)

    def observe_subset(obs: Any) -> None:
        observe(obs)
        np.take(whole, chosen, out=x, mode="clip")  # the mode without a temporary array; the indices are valid

    return observe_subset


def _part_observer(space: spaces.Space[Any], x: FloatArray) -> Callable[[Any], None]:
    """The same for a Dict, a Tuple and their parts; as spaces.flatten, which is slow for the whole."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = list(space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces))
        stops = np.cumsum([spaces.flatdim(part) for _, part in parts])
        observers = [
            (key, _part_observer(part, piece))
            for (key, part), piece in zip(parts, np.split(x, stops[:-1]), strict=True)
        ]

        def observe(obs: Any) -> None:
            for key, observe_part in observers:
                observe_part(obs[key])

        return observe

    def observe_leaf(obs: Any) -> None:
        flat = np.asarray(spaces.flatten(space, obs))
        if flat.shape != x.shape:
            raise TypeError(f"a part of the observation has {flat.size} numbers, not {x.size}")
        x[:] = flat

    return observe_leaf


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
