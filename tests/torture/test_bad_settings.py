"""Bad settings: every numeric setting of the library and of the command line with values that cannot work, and every
pair that contradicts: one sentence that names it, before anything is written."""

import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torture_runs import size

import ars
from ars import cli
from ars.cli.settings import Settings
from ars.cli.training import StopRules
from ars.config import Config
from ars.errors import SettingError
from ars.executors import make_executor
from ars.searches.ars import ARS
from ars.stopping import Stop
from ars.tasks import factory
from batches import paper_config

GOOD: dict[str, Any] = {"variant": "V2-t", "alpha": 0.02, "nu": 0.03, "N": 8, "b": 4, "H": 100, "shift": 1.0}
ODD = [
    0, -1, 1.5, 10**30, -(10**30), 10**400, 10**5000, -(10**5000), math.nan, math.inf, -math.inf, True, False,
    "1", "", "x", b"1", [1], (1,), {}, {"a": 1}, 1j, object, np.float64("nan"), np.float32("inf"), np.int64(-1),
    np.bool_(True), np.array(1.0), np.array([1, 2]), "9" * 10_000,
]  # fmt: skip
NUMBERS = [field.name for kind in (ARS, Config) for field in dataclasses.fields(kind) if field.type in (int, float)]
RULES = [field.name for field in dataclasses.fields(Stop)]
REALS = {"alpha", "nu", "shift", "minutes", "until"}
MAY_BE_ZERO = {"seed", "eval_every", "average", "table_size", "shift", "until", "least_timesteps", "ramp", "duel"}
MAY_BE_NEGATIVE = {"shift", "until"}


def works(name: str, value: Any) -> bool:
    """By a rule of its own: whole numbers or finite reals, positive unless said otherwise, and not beyond measure."""
    number = isinstance(value, int | float | np.integer) and not isinstance(value, bool)
    if not number or (isinstance(value, float) and not math.isfinite(value)):
        return False
    fits = abs(value) < (10**308 if name in REALS else 10**15) and (name in REALS or not isinstance(value, float))
    return fits and (value > 0 or (value == 0 and name in MAY_BE_ZERO) or (value < 0 and name in MAY_BE_NEGATIVE))


def one_sentence(said: str, name: str) -> None:
    assert name in said
    assert "\n" not in said
    assert len(said) < 400


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_the_configuration(name: str, figure: Callable[..., None]) -> None:
    assert {"alpha", "nu", "N", "b", "H", "shift", "seed", "table_size", "stats_every"} <= set(NUMBERS)
    refused = 0
    for value in ODD:
        config = {"task": "x", **GOOD, name: value}
        if works(name, value):
            made = paper_config(**config)
            found = getattr(made.search if hasattr(made.search, name) else made, name)
            assert found == (float(value) if name in REALS else value)
            continue
        with pytest.raises(SettingError) as error:
            paper_config(**config)
        one_sentence(str(error.value), name)
        refused += 1
    assert refused >= len(ODD) - 6
    figure(f"settings_{name}", cases=refused)


@pytest.mark.parametrize("name", RULES)
def test_every_stopping_rule(name: str, figure: Callable[..., None]) -> None:
    refused = 0
    for value in ODD:
        if works(name, value):
            assert getattr(Stop(**{name: value}), name) == (float(value) if name in REALS else value)
            continue
        with pytest.raises(SettingError) as error:
            Stop(**{name: value})
        one_sentence(str(error.value), name)
        refused += 1
    assert refused >= len(ODD) - 6
    figure(f"settings_{name}", cases=refused)


@pytest.mark.parametrize("value", [value for value in ODD if not works("workers", value)], ids=lambda v: repr(v)[:20]
                         if not isinstance(v, int) or abs(v) < 10**100 else "huge")  # fmt: skip
