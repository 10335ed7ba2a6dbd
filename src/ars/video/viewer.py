"""A live window that shows a policy, episode after episode, until it is closed; arrow keys push the robot."""

import math
import os
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np

from ars.errors import ArsError
from ars.network import AnyPolicy
from ars.video.camera import FilmError, restyle
from ars.video.episode import Scene, Snapshot, play
from ars.video.film import check_seconds, speed_text, stride
from ars.video.framing import root

LATEST = 0.1  # seconds behind the clock; later pictures are skipped
ARROWS = {262: (1.0, 0.0), 263: (-1.0, 0.0), 264: (0.0, -1.0), 265: (0.0, 1.0)}  # GLFW's keys → x, y: as on the screen
PUSH_SECONDS, PUSH_WEIGHTS = 0.1, 0.5  # how long, and the force as a share of the robot's weight


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


def show(policy: AnyPolicy, task: str | None, *, seconds: float | None, seed: int) -> list[float]:
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


class _Pushes:
    """Pushes of the first moved body, asked for by keys. The force is added to and later taken from that in MjData, so
    that a push of the task's own goes on beside it."""

    def __init__(self) -> None:
        self._asked: list[tuple[float, float]] = []  # filled by the viewer's thread
        self._force, self._ends = np.zeros(2), math.inf

    def key(self, code: int) -> None:
        if code in ARROWS:
            self._asked.append(ARROWS[code])

    def update(self, scene: Scene, snapshot: Snapshot) -> None:
        model, body = scene.mujoco.model, root(scene.mujoco.model)
        applied = scene.mujoco.data.xfrc_applied[body, :2]
        if snapshot.step == 0:  # a reset has removed all forces
            self._force, self._ends = np.zeros(2), math.inf
        if self._asked or snapshot.time > self._ends - scene.dt / 2:
            applied -= self._force
            self._force, self._ends = np.zeros(2), math.inf
        if self._asked:
            weight = float(model.body_subtreemass[body]) * (float(np.linalg.norm(model.opt.gravity)) or 9.81)
            self._force = PUSH_WEIGHTS * weight * np.array(self._asked[-1])
            self._ends = snapshot.time + PUSH_SECONDS
            self._asked.clear()
            applied += self._force


class _Window:
    """MuJoCo's viewer, which follows the robot in real time; other environments open and pace their own window.

    The viewer has its own model and gets a copy of every state, so clicks in it cannot affect the episode; only arrow
    keys do."""

    def __init__(self, seconds: float) -> None:
        self._viewer: Any = None
        self._model: Any = None
        self._data: Any = None
        self._threads: list[threading.Thread] = []
        self._ends = time.monotonic() + seconds
        self._episode_began = 0.0
        self._pushes = _Pushes()

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
        self._pushes.update(scene, snapshot)
        late = time.monotonic() - self._episode_began - snapshot.time
        if snapshot.step % stride(scene.dt) == 0 and late < LATEST:  # skipped on slow machines, to stay in real time
            with self._viewer.lock():
                mujoco.mj_copyData(self._data, self._model, scene.mujoco.data)
            if hasattr(self._viewer, "set_texts"):  # MuJoCo 3.3.1 and later
                self._viewer.set_texts((None, mujoco.mjtGridPos.mjGRID_TOPLEFT, *_figures(snapshot, scene.commanded)))
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
                self._model, self._data, show_left_ui=False, show_right_ui=False, key_callback=self._pushes.key
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


def _figures(snapshot: Snapshot, commanded: float | None = None) -> tuple[str, str]:
    """Names and values for the viewer."""
    speed = speed_text(snapshot.speed, commanded)
    return "speed\nreward\ntime", f"{speed}\n{snapshot.reward:z.0f}\n{snapshot.time:.1f} s"
