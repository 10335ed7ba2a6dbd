"""What a robot's controller does with sensor values, read from its policy: the numbers behind the C header.

robot_c.py writes the header, robot_replay.py its test vectors.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ars.errors import SettingError
from ars.files import one_line
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
