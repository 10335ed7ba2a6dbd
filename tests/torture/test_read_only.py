"""A wheel in a read-only place and a user without a home: no cache can be kept, all works, and one note says so."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from torture_runs import FIGURES

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[2]
UID = 54321  # without an entry in the list of users, as containers have it
READ_ALL = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=+dac_read_search",
            "--ambient-caps=+dac_read_search")  # fmt: skip
NOTE = ("ars: Compiled code is not kept for the next start, because no folder for it is writable: "
        "set NUMBA_CACHE_DIR to one.\n")  # fmt: skip

TRAIN = "train Hopper-v5 --N 2 --b 2 --iterations 2 --eval-every 2 --eval-episodes 2 --workers 2 --out run --quiet"
COMMANDS = [
    TRAIN,
    "evaluate run --episodes 2",
    "evaluate Hopper-v1 --episodes 1",
    "export run --to c --out hopper.h",
    "report run --seconds 0 --out page.html",
    "tasks",
    "train lqr --N 2 --iterations 2 --workers 2 --out lqr --quiet",
    "sweep Hopper-v5 --seeds 2 --N 2 --episodes 40 --eval-episodes 2 --jobs 2 --out sweep --quiet",
    "lqr --trials 1 --budget 3000 --workers 2 --out plots --quiet",
]
COMPILED = ("train", "evaluate", "sweep", "lqr")  # commands that need it

# All in one process, which compiles once. The workers are asked which folder they would use.
SCRIPT = """
import os, sys
import ars
from ars import cli
from ars.workers import run_many

print(ars.__file__)
for line in sys.stdin.read().splitlines():
    try:
        cli.main(line.split())
    except SystemExit as end:
        assert not end.code, (line, end.code)
shared = os.environ["ARS_CACHE"]
assert os.stat(shared).st_mode & 0o777 == 0o700
assert any(name.endswith(".nbc") for _, _, files in os.walk(shared) for name in files)
assert [folder for _, folder in run_many(os.getenv, ["ARS_CACHE"] * 2, workers=2)] == [shared] * 2
assert "~" not in os.listdir()
"""


class Place(NamedTuple):
    """An installation that its user can only read."""

    python: Path
    site: Path  # where the package is
    here: Path  # an empty folder of the user's
    temporary: Path  # for TMPDIR
    become: tuple[str, ...]

    @property
    def missing(self) -> str:
        """A home that is missing and cannot be made."""
        return str(self.site / "missing")

    def run(self, *words: str, text: str = "", **variables: str) -> tuple[str, str]:
        """What a command prints on standard output and standard error."""
        variables = {"PATH": os.defpath, "TMPDIR": str(self.temporary), **variables}
        result = subprocess.run(
            [*self.become, *words], cwd=self.here, env=variables, input=text, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        assert result.returncode == 0, (words, result.returncode, result.stderr)
        assert list(self.temporary.iterdir()) == []
        return result.stdout, result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def place(wheel: Path) -> Iterator[Place]:
    """Not below tmp_path, which other users cannot enter. The long form makes a virtual environment of its own."""
    with tempfile.TemporaryDirectory(prefix="ars-test-") as folder:
        top = Path(folder)
        top.chmod(0o755)
        here, temporary, installed = top / "here", top / "tmp", top / "installed"
        for path in (here, temporary, installed):
            path.mkdir()
        temporary.chmod(0o1777)
        python, site = Path(sys.executable), installed
        if FIGURES is None:
            zipfile.ZipFile(wheel).extractall(site)
        else:
            subprocess.run([sys.executable, "-m", "venv", installed], check=True)
            python = installed / "bin" / "python"
            pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
            subprocess.run(pip, check=True)
            site = next(installed.glob("lib/python*/site-packages"))
            (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for path in (installed, *installed.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
        become = user_of(python)
        if become:
            os.chown(here, UID, UID)
        yield Place(python, site, here, temporary, become)
        for path in installed.rglob("*"):  # so that it can be removed
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        installed.chmod(0o755)


def user_of(python: Path) -> tuple[str, ...]:
    """What a command is preceded by: nothing, if we are an ordinary user already. Root becomes one, who may still read
    everything where the interpreter is in a folder of root's (and only then)."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is needed to become an unprivileged user")
    child = "import subprocess, sys, numpy; subprocess.run([sys.executable, '-c', ''], check=True)"
    for become in (READ_ALL[:-2], READ_ALL):
        if subprocess.run([*become, str(python), "-c", child], cwd="/", capture_output=True).returncode == 0:
            return become
    pytest.skip("an unprivileged user cannot read the interpreter, and may not be allowed to")


def test_a_user_without_a_home_and_with_nothing_to_write_to(place: Place) -> None:
    """Training, evaluation, export and report, from an empty folder. Nothing is left behind but their results."""
    home = {} if place.become else {"HOME": place.missing}  # an ordinary user has an entry, and so a home
    if FIGURES is None:
        out, notes = place.run(
            str(place.python), "-c", SCRIPT, text="\n".join(COMMANDS[:5]), PYTHONPATH=str(place.site), **home
        )
        assert Path(out.splitlines()[0]).is_relative_to(place.site)
        assert notes == NOTE
    else:
        for line in COMMANDS:
            _, notes = place.run(str(place.python.with_name("ars")), *line.split(), **home)
            assert notes == (NOTE if line.split()[0] in COMPILED else ""), line
    made = {path.name for path in place.here.iterdir()}
    assert {"run", "hopper.h", "page.html"} <= made <= {"run", "hopper.h", "page.html", "lqr", "sweep", "plots"}


def test_a_folder_that_is_named_is_used(place: Place) -> None:
    """NUMBA_CACHE_DIR is what the note asks for: without it, here with a home that is missing, nothing is kept."""
    words = (str(place.python), "-c", "import ars.lqr.loops")
    cache = place.here / "cache"
    for variables, note in (({"NUMBA_CACHE_DIR": str(cache)}, ""), ({}, NOTE)):
        assert place.run(*words, HOME=place.missing, PYTHONPATH=str(place.site), **variables) == ("", note)
    shutil.rmtree(cache)  # it is there


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Pages, policies, figures: all that is in src/ars."""
    here = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "ars").rglob("*") if path.is_file()}
    wanted = {name for name in here if "__pycache__" not in name}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert {"ars/page/assets/page.html", "ars/policies/Hopper-v1.npz", "ars/py.typed"} <= wanted
