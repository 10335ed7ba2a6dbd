"""Films: an episode as frames that show speed, reward and time, and writers for their files.

Writers receive the frames one by one while the episode runs.
"""

import io
import itertools
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ars.errors import FileError, SettingError
from ars.files import check_writable, safe_name, write_atomic
from ars.network import AnyPolicy
from ars.settings import finite_number
from ars.tasks import Rollout
from ars.video.camera import Camera, FilmError
from ars.video.episode import Scene, Snapshot, play

SHORTEST_FRAME = 0.039  # seconds: about 25 frames per second, which a GIF can show evenly
WIDTH, HEIGHT = 480, 320
COLOURS = 96  # of a GIF
SHADE, WHITE = (18, 28, 38, 190), (255, 255, 255)  # behind figures, and they themselves
FRAMES_FOR_PALETTE = 25


class Writer(Protocol):
    """Takes the frames of a film in order."""

    def add(self, frame: Any, seconds: float) -> None:
        """A Pillow image, and how long it is shown."""

    def close(self) -> None:
        """Finish the file."""

    def cancel(self) -> None:
        """Leave nothing behind: the episode failed, or was interrupted."""


@dataclass
class Trace:
    """The snapshots of an episode, for diagrams."""

    feet: tuple[str, ...] = ()
    dt: float = 0.0
    snapshots: list[Snapshot] = field(default_factory=list)
    commanded: float | None = None  # the speed that the robot is told to have


