"""What the terms of a robot see: named views of MjData, the action, and the time.

Positions, velocities and `ctrl` are those after the step. What MuJoCo computes from them (x…, site_x…, cvel,
subtree_com) is brought up to date after each control step; forces, accelerations and sensors of them are those of the
last physics step, one physics step old, because `mj_step` computes them before it moves. Sensors of positions and
velocities are up to date, except with the integrator RK4.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class State(NamedTuple):
    """The argument `s` of every term. Terms read it, and must not write to it."""

    qpos: FloatArray  # (nq,)
    qvel: FloatArray  # (nv,)
    ctrl: FloatArray  # (nu,), what the actuators were told
    actuator_force: FloatArray  # (nu,), after the limits of their force
    qfrc_actuator: FloatArray  # (nv,)
    sensordata: FloatArray  # (nsensordata,)
    xpos: FloatArray  # (nbody, 3), of the bodies' frames, in the world
    xmat: FloatArray  # (nbody, 9), their rotation, rows first
    xipos: FloatArray  # (nbody, 3), of the bodies' centres of mass
    subtree_com: FloatArray  # (nbody, 3)
    cvel: FloatArray  # (nbody, 6), angular velocity in the world, then linear at subtree_com of the tree's root
    cfrc_ext: FloatArray  # (nbody, 6), torque and force from contacts
    site_xpos: FloatArray  # (nsite, 3)
    site_xmat: FloatArray  # (nsite, 9)
    gravity: FloatArray  # (3,), of the model, m/s²
    action: FloatArray  # (p,), of this step, after its limits
    last_action: FloatArray  # (p,), of the step before; zeros at first
    t: float  # seconds since the start of the episode
    step: int  # control steps since the start
    dt: float  # seconds per control step


VIEWS = State._fields[: State._fields.index("gravity")]  # fields of MjData


def views(model: Any, data: Any) -> dict[str, FloatArray]:
    """The arrays of a State that belong to MuJoCo, each with one or two dimensions."""
    found = {name: getattr(data, name) for name in VIEWS}
    return {**found, "gravity": model.opt.gravity}
