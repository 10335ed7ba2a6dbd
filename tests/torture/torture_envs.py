"""Environments that misbehave, named `torture_envs:Name`. What they do, they do in step 4 of an episode, if not said
otherwise, and from the moment on that the file named by MISBEHAVE exists."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from small_envs import Drift


class Misbehaving(Drift):
    """Behaves, until it is told otherwise."""

    def active(self) -> bool:
        return self.t == 3 and Path(os.environ["MISBEHAVE"]).exists()

    def step(self, action: Any) -> Any:
        result = super().step(action) if not self.active() else self.misbehave(action)
        return result

    def misbehave(self, action: Any) -> Any:
        raise NotImplementedError

    def with_observation(self, action: Any, obs: Any) -> Any:
        _, *rest = super().step(action)
        return obs, *rest

    def with_reward(self, action: Any, reward: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, reward, *rest


def observing(value: Any) -> type[Misbehaving]:
    return type("Observing", (Misbehaving,), {"misbehave": lambda self, action: self.with_observation(action, value)})


def paying(value: Any) -> type[Misbehaving]:
    return type("Paying", (Misbehaving,), {"misbehave": lambda self, action: self.with_reward(action, value)})


OtherShape = observing(np.zeros(4))
Transposed = observing(np.zeros((1, 3)))
Scalar = observing(0.0)
Ragged = observing([1.0, [2.0, 3.0], 4.0])
Text = observing(np.array(["1.0", "2.0", "3.0"]))
Complex = observing(np.array([1.0, 2.0, 3j]))
Objects = observing(np.array([1.0, None, {}], dtype=object))
Nothing = observing(None)
NanState = observing(np.array([np.nan, 0.0, 7.0]))
InfiniteState = observing(np.array([np.inf, 0.0, 7.0]))

TextReward = paying("1.5")
NoReward = paying(None)
TwoRewards = paying(np.array([1.0, 2.0]))
OneRewardInAnArray = paying(np.array([1.0]))
ComplexReward = paying(1j)
NanReward = paying(np.nan)
InfiniteReward = paying(-np.inf)
HugeReward = paying(1e308)


class FourValues(Misbehaving):
    """The interface of old Gym."""

    def misbehave(self, action: Any) -> Any:
        obs, reward, *_ = Drift.step(self, action)
        return obs, reward, True, {}


class RaisesInStep(Misbehaving):
    def misbehave(self, action: Any) -> Any:
        raise RuntimeError("the motor\nis on fire\x1b[31m")


class RaisesOddly(Misbehaving):
    """Without a word."""

    def misbehave(self, action: Any) -> Any:
        raise KeyError


class Exits(Misbehaving):
    def misbehave(self, action: Any) -> Any:
        sys.exit(0)


class RaisesInReset(Misbehaving):
    def reset(self, **kwargs: Any) -> Any:
        if Path(os.environ["MISBEHAVE"]).exists():
            raise RuntimeError("no power")
        return super().reset(**kwargs)


class ExitsInReset(Misbehaving):
    def reset(self, **kwargs: Any) -> Any:
        if Path(os.environ["MISBEHAVE"]).exists():
            sys.exit("no power")
        return super().reset(**kwargs)


class NeverEnds(Drift):
    """Neither terminated nor truncated, whatever happens; names no horizon."""

    def step(self, action: Any) -> Any:
        obs, reward, *_ = super().step(action)
        return obs, reward, False, False, {}


class Segfaults(Misbehaving):
    """As a broken C extension would."""

    def misbehave(self, action: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)
        signal.pause()


class SegfaultsOnce(Misbehaving):
    """The first process that meets the file takes it away, and dies."""

    def misbehave(self, action: Any) -> Any:
        try:
            Path(os.environ["MISBEHAVE"]).unlink()
        except FileNotFoundError:  # another one did
            return super().step(action)
        os.kill(os.getpid(), signal.SIGSEGV)
        signal.pause()


class Leaves(Misbehaving):
    """Ends its process without a word."""

    def misbehave(self, action: Any) -> Any:
        os._exit(0)
