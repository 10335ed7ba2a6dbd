"""Films of any robot: the camera and the feet are found from the model, and what a bare model lacks is added."""

import sys
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from ars.errors import TaskError
from ars.noise import Key, Stream
from ars.tasks.robots.quadruped import QUADRUPED
from ars.video import camera
from ars.video.camera import Camera, is_software
from ars.video.episode import Scene, Snapshot, play
from ars.video.film import draw_figures, film
from ars.video.framing import Shot, find_feet, find_shot, named_feet
from ars.video.user_robot import WatchedRobot
from small_runs import small_policy

BOX = """
<mujoco>
  <worldbody>
    <geom type="plane" size="{floor} 5 1"/><geom type="box" size="1 1 1" pos="30 0 0"/>
    <body name="box" pos="2 0 0.5">
      <freejoint/><geom type="box" size="0.3 0.2 0.1" rgba="1 0.1 0 1"/>
      <body><joint axis="1 1 0"/><geom type="sphere" size="0.1"/></body>
    </body>
    <body pos="0 9 0"><freejoint/><geom size="1"/></body>
  </worldbody>
</mujoco>"""


def state(text: str) -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("floor", [1, 500])
def test_the_camera_is_placed_by_the_robot_alone(floor: int) -> None:
    """Neither by the floor, nor by other things that stand or roll about."""
    model, data = state(BOX.format(floor=floor))
    shot = find_shot(model, data)
    assert shot
    assert shot.distance == pytest.approx(3.0 * np.linalg.norm([0.3, 0.2, 0.1]))
    assert shot.height == pytest.approx(0.5)
    data.qpos[7] = 0.7  # a sphere is as large from everywhere
    mujoco.mj_forward(model, data)
    assert find_shot(model, data) == shot


