"""The mirror of a robot, from its MuJoCo model and the pairs of limbs that its description declares.

Reflection is at the plane y = 0: y of a vector changes its sign, as do x and z of an axial vector (ω, torques) and Ixy
and Iyz of an inertia.
"""

from typing import Any

import numpy as np

from ars.errors import TaskError
from ars.mirror import Mirror
from ars.tasks.locomotion import Locomotion, observed

VECTOR, AXIAL = (1, -1, 1), (-1, 1, -1)
QUATERNION = (1, -1, 1, -1)
BODIES = {
    "cinert": (1, 1, 1, -1, 1, -1, 1, -1, 1, 1),
    "cvel": (*AXIAL, *VECTOR),
    "cfrc_ext": (*AXIAL, *VECTOR),
    "xpos": VECTOR,
    "subtree_com": VECTOR,
}
FREE = {"qpos": (*VECTOR, *QUATERNION), "qvel": (*VECTOR, *AXIAL)}  # of a free joint; a ball joint has its rotation
FREE["qfrc_actuator"] = FREE["qvel"]


def mirror_of(task: Locomotion, model: Any, data: Any) -> Mirror:
    """The signed permutations of the whole observation and of the actions."""
    if not task.mirror:
        raise TaskError(f"mirror = True is not possible for {task.name}: it has no left and right side.")
    bodies = _bodies(task, model)
    joints = _joints(task, model, bodies)
    observation: list[int] = []
    for part, source in zip(task.observation, observed(task, data), strict=True):
        if part.field in BODIES:
            signs = BODIES[part.field]
            field = [_entry(s, body * len(signs) + i) for body in bodies for i, s in enumerate(signs)]
        elif part.field in FREE:
            field = _of_joints(model, part.field, joints)
        else:
            raise TaskError(
                f"mirror = True is not possible for {task.name}: the mirror image of {part.field} is unknown."
            )
        moved = len(observation) - part.start
        observation += [entry + (moved if entry > 0 else -moved) for entry in field[part.start :]]
        if len(observation) != moved + part.start + len(source):
            raise TaskError(f"{task.name} observes {part.field} in an unexpected size.")
    try:
        return Mirror(tuple(observation), tuple(_actuators(task, model, joints)))
    except ValueError as error:
        raise _refusal(task, str(error)) from error


def _refusal(task: Locomotion, why: str) -> TaskError:
    return TaskError(f"mirror = {task.mirror} of {task.name} does not describe its model: {why}.")


def _entry(sign: float, index: int) -> int:
    return index + 1 if sign > 0 else -(index + 1)


def _bodies(task: Locomotion, model: Any) -> list[int]:
    """The mirror image of each body: the declared pairs and, child by child, what hangs on them."""
    names = {model.body(body).name: body for body in range(model.nbody)}
    children: list[list[int]] = [[] for _ in range(model.nbody)]
    for body in range(1, model.nbody):
        children[model.body_parentid[body]].append(body)
    images = list(range(model.nbody))
    for pair in task.mirror:
        if odd := [name for name in pair if name not in names]:
            raise _refusal(task, f"there is no body {odd[0]}")
        left = [(names[pair[0]], names[pair[1]])]
        while left:
            one, other = left.pop()
            images[one], images[other] = other, one
            if len(children[one]) != len(children[other]):
                raise _refusal(task, f"{pair[0]} and {pair[1]} have different limbs")
            left += zip(children[one], children[other], strict=True)
    for body, image in enumerate(images):
        position, quaternion = model.body_pos[body] * VECTOR, model.body_quat[body] * QUATERNION
        turned = abs(float(quaternion @ model.body_quat[image]))
        if not np.allclose(position, model.body_pos[image], atol=1e-6) or abs(turned - 1.0) > 1e-6:
            raise _refusal(task, f"body {body} lies elsewhere than the mirror image of body {image}")
    return images


def _joints(task: Locomotion, model: Any, bodies: list[int]) -> list[tuple[int, float]]:
    """The mirror image of each joint, and the sign of its angle or path; 1 for free and ball joints."""
    import mujoco

    images = []
    for joint in range(model.njnt):
        body = model.jnt_bodyid[joint]
        image = int(model.body_jntadr[bodies[body]] + joint - model.body_jntadr[body])
        kind = mujoco.mjtJoint(model.jnt_type[joint])
        if model.body_jntnum[bodies[body]] != model.body_jntnum[body] or mujoco.mjtJoint(model.jnt_type[image]) != kind:
            raise _refusal(task, f"joint {joint} has no counterpart")
        sign = 1.0
        if kind in (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE):
            flip = VECTOR if kind == mujoco.mjtJoint.mjJNT_SLIDE else AXIAL
            sign = float((model.jnt_axis[joint] * flip) @ model.jnt_axis[image])
            if abs(abs(sign) - 1.0) > 1e-6:
                raise _refusal(task, f"joint {joint} turns about another axis than the mirror image of joint {image}")
        images.append((image, sign))
    return images


def _of_joints(model: Any, field: str, joints: list[tuple[int, float]]) -> list[int]:
    """The mirror of a field with entries for every joint."""
    import mujoco

    addresses = model.jnt_qposadr if field == "qpos" else model.jnt_dofadr
    entries = []
    for joint, (image, sign) in enumerate(joints):
        kind = mujoco.mjtJoint(model.jnt_type[joint])
        own: tuple[float, ...] = (sign,)
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            own = FREE[field] if kind == mujoco.mjtJoint.mjJNT_FREE else FREE[field][3:]
        entries += [_entry(s, int(addresses[image]) + i) for i, s in enumerate(own)]
    return entries


def _actuators(task: Locomotion, model: Any, joints: list[tuple[int, float]]) -> list[int]:
    """The mirror of the actions: the motor of the mirrored joint."""
    moved = [int(model.actuator_trnid[i, 0]) for i in range(model.nu)]
    entries = []
    for i, joint in enumerate(moved):
        image, sign = joints[joint]
        if moved.count(joint) != 1 or moved.count(image) != 1:
            raise _refusal(task, f"joint {joint} or joint {image} does not have one motor")
        other = moved.index(image)
        entries.append(_entry(sign * model.actuator_gear[i, 0] * model.actuator_gear[other, 0], other))
    return entries
