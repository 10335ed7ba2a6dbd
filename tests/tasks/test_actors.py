"""The compiled actor against the plain one, to the bit."""

import fcntl
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.policy import ACTION_DTYPES, Actions, LinearPolicy
from ars.tasks import actors, compiled_step
from ars.tasks.actors import CompiledActor, PlainActor

INF = np.inf
BOUNDS: list[Any] = [
    (None, None),
    ((-1.0,) * 6, (1.0,) * 6),
    ((0.0, -0.0, -INF, 0.5, -3.5, -0.0), (0.0, 0.0, 0.0, INF, 2.5, 7.0)),
]
KINDS = [
    Actions("discrete"),
    Actions("discrete", start=-7),
    Actions(),  # as MuJoCo's robots take them
    *(Actions("box", shape=(2, 3) if i % 2 else None, low=low, high=high, dtype=dtype)
      for i, dtype in enumerate((*ACTION_DTYPES, "uint16", "bool")) for low, high in BOUNDS),
]  # fmt: skip


def states(rng: np.random.Generator, n: int) -> list[Any]:
    """Ordinary ones, and such that actions are zero of either sign, half-way between integers, or tiny."""
    zeros = np.where(rng.random(n) < 0.5, 0.0, -0.0)
    halves = rng.integers(-6, 7, n) / 2
    return [*rng.standard_normal((4, n)), zeros, halves, 5e-324 * rng.integers(-3, 4, n), 40 * rng.standard_normal(n)]


def policies(rng: np.random.Generator, p: int, n: int) -> list[LinearPolicy]:
    M = rng.standard_normal((p, n))
    sigma = np.where(rng.random(n) < 0.3, INF, 0.1 + rng.random(n))
    return [
        LinearPolicy(M, rng.standard_normal(n), sigma),
        LinearPolicy(np.zeros((p, n)), np.zeros(n), np.ones(n)),
        LinearPolicy(np.where(M > 0, 1.0, -1.0) * np.eye(p, n), np.zeros(n), np.ones(n)),  # a is made of x itself
        LinearPolicy(M.astype(np.float32), np.zeros(n, np.float32), np.ones(n, np.float32)),
    ]


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if one is not None:
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of negative numbers to unsigned ones
def test_actions_and_moments_have_the_same_bits() -> None:
    for actions in KINDS:
        rng = np.random.default_rng(0)
        p = 6
        for n in (1, 6, 17):
            plain, compiled = PlainActor(actions, n, p), CompiledActor(actions, n, p)
            for policy in policies(rng, p, n):
                visited = states(rng, n)
                for gather in (True, False):
                    for actor in (plain, compiled):
                        actor.begin(policy, visited[0], gather=gather)
                    given = []
                    for x in visited:
                        one, other = plain.act(x), compiled.act(x)
                        same(one, other)
                        given.append((other, other.copy()))
                    for action, copy in given:
                        same(action, copy)  # an environment may keep its actions: none is overwritten
                    one, other = plain.moments(len(visited)), compiled.moments(len(visited))
                    for name in ("count", "mean", "m2"):
                        same(getattr(one, name), getattr(other, name))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_is_not_acted_on() -> None:
    """Neither a state nor an action; the sums are the same all the same."""
    M = np.array([[1e308, 1e308, 0.0], [0.0, 0.0, 1.0]])
    policy = LinearPolicy(M, np.zeros(3), np.ones(3))
    for bad in ([np.nan, 0.0, 0.0], [0.0, 0.0, INF], [0.0, -INF, 0.0], [10.0, 1.0, 1.0], [10.0, -10.0, 1.0]):
        for actions in (Actions("discrete"), Actions("box", low=(-1.0, -1.0), high=(1.0, 1.0), dtype="float32")):
            plain, compiled = PlainActor(actions, 3, 2), CompiledActor(actions, 3, 2)
            first = np.array([0.1, 0.2, 0.3])
            for actor in (plain, compiled):
                actor.begin(policy, first, gather=True)
                assert actor.act(first) is not None
                assert actor.act(np.array(bad)) is None
            same(plain.moments(1).m2, compiled.moments(1).m2)
            same(plain.moments(1).mean, compiled.moments(1).mean)


def test_there_is_one_signature() -> None:
    """Whatever the sizes and memory layouts: every further one would be compiled at a user's first start."""
    for p, n in ((1, 1), (1, 5), (5, 1), (3, 4)):
        actor = CompiledActor(Actions(), n, p)
        M = np.asfortranarray(np.ones((p, n)))
        M.flags.writeable = False
        actor.begin(LinearPolicy(M, np.zeros(n), np.ones(n)), np.ones(n), gather=True)
        actor.act(np.ones(n))
    assert len(compiled_step.act.signatures) == 1


def test_one_process_at_a_time_loads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many workers that have run long enough one compiles, and the others go on; a dead one blocks nobody."""
    monkeypatch.setattr(actors, "__file__", str(tmp_path / "actors.py"))
    (tmp_path / "actors.py").touch()
    with (tmp_path / "actors.py").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert actors.load()  # this process has it already
        monkeypatch.delitem(sys.modules, "ars.tasks.compiled_step")
        assert not actors.load()
    assert actors.load()
    (tmp_path / "actors.py").unlink()
    assert actors.load()  # where files cannot be locked, nobody waits
