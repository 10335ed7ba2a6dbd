"""What the camera adds to a scene for the eye: sky, squares on the floor and a sun if the model has none, and flat
shadows where software renders, which takes twice as long with MuJoCo's own."""

import math
from typing import Any

import numpy as np

from ars.video.framing import Shot

SKY_TOP, SKY_HORIZON = (0.30, 0.45, 0.62), (0.83, 0.89, 0.94)
FLOOR_DARK, FLOOR_LIGHT = (0.44, 0.51, 0.57), (0.54, 0.61, 0.66)
SHADOW = (0.22, 0.27, 0.31)
LIGHT = np.array([0.19, 0.29, -0.94])  # down, from behind the camera
REACH = 8  # squares in each direction
FLATTEN = 1e-3  # a little thickness keeps the surfaces' directions defined


class Dressing:
    """For one model; `add` is called for every picture, because MuJoCo makes the scene anew."""

    def __init__(self, model: Any, shot: Shot, *, flat_shadows: bool) -> None:
        import mujoco

        self._model, self._shot = model, shot
        floor = [
            int(geom) for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
            if model.geom_bodyid[geom] == 0 and abs(model.geom_quat[geom, 1:3]).max() < 1e-3
        ]  # fmt: skip
        self._floor = float(model.geom_pos[floor[0], 2]) if floor else None
        self._bare_floor = [geom for geom in floor if not has_texture(model, geom)]
        self._bare_sky = mujoco.mjtTexture.mjTEXTURE_SKYBOX not in model.tex_type
        moves = model.body_weldid[model.geom_bodyid] > 0
        seen = moves & (model.geom_group < 3) & (model.geom_rgba[:, 3] > 0.9)
        self._shaded = np.flatnonzero(seen).tolist() if flat_shadows and self._floor is not None else []

    def add(self, scene: Any, data: Any, x: float, y: float) -> None:
        """The robot is at (x, y)."""
        if self._bare_floor:
            self._add_squares(scene, x, y)
        if self._bare_sky:
            self._add_wall(scene, x, y)
        if self._shaded:
            self._add_shadows(scene, data)
        if all(light.headlight for light in scene.lights[: scene.nlight]):
            _add_sun(scene)
        for light in scene.lights[: scene.nlight]:  # move the shadows along
            if not light.headlight:
                light.pos[:], light.dir[:] = (x - 1.0, y - 1.5, 5.0), LIGHT

    def _add_squares(self, scene: Any, x: float, y: float) -> None:
        """The dark ones. They are of a metre, or of a tenth or ten times that if the robot is as small or as large."""
        import mujoco

        side = 10.0 ** round(math.log10(self._shot.distance / 2))
        column, row = math.floor(x / side), math.floor(y / side)
        size, above = np.array([side / 2, side / 2, 1.0]), 1e-4 * self._shot.distance
        for i in range(column - REACH, column + REACH):
            for j in range(row - REACH, row + REACH):
                if (i + j) % 2 == 0:
                    at = np.array([(i + 0.5) * side, (j + 0.5) * side, (self._floor or 0.0) + above])
                    _add(scene, mujoco.mjtGeom.mjGEOM_PLANE, size, at, np.eye(3), FLOOR_DARK)

    def _add_wall(self, scene: Any, x: float, y: float) -> None:
        """The sky: a wall behind all that is seen."""
        import mujoco

        angle = math.radians(self._shot.azimuth)
        ahead = np.array([math.cos(angle), math.sin(angle), 0.0])
        far = 0.5 * self._model.vis.map.zfar * self._model.stat.extent
        facing = np.column_stack([[ahead[1], -ahead[0], 0.0], [0.0, 0.0, 1.0], -ahead])
        at = np.array([x, y, 0.0]) + far * ahead
        _add(scene, mujoco.mjtGeom.mjGEOM_PLANE, np.array([2 * far, 2 * far, 1.0]), at, facing, SKY_HORIZON)

    def _add_shadows(self, scene: Any, data: Any) -> None:
        """The robot's geoms again, pressed onto the floor along the light; of meshes the ellipsoids in their boxes."""
        import mujoco

        model, floor = self._model, self._floor or 0.0
        press = np.eye(3)
        press[:, 2] = -LIGHT[0] / LIGHT[2], -LIGHT[1] / LIGHT[2], FLATTEN
        above = np.array([0.0, 0.0, floor + FLATTEN * self._shot.distance])
        for geom in self._shaded:
            kind, size = int(model.geom_type[geom]), model.geom_size[geom]
            turn, at = data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom]
            if kind == mujoco.mjtGeom.mjGEOM_MESH:
                kind, size = int(mujoco.mjtGeom.mjGEOM_ELLIPSOID), model.geom_aabb[geom, 3:]
                at = at + turn @ model.geom_aabb[geom, :3]
            _add(scene, kind, size, press @ (at - [0.0, 0.0, floor]) + above, press @ turn, SHADOW)


def _add(scene: Any, kind: int, size: Any, at: Any, turn: Any, colour: tuple[float, ...]) -> None:
    """A geom for this picture; none if the scene is full."""
    import mujoco

    if scene.ngeom < scene.maxgeom:
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(geom, kind, size, at, turn.ravel(), np.array([*colour, 1.0], dtype=np.float32))
        geom.category, geom.specular = mujoco.mjtCatBit.mjCAT_DECOR, 0.0
        scene.ngeom += 1


def _add_sun(scene: Any) -> None:
    import mujoco

    light = scene.lights[scene.nlight]
    light.headlight, light.castshadow = False, True
    if hasattr(light, "directional"):  # before MuJoCo 3.3.3
        light.directional = True
    else:
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    light.ambient[:], light.diffuse[:], light.specular[:], light.attenuation[:] = 0.0, 0.5, 0.1, (1.0, 0.0, 0.0)
    scene.nlight += 1


def has_texture(model: Any, geom: int) -> bool:
    material = int(model.geom_matid[geom])
    return material >= 0 and bool((model.mat_texid[material] >= 0).any())
