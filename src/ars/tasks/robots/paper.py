"""The paper's robots as terms: a Locomotion's observation, reward, end and start, with the bits of Gymnasium's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import TaskError
from ars.tasks.locomotion import PROGRESS, Locomotion, Slice, check, load_model, observed
from ars.tasks.robots.actions import Controls
from ars.tasks.robots.robot import Robot
from ars.tasks.robots.state import State
from ars.tasks.robots.terms import Bound, Model

FloatArray = NDArray[np.float64]
mju_copy: Any = None  # MuJoCo's own, in the scope of the loop


def field(s: State, k: FloatArray, m: FloatArray, x: FloatArray) -> None:
    """Numbers of any field of MjData; k: their address, which a double holds exactly."""
    mju_copy(x.ctypes.data, int(k[0]), len(x))


def squares(values: FloatArray, low: FloatArray, high: FloatArray) -> float:
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


def position(s: State, k: FloatArray) -> float:
    """The x that progress is measured by."""
    kind = int(k[0])
    if kind == 0:
        return float(s.qpos[0])
    if kind == 1:
        return float(s.xpos[1, 0])
    if kind == 2:
        return float(s.subtree_com[1, 0])
    total = 0.0
    for i in range(len(s.xipos)):
        total += k[2 + i] * s.xipos[i, 0]
    return float(total / k[1])


def is_healthy(s: State, k: FloatArray) -> bool:
    """k: z_index, z_low, z_high, z_inclusive, angle_low, angle_high, state_most."""
    z = s.qpos[int(k[0])]
    healthy: bool = k[1] <= z <= k[2] if k[3] != 0.0 else k[1] < z < k[2]
    if k[4] > -np.inf or k[5] < np.inf:
        healthy = healthy and k[4] < s.qpos[2] < k[5]
    if k[6] < np.inf:
        for i in range(2, len(s.qpos)):
            healthy = healthy and -k[6] < s.qpos[i] < k[6]
        for i in range(len(s.qvel)):
            healthy = healthy and -k[6] < s.qvel[i] < k[6]
    return healthy


def step_reward(s: State, k: FloatArray, m: FloatArray) -> float:
    """forward_weight · velocity + survival bonus − control cost − contact cost.

    k: 7 numbers of is_healthy; forward_weight, survival_bonus, bonus_on_fall, ctrl_weight, contact_weight,
    contact_most; low and high of the controls, of the contact forces; the numbers of `position`."""
    p, contacts = len(s.action), 6 * len(s.cfrc_ext)
    place = k[13 + 2 * p + 2 * contacts :]
    x = position(s, place)
    velocity = (x - m[0]) / s.dt
    m[0] = x
    bonus = k[8] if k[9] != 0.0 or is_healthy(s, k[:7]) else 0.0
    cost = k[10] * squares(s.action, k[13 : 13 + p], k[13 + p : 13 + 2 * p])
    if k[11] != 0.0:
        low, high = k[13 + 2 * p : 13 + 2 * p + contacts], k[13 + 2 * p + contacts : 13 + 2 * p + 2 * contacts]
        cost += min(k[11] * squares(s.cfrc_ext.reshape(contacts), low, high), k[12])
    reward: float = k[7] * velocity + bonus - cost
    return reward


def fallen(s: State, k: FloatArray, m: FloatArray) -> bool:
    """k: the 7 numbers of is_healthy."""
    return not is_healthy(s, k)


@dataclass(frozen=True)
class Field:
    """A Slice of the observation."""

    task: Locomotion
    part: Slice

    def bind(self, model: Model) -> Bound:
        source = observed(self.task, model.data)[self.task.observation.index(self.part)]
        names = [f"{self.part.field} {i}" for i in range(len(source))]
        return Bound(field, (float(source.ctypes.data),), names=names, clip=self.part.clip)


@dataclass(frozen=True)
class StepReward:
    task: Locomotion
    weight: float = 1.0

    def bind(self, model: Model) -> Bound:
        task, mj = self.task, model.mj
        unlimited = np.full(mj.nu, np.inf)
        low, high = mj.actuator_ctrlrange.T if task.ctrl_clamped else (-unlimited, unlimited)
        contacts = np.full(6 * mj.nbody, float(task.contact_clip))
        numbers = (
            task.forward_weight, task.survival_bonus, task.bonus_on_fall, task.ctrl_weight, task.contact_weight,
            task.contact_most,
        )  # fmt: skip
        progress = progress_numbers(task, mj)
        k = (*_health(task), *map(float, numbers), *low, *high, *-contacts, *contacts, *progress)
        return Bound(step_reward, k, memory=1)


@dataclass(frozen=True)
class Fallen:
    task: Locomotion

    def bind(self, model: Model) -> Bound:
        return Bound(fallen, _health(self.task))


@dataclass(frozen=True)
class GymnasiumStart:
    """The initial state that Gymnasium's environments draw from the same seed."""

    task: Locomotion

    def check(self, model: Model) -> None:
        pass

    def begin(self, model: Any, data: Any, random: np.random.Generator) -> None:
        import mujoco

        task = self.task
        mujoco.mj_resetData(model, data)
        data.qpos[:] = model.qpos0 + random.uniform(-task.qpos_noise, task.qpos_noise, model.nq)
        if task.qvel_normal:
            data.qvel[:] = task.qvel_noise * random.standard_normal(model.nv)
        else:
            data.qvel[:] = random.uniform(-task.qvel_noise, task.qvel_noise, model.nv)


def progress_numbers(task: Locomotion, mj: Any) -> tuple[float, ...]:
    """The constants of `position`: its kind, the whole mass, and that of each body."""
    return float(PROGRESS.index(task.progress)), float(mj.body_mass.sum()), *mj.body_mass.tolist()


def _health(task: Locomotion) -> tuple[float, ...]:
    numbers = (
        task.z_index, *task.z_range, task.z_inclusive, *task.angle_range, task.state_most,
    )  # fmt: skip
    return tuple(map(float, numbers))


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperRobot(Robot):
    """A Locomotion in terms; its horizon and survival bonus are the description's own."""

    task: Locomotion

    @property
    def H(self) -> int:
        return self.task.H

    @property
    def survival_bonus(self) -> float:
        return self.task.survival_bonus

    def frame_skip(self, mj: Any) -> int:
        return self.task.frame_skip

    def load(self) -> Any:
        mj = load_model(self.task)
        check(self.task, mj)
        return mj


def paper_robot(task: Locomotion) -> PaperRobot:
    if not isinstance(task.observation, tuple) or not task.observation:
        raise TaskError(f"{task.name}: observation = () is empty: name at least one Slice.")
    return PaperRobot(
        task=task, name=task.name, model=task.xml, control_hz=1.0, action=Controls(), start=GymnasiumStart(task),
        observe=[Field(task, part) for part in task.observation], reward=[StepReward(task)], stop=[Fallen(task)],
    )  # fmt: skip
