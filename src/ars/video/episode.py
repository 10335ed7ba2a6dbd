"""One episode of a policy, watched step by step: exactly the k-th episode of `ars evaluate` with the same seed.

The rollout is that of the plain-Python task; the watcher wraps the environment and changes nothing.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from ars.errors import ArsError, SettingError, TaskError
from ars.network import AnyPolicy
from ars.noise import Key, Stream
from ars.settings import LARGEST_SEED, whole_number
from ars.tasks import Rollout, locomotion
from ars.tasks.gymnasium import GymnasiumTask, make_env
from ars.tasks.robots.find import find_robot
from ars.tasks.user_code import confirmed
from ars.video.camera import FilmError
from ars.video.framing import Feet, Shot, find_framing, find_shot

if TYPE_CHECKING:
    from ars.video.user_robot import WatchedRobot

SECONDS_OF_SPEED = 0.5  # time constant of the smoothed speed
DEFAULT_FPS = 30.0  # of environments without `render_fps`


@dataclass(frozen=True)
class Snapshot:
    """The episode after a step; snapshot 0 is the initial state."""

    step: int
    time: float  # seconds since the start
    reward: float  # so far
    speed: float | None  # metres per second along x, smoothed; None if the environment does not report it
    contacts: tuple[bool, ...]  # which feet touch the ground


class Scene:
    """What a watcher can see: `mujoco`, an object with a model and data, if the task has them; the names of the feet;
    the speed that the robot is told to have; and `env`, for environments that draw themselves."""

    def __init__(
        self, name: str, simulation: Any, *, dt: float, env: gymnasium.Env[Any, Any] | None = None,
        feet: Feet = (), commanded: float | None = None,
    ) -> None:  # fmt: skip
        self.name, self.mujoco, self.dt, self.env, self.commanded = name, simulation, dt, env, commanded
        self._framing = find_framing(name) if simulation else None
        if self._framing:
            geom = simulation.model.geom
            feet = [(foot, [geom(name).id for name in geoms]) for foot, geoms in self._framing.feet]
        self.feet = tuple(foot for foot, _ in feet)
        self._foot_of = {geom: index for index, (_, geoms) in enumerate(feet) for geom in geoms}

    @cached_property
    def shot(self) -> Shot | None:
        """Of a robot that is not one of the six, from the state when it is first asked for: the start."""
        if self._framing:
            return self._framing.shot
        return find_shot(self.mujoco.model, self.mujoco.data) if self.mujoco else None

    @staticmethod
    def of(name: str, env: gymnasium.Env[Any, Any]) -> "Scene":
        bare: Any = env.unwrapped
        if hasattr(bare, "model") and hasattr(bare, "data"):
            return Scene(name, bare, dt=float(bare.dt), env=env)
        return Scene(name, None, dt=1.0 / _fps(env), env=env)

    def contacts(self) -> tuple[bool, ...]:
        """Whether each foot touches a geom of the world."""
        touching = [False] * len(self.feet)
        if self._foot_of:
            model, data = self.mujoco.model, self.mujoco.data
            for pair in data.contact.geom[: data.ncon]:
                for foot, other in (pair, pair[::-1]):
                    if int(foot) in self._foot_of and model.body_weldid[model.geom_bodyid[other]] == 0:
                        touching[self._foot_of[int(foot)]] = True
        return tuple(touching)


Watcher = Callable[[Scene, Snapshot], None]


def play(
    policy: AnyPolicy,
    task: str | None,
    watch: Watcher,
    *,
    seed: int = 0,
    k: int = 0,
    seconds: float = math.inf,
    render_mode: str | None = None,
) -> Rollout:
    """Run the episode, or its first `seconds`, and call `watch` at its start and after every step."""
    name = task_of(policy, task)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    with _sdl_driver(render_mode), closing(_watched(name, watch, render_mode, policy.observe)) as made:
        if (policy.p, policy.n) != (made.p, made.n):
            raise SettingError(
                f"This policy is {policy.p} × {policy.n} and {name} needs {made.p} × {made.n}: "
                f"it was made for {policy.task.get('name', 'another task')}."
            )
        steps = made.H if seconds == math.inf else min(made.H, max(1, math.ceil(seconds / made.scene.dt - 1e-9)))
        return made.rollout(policy, Key(seed, Stream.TEST, 0, k), H=steps, shift=0.0, gather=False)


@contextmanager
def _sdl_driver(render_mode: str | None) -> Iterator[None]:
    """Choose how pygame, with which many environments draw, reaches the screen, unless the user has chosen: not at all
    for films, and not by Wayland without XDG_RUNTIME_DIR. Otherwise it complains on stderr."""
    driver = "dummy" if render_mode == "rgb_array" else "x11"
    needed = render_mode == "rgb_array" or ("DISPLAY" in os.environ and "XDG_RUNTIME_DIR" not in os.environ)
    if not needed or "SDL_VIDEODRIVER" in os.environ:
        yield
        return
    os.environ["SDL_VIDEODRIVER"] = driver
    try:
        yield
    finally:
        os.environ.pop("SDL_VIDEODRIVER", None)


def task_of(policy: AnyPolicy, task: str | None) -> str:
    """The task's name; the user's own code is imported only if the user names it (decision 0006)."""
    return confirmed(policy.task.get("name"), task, "This policy")


def _watched(name: str, watch: Watcher, render_mode: str | None, observe: str) -> "_WatchedTask | WatchedRobot":
    """The task, which calls the watcher during its rollout."""
    if name == "lqr":
        raise FilmError("lqr has no pictures: it is a linear system without a body.")
    careful = _careful(name, watch)
    robot = None if name in locomotion.TASKS else find_robot(name)
    if robot is None:
        return _WatchedTask(name, careful, render_mode, observe)
    from ars.video.user_robot import WatchedRobot

    return WatchedRobot(robot, name, careful, observe)


def _careful(name: str, watch: Watcher) -> Watcher:
    """Report a failure of the watcher as such; the task would report it as one of the environment."""

    def careful(scene: Scene, snapshot: Snapshot) -> None:
        try:
            watch(scene, snapshot)
        except (ArsError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ArsError(f"Cannot show {name}: {type(error).__name__}: {error}") from error

    return careful


class _WatchedTask(GymnasiumTask):
    """The plain task with a watched environment."""

    def __init__(self, name: str, watch: Watcher, render_mode: str | None, observe: str) -> None:
        super().__init__(name, observe=observe)
        if render_mode and self._mujoco is None:  # MuJoCo is drawn by our own camera
            self._env = _drawing(name, self._env, render_mode)
        self.scene = Scene.of(name, self._env)
        self._env = _Watched(self._env, self.scene, watch)


def _drawing(name: str, env: gymnasium.Env[Any, Any], render_mode: str) -> gymnasium.Env[Any, Any]:
    """The environment again, in this render mode; a FilmError if it draws nothing."""
    if env.render_mode == render_mode:
        return env
    modes = env.metadata.get("render_modes") or ()
    if render_mode not in modes:
        instead = "; --gif FILE makes a film" if "rgb_array" in modes else ""
        raise FilmError(f"{name} draws nothing: its environment has no render mode {render_mode}{instead}.")
    env.close()
    try:
        return make_env(name, render_mode=render_mode)
    except TaskError as error:
        if isinstance(error.__cause__, TypeError) and "render_mode" in str(error.__cause__):
            raise FilmError(f"{name} draws nothing: its factory takes no argument render_mode.") from error
        raise


class _Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Forwards all calls, and calls the watcher at each state."""

    def __init__(self, env: gymnasium.Env[Any, Any], scene: Scene, watch: Watcher) -> None:
        super().__init__(env)
        self._scene, self._watch = scene, watch
        self._snapshot = Snapshot(0, 0.0, 0.0, None, ())

    def reset(self, **kwargs: Any) -> Any:
        result = self.env.reset(**kwargs)
        self._show(Snapshot(0, 0.0, 0.0, None, self._scene.contacts()))
        return result

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        before, scene = self._snapshot, self._scene
        step = before.step + 1
        speed = smooth(before.speed, info.get("x_velocity"), scene.dt)
        self._show(Snapshot(step, step * scene.dt, before.reward + float(reward), speed, scene.contacts()))
        return obs, reward, terminated, truncated, info

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._watch(self._scene, snapshot)


def smooth(before: float | None, now: Any, dt: float) -> float | None:
    """Exponential smoothing over time; it starts at rest, as the robots do."""
    if not isinstance(now, float | np.floating):
        return None
    keep = math.exp(-dt / SECONDS_OF_SPEED)
    return keep * (before or 0.0) + (1 - keep) * float(now)


def _fps(env: gymnasium.Env[Any, Any]) -> float:
    value = env.metadata.get("render_fps")
    return float(value) if isinstance(value, int | float) and value > 0 else DEFAULT_FPS
