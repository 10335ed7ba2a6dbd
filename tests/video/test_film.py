"""Films: the robot moves exactly as in evaluation, the frames show it, and the files hold them."""

import itertools
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ars import evaluate
from ars.errors import FileError, SettingError
from ars.page.gait import stances
from ars.policy import LinearPolicy
from ars.tasks import locomotion
from ars.tasks.gymnasium import make_env
from ars.video import viewer
from ars.video.camera import Camera, FilmError
from ars.video.episode import Scene, Snapshot, play
from ars.video.film import GifWriter, Mp4Writer, Trace, WebpWriter, draw_figures, film, stride, writer_for
from ars.video.framing import ROBOTS, find_framing
from small_runs import small_policy

HERE = str(Path(__file__).parent)


class Keep:
    """A writer that keeps the frames as arrays."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.seconds: list[float] = []
        self.closed = self.cancelled = False

    def add(self, frame: Any, seconds: float) -> None:
        self.frames.append(np.asarray(frame).copy())
        self.seconds.append(seconds)

    def close(self) -> None:
        self.closed = True

    def cancel(self) -> None:
        self.cancelled = True


@pytest.mark.parametrize("task", ["Swimmer-v5", "Hopper-v1", "HalfCheetah-v1", "Walker2d-v5", "Ant-v1", "Humanoid-v1"])
def test_what_is_watched_is_the_episode_of_evaluate(task: str) -> None:
    policy = small_policy(task)
    measured = evaluate(policy, episodes=2, seed=3)
    snapshots: list[Snapshot] = []
    rollout = play(policy, None, lambda _, snapshot: snapshots.append(snapshot), seed=3, k=1)
    assert (rollout.reward, rollout.steps) == (measured.rewards[1], measured.steps[1])
    assert [snapshot.step for snapshot in snapshots] == list(range(rollout.steps + 1))
    assert snapshots[-1].reward == rollout.reward


def test_a_robot_of_ones_own_is_watched_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a description instead of an environment: Walker2d, which falls, and Swimmer, which does not."""
    monkeypatch.syspath_prepend(HERE)
    for task, name in (("Walker2d-v5", "film_envs:walker"), ("Swimmer-v5", "film_envs:swimmer")):
        policy, snapshots = small_policy(task), []
        measured = evaluate(policy, name, episodes=2, seed=4)
        rollout = play(policy, name, lambda _, snapshot, to=snapshots: to.append(snapshot), seed=4, k=1)
        assert (rollout.reward, rollout.steps) == (measured.rewards[1], measured.steps[1])
        same = play(policy, None, lambda *_: None, seed=4, k=1)
        assert (same.reward, same.steps) == (rollout.reward, rollout.steps)
        plain: list[Snapshot] = []
        play(policy, None, lambda _, snapshot, to=plain: to.append(snapshot), seed=4, k=1)
        assert [snapshot.speed for snapshot in snapshots[1:]] == pytest.approx(
            [snapshot.speed for snapshot in plain[1:]]
        )


def test_drawing_changes_nothing(opengl: None) -> None:
    """Hopper falls soon under a policy of chance, so the film has the whole episode."""
    policy, keep = small_policy("Hopper-v1"), Keep()
    rollout, trace = film(policy, None, [keep], seconds=100.0, seed=5, width=96, height=64)
    measured = evaluate(policy, episodes=1, seed=5)
    assert (rollout.reward, rollout.steps) == (measured.rewards[0], measured.steps[0])
    assert rollout.steps < 1000
    assert len(trace.snapshots) == rollout.steps + 1
    assert len(keep.frames) == 1 + rollout.steps // 5  # 0.008 s a step, 0.04 s a frame
    assert keep.seconds == [pytest.approx(0.04)] * len(keep.frames)
    assert keep.closed


