"""The closed loop over libmujoco, compiled: observe, act, step, reward, health, moments, without the GIL.

Three layers, as in MuJoCo's own rollout module: `_episode`, a loop that does not check its arguments; `MujocoTask`, one
MjData and its views for one thread; `_bind`, which checks a description and translates it for the loop. Results have
the same bits as those of tasks/gymnasium.py: sums run in the same order, and nothing is fused (no fastmath).
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import mujoco
import numpy as np
from numba import types
from numpy.typing import NDArray

from ars.compiled import compiled
from ars.errors import TaskError
from ars.moments import Moments
from ars.noise import Key, environment_seed
from ars.policy import Actions, LinearPolicy
from ars.subset import ALL
from ars.tasks import Rollout, define
from ars.tasks.locomotion import Locomotion, describe, divergence_warnings, load_model, observed
from ars.tasks.robot_views import robot_view

FloatArray = NDArray[np.float64]

# Symbols are resolved by name when compiled code is linked, so that the code can be cached on disk.
llvmlite.binding.load_library_permanently(str(next(Path(mujoco.__file__).parent.glob("libmujoco.*"))))
_mj_step: Any = types.ExternalFunction("mj_step", types.void(types.intp, types.intp))
_mj_rne_post_constraint: Any = types.ExternalFunction("mj_rnePostConstraint", types.void(types.intp, types.intp))
_mju_copy: Any = types.ExternalFunction("mju_copy", types.void(types.intp, types.intp, types.int32))


class _Views(NamedTuple):
    """Flat arrays of one MjData, which the loop reads and writes."""

    qpos: FloatArray
    qvel: FloatArray
    ctrl: FloatArray
    cfrc_ext: FloatArray
    warnings: NDArray[np.int32]
    position: FloatArray  # the field that progress is read from


class _Layout(NamedTuple):
    """The parts of an observation: where in MjData each begins, its numbers, and where they are clipped. They are
    addresses and not a tuple of arrays, for which the loop would be compiled again for each number of parts."""

    address: NDArray[np.int64]
    size: NDArray[np.int64]
    clip: FloatArray


class _Rules(NamedTuple):
    """The numbers of a Locomotion, as the loop needs them."""

    frame_skip: int
    dt: float
    contact_forces: bool
    position_start: int  # x = Σ_i position_weight[i] · position[position_start + 3 i] / position_total
    position_weight: FloatArray
    position_total: float
    forward_weight: float
    survival_bonus: float
    bonus_on_fall: bool
    ctrl_weight: float
    ctrl_low: FloatArray
    ctrl_high: FloatArray
    contact_weight: float
    contact_most: float
    z_index: int
    z_low: float
    z_high: float
    z_inclusive: bool
    angle_low: float
    angle_high: float
    state_most: float
    divergence: NDArray[np.int64]  # indices of warnings


@compiled
def _squares(values: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Σ clip(v)², in the order of NumPy's sum: eight lanes, then the rest one by one."""
    size = len(values)
    total = 0.0
    done = 0
    if size >= 8:
        lanes = np.zeros(8)
        done = size - size % 8
        for i in range(done):
            v = min(max(values[i], low[i]), high[i])
            lanes[i % 8] += v * v
        total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
    for i in range(done, size):
        v = min(max(values[i], low[i]), high[i])
        total += v * v
    return total


@compiled
def _forward_position(position: FloatArray, rules: _Rules) -> float:
    """The x that progress is measured by."""
    total = 0.0
    for i in range(len(rules.position_weight)):
        total += rules.position_weight[i] * position[rules.position_start + 3 * i]
    return total / rules.position_total


@compiled
def _observe(layout: _Layout, x: FloatArray) -> bool:
    """Fill x; returns whether all of it is finite."""
    at = 0
    finite = True
    for part in range(len(layout.address)):
        size, clip = layout.size[part], layout.clip[part]
        _mju_copy(x[at:].ctypes.data, layout.address[part], size)
        for i in range(at, at + size):
            finite = finite and np.isfinite(x[i])
            x[i] = min(max(x[i], -clip), clip)
        at += size
    return finite


@compiled
def _is_healthy(qpos: FloatArray, qvel: FloatArray, rules: _Rules) -> bool:
    z = qpos[rules.z_index]
    healthy: bool = rules.z_low <= z <= rules.z_high if rules.z_inclusive else rules.z_low < z < rules.z_high
    if rules.angle_low > -np.inf or rules.angle_high < np.inf:
        healthy = healthy and rules.angle_low < qpos[2] < rules.angle_high
    if rules.state_most < np.inf:
        for i in range(2, len(qpos)):
            healthy = healthy and -rules.state_most < qpos[i] < rules.state_most
        for i in range(len(qvel)):
            healthy = healthy and -rules.state_most < qvel[i] < rules.state_most
    return healthy


