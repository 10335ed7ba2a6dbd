"""The controller of a robot as a C99 header: from sensor values to the targets of the actuators.

It does what the robot's loop does between two physics steps, in the same order: assemble the observation, clip it, take
the policy's entries, apply W and c, limit the action, and scale, saturate and rate-limit the targets. docs/hardware.md
is its page; robot_replay.py makes its test vectors.
"""

import math
from collections.abc import Iterable

from ars.interop.controller import SENSORS, SINE, UNLIMITED, Controller, Entry, cost, read_controller
from ars.interop.exports import C_FLAGS, FORMULA, c_comment, origin, task_name
from ars.policy import LinearPolicy
from ars.subset import ALL

LONGEST_NAME = 200  # letters in a string; compilers need not take more than 4095


def robot_header(policy: LinearPolicy, bound: float | None = None) -> bytes:
    """One C99 header without includes. `bound`: how far float is from double in the test vectors, if they were made."""
    robot = read_controller(policy)
    parts = [
        _top(policy, robot), _sizes(policy, robot, bound), _constants(policy, robot), _structs(robot),
        _sine() if robot.uses("clock") else "", _orient(robot), _functions(robot), "#endif\n",
    ]  # fmt: skip
    return "\n".join(part for part in parts if part).encode("ascii")


def _top(policy: LinearPolicy, robot: Controller) -> str:
    need = cost(policy, robot)
    lines = [
        "A robot's controller: a linear policy by Augmented Random Search, from sensor values to targets.",
        f"task: {c_comment(task_name(policy))}",
        f"made: {c_comment(origin(policy))}",
        f"model: {c_comment(robot.model)}",
        "",
        f"Every {robot.dt!r} s: fill ars_sensors, call ars_step, and send the targets. Call ars_reset once before.",
        f"{FORMULA};",
        f"then action = a within {_plus_minus(robot.limit)}, and target = offset + scale * action from low to high"
        + (f", at most {robot.rate!r} from the last one." if robot.rate < math.inf else "."),
        f"Compile with {C_FLAGS} to get the bits of the simulation: no fused multiply-add, no -ffast-math.",
        "Double is the default, -DARS_REAL=float the alternative. No allocation; integers only count loops.",
        f"Constants: {8 * need.constants} bytes, as float {4 * need.constants}. State: {16 * policy.p + 8} bytes, as "
        f"float {8 * policy.p + 8}.",
        f"A step: {need.multiplications} multiplications, {need.additions} additions, {need.comparisons} comparisons"
        + (", and for the clock one subtraction and comparison per binary digit of its turns." * robot.uses("clock")),
        "",
        "What the policy sees:",
        *(f"  x[{j}]: {_said(entry, subset=policy.observe != ALL)}" for j, entry in enumerate(robot.entries)),
        f"What it commands, {_target_unit(robot)}:",
        *(
            f"  target[{i}]: {c_comment(name)} = {robot.offset[i]!r} + {robot.scale[i]!r} * action, "
            f"from {_end(robot.low[i])} to {_end(robot.high[i])}"
            for i, name in enumerate(robot.actuators)
        ),
    ]
    comment = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"/*{comment[2:]}\n */\n#ifndef ARS_POLICY_H\n#define ARS_POLICY_H\n"


def _said(entry: Entry, *, subset: bool) -> str:
    clip = f", within {_plus_minus(entry.clip)}" if entry.clip < math.inf else ""
    home = f" minus {entry.number!r}" if entry.source == "q" and entry.number else ""
    place = f"; entry {entry.place} of the task's" if subset else ""
    return f"{c_comment(entry.name)}{home}{_unit(entry)}{clip}{place}"


def _plus_minus(limit: float) -> str:
    return f"-{limit!r} .. {limit!r}" if limit < math.inf else "no limits"


def _end(value: float) -> str:
    return repr(value) if abs(value) < UNLIMITED else "any value"


def _target_unit(robot: Controller) -> str:
    turning, sliding = ("rad", "m") if robot.kind == "PositionTargets" else ("N m", "N")
    return f"in {turning}, or {sliding} where a joint slides"


def _sizes(policy: LinearPolicy, robot: Controller, bound: float | None) -> str:
    measured = ""
    if bound is not None:
        measured = f"""\
/* Largest difference of a float target from its double in the test vectors: 4 times what was measured. */
#define ARS_FLOAT_BOUND {bound!r}
"""
    return f"""\
#ifndef ARS_REAL
#define ARS_REAL double
#endif

#define ARS_CONTROL_HZ {robot.hz!r}
#define ARS_DT {robot.dt!r} /* seconds from one ars_step to the next */
#define ARS_SENSORS {len(robot.sensors)} /* numbers in ars_sensors */
#define ARS_N {policy.n} /* numbers that the policy sees */
#define ARS_P {policy.p} /* targets */
{measured}"""


