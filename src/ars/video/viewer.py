"""A live window that shows a policy, episode after episode, until it is closed."""

import math
import os
import sys
import threading
import time
import warnings
from typing import Any

from ars.errors import ArsError
from ars.policy import LinearPolicy
from ars.video.camera import FilmError, restyle
from ars.video.episode import Scene, Snapshot, play
from ars.video.film import check_seconds, stride
from ars.video.framing import root

LATEST = 0.1  # seconds behind the clock; later pictures are skipped


class _Closed(ArsError):
    """The user has closed the window, or its time is over."""


def has_display() -> bool:
    """Whether a window can open. On macOS, where MuJoCo's viewer needs its own Python, films are made instead."""
    if sys.platform == "win32":
        return True
    return sys.platform == "linux" and any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))) and _display_answers()


def _display_answers() -> bool:
    """Whether the display is reachable: otherwise MuJoCo's viewer would end the whole process."""
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GLFW reports its errors as warnings
        answers = bool(glfw.init())
        glfw.terminate()
    return answers


def show(policy: LinearPolicy, task: str | None, *, seconds: float | None, seed: int) -> list[float]:
    """Open the window, for `seconds` or until it is closed; returns the rewards of the episodes that ended in it."""
    if seconds is not None:
        check_seconds(seconds)
    window = _Window(math.inf if seconds is None else seconds)
    rewards: list[float] = []
    try:
        while True:
            rollout = play(policy, task, window.watch, seed=seed, k=len(rewards), render_mode="human")
            rewards.append(rollout.reward)
    except (_Closed, KeyboardInterrupt):
        return rewards
    finally:
        window.close()


class _Window:
    """MuJoCo's viewer, which follows the robot in real time; other environments open and pace their own window.

    The viewer has its own model and gets a copy of every state, so clicks in it cannot affect the episode."""

    def __init__(self, seconds: float) -> None:
        self._viewer: Any = None
        self._model: Any = None
        self._data: Any = None
        self._threads: list[threading.Thread] = []
        self._ends = time.monotonic() + seconds
        self._episode_began = 0.0

    def watch(self, scene: Scene, snapshot: Snapshot) -> None:
        if time.monotonic() >= self._ends:
            raise _Closed
        if scene.mujoco is None:
            return
        import mujoco

        if self._viewer is None:
            self._open(scene)
        if snapshot.step == 0:
            self._episode_began = time.monotonic()
        if not self._viewer.is_running():
            raise _Closed
        late = time.monotonic() - self._episode_began - snapshot.time
        if snapshot.step % stride(scene.dt) == 0 and late < LATEST:  # skipped on slow machines, to stay in real time
            with self._viewer.lock():
                mujoco.mj_copyData(self._data, self._model, scene.mujoco.data)
            if hasattr(self._viewer, "set_texts"):  # MuJoCo 3.3.1 and later
                self._viewer.set_texts((None, mujoco.mjtGridPos.mjGRID_TOPLEFT, *_figures(snapshot)))
            self._viewer.sync()
        time.sleep(max(0.0, -late))

    def _open(self, scene: Scene) -> None:
        import mujoco
        import mujoco.viewer

        self._model = restyle(scene.mujoco.model, scene.shot, 640, 480)
        self._data = mujoco.MjData(self._model)
        before = set(threading.enumerate())
        try:
            self._viewer = mujoco.viewer.launch_passive(
                self._model, self._data, show_left_ui=False, show_right_ui=False
            )
        except Exception as error:  # from GLFW or the driver
            raise FilmError(f"Cannot open a window ({error}): use --gif FILE to make a film instead.") from error
        self._threads = [thread for thread in threading.enumerate() if thread not in before]
        camera = self._viewer.cam
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, root(self._model)
        if scene.shot:
            camera.distance, camera.azimuth = scene.shot.distance, scene.shot.azimuth
            camera.elevation = scene.shot.elevation

    def close(self) -> None:
        """Also wait for the viewer's threads: a process that ends while they draw would crash."""
        if self._viewer is not None:
            self._viewer.close()
            for thread in self._threads:
                thread.join(timeout=5.0)


def _figures(snapshot: Snapshot) -> tuple[str, str]:
    """Names and values for the viewer."""
    speed = "" if snapshot.speed is None else f"{snapshot.speed:z.1f} m/s"
    return "speed\nreward\ntime", f"{speed}\n{snapshot.reward:z.0f}\n{snapshot.time:.1f} s"
