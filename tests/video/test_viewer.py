"""The window, with a viewer that only takes notes: no display is needed to test what it is given."""

import contextlib
import math
import sys
import threading
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from ars import evaluate
from ars.video import viewer
from ars.video.episode import Scene, Snapshot
from small_runs import small_policy


class Viewer:
    """Stands for MuJoCo's; it is closed by the user after so many pictures."""

    def __init__(self, model: Any, data: Any, pictures: int, press: Any) -> None:
        self.model, self.data, self.left, self.press = model, data, pictures, press
        self.cam = SimpleNamespace(type=None, trackbodyid=None, distance=None, azimuth=None, elevation=None)
        self.places: list[float] = []
        self.forces: list[tuple[float, ...]] = []
        self.keys: dict[int, int] = {}  # picture → the key that the user presses
        self.texts: list[tuple[str, str]] = []
        self.closed = False
        self.thread = threading.Thread(target=lambda: None)
        self.thread.start()

    def is_running(self) -> bool:
        return self.left > 0

    def lock(self) -> Any:
        return contextlib.nullcontext()

    def set_texts(self, texts: Any) -> None:
        self.texts.append(texts[2:])

    def sync(self) -> None:
        self.left -= 1
        self.places.append(float(self.data.qpos[0]))
        self.forces.append(tuple(self.data.xfrc_applied[1]))
        if len(self.places) in self.keys:
            self.press(self.keys[len(self.places)])

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def keys() -> dict[int, int]:
    """What the user presses: picture → key."""
    return {}


@pytest.fixture
def viewers(monkeypatch: pytest.MonkeyPatch, keys: dict[int, int]) -> list[Viewer]:
    """The viewers that were opened."""
    opened: list[Viewer] = []

    def launch_passive(model: Any, data: Any, *, key_callback: Any, **_: Any) -> Viewer:
        opened.append(Viewer(model, data, 40, key_callback))
        opened[-1].keys = keys
        return opened[-1]

    fake = SimpleNamespace(launch_passive=launch_passive)
    monkeypatch.setitem(sys.modules, "mujoco.viewer", fake)
    monkeypatch.setattr(mujoco, "viewer", fake, raising=False)
    monkeypatch.setattr(viewer.time, "sleep", lambda _: None)  # as fast as can be
    return opened


def test_episodes_follow_each_other_until_the_window_is_closed(viewers: list[Viewer]) -> None:
    policy = small_policy("Hopper-v1")
    measured = evaluate(policy, episodes=50, seed=2)
    rewards = viewer.show(policy, None, seconds=None, seed=2)
    assert len(rewards) >= 1
    assert rewards == list(measured.rewards[: len(rewards)])
    (shown,) = viewers  # one window for all of them
    assert shown.closed
    assert len(shown.places) == 40
    assert len(np.unique(shown.places)) > 20
    assert shown.texts[0] == ("speed\nreward\ntime", "\n0\n0.0 s")
    assert (shown.cam.trackbodyid, shown.cam.distance) == (1, 3.0)


@pytest.mark.parametrize("task", ["Walker2d-v5", "Quadruped-v1"])  # an environment, and a robot of terms
def test_arrow_keys_push_the_robot(
    viewers: list[Viewer], keys: dict[int, int], task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer, "LATEST", math.inf)  # all pictures, also while the robot's loop is compiled
    policy = small_policy(task, size=0.0)
    keys |= {1: 262, 9: 265, 10: ord("A")}
    viewer.show(policy, task, seconds=None, seed=0)
    pushed = viewers[0]
    weight = pushed.model.body_subtreemass[1] * 9.81
    along_x, along_y = ([force[axis] for force in pushed.forces] for axis in (0, 1))
    assert max(along_x) == max(along_y) == pytest.approx(0.5 * weight)
    shown = 0.1 / (5 * 0.008 if task == "Walker2d-v5" else 2 * 0.02)  # pictures in 0.1 s
    assert np.count_nonzero(along_x) in (int(shown), int(shown) + 1)
    assert np.flatnonzero(along_x)[0] == 1  # the picture after the key
    assert np.flatnonzero(along_y)[0] == 9
    assert not any(any(force[2:]) for force in pushed.forces)
    keys.clear()
    viewer.show(policy, task, seconds=None, seed=0)
    assert not np.any(viewers[1].forces)
    assert pushed.places[0] == viewers[1].places[0]
    assert max(pushed.places[5:9]) > max(viewers[1].places[5:9]) + 0.02  # it went where it was pushed


def test_the_right_key_is_plus_x_and_a_push_ends_with_its_episode() -> None:
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body/><body><freejoint/><geom size='0.1' mass='2'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    scene = Scene("mine:ball", SimpleNamespace(model=model, data=data), dt=0.05)
    pushes = viewer._Pushes()

    def at(step: int) -> list[float]:
        pushes.update(scene, Snapshot(step, 0.05 * step, 0.0, None, ()))
        return [round(float(value), 6) for value in data.xfrc_applied[2, :2]]

    found = {}
    for key in viewer.ARROWS:
        pushes.key(key)
        found[key] = at(1)
    assert found == {262: [9.81, 0.0], 263: [-9.81, 0.0], 264: [0.0, -9.81], 265: [0.0, 9.81]}  # one replaces the last
    data.xfrc_applied[2, 0] += 1.0  # of the task's own
    assert at(2) == [1.0, 9.81]
    assert at(3) == [1.0, 0.0]
    pushes.key(262)
    assert at(4) == [10.81, 0.0]
    mujoco.mj_resetData(model, data)
    assert at(0) == [0.0, 0.0]
    assert at(9) == [0.0, 0.0]


def test_seconds_close_the_window(viewers: list[Viewer]) -> None:
    assert viewer.show(small_policy("Swimmer-v5"), None, seconds=1e-9, seed=0) == []


def test_a_display_that_does_not_answer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer.sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert not viewer.has_display()
    monkeypatch.setenv("DISPLAY", ":4711")
    assert not viewer.has_display()
    monkeypatch.setattr(viewer, "_display_answers", lambda: True)
    assert viewer.has_display()
    monkeypatch.setattr(viewer.sys, "platform", "darwin")
    assert not viewer.has_display()
