"""Names and values that no file or setting can have, or that no terminal should receive: one printable sentence of
limited length and exit code 2, in every command; and outputs that are not files."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from torture_damage import FOLDER
from torture_runs import ARS, size

from ars import cli

LONG = "x" * 300
ODD = {
    "too long": LONG,
    "a folder that is too long": f"{LONG}/x",
    "below a file": "p.npz/x",
    "a null character": "a\0b",
    "no Unicode": "a\ud800b",
    "control characters": "p.npz/a\x1b[31m\x07b/x",
    "lines": "p.npz/a\n\nb",
    "an argument of 70 000 letters": "y" * 70_000,
    "words": "y " * 35_000,
}
COMMANDS = [
    "resume @", "report @", "report old --seconds 0 --out @", "export @ --to c", "export p.npz --to c --out @",
    "export p.npz --to @", "watch @", "watch p.npz --gif @", "watch p.npz --seconds @", "evaluate @",
    "evaluate p.npz --task @", "evaluate p.npz --episodes @", "ask @", "ask @ --task arm --n 2 --p 1",
    "ask new --task @", "ask new --task arm --n 2 --p 1 --from @", "tell @ x.json", "tell old @", "gallery @",
    "gallery --out @", "import @ --task lqr", "import p.npz --task @", "train @", "train lqr --out @",
    "train lqr --from @", "train lqr --noise @", "train lqr --N @", "train lqr --alpha @", "train lqr --@", "@",
    "sweep @", "race @ --budget 100", "race lqr --budget @", "study @", "reproduce @",
    "reproduce table2 --draw --out @", "lqr --out @",
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FOLDER / "lqr", tmp_path / "old")
    shutil.copy(FOLDER / "lqr" / "best.npz", tmp_path / "p.npz")
    return tmp_path


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    out, said = capsys.readouterr()
    assert (end.value.code, out) == (2, ""), (words, said)
    assert said.startswith("ars: ")
    assert said.endswith("\n")
    assert said[:-1].isprintable(), said
    assert len(said) < 1200
    return said


def make_device(path: Path, minor: int) -> bool:
    """A node like /dev/null (3) or /dev/full (7) below our own folder; False without root or devices."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError:
        return False
    return True


def test_odd_arguments(here: Path, capsys: pytest.CaptureFixture[str], figure: Callable[..., None]) -> None:
    """Every command with every odd value, and nothing is left behind."""
    cases = 0
    before = {path: path.lstat().st_mtime_ns for path in here.rglob("*")}
    for i, command in enumerate(COMMANDS):
        for value in list(ODD.values())[i % 3 :: size(3, 1)]:
            refusal([word.replace("@", value) for word in command.split()], capsys)
            cases += 1
    assert {path: path.lstat().st_mtime_ns for path in here.rglob("*")} == before
    figure("names", cases=cases)


def test_export_to_a_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(["export", "p.npz", "--to", "c", "--out", "."], capsys) == "ars: Cannot write .: it is a folder.\n"


def test_the_reason_is_at_the_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And is not cut off."""
    said = refusal(["export", "p.npz", "--to", "c", "--out", "y" * 70_000], capsys)
    assert said.startswith("ars: Cannot write yyy")
    assert said.endswith("yyy: File name too long.\n")


def test_odd_names_that_files_can_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are written, and shown instead of sent to the terminal."""
    for name, shown in (("a\x1b[31mb", "a\\x1b[31mb"), ("a\nb", "a\\nb"), ("a\udc80b", "a\\udc80b")):
        with pytest.raises(SystemExit) as end:
            cli.main(["export", "p.npz", "--to", "json", "--out", name])
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(f"Wrote {shown}: ")
        assert (here / name).exists()


def test_standard_output(here: Path) -> None:
    """As a pipe, as a file that is continued, full, and closed by its reader; what was written is named on standard
    error. The link stands in for /dev/stdout, which a fault in the code would replace."""
    words = [ARS, "export", "p.npz", "--to", "json", "--out"]
    (here / "stdout").symlink_to("/proc/self/fd/1")
    subprocess.run([*words, "file.json"], check=True, capture_output=True)
    expected = (here / "file.json").read_bytes()
    piped = subprocess.run([*words, "stdout"], check=True, capture_output=True)
    assert piped.stdout == expected
    assert piped.stderr.startswith(b"Wrote stdout: ")
    with (here / "log").open("ab") as log:
        log.write(b"before\n")
        log.flush()
        subprocess.run([*words, "stdout"], check=True, stdout=log, stderr=subprocess.PIPE)
    assert (here / "log").read_bytes() == b"before\n" + expected
    if make_device(here / "full", 7):
        with (here / "full").open("wb") as full:
            done = subprocess.run([*words, "stdout"], stdout=full, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (2, b"ars: Cannot write stdout: No space left on device.\n")
    receiver, sender = os.pipe()
    os.close(receiver)
    done = subprocess.run([*words, "stdout"], stdout=sender, stderr=subprocess.PIPE)
    os.close(sender)
    assert (done.returncode, done.stderr) == (2, b"ars: Cannot write stdout: Broken pipe.\n")


@pytest.mark.parametrize("command", ["export p.npz --to c --out @", "report old --seconds 0 --out @"])
def test_nodes_and_links_stay_what_they_are(here: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """A device node and a pipe below our own folder, and a link to a file."""
    for kind in ("pipe", "null", "link"):
        node = here / kind
        match kind:
            case "pipe":
                os.mkfifo(node)
            case "null":
                if not make_device(node, 3):
                    continue
            case _:
                (here / "file").write_text("old")
                node.symlink_to("file")
        before = node.lstat()
        words = command.replace("@", kind).split()
        if kind == "pipe":
            assert "no program reads from this pipe" in refusal(words, capsys)
        else:
            with pytest.raises(SystemExit) as end:
                cli.main(words)
            assert end.value.code == 0
        assert (node.lstat().st_ino, node.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert (here / "file").stat().st_size > 100
