"""Environments for the tests, named `small_envs:Name`; workers import them as any user's module."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

calls: list[object] = []  # ("reset", seed) and ("step", action), in order


class Drift(gymnasium.Env):
    """x' = 0.9 x + B a + noise, with a coordinate that never changes; ends early when x[0] leaves ±1.5."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,))
    action_space = spaces.Box(-np.inf, np.inf, (2,))
    B = np.array([[1.0, 0.3], [-0.2, 0.8]])
    steps = 12

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x, self.t = 0.5 * self.np_random.standard_normal(2) + 1.0, 0
        return np.array([*self.x, 7.0]), {}

    def step(self, action: Any) -> Any:
        self.x = 0.9 * self.x + self.B @ action + 0.3 * self.np_random.standard_normal(2)
        self.t += 1
        reward = 1.0 - float(self.x @ self.x) - 0.1 * float(action @ action)
        done = bool(abs(self.x[0]) > 1.5)
        return np.array([*self.x, 7.0]), reward, done, self.t >= self.steps, {}


class Slow(Drift):
    """Takes a while: something can happen in mid-iteration."""

    def step(self, action: Any) -> Any:
        time.sleep(0.002)
        return super().step(action)


class Script(gymnasium.Env):
    """Four steps with the rewards and observations below; notes every call."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))
    action_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (1,))
    rewards: tuple[Any, ...] = (1.0, 2.0, 3.0, 4.0)
    states: tuple[Any, ...] = ((0.0, 1.0), (2.0, 1.0), (5.0, 1.0), (9.0, 1.0), (100.0, 50.0))
    ending = "terminated"

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        calls.append(("reset", seed))
        self.t = 0
        return self.observe(), {}

    def observe(self) -> Any:
        return np.array(self.states[self.t])

    def step(self, action: Any) -> Any:
        calls.append(("step", action))
        self.t += 1
        done = self.t == len(self.rewards)
        ends = (done, False) if self.ending == "terminated" else (False, done)
        return self.observe(), self.rewards[self.t - 1], *ends, {}


class Truncated(Script):
    """Ends by its time limit instead."""

    ending = "truncated"


class NanObservation(Script):
    states = ((0.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (9.0, 1.0), (100.0, 50.0))


class NanLastObservation(Script):
    states = (*Script.states[:-1], (100.0, np.inf))


class NanFirstObservation(Script):
    states = ((np.nan, 1.0), *Script.states[1:])


class NanReward(Script):
    rewards = (1.0, np.nan, 3.0, 4.0)


class InfiniteReward(Script):
    rewards = (1.0, np.inf, 3.0, 4.0)


class Raises(Script):
    """Fails in its third step."""

    def step(self, action: Any) -> Any:
        if self.t == 2:
            raise RuntimeError("the motor is on fire")
        return super().step(action)


class RaisesAtReset(Script):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        raise RuntimeError("no power")


class WrongShape(Script):
    def observe(self) -> Any:
        return np.zeros(5)


class Endless(Script):
    """Never ends by itself, and names no horizon."""

    def observe(self) -> Any:
        return np.zeros(2)

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.observe(), 1.0, False, False, {}


class Bounded(Script):
    """Box actions with bounds, in an unusual shape."""

    action_space = spaces.Box(np.array([[-1.0], [-2.0]]), np.array([[1.0], [3.0]]), dtype=np.float64)


class HalfBounded(Script):
    """One action with a lower bound only."""

    action_space = spaces.Box(np.array([0.0]), np.array([np.inf]), dtype=np.float64)


class Choices(Script):
    """Discrete actions 5, 6, 7."""

    action_space = spaces.Discrete(3, start=5)


class DictObservation(Script):
    """Gymnasium sorts the keys of the space; the observation has them in another order."""

    observation_space = spaces.Dict(
        {"velocity": spaces.Box(-np.inf, np.inf, (1,)), "position": spaces.Box(-np.inf, np.inf, (2,))}
    )

    def observe(self) -> Any:
        return {"velocity": np.array([10.0 + self.t]), "position": np.array([1.0, 2.0])}


class WrongPart(DictObservation):
    def observe(self) -> Any:
        return {"velocity": np.array([10.0]), "position": np.array([1.0])}


class Mixture(Drift):
    """Parts of many kinds, and an action without an axis."""

    observation_space = spaces.Dict(
        {
            "b": spaces.Tuple((spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(3, start=1))),
            "a": spaces.Dict({"image": spaces.Box(0, 255, (1, 2), np.uint8), "time": spaces.Box(0, 1, (1,))}),
            "c": spaces.MultiBinary(2),
        }
    )
    action_space = spaces.Box(-1.0, 1.0, ())

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.mix(super().reset(seed=seed, options=options)[0]), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        obs, *rest = super().step(np.full(2, action))
        return self.mix(obs), *rest

    def mix(self, obs: Any) -> Any:
        image = np.array([[self.t, 200]], dtype=np.uint8)
        return {
            "c": np.array([self.t % 2, 1], dtype=np.int8),
            "a": {"time": self.t / 100, "image": image},
            "b": (obs[:2], 1 + self.t % 3),  # float64, which the space rounds to float32
        }


class TupleObservation(Script):
    observation_space = spaces.Tuple((spaces.Box(-np.inf, np.inf, (1,)), spaces.Box(-np.inf, np.inf, (2, 2))))

    def observe(self) -> Any:
        return (np.array([10.0 + self.t]), np.array([[1.0, 2.0], [3.0, 4.0]]))


class Image(Script):
    """A Box of two axes."""

    observation_space = spaces.Box(-np.inf, np.inf, (2, 3))

    def observe(self) -> Any:
        return np.arange(6.0).reshape(2, 3)


class DiscreteObservation(Script):
    observation_space = spaces.Discrete(4)


class ManyActions(Script):
    action_space = spaces.MultiDiscrete([2, 2])


class Reused(Drift):
    """Returns one and the same array, overwritten in place, as some simulators do."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed, options=options)
        self.buffer = obs.copy()
        return self.buffer, info

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        self.buffer[:] = obs
        return self.buffer, *rest


