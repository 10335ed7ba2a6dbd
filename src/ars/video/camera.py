"""MuJoCo's offscreen renderer: a camera that follows a robot through a restyled scene.

The camera has its own copy of the model with another floor, sky and light; the simulation is not affected.
"""

import copy
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import ArsError
from ars.video.dressing import FLOOR_DARK, FLOOR_LIGHT, SKY_HORIZON, SKY_TOP, Dressing, has_texture
from ars.video.framing import Shot, root

Image = NDArray[np.uint8]

PACKAGES = "libegl1 libgl1-mesa-dri"  # Debian's, for EGL without a graphics card
SOFTWARE = ("llvmpipe", "softpipe", "swiftshader", "software rasterizer")  # in the names of renderers
SECONDS_TO_FOLLOW = 0.4  # the camera follows slowly in height; otherwise the horizon would shake with each step


class FilmError(ArsError):
    """No film can be made; the message gives the reason."""


def check_opengl() -> None:
    """Import MuJoCo, which loads the library of MUJOCO_GL and may fail in many ways."""
    try:
        import mujoco  # noqa: F401
    except Exception as error:  # PyOpenGL raises many kinds
        raise FilmError(_without_opengl(error)) from error


class Camera:
    """Pictures of a MuJoCo simulation; close it, or use it in a with statement."""

    def __init__(self, model: Any, shot: Shot | None, *, width: int, height: int) -> None:
        import mujoco

        self._shot = shot or Shot(1.6 * float(model.stat.extent), float(model.stat.center[2]))
        self._model = restyle(model, self._shot, width, height)
        self._body = root(model)
        self._context = _gl_context(width, height)
        try:
            self._context.make_current()
            software = is_software()
            if software:  # coarser round shapes, whose edges cannot be seen at the size of a film
                self._model.vis.quality.numslices, self._model.vis.quality.numstacks = 16, 10
            self._mjr = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._mjr)
        except Exception as error:
            self._context.free()
            raise FilmError(_without_opengl(error)) from error
        self._rectangle = mujoco.MjrRect(0, 0, width, height)
        self._scene = mujoco.MjvScene(self._model, maxgeom=2000)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = True
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = not software
        self._dressing = Dressing(self._model, self._shot, flat_shadows=software)
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        self._camera.distance, self._camera.azimuth = self._shot.distance, self._shot.azimuth
        self._camera.elevation = self._shot.elevation
        self._lift: float | None = None

    def picture(self, data: Any, seconds: float = 0.0) -> Image:
        """(height, width, 3) of the state in `data`; `seconds` since the last picture."""
        import mujoco

        x, y, z = np.nan_to_num(data.subtree_com[self._body]).tolist()  # a simulation may diverge
        rise, slack = z - self._shot.height, self._shot.slack
        wanted = rise - min(max(rise, -slack), slack)
        keep = np.exp(-seconds / SECONDS_TO_FOLLOW)
        self._lift = wanted if self._lift is None else float(keep * self._lift + (1 - keep) * wanted)
        self._camera.lookat[:] = x, y, self._shot.height + self._lift
        self._context.make_current()
        mujoco.mjv_updateScene(
            self._model, data, self._option, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL.value, self._scene
        )
        self._dressing.add(self._scene, data, x, y)
        mujoco.mjr_render(self._rectangle, self._scene, self._mjr)
        pixels = np.empty((self._rectangle.height, self._rectangle.width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._rectangle, self._mjr)
        return pixels[::-1]  # OpenGL's rows start at the bottom

    def close(self) -> None:
        self._context.make_current()
        self._mjr.free()
        self._context.free()

    def __enter__(self) -> "Camera":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _kind() -> str:
    """MUJOCO_GL, as usual with MuJoCo; by default EGL, which needs no display."""
    return os.environ.get("MUJOCO_GL", "").strip().lower() or "egl"


def _gl_context(width: int, height: int) -> Any:
    kind = _kind()
    try:
        if kind == "egl":
            from mujoco.egl import GLContext
        elif kind == "osmesa":
            from mujoco.osmesa import GLContext
        elif kind in ("glfw", "glx"):
            from mujoco.glfw import GLContext
        else:
            raise FilmError(f"MUJOCO_GL = {kind!r} draws no pictures: unset it, or set it to egl.")
        return GLContext(width, height)
    except FilmError:
        raise
    except Exception as error:  # PyOpenGL raises AttributeError, ImportError and its own if a library is missing
        raise FilmError(_without_opengl(error)) from error


def is_software() -> bool:
    """Whether the processor draws, in the current context."""
    try:
        from OpenGL.GL import GL_RENDERER, glGetString

        name = (glGetString(GL_RENDERER) or b"").decode(errors="replace").lower()
    except Exception:  # of many kinds, as above; then nobody knows
        return False
    return any(word in name for word in SOFTWARE)


def _without_opengl(error: Exception) -> str:
    kind, reason = _kind(), " ".join(str(error).split()).rstrip(".")
    packages = "libosmesa6" if kind == "osmesa" else PACKAGES
    return f"Pictures need OpenGL ({kind}), which does not work here ({reason}): try `apt-get install {packages}`."


def restyle(model: Any, shot: Shot | None, width: int, height: int) -> Any:
    """A copy of the model with an infinite floor, a calm sky and soft light."""
    import mujoco

    model = copy.copy(model)
    if shot and shot.extent:
        model.stat.extent = shot.extent
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    model.vis.quality.offsamples, model.vis.quality.shadowsize = 4, 1024
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.45, 0.35
    model.vis.headlight.specular[:] = 0.1
    model.vis.rgba.haze[:] = *SKY_HORIZON, 1.0
    model.vis.map.haze = 0.5
    model.light_diffuse[:] = np.minimum(model.light_diffuse, 0.7)
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
        model.geom_size[geom, :2] = 0.0  # infinite: robots outrun the 40 m of the files
        model.geom_rgba[geom] = 1.0 if has_texture(model, int(geom)) else (*FLOOR_LIGHT, 1.0)
        if (material := int(model.geom_matid[geom])) >= 0:
            model.mat_texuniform[material], model.mat_texrepeat[material] = True, 0.5  # squares of one metre
            model.mat_specular[material] = 0.0
    model.mat_reflectance[:] = 0.0  # mirrors draw everything twice
    for texture in range(model.ntex):
        _paint(model, texture)
    return model


def _paint(model: Any, texture: int) -> None:
    """Recolour the sky and a checked floor; leave other textures unchanged."""
    import mujoco

    start, channels = int(model.tex_adr[texture]), int(model.tex_nchannel[texture])
    shape = int(model.tex_height[texture]), int(model.tex_width[texture]), channels
    pixels = model.tex_data[start : start + int(np.prod(shape))].reshape(shape)  # a view
    if channels < 3:
        return
    kind = model.tex_type[texture]
    if kind == mujoco.mjtTexture.mjTEXTURE_SKYBOX:
        dark, light = SKY_TOP, SKY_HORIZON
    elif kind == mujoco.mjtTexture.mjTEXTURE_2D and "plane" in model.texture(texture).name:
        dark, light = FLOOR_DARK, FLOOR_LIGHT
    else:
        return
    brightness = pixels[..., :3].mean(axis=2, dtype=np.float64)
    low, high = brightness.min(), brightness.max()
    share = ((brightness - low) / (high - low or 1.0))[..., None]
    pixels[..., :3] = (255 * ((1 - share) * np.array(dark) + share * np.array(light))).astype(np.uint8)
