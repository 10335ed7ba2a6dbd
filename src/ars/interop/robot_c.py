"""The controller of a robot as a C99 header: from sensor values to the targets of the actuators.

It does what the robot's loop does between two physics steps, in the same order: assemble the observation, clip it, take
the policy's entries, apply W and c, limit the action, and scale, saturate and rate-limit the targets. docs/hardware.md
is its page; robot_replay.py makes its test vectors.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ars.errors import SettingError
from ars.files import one_line
from ars.interop.exports import C_FLAGS, FORMULA, c_comment, origin, task_name
from ars.policy import LinearPolicy
from ars.subset import ALL, to_indices

# Terms of an observation → where C finds their numbers. The user's own terms are inputs: `other`.
SOURCES = {
    "Gyro": "gyro", "Gravity": "gravity", "Heading": "heading", "JointPositions": "q", "JointVelocities": "dq",
    "LastAction": "action", "Clock": "clock",
}  # fmt: skip
SIZES = {"gyro": 3, "gravity": 3, "heading": 1, "clock": 2}
IMU = ("gyro", "gravity", "heading")
SENSORS = {  # members of ars_sensors, in their order
    "gyro": "angular velocity of the IMU in its own axes",
    "gravity": "direction of gravity in the IMU's axes, of length 1: (0, 0, -1) if it is level",
    "heading": "y, in the world, of the IMU's x axis: the sine of its yaw if it is level",
    "q": "positions of the joints themselves, m where a joint slides; home offsets are subtracted here",
    "dq": "velocities of the joints, m/s where a joint slides",
    "other": "values that only your program can compute: those of the robot's own terms",
}
LARGEST = 1e30  # of a constant: float holds 3e38, and its products must fit too
UNLIMITED = 3e38  # stands for no limit in tables: C99 has no infinity without its library
LONGEST_NAME = 200  # letters in a string; compilers need not take more than 4095
SINE = (  # of ars.tasks.robots.sine, from 1 to y^18: numerators and denominators
    (1, 1), (-1, 6), (1, 120), (-1, 5040), (1, 362880), (-1, 39916800), (1, 6227020800), (-1, 1307674368000),
    (1, 355687428096000), (-1, 121645100408832000),
)  # fmt: skip


class Entry(NamedTuple):
    """One number of the whole observation."""

    place: int  # in the whole observation
    name: str
    unit: str
    clip: float
    source: str  # a member of ars_sensors, "action" or "clock"
    at: int  # in that member; of a clock 0 for the sine, 1 for the cosine
    number: float  # a home offset to subtract, or Hz of a clock

    @property
    def member(self) -> str:
        return self.source if self.source == "heading" else f"{self.source}[{self.at}]"


class Controller(NamedTuple):
    """All that C needs of a robot's definition, checked."""

    hz: float
    dt: float  # seconds per control step
    model: str  # digest
    entries: tuple[Entry, ...]  # what the policy sees, in order
    sensors: tuple[Entry, ...]  # what the hardware gives, in the order of ars_sensors
    actuators: tuple[str, ...]
    kind: str  # PositionTargets or Torques
    limit: float  # of the action
    rate: float  # largest change of a target per step
    offset: tuple[float, ...]
    scale: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def uses(self, source: str) -> bool:
        return any(entry.source == source for entry in self.entries)


def read_controller(policy: LinearPolicy) -> Controller:
    """The controller of a policy whose task is a robot of terms; SettingError with a sentence if C cannot have it."""
    try:
        return _controller(policy, policy.task["robot"])
    except (KeyError, IndexError, AttributeError, TypeError, ValueError, OverflowError) as error:
        reason = f"{one_line(error)} is missing" if isinstance(error, KeyError) else one_line(error)
        raise SettingError(f"This policy's description of its robot is damaged: {reason}.") from error