@pytest.mark.parametrize("task", ["Swimmer-v1", "HalfCheetah-v5", "Ant-v1"])
def test_frames_show_something_that_moves(opengl: None, task: str) -> None:
    keep = Keep()
    film(small_policy(task, size=1.0), None, [keep], seconds=0.4, width=120, height=80)
    without_figures = [frame[:60].astype(int) for frame in keep.frames]
    for frame in without_figures:
        assert frame.std() > 10
        assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 100
    for before, after in itertools.pairwise(without_figures):
        assert (np.abs(before - after).sum(axis=2) > 30).mean() > 0.002


def orange(picture: Any) -> Any:
    """Columns of the pixels that are the robot's: its red is far above its blue, and nothing else's is."""
    red, blue = picture[..., 0].astype(int), picture[..., 2].astype(int)
    return np.nonzero(red - blue > 40)[1]


def test_the_camera_follows_and_the_floor_has_no_end(opengl: None) -> None:
    import mujoco

    env: Any = make_env("HalfCheetah-v1")
    env.reset(seed=0)
    bare, shot = env.unwrapped, ROBOTS["HalfCheetah"].shot
    before = bare.model.geom_size.copy(), bare.model.tex_data.copy()
    with Camera(bare.model, shot, width=120, height=80) as camera:
        for x in (0.0, 7.0, 500.0):
            bare.data.qpos[0] = x
            mujoco.mj_forward(bare.model, bare.data)
            picture = camera.picture(bare.data)
            columns = orange(picture)
            assert len(columns) > 50
            assert 40 < columns.mean() < 80
            assert picture[-1].std() > 3  # the floor's squares, also far away
    assert (bare.model.geom_size == before[0]).all()  # the simulation's own model is as it was
    assert (bare.model.tex_data == before[1]).all()
    env.close()


def test_figures_stand_along_the_lower_edge() -> None:
    frame = Image.new("RGB", (480, 320), (90, 120, 90))
    draw_figures(frame, Snapshot(10, 1.5, 123.4, 2.75, ()))
    pixels = np.asarray(frame)
    assert (pixels[:270] == (90, 120, 90)).all()
    thirds = [pixels[-30:, start : start + 160] for start in (0, 160, 320)]
    assert all((third == 255).all(axis=2).any() for third in thirds)  # white letters for speed, reward and time
    unknown = Image.new("RGB", (480, 320), (90, 120, 90))
    draw_figures(unknown, Snapshot(10, 1.5, 123.4, None, ()))
    assert not (np.asarray(unknown)[-30:, :100] == 255).all(axis=2).any()


def test_speed_is_smoothed_from_rest() -> None:
    snapshots: list[Snapshot] = []
    play(small_policy("HalfCheetah-v5"), None, lambda _, snapshot: snapshots.append(snapshot), seconds=0.2)
    env: Any = make_env("HalfCheetah-v5")
    assert snapshots[0].speed is None
    keep = math.exp(-env.unwrapped.dt / 0.5)
    speeds = [snapshot.speed for snapshot in snapshots[1:]]
    assert len(speeds) == 4
    assert all(speed is not None and abs(speed) < 5 for speed in speeds)
    jump = (speeds[1] - keep * speeds[0]) / (1 - keep)  # the velocity that the second step had
    assert math.isfinite(jump)
    env.close()


def test_seconds_end_the_film() -> None:
    snapshots: list[Snapshot] = []
    rollout = play(small_policy("Swimmer-v5"), None, lambda _, snapshot: snapshots.append(snapshot), seconds=1.0)
    assert rollout.steps == 25
    assert snapshots[-1].time == pytest.approx(1.0)


@pytest.mark.parametrize(("dt", "steps"), [(0.008, 5), (0.015, 3), (0.04, 1), (0.05, 1), (0.2, 1), (0.0395, 1)])
def test_frames_are_as_even_as_the_steps_allow(dt: float, steps: int) -> None:
    assert stride(dt) == steps


