"""Test vectors for the C of a robot: ten seconds of sensor values from its simulation, what the controller makes of
them, and a C program that replays them.

What is expected comes from `replay`, the arithmetic of the header in NumPy, in double or float: the same operations in
the same order have the same bits. The simulation itself is the oracle of `replay`.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ars.errors import SettingError
from ars.files import safe_name
from ars.interop.controller import SENSORS, SINE, SOURCES, Controller, read_controller
from ars.interop.exports import C_FLAGS
from ars.interop.robot_c import robot_header
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.find import find_robot
from ars.tasks.robots.robot import Robot
from ars.tasks.robots.state import State

FloatArray = NDArray[np.float64]
SECONDS = 10.0
SAFETY = 4.0  # of the bound of float: what was measured is of one episode
SAME = ("control_hz", "model", "actuators", "action", "observe")  # of a definition, for it to be the same robot


class Export(NamedTuple):
    """The files for a robot, and what they were made from."""

    header: bytes
    vectors: bytes
    program: bytes
    steps: int
    bound: float  # of float targets
    differs: float  # the largest difference of the targets from the simulation's


def names_beside(header: str) -> tuple[str, str]:
    """The names of the vectors and of the program that go with a header."""
    if safe_name(header) != header:
        raise SettingError(f"{header!r} is not a name that C can include: use letters, digits, dots, - and _ alone.")
    stem = Path(header).stem
    return f"{stem}_vectors.h", f"{stem}_replay.c"


def export_robot(policy: LinearPolicy, task: str | Robot, header: str) -> Export:
    """The contents of the header of this name and of the two files beside it; `task`: the robot, whose code is run."""
    robot = read_controller(policy)
    vectors_name, program_name = names_beside(header)
    sensors, told = record(policy, task, robot)
    x, targets = replay(policy, robot, sensors)
    _, rough = replay(policy, robot, sensors, np.float32)
    bound = float(f"{SAFETY * _largest(rough, targets):.2g}")
    if not math.isfinite(bound):
        raise SettingError("This policy's targets exceed the range of float: it cannot be exported to C.")
    return Export(
        header=robot_header(policy, bound), vectors=_vectors(sensors, x, targets),
        program=_program(robot, header, vectors_name, program_name), steps=len(sensors), bound=bound,
        differs=_largest(told, targets),
    )  # fmt: skip


def _largest(one: NDArray[Any], other: NDArray[Any]) -> float:
    return float(np.abs(one.astype(np.float64) - other).max())


# -- the simulation --------------------------------------------------------------------------------------------------


class _Recorded(MujocoTask):
    """A robot whose loop runs step by step in plain Python."""

    def whole(self, step: int) -> FloatArray:
        """The numbers of the whole observation as sensors have them, without clipping and home offsets."""
        views, arrays = self._views, self.arrays
        state = State(**views._asdict(), action=arrays.action, last_action=arrays.last_action, t=step * arrays.dt,
                      step=step, dt=arrays.dt)  # fmt: skip
        parts, at = [], 0
        for term, bound in zip(self.robot.observe, self.parts.observe, strict=True):
            values = arrays.whole[at : at + len(bound.names)].copy()  # of the user's own terms, which may have memory
            at += len(values)
            source = SOURCES.get(type(term).__name__)
            if source == "q":
                values = self.data.qpos[np.array(bound.constants[: len(values)], dtype=int)]
            elif source in SENSORS:
                bound.function(state, np.array(bound.constants), np.zeros(0), values)
            parts.append(values)
        return np.concatenate(parts)

    def run(self, policy: LinearPolicy, first: int, last: int) -> bool:
        """Whether all numbers of these steps were finite. Where the robot would stop, it goes on."""
        nothing = np.zeros(self.n)
        return bool(self._run(policy, first, last, 0.0, False, nothing, nothing)[2])

    def told(self) -> FloatArray:
        """What the last action asked of the actuators."""
        return np.array(self.arrays.ctrl)


def record(policy: LinearPolicy, task: str | Robot, controller: Controller) -> tuple[FloatArray, FloatArray]:
    """Ten seconds of the policy: sensor values (steps, sensors), and the simulation's targets (steps, p)."""
    robot = find_robot(task) if isinstance(task, str) else task
    if not isinstance(robot, Robot):
        raise SettingError(f"{task} is not a robot of terms: name the one that this policy was trained on with --task.")
    made = _Recorded(replace(robot, scenarios=None), robot.name, observe=policy.observe, compiled=False)
    definition = made.definition()["robot"]
    for name in SAME:
        if policy.task["robot"].get(name) != definition[name]:
            raise SettingError(f"{robot.name} is not the robot that this policy was trained on: its {name} is another.")
    made.reset(Key(0, Stream.TEST, 0, 0))
    places = [sensor.place for sensor in controller.sensors]
    sensors, told = [], []
    finite = made.run(policy, 0, 0)
    for step in range(max(1, round(SECONDS * controller.hz))):
        sensors.append(made.whole(step)[places])
        finite = finite and made.run(policy, step, step + 1)
        if not finite:
            raise SettingError(f"{robot.name} diverges in step {step} with this policy: there are no test vectors.")
        told.append(made.told())
    return np.array(sensors), np.array(told)


# -- the arithmetic of the header ------------------------------------------------------------------------------------


