"""The window, with a viewer that only takes notes: no display is needed to test what it is given."""

import contextlib
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ars import evaluate
from ars.video import viewer
from small_runs import small_policy


class Viewer:
    """Stands for MuJoCo's; it is closed by the user after so many pictures."""

    def __init__(self, model: Any, data: Any, pictures: int) -> None:
        self.model, self.data, self.left = model, data, pictures
        self.cam = SimpleNamespace(type=None, trackbodyid=None, distance=None, azimuth=None, elevation=None)
        self.places: list[float] = []
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

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def viewers(monkeypatch: pytest.MonkeyPatch) -> list[Viewer]:
    """The viewers that were opened."""
    import mujoco

    opened: list[Viewer] = []

    def launch_passive(model: Any, data: Any, **_: Any) -> Viewer:
        opened.append(Viewer(model, data, pictures=40))
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