def _constants(policy: LinearPolicy, robot: Controller) -> str:
    rows = ",\n".join("    {" + _listed(row) + "}" for row in policy.W.tolist())
    tables = [
        f"static const ARS_REAL ars_{name}[ARS_P] = {{{_listed(values)}}};"
        for name, values in (
            ("c", policy.c.tolist()), ("offset", robot.offset), ("scale", robot.scale), ("low", robot.low),
            ("high", robot.high),
        )
    ]  # fmt: skip
    names = [
        _name_table("ars_sensor_names", "ARS_SENSORS", [one.name for one in robot.sensors]),
        _name_table("ars_x_names", "ARS_N", [one.name for one in robot.entries]),
        _name_table("ars_target_names", "ARS_P", robot.actuators),
    ]
    return "\n".join(
        ["static const ARS_REAL ars_W[ARS_P][ARS_N] = {", rows, "};", *tables, "", "/* UTF-8 */", *names, ""]
    )


def _listed(values: Iterable[float]) -> str:
    return ", ".join(map(repr, values))


def _name_table(table: str, size: str, names: Iterable[str]) -> str:
    return f"static const char *const {table}[{size}] = {{\n    " + ",\n    ".join(map(c_string, names)) + "\n};"


def c_string(text: str) -> str:
    """Any text as a C string of ASCII: bytes of UTF-8 that are not plain letters are octal."""
    content = text[:LONGEST_NAME].encode(errors="replace")
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in content)
    return f'"{"".join(plain)}"'


def _structs(robot: Controller) -> str:
    lines = []
    for source, meaning in SENSORS.items():
        members = [one for one in robot.sensors if one.source == source]
        if not members:
            continue
        declared = source if source == "heading" else f"{source}[{len(members)}]"
        lines.append(f"    ARS_REAL {declared}; /* {meaning} */")
        lines += [f"    /*   {one.member}: {c_comment(one.name)}{_unit(one)} */" for one in members]
    fields = "\n".join(lines)
    return f"""\
/* What the hardware gives, at the time of the step. */
typedef struct {{
{fields}
}} ars_sensors;

/* What is kept from step to step. */
typedef struct {{
    ARS_REAL action[ARS_P]; /* the last one, within its limits */
    ARS_REAL target[ARS_P]; /* the last ones */
    double step; /* since ars_reset; a float would stop at 16777216, and the clock lose its beat before */
}} ars_state;
"""


def _unit(entry: Entry) -> str:
    return "" if entry.unit in ("", "1") else f", {c_comment(entry.unit)[1:-1]}"


def _sine() -> str:
    horner = f"(ARS_REAL)({_ratio(SINE[-1])})"
    for pair in SINE[-2::-1]:
        horner = f"(ARS_REAL)({_ratio(pair)}) + z * (\n        {horner})"
    return f"""\
/* The largest whole number up to v >= 0, from its binary digits: the C library and integers are not needed. */
static inline double ars_floor(double v)
{{
    double digit = 1.0, whole = 0.0;
    while (digit <= v - digit && digit < 4503599627370496.0)
        digit += digit;
    for (; digit >= 1.0; digit *= 0.5)
        if (v - whole >= digit)
            whole += digit;
    return whole;
}}

/* sin(2 pi turns) of turns >= 0: reduced to a quarter turn, then the Taylor series. */
static inline ARS_REAL ars_turn(double turns)
{{
    double part = turns - ars_floor(turns + 0.5);
    ARS_REAL y, z;
    if (part > 0.25)
        part = 0.5 - part;
    else if (part < -0.25)
        part = -0.5 - part;
    y = (ARS_REAL)part * (ARS_REAL)6.283185307179586;
    z = y * y;
    return y * ({horner});
}}
"""


def _ratio(pair: tuple[int, int]) -> str:
    return "1.0" if pair == (1, 1) else f"{pair[0]}.0 / {pair[1]}.0"


