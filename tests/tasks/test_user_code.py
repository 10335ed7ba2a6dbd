"""Code of the user's own is imported where the user names it, and never because a file does: every command is tried."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.cli import main
from ars.errors import SettingError, TaskError
from ars.tasks.user_code import LONGEST_NAME, confirmed, importable, task_flag

MODULE = 'my env; $(touch x) `y`\'s & "z"'  # Python imports a file of this name, and a shell would run parts of it
NAME = f"{MODULE}:make"
SOURCE = """
from pathlib import Path
import gymnasium
Path("imported").touch()
def make(**more):
    return gymnasium.make("CartPole-v1", **more)
"""


def test_a_file_is_named_as_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert importable("dog.py:DOG") == importable("./dog.py:DOG") == importable(f"{tmp_path}/dog.py:DOG") == "dog:DOG"
    assert importable("robots/dog.py:DOG.Small") == "robots.dog:DOG.Small"
    assert importable("robots.dog:DOG") == "robots.dog:DOG"
    assert importable("Hopper-v1") == "Hopper-v1"
    with pytest.raises(TaskError, match="is not below the current folder"):
        importable("../dog.py:DOG")


class Command:
    """`ars` in a folder with such a module; `run` is a run of it."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        """What is printed, with or without having imported the module as of this call."""
        Path("imported").unlink(missing_ok=True)
        sys.modules.pop(MODULE, None)
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        printed = self._capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed.out + printed.err


@pytest.fixture
def ars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return Command(capsys)


def train(ars: Command) -> str:
    settings = (
        "--N",
        "1",
        "--H",
        "5",
        "--protocol",
        "paper",
        "--eval-every",
        "1",
        "--eval-episodes",
        "1",
        "--workers",
        "1",
    )
    return ars("train", NAME, "--iterations", "1", "--out", "run", *settings)


def named(command: str) -> str:
    """The task that a shell would hand to this command."""
    words = shlex.split(command)
    return words[words.index("--task") + 1]


def typed_next(printed: str) -> list[str]:
    return [line for line in printed.partition("What to type next:\n")[2].splitlines() if line.startswith("  ")]


def data_of(page: str) -> Any:
    match = re.search(r'id="data">(.*?)</script>', Path(page).read_text(), re.DOTALL)
    assert match
    return json.loads(match[1])


REFUSING: dict[str, Callable[[Command], str]] = {
    "evaluate a run": lambda ars: ars("evaluate", "run", code=2),
    "evaluate a file": lambda ars: ars("evaluate", "run/policy.npz", code=2),
    "resume": lambda ars: ars("resume", "run", "--iterations", "2", code=2),
    "watch": lambda ars: ars("watch", "run", "--gif", "a.gif", code=2),
    "report": lambda ars: ars("report", "run", "--out", "a.html", "--seconds", "0.1"),
    "gallery": lambda ars: (
        ars("gallery", "run", "--out", "a.html", "--seconds", "0.1")
        and data_of("a.html")["policies"][0]["gait"]["why_not"]
    ),
}


@pytest.mark.parametrize("command", REFUSING)
def test_a_file_does_not_decide_what_is_imported(command: str, ars: Command) -> None:
    """Without --task nothing is imported, and what the sentence says to type is quoted for the shell."""
    train(ars)
    said = REFUSING[command](ars)
    assert not Path("imported").exists()
    sentence = next(line for line in said.splitlines() if "confirm it with" in line)
    assert sentence.endswith(".")
    assert named(sentence.partition("confirm it with ")[2].removesuffix(".")) == NAME


def test_an_empty_name_confirms_nothing(ars: Command) -> None:
    train(ars)
    for words in (("evaluate", "run"), ("watch", "run", "--gif", "a.gif"), ("resume", "run")):
        ars(*words, "--task", "", code=2)
        assert not Path("imported").exists()


def test_export_imports_nothing(ars: Command) -> None:
    train(ars)
    for to in ("c", "json"):
        ars("export", "run", "--to", to)
    assert not Path("imported").exists()


def test_what_train_and_resume_say_to_type_next(ars: Command) -> None:
    for said in (train(ars), ars("resume", "run", "--task", NAME, "--iterations", "2", "--workers", "1")):
        commands = typed_next(said)
        assert [shlex.split(command)[1] for command in commands] == ["evaluate", "watch", "report", "resume"]
        assert {named(command) for command in commands} == {NAME}
        ars(*shlex.split(commands[0])[1:], "--episodes", "1", "--workers", "1")
        assert Path("imported").exists()
    assert named(ars("resume", "run", "--task", NAME).partition("e.g. ")[2]) == NAME


def test_what_import_says_to_type_next(ars: Command) -> None:
    parts = np.empty(3, dtype=object)
    parts[:] = np.ones((2, 4)), np.zeros(4), np.ones(4)
    np.savez("theirs.npz", parts)
    (command,) = typed_next(ars("import", "theirs.npz", "--task", NAME, "--out", "ours.npz"))
    assert named(command) == NAME
    ars(*shlex.split(command)[1:], "--episodes", "1", "--workers", "1")
    assert Path("imported").exists()
    assert "confirm it with" in ars("evaluate", "ours.npz", code=2)


def test_what_a_page_says_to_type(ars: Command) -> None:
    train(ars)
    ars("report", "run", "--out", "a.html", "--seconds", "0")
    again, *others = [command for _, command in data_of("a.html")["runs"][0]["commands"]]
    assert shlex.split(again)[:3] == ["ars", "train", NAME]
    assert [named(command) for command in others] == [NAME] * 4


@pytest.mark.parametrize("name", [None, 3, ["a"]])
def test_a_file_without_a_name(name: Any) -> None:
    with pytest.raises(SettingError, match="This policy does not name its task: name it with --task"):
        confirmed(name, None, "This policy")
    assert confirmed(name, "a:b", "This policy") == "a:b"


@pytest.mark.parametrize("name", ["evil:\x1b[2J", "evil:\nmake", "evil:\ud800", "evil:" + "x" * LONGEST_NAME])
def test_names_that_cannot_be_shown_are_not(name: str) -> None:
    with pytest.raises(SettingError) as error:
        confirmed(name, None, "This policy")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < LONGEST_NAME


def test_only_code_of_ones_own_needs_a_flag() -> None:
    assert confirmed("Hopper-v1", None, "This run") == "Hopper-v1"
    assert task_flag("Hopper-v1") == ""
    assert task_flag("mine:make") == " --task mine:make"
    assert shlex.split(task_flag("-x y:make")) == ["--task=-x y:make"]  # else it would be read as a flag