class SometimesNan(Drift):
    """A fifth of the episodes meet a reward that is not a number, in their first step."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        result = super().reset(seed=seed, options=options)
        self.bad = self.np_random.random() < 0.2
        return result

    def step(self, action: Any) -> Any:
        obs, reward, *rest = super().step(action)
        return obs, np.nan if self.bad and self.t == 1 else reward, *rest


class AlwaysNan(Drift):
    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, np.nan, *rest


class NanLater(Drift):
    """Every reward is NaN from the moment on that the file NAN_LATER exists."""

    def step(self, action: Any) -> Any:
        obs, reward, *rest = super().step(action)
        return obs, np.nan if Path(os.environ["NAN_LATER"]).exists() else reward, *rest


class Flat(Drift):
    """All rewards are equal."""

    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, 0.1, False, *rest[1:]


class Huge(Drift):
    """Finite rewards whose squares are not."""

    def step(self, action: Any) -> Any:
        obs, reward, *rest = super().step(action)
        return obs, 1e200 * reward, *rest


class KillsItsProcess(Drift):
    """The first process that makes the marker file KILL_MARKER dies in mid-episode, without a word."""

    def step(self, action: Any) -> Any:
        if self.t == 3:
            try:
                Path(os.environ["KILL_MARKER"]).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class AlwaysKillsItsProcess(Drift):
    def step(self, action: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class TellsPid(Drift):
    """Prints its process and waits for the end."""

    def step(self, action: Any) -> Any:
        os.write(1, f"{os.getpid()}\n".encode())  # in one piece: other workers write too
        signal.pause()


class CountsThreads(Script):
    """Pays the number of threads that BLAS would use."""

    def step(self, action: Any) -> Any:
        from threadpoolctl import threadpool_info

        obs, _, *rest = super().step(action)
        return obs, float(max(pool["num_threads"] for pool in threadpool_info())), *rest


def not_an_environment() -> str:
    return "hello"


class Diverging(gymnasium.Wrapper):
    """A robot whose velocity becomes absurd in its third step: MuJoCo resets it and only counts a warning."""

    def reset(self, **kwargs: Any) -> Any:
        self.t = 0
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        self.t += 1
        if self.t == 3:
            self.unwrapped.data.qvel[:] = 1e30
        return super().step(action)


def diverging_swimmer() -> Any:
    return Diverging(gymnasium.make("Swimmer-v5", disable_env_checker=True))


class RaisesLater(Drift):
    """Fails after some episodes."""

    steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps > 2000:
            raise RuntimeError("it is tired")
        return super().step(action)


class Leaves(Drift):
    """Ends its process as if all were well."""

    def step(self, action: Any) -> Any:
        os._exit(0)
