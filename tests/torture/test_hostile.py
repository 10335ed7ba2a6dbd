"""Nobody gets in: nothing that is read from a file or a flag is executed, formatted into a shell, or used as a path
outside the run folder. (Ray's ports: test_kills.py and tests/executors/test_ray.py.)"""

import ast
import json
import os
import pickle
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torture_runs import contents, refused

import ars
from ars.config import Config
from ars.errors import ArsError, FileError
from ars.folder import NAMES
from ars.runs import Run
from ars.saved_config import run_identity

SRC = Path(ars.__file__).parent
HOSTILE = [
    "evil:make", "evil:Evil-v0", "evil:make; touch x", "evil:$(touch x)", "evil:`touch x`", "os:system",
    "subprocess:run", "builtins:exec", "../../evil:make", "/etc/passwd", "../../x", "..", ".", "~", "$(touch x)",
    "`touch x`", "; touch x", "| touch x",
    "x\ntouch x", "x\0y", "\x1b]0;pwned\x07", "\x1b[2J", "file:///etc/passwd", "gymnasium:CartPole-v1",
    "CartPole-v1; touch x", "%s%n", "{0.__class__}", "[bold]x[/y]", "a" * 100_000, "evil", "", " ", "\ud800",
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module that leaves a trace as soon as it is imported."""
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('pwned').touch()\ndef make(): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def traces(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in (".lock", "__pycache__")}


def policy_of(name: Any, folder: Path) -> Path:
    """A policy file that says it is for that task."""
    text = json.dumps({"format": 1, "name": name})
    np.savez(folder / "p.npz", M=np.ones((1, 4)), mu=np.zeros(4), sigma=np.ones(4), task=np.array(text))
    return folder / "p.npz"


def run_of(name: Any, folder: Path, run: Path) -> Path:
    """A run folder that says it is of that task."""
    saved = json.loads((run / "config.json").read_text())
    saved["config"]["task"] = name
    saved["task"]["name"] = name
    (run / "config.json").write_text(json.dumps(saved))
    with np.load(run / "checkpoint.npz") as arrays:
        content = dict(arrays)
    with suppress(ArsError):  # a name that is none has no run
        content["run"] = np.array(run_identity(Config.from_dict(saved["config"]), saved["task"]))
    np.savez(run / "checkpoint.npz", **content)
    return run


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:30])
def test_names_in_files_are_only_names(name: str, here: Path, run: Path) -> None:
    """No import, no shell, no path; the sentence is printable, and what it says to type is quoted."""
    policy, folder = policy_of(name, here), run_of(name, here, run)
    before, files = traces(here), contents(run)
    for action in (lambda: ars.evaluate(ars.LinearPolicy.load(policy)), lambda: ars.resume(folder)):
        with pytest.raises(ArsError) as error:
            action()
        said = str(error.value)
        assert said.isprintable()
        assert len(said) < 1500
        if name.startswith("evil:"):
            assert said.endswith(f"--task {shlex.quote(name)}.") or not name.isprintable()
    assert traces(here) == before
    assert contents(run) == files


@pytest.mark.parametrize("name", ["evil:make", "../../x", "$(touch x)", "\x1b[2J", "evil:x; touch x"])
def test_the_same_by_the_command_line(name: str, here: Path, run: Path) -> None:
    policy, folder = policy_of(name, here), run_of(name, here, run)
    before = traces(here)
    for words in (("evaluate", str(policy)), ("resume", str(folder))):
        assert refused(*words, cwd=here)[:-1].isprintable()
    assert traces(here) == before


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "$(touch x)", "; touch x", "~"])
def test_names_in_flags_are_only_names(name: str, here: Path) -> None:
    """And `..` in a task's name does not lead out of runs/."""
    before = traces(here)
    refused("train", name, "--iterations", "1", cwd=here)
    refused("evaluate", name, cwd=here)
    refused("resume", name, cwd=here)
    assert traces(here) == before


@pytest.mark.parametrize("name", [*NAMES, ".lock"])
def test_links_that_lead_out_of_the_folder(name: str, run: Path, tmp_path: Path) -> None:
    """A run folder from elsewhere could have any file of ours written, emptied or appended to."""
    victim = tmp_path / "precious"
    if (run / name).exists():
        shutil.copy(run / name, victim)
    else:
        victim.write_text("precious")
    before = victim.read_bytes()
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(victim)
    with pytest.raises(FileError, match="is not a plain file"):
        ars.resume(run, task="small_envs:Drift", iterations=9)
    assert victim.read_bytes() == before
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / name).symlink_to(tmp_path / "not yet there")
    with pytest.raises(FileError):
        ars.train("small_envs:Drift", iterations=1, out=fresh)
    assert not (tmp_path / "not yet there").exists()


