"""Names for the rows and columns of a policy: from the model of one of the six robots, or from the task's definition,
which has the names of any other robot."""

from dataclasses import dataclass
from typing import Any

from ars import subset
from ars.tasks import locomotion
from ars.tasks.observations import Group

# The observed fields of MjData: their usual names, and the components for each body.
BODIES = {
    "cinert": ("inertia", ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "m·x", "m·y", "m·z", "mass")),
    "cvel": ("body velocities", ("ωx", "ωy", "ωz", "vx", "vy", "vz")),
    "cfrc_ext": ("contact forces", ("torque x", "torque y", "torque z", "force x", "force y", "force z")),
}
JOINTS = {"qpos": "positions", "qvel": "velocities", "qfrc_actuator": "motor forces"}
FREE = {
    "qpos": ("x", "y", "z", "qw", "qx", "qy", "qz"),
    "qvel": ("vx", "vy", "vz", "ωx", "ωy", "ωz"),
    "qfrc_actuator": ("fx", "fy", "fz", "τx", "τy", "τz"),
}


@dataclass(frozen=True)
class Columns:
    """Neighbouring columns of one kind."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class AxisNames:
    """rows: p names of actions; columns: n names of observations, by kind."""

    rows: tuple[str, ...]
    columns: tuple[Columns, ...]


def name_axes(task: str, definition: dict[str, Any], n: int, p: int) -> AxisNames:
    """A robot's names; x0, x1, … and a0, a1, … (or the keys of a Dict) for a task without a model."""
    observe = definition.get("observe")
    robot = locomotion.TASKS.get(task)  # built-in tasks only: a file must not choose which model is loaded
    if robot:
        model = locomotion.load_model(robot)
        columns = _chosen(tuple(_columns(model, part) for part in robot.observation), observe)
        if model.nu == p and sum(len(kind.names) for kind in columns) == n:
            return AxisNames(tuple(actuator_name(model, i) for i in range(p)), columns)
    own = _written(definition)
    if own and len(own.rows) == p and sum(len(kind.names) for kind in _chosen(own.columns, observe)) == n:
        return AxisNames(own.rows, _chosen(own.columns, observe))
    kind = definition.get("actions", {}).get("kind") if isinstance(definition.get("actions"), dict) else None
    rows = tuple(f"choice {i}" if kind == "discrete" else f"a{i}" for i in range(p))
    whole = Columns("observations", tuple(_named(definition.get("observation")) or ()))
    chosen = _chosen((whole,), observe)
    if sum(len(kind.names) for kind in chosen) == n:
        return AxisNames(rows, chosen)
    return AxisNames(rows, (Columns("observations", tuple(f"x{i}" for i in _indices(observe, n))),))


def written(groups: list[Group], model: Any) -> dict[str, Any]:
    """A robot's names for the definition of its task: what reads a file must not load a model that the file chooses."""
    observation = [{"title": group.title, "names": list(group.names)} for group in groups]
    return {"observation": observation, "action": [actuator_name(model, i) for i in range(model.nu)]}


def _written(definition: dict[str, Any]) -> AxisNames | None:
    """The names in a definition, of a robot's terms or by `written`; None unless they are as we write them."""
    try:
        if "robot" in definition:
            rows, groups, title = definition["robot"]["actuators"], definition["robot"]["observe"], "term"
        else:
            rows, groups, title = definition["names"]["action"], definition["names"]["observation"], "title"
        columns = tuple(Columns(_texts([group[title]])[0], _texts(group["names"])) for group in groups)
        return AxisNames(_texts(rows), columns)
    except (TypeError, KeyError):
        return None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("not a list of texts")
    return tuple(value)


def robot_groups(robot: locomotion.Locomotion, model: Any, sizes: list[int]) -> list[Group]:
    """The parts of a robot's observation with their names; entries of unusual fields are numbered."""
    groups = []
    for part, size in zip(robot.observation, sizes, strict=True):
        known = part.field in BODIES or part.field in JOINTS
        kind = _columns(model, part) if known else Columns(part.field, tuple(f"{part.field} {i}" for i in range(size)))
        groups.append(Group(part.field, kind.title, kind.names))
    return groups