def _orient(robot: Controller) -> str:
    """From a quaternion to gravity and heading: Rᵀ (0, 0, −1) and R₁₀."""
    there = {one.source for one in robot.sensors}
    lines = []
    if "gravity" in there:
        lines += [
            "    sensors->gravity[0] = (ARS_REAL)-2.0 * (x * z - w * y);",
            "    sensors->gravity[1] = (ARS_REAL)-2.0 * (y * z + w * x);",
            "    sensors->gravity[2] = (ARS_REAL)2.0 * (x * x + y * y) - (ARS_REAL)1.0;",
        ]
    if "heading" in there:
        lines.append("    sensors->heading = (ARS_REAL)2.0 * (x * y + w * z);")
    if not lines:
        return ""
    body = "\n".join(lines)
    return f"""\
/* Gravity and heading, as far as they are sensors here, from the IMU's orientation in the world (z up) as a quaternion
 * of length 1: it turns vectors of the IMU's axes into those of the world. */
static inline void ars_orient(ARS_REAL w, ARS_REAL x, ARS_REAL y, ARS_REAL z, ars_sensors *sensors)
{{
{body}
}}
"""


def _functions(robot: Controller) -> str:
    lines = "\n".join(f"    x[{j}] = {_expression(entry)};" for j, entry in enumerate(robot.entries))
    unused = [name for name, used in (
        ("state", robot.uses("action") or robot.uses("clock")),
        ("sensors", any(robot.uses(source) for source in SENSORS)),
    ) if not used]  # fmt: skip
    ignored = "".join(f"    (void){name};\n" for name in unused)
    limit = _within("a[i]", robot.limit)
    rate = ""
    if robot.rate < math.inf:
        step = f"(ARS_REAL){robot.rate!r}"
        rate = f"\n        goal = ars_within(goal, state->target[i] - {step}, state->target[i] + {step});"
    return f"""\
static inline ARS_REAL ars_within(ARS_REAL v, ARS_REAL low, ARS_REAL high)
{{
    if (low > v)
        v = low;
    if (high < v)
        v = high;
    return v;
}}

/* Before the first step; the robot should be near the targets' offsets. */
static inline void ars_reset(ars_state *state)
{{
    int i;
    for (i = 0; i < ARS_P; i++) {{
        state->action[i] = (ARS_REAL)0.0;
        state->target[i] = ars_offset[i];
    }}
    state->step = 0.0;
}}

/* What the policy sees, x[ARS_N]; changes nothing. */
static inline void ars_observe(const ars_state *state, const ars_sensors *sensors, ARS_REAL *x)
{{
{ignored}{lines}
}}

/* The policy itself: x[ARS_N] -> a[ARS_P]. */
static inline void ars_pi(const ARS_REAL *x, ARS_REAL *a)
{{
    int i, j;
    for (i = 0; i < ARS_P; i++) {{
        a[i] = -ars_c[i];
        for (j = 0; j < ARS_N; j++)
            a[i] += ars_W[i][j] * x[j];
    }}
}}

/* One step: target[ARS_P]. Returns 1; or 0 if a sensor value is not a finite number, and then the targets are the last
 * ones. */
static inline int ars_step(ars_state *state, const ars_sensors *sensors, ARS_REAL *target)
{{
    ARS_REAL x[ARS_N], a[ARS_P], goal;
    int i, finite = 1;
    ars_observe(state, sensors, x);
    ars_pi(x, a);
    for (i = 0; i < ARS_P; i++)
        if (!(a[i] - a[i] == (ARS_REAL)0.0))
            finite = 0;
    for (i = 0; finite && i < ARS_P; i++) {{
        state->action[i] = {limit};
        goal = ars_within(ars_offset[i] + ars_scale[i] * state->action[i], ars_low[i], ars_high[i]);{rate}
        state->target[i] = goal;
    }}
    for (i = 0; i < ARS_P; i++)
        target[i] = state->target[i];
    state->step += 1.0;
    return finite;
}}
"""


def _expression(entry: Entry) -> str:
    if entry.source == "clock":
        quarter = " + 0.25" if entry.at else ""
        value = f"ars_turn({entry.number!r} * (state->step * ARS_DT){quarter})"
    elif entry.source == "action":
        value = f"state->action[{entry.at}]"
    else:
        home = f" - (ARS_REAL){_signed(entry.number)}" if entry.number else ""
        value = f"sensors->{entry.member}{home}"
    return _within(value, entry.clip)


def _within(value: str, limit: float) -> str:
    return f"ars_within({value}, (ARS_REAL)-{limit!r}, (ARS_REAL){limit!r})" if limit < math.inf else value


def _signed(number: float) -> str:
    return repr(number) if number >= 0 else f"({number!r})"