def test_a_model_in_which_nothing_moves_has_no_shot() -> None:
    model, data = state("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    assert find_shot(model, data) is None
    assert find_feet(model, data) == []


def red(picture: Any) -> tuple[Any, Any]:
    """Rows and columns of the robot."""
    return np.nonzero(picture[..., 0].astype(int) - picture[..., 2] > 60)


def test_a_bare_model_is_large_in_the_picture_and_has_a_floor_and_a_sky(opengl: None) -> None:
    model, data = state(BOX.format(floor=500))
    with Camera(model, find_shot(model, data), width=120, height=80) as lens:
        for x, z in ((0.0, 0.5), (77.3, 0.5), (3.0, 8.5), (3.0, -9.0)):  # it may climb, and fall
            data.qpos[:3] = x, 0.0, z
            mujoco.mj_forward(model, data)
            lens.picture(data)
            picture = lens.picture(data, seconds=100.0)
            rows, columns = red(picture)
            assert 0.1 < len(rows) / picture[..., 0].size < 0.5
            assert abs(rows.mean() - 40) < 15
            assert abs(columns.mean() - 60) < 8
        data.qpos[:3] = 0.0, 0.0, 0.5
        mujoco.mj_forward(model, data)
        picture = lens.picture(data, seconds=100.0)
        assert picture[0].min() > 100  # no black sky
        assert picture[40:, :10].std(axis=(0, 1)).max() > 3  # squares


MESH = '<asset><mesh name="m" vertex="-.3 -.2 -.1  .3 -.2 -.1  .3 .2 -.1  -.3 .2 -.1  0 0 .1"/></asset><worldbody>'


@pytest.mark.parametrize("mesh", [False, True])
def test_where_software_renders_shadows_are_flat(opengl: None, monkeypatch: pytest.MonkeyPatch, mesh: bool) -> None:
    text = BOX.format(floor=5)
    if mesh:
        text = text.replace("<worldbody>", MESH).replace('"box" size="0.3 0.2 0.1"', '"mesh" mesh="m"')
    model, data = state(text)
    data.qpos[2] = 0.2
    mujoco.mj_forward(model, data)
    pictures = {}
    for software in (True, False):
        monkeypatch.setattr(camera, "is_software", lambda software=software: software)
        with Camera(model, find_shot(model, data), width=120, height=80) as lens:
            pictures[software] = lens.picture(data)
            flags, kinds = lens._scene.flags, mujoco.mjtRndFlag
            assert bool(flags[kinds.mjRND_SHADOW]) is bool(flags[kinds.mjRND_REFLECTION]) is not software
    dark = {software: (picture.max(axis=2) < 90).sum() for software, picture in pictures.items()}
    assert dark[True] > 50  # shadows either way
    assert dark[False] > 50


@pytest.mark.parametrize(
    ("renderer", "software"),
    [(b"llvmpipe (LLVM 15.0.6, 256 bits)", True), (b"softpipe", True), (b"Google SwiftShader", True),
     (b"NVIDIA GeForce RTX 3060/PCIe/SSE2", False), (b"", False), (None, False)],
)  # fmt: skip
def test_renderers_are_known_by_name(renderer: bytes | None, software: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gl = SimpleNamespace(GL_RENDERER=7937, glGetString=lambda _: renderer)
    monkeypatch.setitem(sys.modules, "OpenGL.GL", gl)
    assert is_software() is software
    monkeypatch.setitem(sys.modules, "OpenGL.GL", None)  # not to be imported
    assert not is_software()


# -- feet -------------------------------------------------------------------------------------------------------------

BIPED = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 1">
      <freejoint/><geom size="0.1"/>
      <body name="arm" pos="0 0.3 0"><joint/><geom name="hand" size="0.05"/></body>
      <body name="right" pos="0 -0.1 -0.5">
        <joint name="knee"/><geom type="capsule" size="0.04 0.2"/>
        <body pos="0 0 -0.45">
          <joint name="ankle"/><geom name="heel" size="0.03" pos="-0.1 0 0"/><geom size="0.03" pos="0.1 0 0.02"/>
          <geom size="0.03" pos="0.1 0 0.3"/>
          <body><geom size="0.02" contype="0" conaffinity="0"/></body>
        </body>
      </body>
      <body name="left" pos="0 0.1 -0.9"><joint/><geom name="wheel" size="0.08"/></body>
    </body>
  </worldbody>
</mujoco>"""


def test_feet_that_nobody_declares() -> None:
    model, data = state(BIPED)
    feet = {
        name: [round(float(data.geom_xpos[geom, 2]), 2) for geom in geoms] for name, geoms in find_feet(model, data)
    }
    assert feet == {"ankle": [0.05, 0.07], "wheel": [0.1]}
    model, data = state(BIPED.replace('type="plane"', 'type="plane" contype="0" conaffinity="0"'))
    assert find_feet(model, data) == []  # nothing to stand on


def test_the_quadrupeds_feet_are_found_and_declared_alike() -> None:
    model = QUADRUPED.load()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert sorted(find_feet(model, data)) == sorted(named_feet("Quadruped-v1", model, QUADRUPED.feet))
    assert named_feet("Quadruped-v1", model, "FR_foot") == [("FR_foot", [model.geom("FR_foot").id])]
    for wrong in (("FR_foot", "FR_paw"), 7):
        with pytest.raises(TaskError, match=r"mine: its foot .* is not a geom of the model: floor, trunk_left"):
            named_feet("mine", model, wrong)


def test_a_description_of_ones_own_has_feet() -> None:
    scenes: list[Scene] = []
    play(small_policy("Walker2d-v5"), "film_envs:walker", lambda scene, _: scenes.append(scene), seconds=0.1)
    assert scenes[0].feet == ("foot_geom", "foot_left_geom")
    assert scenes[0].commanded is None


# -- what the pictures say --------------------------------------------------------------------------------------------


class Frames:
    """A writer that counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, frame: Any, seconds: float) -> None:
        self.count += 1

    def close(self) -> None: ...

    def cancel(self) -> None: ...


def test_a_film_of_the_quadruped(opengl: None) -> None:
    frames, shares = Frames(), list[float]()
    _, trace = film(
        small_policy("Quadruped-v1"), None, [frames], seconds=0.2, width=96, height=64, progress=shares.append
    )
    assert (trace.feet, trace.commanded) == (QUADRUPED.feet, 0.8)
    assert frames.count == 6
    assert shares == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert len(trace.snapshots[0].contacts) == 4
    assert any(any(snapshot.contacts) for snapshot in trace.snapshots)


def test_watching_leaves_the_episode_as_it_is() -> None:
    """To find the feet, the robot is put at a start; the episode begins at its own."""
    policy, snapshots = small_policy("Quadruped-v1", size=0.1), list[Snapshot]()
    play(policy, None, lambda _, snapshot: snapshots.append(snapshot), seed=3, k=1, seconds=0.3)
    watched = WatchedRobot(QUADRUPED, "Quadruped-v1", lambda *_: None, "all")
    key = Key(3, Stream.TEST, 0, 1)
    again = [watched.rollout(policy, key, H=15, shift=0.0, gather=False).reward for _ in range(2)]
    assert again == [snapshots[-1].reward] * 2
    assert isinstance(watched.scene.shot, Shot)


def test_speed_as_commanded_and_feet_are_drawn() -> None:
    def drawn(contacts: tuple[bool, ...], feet: tuple[str, ...], commanded: float | None = None) -> Any:
        frame = Image.new("RGB", (480, 320), (90, 120, 90))
        draw_figures(frame, Snapshot(1, 0.1, 0.0, 0.5, contacts), feet, commanded)
        return (np.asarray(frame) == 255).all(axis=2)

    up, down = drawn((False, False), ("left", "right")), drawn((True, False), ("left", "right"))
    assert not up[30:280].any()
    more = np.nonzero(down[:30] & ~up[:30])[1]
    assert len(more) > 40
    assert more.max() < 240  # the left half
    unnamed = drawn((True,) * 12, tuple(f"a foot with a name {i}" for i in range(12)))
    assert 0 < unnamed[:30].sum() < 12 * 150
    plain, told = drawn((), ()), drawn((), (), 0.8)
    assert told[280:, :150].sum() > 1.5 * plain[280:, :150].sum()
    assert not plain[:280].any()