def replay(
    policy: LinearPolicy, robot: Controller, sensors: FloatArray, real: type[np.floating[Any]] = np.float64
) -> tuple[NDArray[Any], NDArray[Any]]:
    """What ars_observe and ars_step give for these sensor values, one step each: (steps, n) and (steps, p)."""
    column = {(sensor.source, sensor.at): i for i, sensor in enumerate(robot.sensors)}
    W, c, offset, scale, low, high = (
        np.array(one, dtype=real) for one in (policy.W, policy.c, robot.offset, robot.scale, robot.low, robot.high)
    )
    limit, rate, clip = real(robot.limit), real(robot.rate), np.array([e.clip for e in robot.entries], dtype=real)
    action, target = np.zeros(policy.p, real), offset
    xs, targets = [], []
    for step, row in enumerate(sensors.astype(real)):
        x = np.empty(policy.n, real)
        for j, entry in enumerate(robot.entries):
            if entry.source == "clock":
                x[j] = _turn(entry.number * (step * robot.dt) + 0.25 * entry.at, real)
            elif entry.source == "action":
                x[j] = action[entry.at]
            else:
                x[j] = row[column[entry.source, entry.at]] - real(entry.number)
        x = _within(x, -clip, clip)
        action = _within(np.add.accumulate(np.vstack([-c, (W * x).T]))[-1], -limit, limit)
        target = _within(_within(offset + scale * action, low, high), target - rate, target + rate)
        xs.append(x)
        targets.append(target)
    return np.array(xs), np.array(targets)


def _within(v: NDArray[Any], low: Any, high: Any) -> NDArray[Any]:
    v = np.where(low > v, low, v)
    return np.where(high < v, high, v)


def _turn(turns: float, real: type[np.floating[Any]]) -> Any:
    """ars_turn: the reduction in double, the series in `real`."""
    part = turns - math.floor(turns + 0.5)
    if part > 0.25:
        part = 0.5 - part
    elif part < -0.25:
        part = -0.5 - part
    y = real(part) * real(6.283185307179586)
    z = y * y
    total = real(0.0)
    for numerator, denominator in reversed(SINE):
        total = real(numerator / denominator) + z * total
    return y * total


# -- the files -------------------------------------------------------------------------------------------------------


def _vectors(sensors: FloatArray, x: FloatArray, targets: FloatArray) -> bytes:
    tables = "\n".join(
        f"static const double ars_vector_{name}[ARS_STEPS][{size}] = {{\n"
        + ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in values.tolist())
        + "\n};"
        for name, size, values in (
            ("sensors", "ARS_SENSORS", sensors), ("x", "ARS_N", x), ("targets", "ARS_P", targets)
        )
    )  # fmt: skip
    return f"""\
/* Sensor values of an episode of the simulation, what the policy sees, and the targets. */
#define ARS_STEPS {len(sensors)}
{tables}
""".encode("ascii")


def _program(robot: Controller, header: str, vectors: str, program: str) -> bytes:
    fill = "\n".join(f"    sensors->{sensor.member} = (ARS_REAL)row[{i}];" for i, sensor in enumerate(robot.sensors))
    return f"""\
/* Replays the test vectors: returns 0 if the targets are those of the simulation, to the bit in double.
 *   cc -std=c99 -O2 {C_FLAGS} {program} -o {program.removesuffix(".c")}
 */
#include <stdio.h>
#include <string.h>
#include "{header}"
#include "{vectors}"

static void fill(ars_sensors *sensors, const double *row)
{{
{fill}
}}

/* Where one of `count` numbers first has other bits, or -1; `most` becomes the largest difference so far, or NaN. */
static int compare(const ARS_REAL *got, const double *expected, int count, double *most)
{{
    int i, first = -1;
    for (i = 0; i < count; i++) {{
        double value = (double)got[i], difference = value - expected[i];
        if (difference < 0.0)
            difference = -difference;
        if (*most == *most && !(difference <= *most))
            *most = difference;
        if (first < 0 && memcmp(&value, &expected[i], sizeof value) != 0)
            first = i;
    }}
    return first;
}}

static int report(int step, const char *what, int at, const char *name, double got, double expected)
{{
    printf("step %d: %s[%d] (%s) is %.17g, and %.17g was expected\\n", step, what, at, name, got, expected);
    return 0;
}}

int main(void)
{{
    const int exact = sizeof(ARS_REAL) == sizeof(double);
    int step, at, equal = 1, good = 1;
    double most_x = 0.0, most = 0.0;
    ars_state state;
    ars_sensors sensors;
    ARS_REAL x[ARS_N], target[ARS_P];
    ars_reset(&state);
    for (step = 0; step < ARS_STEPS; step++) {{
        fill(&sensors, ars_vector_sensors[step]);
        ars_observe(&state, &sensors, x);
        good = ars_step(&state, &sensors, target) && good;
        at = compare(x, ars_vector_x[step], ARS_N, &most_x);
        if (exact && equal && at >= 0)
            equal = report(step, "x", at, ars_x_names[at], (double)x[at], ars_vector_x[step][at]);
        at = compare(target, ars_vector_targets[step], ARS_P, &most);
        if (exact && equal && at >= 0)
            equal = report(step, "target", at, ars_target_names[at], (double)target[at], ars_vector_targets[step][at]);
    }}
    printf("%d steps of %g s in %s: largest difference of x %g, of targets %g; ", ARS_STEPS, ARS_DT,
           exact ? "double" : "float", most_x, most);
    good = good && (exact ? equal : most <= ARS_FLOAT_BOUND);
    if (exact)
        printf("%s\\n", good ? "equal to the bit" : "NOT equal to the bit");
    else
        printf("the bound is %g: %s\\n", ARS_FLOAT_BOUND, good ? "good" : "EXCEEDED");
    return good ? 0 : 1;
}}
""".encode()
