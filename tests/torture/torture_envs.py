"""Environments that misbehave, named `torture_envs:Name`. What they do, they do in step 4 of an episode, if not said
otherwise, and from the moment on that the file named by MISBEHAVE exists."""

import hashlib
import itertools
import os
import signal
import sys
import time
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


class Unknown(BaseException):
    """Not an Exception, and fails when it is asked for its words."""

    def __str__(self) -> str:
        raise Unknown


class RaisesTheUnknown(Misbehaving):
    def misbehave(self, action: Any) -> Any:
        raise Unknown


class Interrupts(Misbehaving):
    """As if somebody had pressed Ctrl-C."""

    def misbehave(self, action: Any) -> Any:
        raise KeyboardInterrupt


class InterruptsWithWords(Misbehaving):
    def misbehave(self, action: Any) -> Any:
        raise KeyboardInterrupt("of its own")


class ClosesOutput(Misbehaving):
    def misbehave(self, action: Any) -> Any:
        os.closerange(0, 2)
        return Drift.step(self, action)


class ClosesEverything(Misbehaving):
    def misbehave(self, action: Any) -> Any:
        os.closerange(0, 256)
        return Drift.step(self, action)


class Moves(Drift):
    """To another folder: when it is made, and in every step."""

    def __init__(self) -> None:
        os.chdir("/")

    def step(self, action: Any) -> Any:
        os.chdir("/")
        return super().step(action)


class Sleeps(Misbehaving):
    """For ever, and writes its process id beside the file first."""

    def misbehave(self, action: Any) -> Any:
        Path(f"{os.environ['MISBEHAVE']}.{os.getpid()}").touch()
        self.sleep()

    def sleep(self) -> None:
        while True:
            time.sleep(60)


class SleepsInC(Sleeps):
    """Where Python cannot interrupt it, nor run another thread."""

    def sleep(self) -> None:
        sum(itertools.repeat(0))


class ComputesInC(Sleeps):
    """Where Python cannot interrupt it, but can run another thread."""

    def sleep(self) -> None:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)


class SleepsOnce(Sleeps):
    """The first process that meets the file takes it away, and sleeps."""

    def misbehave(self, action: Any) -> Any:
        try:
            Path(os.environ["MISBEHAVE"]).unlink()
        except FileNotFoundError:  # another one did
            return Drift.step(self, action)
        self.sleep()


class Patient(NeverEnds):
    """Its steps are quick, its episodes are not."""

    def step(self, action: Any) -> Any:
        time.sleep(0.1)
        return super().step(action)
