"""Every command that is printed to be copied names the task if it is the user's own code."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cyclopts import App

from ars import cli
from ars.cli import main
from ars.cli.settings import Settings
from ars.commands import train_words
from ars.page.report import commands
from ars.presets import make_config
from ars.run_files import read_run
from ars.stopping import Stop

OWN = "small_envs:Drift"
QUICK = ("--N", "2", "--H", "5", "--protocol", "paper", "--eval-every", "1", "--eval-episodes", "2")
NEED_TASK = ("resume", "evaluate", "watch", "report")


def copied(text: str) -> list[list[str]]:
    """The commands of ars in a text, after "What to type next:" or in a sentence, as words."""
    return [shlex.split(line) for line in re.findall(r"(?:^  |: |`|e\.g\. )(ars [a-z]+ [^`\n]*)", text, re.MULTILINE)]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Runs a command in this process; returns what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["ars"])

    def said(*words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, err
        return out + err

    return said


def test_what_to_type_next_names_the_users_own_task(say: Callable[..., str], tmp_path: Path) -> None:
    texts = {
        "train": say("train", OWN, "--iterations", "2", "--workers", "1", "--out", "a run", *QUICK),
        "resume": say("resume", "a run", "--task", OWN, "--iterations", "3", "--workers", "1"),
        "nothing to do": say("resume", "a run", "--task", OWN, "--iterations", "3", "--workers", "1"),
        "taken": say("train", OWN, "--iterations", "2", "--out", "a run", code=2),
        "sweep": say("sweep", OWN, "--seeds", "1", "--jobs", "1", "--episodes", "8", "--out", "s", *QUICK),
        "race": say("race", OWN, "--seeds", "2", "--jobs", "1", "--budget", "100", "--out", "race", *QUICK),
        "ask": say("ask", "asked", "--task", OWN, *QUICK),
    }
    theirs = np.empty(3, dtype=object)
    theirs[:] = np.zeros((2, 3)), np.zeros(3), np.ones(3)
    np.savez(tmp_path / "theirs.npz", theirs)
    texts["import"] = say("import", "theirs.npz", "--task", OWN)
    texts["page"] = "\n".join(f"  {line}" for _, line in commands(read_run(tmp_path / "a run")))
    (tmp_path / "results.json").write_text(json.dumps([]))
    texts["tell"] = say("tell", "asked", "results.json")
    for where, text in texts.items():
        found = copied(text)
        assert found, f"{where} prints no command: {text}"
        for words in found:
            assert words[1] not in NEED_TASK or words[-2:] == ["--task", OWN] or OWN in words, (where, words)
    verbs = {words[1] for text in texts.values() for words in copied(text)}
    assert verbs == {"train", "resume", "evaluate", "watch", "report", "ask", "tell"}
    train, report = copied(texts["sweep"])
    assert report == ["ars", "report", "s", "--task", OWN]
    say(*train[1:], "--out", "again", "--quiet", "--workers", "1")  # every flag that is needed, and no other
    spec = next((tmp_path / "s" / "runs").iterdir())
    np.testing.assert_array_equal(*(read_run(path).policy.M for path in (spec, tmp_path / "again")))  # type: ignore[union-attr]
    say(*report[1:], "--quiet")
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("settings", [
    {"search": "csa"}, {"search": "csa", "average": 0, "steady": False, "least_timesteps": 0}, {"search": "ars"},
    {"search": "ars", "average": 3, "steady": True, "least_timesteps": 7}, {"search": "clipup", "steady": False},
])  # fmt: skip
def test_a_printed_training_has_the_same_settings(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config("Hopper-v1", H=1000, shift=1.0, **settings)
    said: list[dict[str, Any]] = []

    def train(task: str, /, *, settings: Settings = Settings()) -> None:  # noqa: B008 (frozen)
        said.append({"task": task, **settings.given()})

    app = App()
    app.command(train)
    app(train_words(config, Stop()), exit_on_error=False, result_action="return_value")
    [given] = said
    assert make_config(given.pop("task"), **{"H": 1000, "shift": 1.0, **given}) == config


def test_no_command_prints_one_without_the_helper() -> None:
    """A line with `command()` and a path would lack --task: only ask and tell, which need none, may have it."""
    for file in Path(cli.__file__).parent.glob("*.py"):
        lines = [line for line in file.read_text().splitlines() if "{command()}" in line and "{shell(" in line]
        assert all("} ask " in line or "} tell " in line for line in lines), file.name