def test_a_link_in_place_of_a_temporary_file(run: Path, tmp_path: Path) -> None:
    """Whoever guesses its name: the link goes, what it points to stays."""
    victim = tmp_path / "precious"
    victim.write_text("precious")
    for number in (1, os.getpid()):
        for name in NAMES:
            (run / f".{name}.{number}.tmp").symlink_to(victim)
    list(ars.resume(run, task="small_envs:Drift", iterations=9))
    policy = ars.LinearPolicy.load(run / "policy.npz")
    (tmp_path / f".p.npz.{os.getpid()}.tmp").symlink_to(victim)
    policy.save(tmp_path / "p.npz")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "p.npz").is_symlink()


@pytest.mark.parametrize("name", NAMES)
def test_pipes_and_folders_in_place_of_files(name: str, run: Path) -> None:
    """A pipe would let us wait for ever."""
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(FileError):
        ars.resume(run, task="small_envs:Drift", iterations=9)
    (run / name).unlink()
    (run / name).mkdir()
    with pytest.raises(FileError):
        ars.resume(run, task="small_envs:Drift", iterations=9)


class Attack:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch pwned",)


@pytest.mark.parametrize("name", ["checkpoint.npz", "policy.npz", "best.npz", "config.json", "records.jsonl"])
def test_pickles_are_not_opened(name: str, here: Path, run: Path) -> None:
    """Bare, and as an array of objects in each entry of an archive."""
    contents_of = [pickle.dumps(Attack())]
    if name.endswith(".npz"):
        with np.load(run / name) as arrays:
            entries = dict(arrays)
        for entry in entries:
            np.savez(here / "bad.npz", **{**entries, entry: np.array([Attack()], dtype=object)})
            contents_of.append((here / "bad.npz").read_bytes())
    before = traces(here)
    for content in contents_of:
        (run / name).write_bytes(content)
        for read in (lambda: ars.LinearPolicy.load(run / name), lambda: Run.open(run, mend=False).release()):
            try:
                read()
            except FileError:
                continue
            assert name in ("policy.npz", "best.npz", "records.jsonl")  # which a run does not need to be opened
    assert traces(here) == before


# -- by reading the code ---------------------------------------------------------------------------------------------

FORBIDDEN = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads", "pickle.Unpickler",
    "marshal.loads", "yaml.load", "shelve.open", "cloudpickle.loads", "joblib.load", "torch.load",
    "importlib.import_module",
}  # fmt: skip
ALLOWED = {
    ("executors/ray.py", "pickle.loads"),  # what a driver of ours sent to its own workers
    ("executors/processes.py", "pickle.loads"),  # the same
    ("workers.py", "pickle.loads"),  # the same
    ("tasks/user_code.py", "importlib.import_module"),  # module:factory, typed by the user
    ("__init__.py", "importlib.import_module"),  # our own modules, by a fixed table
    ("tasks/robots/loop.py", "compile"),  # our own template, with numbers of terms in it
    ("tasks/robots/loop.py", "exec"),  # the same
}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def test_nothing_in_the_code_executes_data() -> None:
    """Every call in every module: none that runs text, unpickles a file, or starts a shell."""
    found = set()
    for path in SRC.rglob("*.py"):
        where = str(path.relative_to(SRC))
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = dotted(node.func)
            found |= {(where, name)} & {(where, forbidden) for forbidden in FORBIDDEN}
            for keyword in node.keywords:
                on = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg in ("shell", "allow_pickle") and not on:
                    found.add((where, f"{keyword.arg}="))
    assert found <= ALLOWED
    assert found >= ALLOWED  # the search finds what is there