# -- feet -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", sorted(locomotion.TASKS))
def test_every_foot_is_in_its_model(task: str) -> None:
    env: Any = make_env(task)
    scene = Scene.of(task, env)
    feet = {"Swimmer": 0, "Hopper": 1, "HalfCheetah": 2, "Walker2d": 2, "Ant": 4, "Humanoid": 2}
    assert len(scene.feet) == feet[task.split("-")[0]]
    found = find_framing(task)
    assert found
    for _, geoms in found.feet:
        assert all(env.unwrapped.model.geom(geom).name == geom for geom in geoms)
    env.close()


def test_feet_touch_the_ground_or_not() -> None:
    import mujoco

    env: Any = make_env("Walker2d-v1")
    env.reset(seed=0)
    bare, scene = env.unwrapped, Scene.of("Walker2d-v1", env)

    def contacts(height: float, right_thigh: float = 0.0) -> tuple[bool, ...]:
        bare.data.qpos[:] = 0.0
        bare.data.qpos[1], bare.data.qpos[3] = height, right_thigh
        mujoco.mj_forward(bare.model, bare.data)
        return scene.contacts()

    assert scene.feet == ("right foot", "left foot")
    assert contacts(1.2) == (True, True)
    assert contacts(2.0) == (False, False)
    assert contacts(1.2, right_thigh=-0.8) == (False, True)  # one leg is lifted
    env.close()


def test_ant_has_its_feet_where_their_names_say() -> None:
    """It runs along +x, and y points to its left."""
    import mujoco

    env: Any = make_env("Ant-v5")
    env.reset(seed=0)
    bare = env.unwrapped
    bare.data.qpos[:] = bare.init_qpos
    mujoco.mj_forward(bare.model, bare.data)
    for name, (geom,) in ROBOTS["Ant"].feet:
        x, y, _ = bare.data.geom(geom).xpos
        assert name == f"{'front' if x > 0 else 'back'} {'left' if y > 0 else 'right'}"
    env.close()


def test_stances_by_hand() -> None:
    down = [False, True, True, False, True, True]
    snapshots = [Snapshot(i, 0.5 * i, 0.0, None, (yes,)) for i, yes in enumerate(down)]
    assert stances(Trace(("foot",), 0.5, snapshots), 0) == [(0.5, 1.5), (2.0, 2.5)]


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> LinearPolicy:
    monkeypatch.syspath_prepend(HERE)
    return LinearPolicy(np.zeros((1, 2)), np.zeros(2), np.ones(2), {"name": "film_envs:Painted"})


def test_a_film_of_an_environment_that_draws_itself(painted: LinearPolicy, tmp_path: Path) -> None:
    keep = Keep()
    paths = [tmp_path / f"film{ending}" for ending in (".gif", ".webp", ".mp4")]
    writers = [keep, *(writer_for(path) for path in paths)]
    assert [type(writer) for writer in writers[1:]] == [GifWriter, WebpWriter, Mp4Writer]
    rollout, _ = film(painted, "film_envs:Painted", writers, seconds=60.0)
    assert (rollout.steps, len(keep.frames)) == (12, 13)
    for t, frame in enumerate(keep.frames):
        assert frame.shape == (60, 90, 3)
        assert frame[25, 5 * t + 5].min() > 250
    for path in paths[:2]:
        with Image.open(path) as image:
            assert image.n_frames == 13
            assert image.size == (90, 60)
            durations = []
            for index in range(image.n_frames):
                image.seek(index)
                image.load()
                durations.append(image.info["duration"])
            assert sum(durations) == 1300
            assert image.info["loop"] == 0
    import imageio_ffmpeg

    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(paths[2]))
    assert (frames, seconds) == (13, pytest.approx(1.3, abs=0.05))
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}  # nothing temporary is left


