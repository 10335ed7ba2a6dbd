"""ars watch, report and gallery as a user meets them: real processes, their words, exit codes and files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from command_here import ars_here
from small_runs import small_policy

ARS = str(Path(sys.executable).with_name("ars"))
WITHOUT_DISPLAY = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")}

# A machine without EGL: its library is not found.
NO_EGL = """
import ctypes, sys
load = ctypes.CDLL.__init__
def refuse(self, name, *rest, **more):
    if "EGL" in str(name): raise OSError("no such library")
    load(self, name, *rest, **more)
ctypes.CDLL.__init__ = refuse
from ars.cli import main
main(sys.argv[1:])
"""


def ars(*words: str | Path, cwd: Path, code: int = 0, start: tuple[str, ...] = (ARS,)) -> tuple[str, str]:
    command = [*start, *map(str, words)]
    result = subprocess.run(command, cwd=cwd, env=WITHOUT_DISPLAY, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result.stderr
    return result.stdout, result.stderr


def test_watch_without_a_display_films(opengl: None, tmp_path: Path) -> None:
    small_policy("Swimmer-v5").save(tmp_path / "p.npz")
    said, _ = ars("watch", "p.npz", "--seconds", "0.4", cwd=tmp_path)
    assert said.startswith("Wrote Swimmer-v5.gif, 0.")
    with Image.open(tmp_path / "Swimmer-v5.gif") as image:
        assert image.size == (480, 320)
        assert 10 <= image.n_frames <= 11
    said, _ = ars("watch", "p.npz", "--seconds", "0.1", cwd=tmp_path)
    assert said.startswith("Wrote Swimmer-v5-2.gif")  # the first one is not overwritten
    said, _ = ars("watch", "p.npz", "--seconds", "0.1", "--webp", "w.webp", "--mp4", "m.mp4", cwd=tmp_path)
    assert said.count("Wrote") == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"p.npz", "Swimmer-v5.gif", "Swimmer-v5-2.gif", "w.webp", "m.mp4"}


def test_report_and_gallery(opengl: None, runs: list[Path], tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in runs[0].parent.rglob("*") if path.is_file()}
    said, _ = ars("report", runs[0], "--seconds", "0.2", cwd=tmp_path)
    assert said == "The page is report.html: open it in a browser.\n"
    size = (tmp_path / "report.html").stat().st_size
    assert 50_000 < size < 3_000_000
    said, words = ars("report", runs[0].parent, "--seconds", "0", "--out", "all.html", "--quiet", cwd=tmp_path)
    assert (said, words) == ("", "")
    text = (tmp_path / "all.html").read_text()
    assert all(f'"name":"{path.name}"' in text for path in runs)
    ars("gallery", runs[0], runs[1] / "best.npz", "--seconds", "0.1", "--out", "g.html", cwd=tmp_path)
    assert '"kind":"gallery"' in (tmp_path / "g.html").read_text()
    assert {path: path.read_bytes() for path in before} == before


def test_without_egl_the_page_comes_without_a_film(runs: list[Path], tmp_path: Path) -> None:
    start = (sys.executable, "-c", NO_EGL)
    said, words = ars("report", runs[0], cwd=tmp_path, start=start)
    assert said == "The page is report.html: open it in a browser.\n"
    assert "No film: " in words
    assert "apt-get install libegl1 libgl1-mesa-dri" in words
    _, words = ars("watch", runs[0], "--gif", "x.gif", cwd=tmp_path, start=start, code=2)
    assert "apt-get install libegl1 libgl1-mesa-dri" in words
    assert "Traceback" not in words
    assert not (tmp_path / "x.gif").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["watch", "nothing.npz"], "nothing.npz"),
        (["watch", "run", "--gif", "film.mp4"], "must end in .gif"),
        (["watch", "run", "--gif", "no/film.gif"], "there is no folder"),
        (["watch", "run", "--seconds", "0"], "seconds = 0"),
        (["watch", "run", "--seconds", "nan"], "seconds = nan"),
        (["watch", "run", "--seed", "-1"], "seed = -1"),
        (["watch", "run", "--task", "Ant-v5"], "6 × 17 and Ant-v5 needs 8 × 105"),
        (["report"], "at least one run folder"),
        (["report", "nothing"], "nothing is not a run folder"),
        (["report", "run", "--seconds", "-1"], "seconds = -1"),
        (["report", "run", "--seconds", "0", "--out", "no/page.html"], "there is no folder"),
        (["report", "damaged"], "damaged/records.jsonl is damaged in line 2"),
        (["gallery", "nothing.npz"], "nothing.npz"),
        (["gallery", "run", "--seconds", "inf"], "seconds = inf"),
    ],
)
def test_a_mistake_is_one_sentence(
    runs: list[Path], tmp_path: Path, words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("run", "damaged"):
        shutil.copytree(runs[0], tmp_path / name)
    lines = (runs[0] / "records.jsonl").read_bytes().split(b"\n")
    (tmp_path / "damaged" / "records.jsonl").write_bytes(b"\n".join([lines[0], lines[1][:50], *lines[2:]]))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert ars_here(*words) == 2
    said, sentence = capfd.readouterr()
    assert said == ""
    assert expected in sentence
    assert "Traceback" not in sentence
    assert sentence.splitlines()[-1].startswith("ars: ")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