def _controller(policy: LinearPolicy, robot: dict[str, Any]) -> Controller:
    action, actuators = robot["action"], tuple(map(str, robot["actuators"]))
    if action["term"] not in ("PositionTargets", "Torques"):
        raise SettingError(
            f"This robot's action is {str(action['term'])[:50]!r}, whose limits C cannot know: "
            "use PositionTargets or Torques, or export the policy to json."
        )
    if not max(abs(policy.W).max(), abs(policy.c).max()) <= LARGEST:
        raise ValueError(f"its weights exceed {LARGEST:g}")
    if len(actuators) != policy.p:
        raise ValueError(f"it has {len(actuators)} actuators, and the policy {policy.p} outputs")
    whole = _entries(robot["observe"], policy.p)
    seen = range(len(whole)) if policy.observe == ALL else to_indices(policy.observe, len(whole))
    if len(seen) != policy.n:
        raise ValueError(f"the policy takes {policy.n} numbers, and these are {len(seen)}")
    entries = tuple(whole[place] for place in seen)
    columns = {name: _numbers(action[name], policy.p) for name in ("offset", "scale")}
    columns |= {name: _numbers(action[name], policy.p, _limit) for name in ("low", "high")}
    hz = _positive(_number(robot["control_hz"]))
    limit, rate = (_positive(_limit(action[name])) for name in ("limit", "rate"))
    return Controller(
        hz=hz, dt=_positive(_number(robot.get("dt", 1.0 / hz))), model=str(robot.get("model")), entries=entries,
        sensors=_sensors(whole, entries), actuators=actuators, kind=action["term"], limit=limit, rate=rate, **columns,
    )  # fmt: skip


def _entries(terms: list[dict[str, Any]], p: int) -> list[Entry]:
    """The whole observation."""
    entries: list[Entry] = []
    seen: dict[str, dict[Any, int]] = {}  # source → what it has → where
    site = next((term["site"] for term in terms if SOURCES.get(term["term"]) in IMU), None)
    for term in terms:
        source, names = SOURCES.get(term["term"], "other"), list(map(str, term["names"]))
        if source in IMU and term["site"] != site:
            source = "other"  # there is one IMU; what a second one measures is an input
        if len(names) != (p if source == "action" else SIZES.get(source, len(names))):
            raise ValueError(f"{term['term']} has {len(names)} numbers")
        numbers = [0.0] * len(names)
        if source == "q":
            numbers = list(_numbers(term["offsets"], len(names)))
        if source == "clock":
            numbers = [_positive(_number(term["hz"]))] * 2
        for i, (name, number) in enumerate(zip(names, numbers, strict=True)):
            key = {"q": name, "dq": name, "other": len(entries)}.get(source, i)
            at = seen.setdefault(source, {}).setdefault(key, len(seen[source]))
            clip = _positive(_limit(term.get("clip", "inf")))
            entries.append(Entry(len(entries), name, str(term["unit"]), clip, source, at, number))
    return entries


def _sensors(whole: Sequence[Entry], entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Members of ars_sensors that the policy needs, each with all its numbers: indices are the same for a subset."""
    used = {entry.source for entry in entries}
    first = {(entry.source, entry.at): entry for entry in reversed(whole) if entry.source in used & set(SENSORS)}
    order = list(SENSORS)
    unused = Entry(0, "unused", "1", math.inf, "other", 0, 0.0)  # a struct needs a member
    return tuple(sorted(first.values(), key=lambda one: (order.index(one.source), one.at))) or (unused,)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError(f"{value!r:.50} is not a number up to {LARGEST:g}")
    return float(value) + 0.0  # no -0.0


def _limit(value: Any) -> float:
    """The same, or infinity, which is text in a definition."""
    return float(value) if value in ("inf", "-inf") else _number(value)


def _positive(number: float) -> float:
    if not number > 0.0:
        raise ValueError(f"{number!r} is not above 0")
    return number


def _numbers(values: Any, count: int, read: Callable[[Any], float] = _number) -> tuple[float, ...]:
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{values!r:.50} are not {count} numbers")
    return tuple(min(max(read(value), -UNLIMITED), UNLIMITED) for value in values)


# -- what it costs ---------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Numbers of constants, and operations per step; a clock also takes the digits of its turns (ars_floor)."""

    constants: int
    multiplications: int
    additions: int
    comparisons: int


def cost(policy: LinearPolicy, robot: Controller) -> Cost:
    n, p = policy.n, policy.p
    homes = sum(entry.source == "q" and entry.number != 0.0 for entry in robot.entries)
    clips = sum(entry.clip < math.inf for entry in robot.entries)
    clocks = sum(entry.source == "clock" for entry in robot.entries)
    cosines = sum(entry.source == "clock" and entry.at == 1 for entry in robot.entries)
    limit, rate = robot.limit < math.inf, robot.rate < math.inf
    terms = len(SINE)
    return Cost(
        constants=p * n + 5 * p + homes + clips + limit + rate + clocks + (terms + 2) * (clocks > 0),
        multiplications=p * n + p + clocks * (2 + 2 + terms),
        additions=p * n + 2 * p + 2 * p * rate + homes + clocks * (terms + 2) + cosines + 1,
        comparisons=3 * p + 2 * p * limit + 2 * p * rate + 2 * clips + 2 * clocks,
    )


# -- the header ------------------------------------------------------------------------------------------------------


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