def test_gif_times_do_not_drift(tmp_path: Path) -> None:
    """0.045 s is not a whole number of hundredths."""
    writer = GifWriter(tmp_path / "film.gif")
    colours = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    for i in range(40):  # more than the palette is chosen from
        writer.add(Image.new("RGB", (8, 8), colours[i % 3]), 0.045)
    writer.close()
    with Image.open(tmp_path / "film.gif") as image:
        durations = []
        for index in range(image.n_frames):
            image.seek(index)
            durations.append(image.info["duration"])
    assert set(durations) == {40, 50}
    assert sum(durations) == 1800


def test_an_interrupted_film_leaves_nothing(painted: LinearPolicy, tmp_path: Path) -> None:
    class Stops(Keep):
        def add(self, frame: Any, seconds: float) -> None:
            super().add(frame, seconds)
            if len(self.frames) == 5:
                raise KeyboardInterrupt

    stops = Stops()
    writers = [writer_for(tmp_path / "film.mp4"), writer_for(tmp_path / "film.gif"), stops]
    with pytest.raises(KeyboardInterrupt):
        film(painted, "film_envs:Painted", writers, seconds=60.0)
    assert stops.cancelled
    assert not stops.closed
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_sentences(painted: LinearPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match="confirm it with --task film_envs:Painted"):
        film(painted, None, [])
    with pytest.raises(FilmError, match="lqr has no pictures"):
        film(painted, "lqr", [])
    with pytest.raises(FilmError, match="Blind draws nothing: its environment has no render mode rgb_array"):
        film(painted, "film_envs:Blind", [])
    with pytest.raises(FilmError, match="stubborn draws nothing: its factory takes no argument render_mode"):
        film(painted, "film_envs:stubborn", [])
    with pytest.raises(FilmError, match="Unpainted cannot draw itself: pygame is not installed"):
        film(painted, "film_envs:Unpainted", [])
    with pytest.raises(SettingError, match="seconds = 0 must be larger than 0"):
        film(painted, "film_envs:Painted", [], seconds=0.0)
    with pytest.raises(SettingError, match="1 × 2 and Hopper-v5 needs 3 × 11"):
        film(painted, "Hopper-v5", [])
    with pytest.raises(SettingError, match=r"film.avi ends in none of .gif, .webp, .mp4"):
        writer_for(tmp_path / "film.avi")
    with pytest.raises(FileError, match="there is no folder"):
        writer_for(tmp_path / "nowhere" / "film.gif")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(FilmError, match="MP4 needs the extra `video`"):
        writer_for(tmp_path / "film.mp4")


def test_without_opengl_a_sentence_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(width: int, height: int) -> None:
        raise ImportError("Cannot initialize a EGL device display.")

    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco.egl", SimpleNamespace(GLContext=fail))
    with pytest.raises(FilmError, match="apt-get install libegl1 libgl1-mesa-dri"):
        film(small_policy("Swimmer-v5"), None, [Keep()], seconds=0.1)
    monkeypatch.setenv("MUJOCO_GL", "off")
    with pytest.raises(FilmError, match="'off' draws no pictures"):
        film(small_policy("Swimmer-v5"), None, [Keep()], seconds=0.1)


def test_films_need_no_screen(painted: LinearPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise SDL prints `XDG_RUNTIME_DIR is invalid or not set`, which no user can do anything about."""
    import film_envs

    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    shares: list[float] = []
    film(painted, "film_envs:Driven", [], seconds=0.4, progress=shares.append)
    assert shares == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert "SDL_VIDEODRIVER" not in os.environ
    monkeypatch.setenv("SDL_VIDEODRIVER", "x11")
    film(painted, "film_envs:Driven", [], seconds=0.1)
    assert film_envs.Driven.drivers == 5 * ["dummy"] + 2 * ["x11"]


def test_figures_are_never_minus_zero() -> None:
    assert viewer._figures(Snapshot(1, 0.1, -0.2, -0.04, ())) == ("speed\nreward\ntime", "0.0 m/s\n0\n0.1 s")