@compiled
def _episode(
    model: int,
    data: int,
    views: _Views,
    layout: _Layout,
    rules: _Rules,
    W_columns: FloatArray,  # (n, p)
    c: FloatArray,
    contact_low: FloatArray,
    contact_high: FloatArray,
    H: int,
    shift: float,
    gather: bool,
    x: FloatArray,
    x_first: FloatArray,
    s1: FloatArray,
    s2: FloatArray,
) -> tuple[float, int, bool]:
    """One episode from the state in `data`: (Σ (reward − shift), steps, finite). s1 and s2 must be zero."""
    n, p = W_columns.shape
    a = np.empty(p)
    reward = 0.0
    step = 0
    finite = _observe(layout, x)
    for i in range(n):  # a slice would compile NumPy's error messages too, which takes two seconds
        x_first[i] = x[i]
    position = _forward_position(views.position, rules)
    while finite and step < H:
        if gather:
            for i in range(n):
                d = x[i] - x_first[i]
                s1[i] += d
                s2[i] += d * d
        for i in range(p):
            a[i] = -c[i]
        for j in range(n):
            for i in range(p):
                a[i] += W_columns[j, i] * x[j]
        for i in range(p):
            finite = finite and np.isfinite(a[i])
            views.ctrl[i] = a[i]
        if not finite:
            break
        for _ in range(rules.frame_skip):
            _mj_step(model, data)
        if rules.contact_forces:
            _mj_rne_post_constraint(model, data)
        step += 1

        position_before, position = position, _forward_position(views.position, rules)
        velocity = (position - position_before) / rules.dt
        healthy = _is_healthy(views.qpos, views.qvel, rules)
        bonus = rules.survival_bonus if healthy or rules.bonus_on_fall else 0.0
        cost = rules.ctrl_weight * _squares(a, rules.ctrl_low, rules.ctrl_high)
        if rules.contact_weight != 0.0:
            contact = rules.contact_weight * _squares(views.cfrc_ext, contact_low, contact_high)
            cost += min(contact, rules.contact_most)
        reward += (rules.forward_weight * velocity + bonus - cost) - shift

        finite = _observe(layout, x) and np.isfinite(reward)
        for kind in rules.divergence:
            finite = finite and views.warnings[kind] == 0
        if not healthy:
            break
    return reward, step, finite


class MujocoTask:
    """A Locomotion task for one thread, with its own MjData and a shared model."""

    releases_gil = True

    def __init__(self, task: Locomotion, name: str, *, observe: str = ALL, mirror: bool = False) -> None:
        self.name, self._task = name, task
        self._model = _shared_model(task)
        self._data = mujoco.MjData(self._model)
        self._init_qpos, self._init_qvel = self._data.qpos.copy(), self._data.qvel.copy()
        self._view = robot_view(task, name, self._model, self._data, observe=observe, mirror=mirror)
        self._views, self._layout, self._rules = _bind(task, self._model, self._data, self._view.indices)
        contacts = len(self._views.cfrc_ext)
        self._contact_high = np.full(contacts, task.contact_clip)
        self.n = int(self._layout.size.sum())
        self.p = int(self._model.nu)
        self.H, self.survival_bonus = task.H, task.survival_bonus
        self.time_limit: int | None = task.H
        self._x, self._x_first = np.empty(self.n), np.empty(self.n)

    def definition(self) -> dict[str, Any]:
        actions, robot = Actions().to_dict(), describe(self._task)
        whole = sum(map(len, observed(self._task, self._data)))
        observation = {"shape": [whole]}
        return define(self, observation=observation, actions=actions, locomotion=robot, **self._view.definition())

    def reset(self, key: Key) -> None:
        """The initial state that Gymnasium's environments draw from the same seed."""
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(environment_seed(key))))
        task, data = self._task, self._data
        mujoco.mj_resetData(self._model, data)
        data.qpos[:] = self._init_qpos + random.uniform(-task.qpos_noise, task.qpos_noise, len(self._init_qpos))
        if task.qvel_normal:
            data.qvel[:] = self._init_qvel + task.qvel_noise * random.standard_normal(len(self._init_qvel))
        else:
            data.qvel[:] = self._init_qvel + random.uniform(-task.qvel_noise, task.qvel_noise, len(self._init_qvel))
        mujoco.mj_forward(self._model, data)

    def rollout(self, policy: LinearPolicy, key: Key, *, H: int, shift: float, gather: bool) -> Rollout:
        self.reset(key)
        s1, s2 = np.zeros(self.n), np.zeros(self.n)
        reward, steps, finite = self._run(policy, min(H, self.H), shift, gather, s1, s2)
        moments = Moments.from_sums(steps, self._x_first, s1, s2) if gather else None
        return Rollout(reward, steps, moments, finite)

    def _run(
        self, policy: LinearPolicy, H: int, shift: float, gather: bool, s1: FloatArray, s2: FloatArray
    ) -> tuple[float, int, bool]:
        """The loop, from the current state; always with arguments of the same types, so that it is compiled once."""
        result: tuple[float, int, bool] = _episode(
            self._model._address, self._data._address, self._views, self._layout, self._rules,
            np.ascontiguousarray(policy.W.T), np.ascontiguousarray(policy.c), -self._contact_high, self._contact_high,
            int(H), float(shift), bool(gather), self._x, self._x_first, s1, s2,
        )  # fmt: skip
        return result

    def close(self) -> None:
        """Nothing to release: MjData frees itself."""