def structure_groups(structure: dict[str, Any], n: int) -> list[Group]:
    """The same for an observation of any environment: the keys of a Dict, or x0, x1, …"""
    names = _named(structure)
    if not names or "dict" not in structure:
        return [Group("", "observations", [f"x{i}" for i in range(n)])]
    return [Group(str(key), str(key), _named(part, str(key), 1) or []) for key, part in structure["dict"]]


def _indices(observe: Any, n: int) -> list[int]:
    """The entries of the observation that the n columns are."""
    try:
        found = subset.to_indices(observe, 10**9) if isinstance(observe, str) and subset.size(observe) == n else None
    except ValueError:
        found = None
    return list(range(n)) if found is None else found


def _chosen(columns: tuple[Columns, ...], observe: Any) -> tuple[Columns, ...]:
    """The columns of a subset of the observation; none of them if it does not fit."""
    if observe is None:
        return columns
    total = sum(len(kind.names) for kind in columns)
    try:
        left = set(subset.to_indices(observe, total))
    except (ValueError, TypeError, AttributeError):
        return ()
    parts, at = [], 0
    for kind in columns:
        parts.append(Columns(kind.title, tuple(name for i, name in enumerate(kind.names, at) if i in left)))
        at += len(kind.names)
    return tuple(part for part in parts if part.names)


def actuator_name(model: Any, i: int) -> str:
    """The actuator's own name, or that of its joint: half of Gymnasium's models name only joints."""
    import mujoco

    kinds = map(int, (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    joint = model.joint(int(model.actuator_trnid[i, 0])).name if int(model.actuator_trntype[i]) in kinds else ""
    return str(model.actuator(i).name or joint or f"actuator {i}")


def _columns(model: Any, part: locomotion.Slice) -> Columns:
    if part.field in BODIES:
        title, parts = BODIES[part.field]
        names = [f"{body_name(model, body)} {name}" for body in range(model.nbody) for name in parts]
    else:
        title = JOINTS[part.field]
        names = _joint_names(model, part.field)
    return Columns(title, tuple(names[part.start : part.stop]))


def _joint_names(model: Any, field: str) -> list[str]:
    """A name for each entry of a field with entries for every joint."""
    import mujoco

    names = []
    for joint in range(model.njnt):
        name, kind = str(model.joint(joint).name or f"joint {joint}"), model.jnt_type[joint]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            names += [f"{name} {part}" for part in FREE[field]]
        elif kind == mujoco.mjtJoint.mjJNT_BALL:  # its rotation, without the position
            names += [f"{name} {part}" for part in FREE[field][3:]]
        else:
            names.append(name)
    return names


def body_name(model: Any, body: int) -> str:
    """Its name, or that of its first joint: some of Ant's bodies have none."""
    entry = model.body(body)
    if entry.name:
        return str(entry.name)
    if entry.jntnum[0]:
        return str(model.joint(int(entry.jntadr[0])).name)
    return f"body {body}"


def _named(structure: Any, name: str = "", depth: int = 0) -> list[str] | None:
    """The keys of a Dict observation, with an index if a key has several numbers; None if there are no names."""
    if not isinstance(structure, dict) or depth > 20:
        return None
    try:
        if "dict" in structure:
            parts = [_named(part, f"{name} {key}".strip(), depth + 1) for key, part in structure["dict"]]
            return None if any(part is None for part in parts) else [each for part in parts for each in part or ()]
        size = 1
        for axis in [structure["n"]] if "n" in structure else structure["shape"]:
            size *= int(axis)
        if not name or not 0 < size <= 10**6:
            return None
        return [name] if size == 1 else [f"{name} {i}" for i in range(size)]
    except (TypeError, ValueError, KeyError):
        return None