def test_workers_and_episodes(value: Any) -> None:
    with pytest.raises(SettingError) as error:
        make_executor(factory("lqr"), value)
    one_sentence(str(error.value), "workers")
    policy = ars.LinearPolicy(np.zeros((3, 3)), np.zeros(3), np.ones(3))
    for name in ("episodes", "seed"):
        if not works(name, value):
            with pytest.raises(SettingError) as error:
                ars.evaluate(policy, "lqr", **{name: value})
            one_sentence(str(error.value), name)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"b": 9}, "b = 9 is larger than N = 8"),
        ({"variant": "V2"}, "b = 4 < N = 8"),
        ({"variant": "V1", "b": 2}, "b = 2 < N = 8"),
        ({"variant": "BRS"}, "b = 4 < N = 8"),
        ({"noise": "table", "table_size": 0}, "contradict"),
        ({"noise": "counter", "table_size": 5}, "contradict"),
        ({"noise": "table", "table_size": 8}, "smaller than one direction"),
        ({"variant": "V1-t", "stats_every": 2}, "V1-t has none"),
        ({"until": 5.0, "eval_every": 0}, "until = 5 needs evaluations"),
        ({"task": "Swimmer-v5", "H": 1001}, "H = 1001 is longer than Swimmer-v5 lasts"),
        ({"task": "CartPole-v1", "H": 501}, "H = 501 is longer than CartPole-v1 lasts"),
        ({"address": "127.0.0.1:1"}, "address = '127.0.0.1:1' needs the executor ray"),
        ({"executor": "cloud"}, "executor = 'cloud' is unknown"),
        ({"executor": "ray", "address": "ray://127.0.0.1:1"}, "must be host:port or auto"),
    ],
)
def test_pairs_that_contradict(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    """At once, and without a folder that the corrected call would be refused."""
    chosen = {"task": "lqr", **GOOD, "iterations": 1, **settings}
    with pytest.raises(ars.ArsError, match=re.escape(words)) as error:
        ars.train(chosen.pop("task"), **chosen, out=tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


# -- the command line ------------------------------------------------------------------------------------------------

TEXTS = [
    "0", "-1", "1.5", "1e30", "-1e30", "1e400", "1" + "0" * 400, "9" * 5000, "nan", "NaN", "inf", "-inf", "infinity",
    "x", "", "True", "0x10", "1_0", "1,0", "1;touch x", "$(touch x)", "--", "½",
]  # fmt: skip
FLAGS = [
    field.name
    for kind in (Settings, StopRules)
    for field in dataclasses.fields(kind)
    if field.name not in ("search", "variant", "noise", "scaled", "normalise", "observe", "mirror", "steady")
]
POLICY = str(Path(__file__).parent.parent / "fixtures" / "format1" / "lqr" / "best.npz")


def meaning(name: str, text: str) -> Any:
    """The value of a text, for whoever types it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def refuse(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What `ars` says: one line, and exit code 2."""
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    printed = capsys.readouterr()
    assert (end.value.code, printed.out) == (2, "")
    assert printed.err.startswith("ars: ")
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize("name", FLAGS)
def test_every_number_of_the_command_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], figure: Callable[..., None]
) -> None:
    """Whatever would do is not even tried: the folder is a file."""
    assert {"alpha", "N", "seed", "iterations", "until", "table_size"} <= set(FLAGS)
    (tmp_path / "file").write_text("mine")
    words = ["train", "lqr", "--workers", "1", "--out", str(tmp_path / "file")]
    words += [] if name in RULES else ["--iterations", "1"]
    needs = {"b": ["--variant", "V1-t"], "stats_every": ["--variant", "V2"], "table_size": ["--noise", "table"]}
    words += needs.get(name, [])
    flag = f"--{name.replace('_', '-')}"
    refused = 0
    for text in TEXTS[:: size(3, 1)]:
        said = refuse([*words, f"{flag}={text}"], capsys)
        value = meaning(name, text)
        value = int(value) if name not in REALS and value is not None and value == value // 1 else value
        if "Cannot create the folder" in said:  # the settings were good
            assert works(name, value), text
        else:
            assert name in said.replace("-", "_") or flag in said
            refused += 1
    assert refused >= len(TEXTS[:: size(3, 1)]) - 6
    assert (tmp_path / "file").read_text() == "mine"
    figure(f"flags_{name}", cases=refused)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "lqr", "--workers", "2", "--executor", "ray", "--address", "127.0.0.1:1"], "workers = 2"),
        (["train", "lqr", "--address", "127.0.0.1:1"], "executor ray"),
        (["train", "lqr", "--until", "1", "--eval-every", "0"], "until = 1 needs evaluations"),
        (["train", "lqr", "--noise", "counter", "--table-size", "100"], "contradict"),
        (["train", "Swimmer-v5", "--H", "1001"], "H = 1001"),
        *[(["train", "lqr", "--workers", text], "workers") for text in ("0", "-1", "1.5", "nan", "1e9", "x", "")],
        *[(["evaluate", POLICY, "--episodes", text], "episodes") for text in ("0", "-1", "1.5", "nan", "1e9", "x")],
        *[(["evaluate", POLICY, "--seed", text], "seed") for text in ("-1", "1.5", "nan", "1e30", "x")],
        *[(["lqr", "--quiet", "--trials", text], "trials") for text in ("0", "-1", "1.5", "nan", "inf", "x")],
        *[(["lqr", "--quiet", "--budget", text], "budget") for text in ("0", "-1", "1.5", "nan", "inf", "x")],
        *[(["lqr", "--quiet", "--seed", text], "seed") for text in ("-1", "1.5", "nan", "1e30")],
        *[(["lqr", "--quiet", "--workers", text], "workers") for text in ("0", "-1", "nan")],
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_other_commands(
    words: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in refuse(words, capsys)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]