def film(
    policy: AnyPolicy,
    task: str | None,
    writers: list[Writer],
    *,
    seconds: float = 10.0,
    seed: int = 0,
    k: int = 0,
    width: int = WIDTH,
    height: int = HEIGHT,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[Rollout, Trace]:
    """Film an episode, or its first `seconds`, in real time; the trace has every step. `progress` gets the share done:
    of `seconds`, because nobody knows when an episode ends."""
    check_seconds(seconds)
    trace, lens = Trace(), _Lens(width, height)

    def watch(scene: Scene, snapshot: Snapshot) -> None:
        trace.feet, trace.dt, trace.commanded = scene.feet, scene.dt, scene.commanded
        trace.snapshots.append(snapshot)
        every = stride(scene.dt)
        if snapshot.step % every == 0:
            frame = lens.picture(scene, every * scene.dt)
            draw_figures(frame, snapshot, scene.feet, scene.commanded)
            for writer in writers:
                writer.add(frame, every * scene.dt)
            progress(min(1.0, snapshot.time / seconds))

    try:
        rollout = play(policy, task, watch, seed=seed, k=k, seconds=seconds, render_mode="rgb_array")
    except BaseException:
        for writer in writers:
            writer.cancel()
        raise
    finally:
        lens.close()
    for writer in writers:
        writer.close()
    return rollout, trace


def check_seconds(seconds: float) -> None:
    if finite_number("seconds", seconds) <= 0:
        raise SettingError(f"seconds = {seconds:g} must be larger than 0.")


def stride(dt: float) -> int:
    """Steps per frame, so that no frame is shorter than SHORTEST_FRAME."""
    return max(1, math.ceil(SHORTEST_FRAME / dt - 1e-9))


class _Lens:
    """Pictures of any scene: by our camera if there is a MuJoCo model, otherwise by the environment itself."""

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._camera: Camera | None = None

    def picture(self, scene: Scene, seconds: float) -> Any:
        from PIL import Image

        if scene.mujoco is None:
            image = Image.fromarray(_own_picture(scene)).convert("RGB")
            image.thumbnail(self._size)
            return image
        if self._camera is None:
            width, height = self._size
            self._camera = Camera(scene.mujoco.model, scene.shot, width=width, height=height)
        return Image.fromarray(self._camera.picture(scene.mujoco.data, seconds))

    def close(self) -> None:
        if self._camera is not None:
            self._camera.close()


def _own_picture(scene: Scene) -> Any:
    """What env.render() returns in the mode rgb_array."""
    import numpy as np

    if scene.env is None or "rgb_array" not in scene.env.metadata.get("render_modes", ()):
        raise FilmError(f"{scene.name} has no pictures: its environment does not render rgb_array.")
    try:
        picture = np.asarray(scene.env.render())
    except Exception as error:  # of any kind; often a package for drawing is missing
        raise FilmError(f"{scene.name} cannot draw itself: {error}") from error
    if picture.ndim != 3 or picture.shape[2] != 3:
        raise FilmError(f"{scene.name} draws pictures of shape {picture.shape}, not of (height, width, 3).")
    return picture.astype(np.uint8)


def draw_figures(frame: Any, snapshot: Snapshot, feet: tuple[str, ...] = (), commanded: float | None = None) -> None:
    """Speed, reward so far and time along the lower edge of a Pillow image; along the upper edge the feet, each with a
    disc that is filled while it touches the ground."""
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(frame, "RGBA")
    size = max(10, frame.height // 17)
    font = ImageFont.load_default(size)
    texts = [speed_text(snapshot.speed, commanded), f"reward {snapshot.reward:z.0f}", f"{snapshot.time:.1f} s"]
    top = frame.height - round(1.9 * size)
    draw.rectangle((0, top, frame.width, frame.height), fill=SHADE)
    places = (0.03 * frame.width, "lm"), (0.5 * frame.width, "mm"), (0.97 * frame.width, "rm")
    for text, (x, anchor) in zip(texts, places, strict=True):
        draw.text((x, (top + frame.height) / 2), text, fill=WHITE, font=font, anchor=anchor)
    if feet:
        _draw_feet(draw, frame.width, 0.7 * size, ImageFont.load_default(0.7 * size), feet, snapshot.contacts)


def speed_text(speed: float | None, commanded: float | None) -> str:
    """Measured and commanded; nothing if the speed is unknown."""
    if speed is None:
        return ""
    return f"{speed:z.1f} m/s" if commanded is None else f"{speed:z.1f} of {commanded:g} m/s"


def _draw_feet(
    draw: Any, width: int, size: float, font: Any, feet: tuple[str, ...], contacts: tuple[bool, ...]
) -> None:
    """Evenly over the width, without their names if one has no room."""
    room, y = width / len(feet), 0.95 * size
    named = max(font.getlength(foot) for foot in feet) + 2.4 * size < room
    draw.rectangle((0, 0, width, 1.9 * size), fill=SHADE)
    for i, (foot, down) in enumerate(zip(feet, contacts, strict=True)):
        wide = (font.getlength(foot) if named else 0.0) + 1.2 * size
        x = (i + 0.5) * room - wide / 2 + 0.4 * size
        disc = (x - 0.4 * size, y - 0.4 * size, x + 0.4 * size, y + 0.4 * size)
        draw.ellipse(disc, fill=WHITE if down else None, outline=WHITE)
        if named:
            draw.text((x + 0.8 * size, y), foot, fill=WHITE, font=font, anchor="lm")


# -- writers ----------------------------------------------------------------------------------------------------------


class _InMemory:
    """Writes nothing to disk before the film is finished."""

    def cancel(self) -> None:
        """Nothing to undo."""


class GifWriter(_InMemory):
    """A GIF that loops, with one palette for the whole film: smaller, and without flicker."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._first: list[Any] = []  # in full colour, until there are enough to choose a palette from
        self._frames: list[Any] = []
        self._palette: Any = None
        self._times = [0.0]

    def add(self, frame: Any, seconds: float) -> None:
        self._times.append(self._times[-1] + seconds)
        if self._palette is None:
            self._first.append(frame)
            if len(self._first) == FRAMES_FOR_PALETTE:
                self._choose_palette()
        else:
            self._frames.append(self._in_palette(frame))

    def _choose_palette(self) -> None:
        from PIL import Image

        samples = self._first[:: max(1, len(self._first) // 6)]
        width, height = samples[0].size
        mosaic = Image.new("RGB", (width, height * len(samples)))
        for i, sample in enumerate(samples):
            mosaic.paste(sample, (0, height * i))
        self._palette = mosaic.quantize(COLOURS, dither=Image.Dither.NONE)
        self._frames = [self._in_palette(frame) for frame in self._first]
        self._first = []

    def _in_palette(self, frame: Any) -> Any:
        from PIL import Image

        return frame.quantize(palette=self._palette, dither=Image.Dither.NONE)

    def close(self) -> None:
        if self._palette is None:
            self._choose_palette()
        hundredths = [round(100 * time) for time in self._times]  # the unit of a GIF; rounding errors must not add up
        durations = [10 * (b - a) for a, b in itertools.pairwise(hundredths)]
        content = io.BytesIO()
        first, *rest = self._frames
        first.save(content, "GIF", save_all=True, append_images=rest, duration=durations, loop=0, optimize=False)
        write_atomic(self.path, content.getvalue())


class WebpWriter(_InMemory):
    """An animated WebP for browsers: a third of a GIF's size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._frames: list[Any] = []
        self._durations: list[int] = []

    def add(self, frame: Any, seconds: float) -> None:
        self._frames.append(frame)
        self._durations.append(round(1000 * seconds))

    def close(self) -> None:
        content = io.BytesIO()
        first, *rest = self._frames
        options = {"duration": self._durations, "loop": 0, "quality": 60, "method": 2}
        first.save(content, "WEBP", save_all=True, append_images=rest, **options)
        write_atomic(self.path, content.getvalue())


class Mp4Writer:
    """H.264 by ffmpeg, which the extra `video` installs."""

    def __init__(self, path: Path) -> None:
        try:
            import imageio_ffmpeg
        except ImportError as error:
            raise FilmError("MP4 needs the extra `video`: pip install 'ars-rl[video]', or use --gif.") from error
        self.path, self._ffmpeg = path, imageio_ffmpeg
        self._stream: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # ffmpeg seeks in the file that it writes

    def add(self, frame: Any, seconds: float) -> None:
        import numpy as np

        if self._stream is None:
            options = ["-crf", "23", "-movflags", "+faststart"]
            self._folder = tempfile.TemporaryDirectory(prefix="ars-film-")
            self._stream = self._ffmpeg.write_frames(
                f"{self._folder.name}/film.mp4", frame.size, fps=1.0 / seconds, quality=None, macro_block_size=2,
                output_params=options, ffmpeg_log_level="error",
            )  # fmt: skip
            self._stream.send(None)
        self._stream.send(np.ascontiguousarray(frame))

    def close(self) -> None:
        if self._stream is not None and self._folder is not None:
            with self._folder as folder:
                try:
                    self._stream.close()
                    content = (Path(folder) / "film.mp4").read_bytes()
                except OSError as error:
                    raise FileError(f"Cannot write {self.path}: {error.strerror or error}.") from error
                write_atomic(self.path, content)

    def cancel(self) -> None:
        if self._stream is not None and self._folder is not None:
            with self._folder:
                self._stream.close()


class FrameWriter(_InMemory):
    """Each frame as a separate WebP in memory: for pages, whose player can stop at any of them."""

    def __init__(self, quality: int = 55) -> None:
        self.frames: list[bytes] = []
        self.seconds = 0.0  # of each frame
        self._quality = quality

    def add(self, frame: Any, seconds: float) -> None:
        content = io.BytesIO()
        frame.save(content, "WEBP", quality=self._quality, method=3)
        self.frames.append(content.getvalue())
        self.seconds = seconds

    def close(self) -> None:
        """Nothing to finish."""


WRITERS: dict[str, Any] = {".gif": GifWriter, ".webp": WebpWriter, ".mp4": Mp4Writer}


def writer_for(path: Path) -> Writer:
    """The writer for the file's ending. A missing folder is an error now rather than after filming."""
    if path.suffix.lower() not in WRITERS:
        raise SettingError(f"{path} ends in none of {', '.join(WRITERS)}: choose one of these.")
    check_writable(path)
    writer: Writer = WRITERS[path.suffix.lower()](path)
    return writer


def free_file(task: str) -> Path:
    """TASK.gif in the current folder, with a number if that exists."""
    safe = safe_name(task)
    path, number = Path(f"{safe}.gif"), 1
    while path.exists():
        number += 1
        path = Path(f"{safe}-{number}.gif")
    return path