@cache
def _shared_model(task: Locomotion) -> Any:
    """One MjModel for all threads. In a model with one tree all constraints form one island, so island discovery, which
    costs 5 to 10%, is disabled without changing the bits. Mid-phase collision stays on: without it the order of
    contacts, and so the bits, can change if a body has several geoms (decision 0005)."""
    model = load_model(task)
    if model.ntree == 1:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
    return model


def _parts(task: Locomotion, data: Any, indices: Sequence[int] | None) -> list[tuple[FloatArray, float]]:
    """The views of an observation with their clips; of a subset, each run of neighbours in a part is a view."""
    parts = list(zip(observed(task, data), (part.clip for part in task.observation), strict=True))
    if indices is None:
        return parts
    chosen, at, wanted = [], 0, np.array(indices)
    for source, clip in parts:
        inside = wanted[(wanted >= at) & (wanted < at + len(source))] - at
        runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
        chosen += [(source[run[0] : run[-1] + 1], clip) for run in runs if len(run)]
        at += len(source)
    return chosen


def _bind(task: Locomotion, model: Any, data: Any, indices: Sequence[int] | None) -> tuple[_Views, _Layout, _Rules]:
    """A description, checked and translated for the loop."""
    parts = _parts(task, data, indices)
    if task.progress == "mass_center":
        position, start, weight, total = data.xipos, 0, model.body_mass.copy(), float(model.body_mass.sum())
    elif task.progress in ("qpos", "xpos", "subtree_com"):
        position, weight, total = getattr(data, task.progress), np.ones(1), 1.0
        start = 0 if task.progress == "qpos" else 3  # the first body comes after the world
    else:
        raise TaskError(f"{task.name} measures progress by {task.progress!r}: choose qpos, xpos, subtree_com or "
                        "mass_center.")  # fmt: skip
    unlimited = np.full(model.nu, np.inf)
    limited = task.ctrl_clamped
    views = _Views(
        data.qpos, data.qvel, data.ctrl, data.cfrc_ext.reshape(-1), data.warning.number, position.reshape(-1),
    )  # fmt: skip
    layout = _Layout(
        np.array([source.ctypes.data for source, _ in parts], dtype=np.int64),
        np.array([len(source) for source, _ in parts], dtype=np.int64),
        np.array([clip for _, clip in parts]),
    )
    rules = _Rules(
        frame_skip=task.frame_skip,
        dt=float(model.opt.timestep * task.frame_skip),
        contact_forces=task.needs_contact_forces,
        position_start=start,
        position_weight=weight,
        position_total=total,
        forward_weight=float(task.forward_weight),
        survival_bonus=float(task.survival_bonus),
        bonus_on_fall=task.bonus_on_fall,
        ctrl_weight=float(task.ctrl_weight),
        ctrl_low=model.actuator_ctrlrange[:, 0].copy() if limited else -unlimited,
        ctrl_high=model.actuator_ctrlrange[:, 1].copy() if limited else unlimited,
        contact_weight=float(task.contact_weight),
        contact_most=float(task.contact_most),
        z_index=task.z_index,
        z_low=float(task.z_range[0]),
        z_high=float(task.z_range[1]),
        z_inclusive=task.z_inclusive,
        angle_low=float(task.angle_range[0]),
        angle_high=float(task.angle_range[1]),
        state_most=float(task.state_most),
        divergence=np.array(divergence_warnings(), dtype=np.int64),
    )
    return views, layout, rules
