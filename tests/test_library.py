"""The library takes objects: environments' classes, functions that make environments, descriptions of robots. Also its
default number of workers, its typed keywords, and what it prints."""

import functools
import inspect
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import ars
import small_envs
from ars import workers
from ars.cli import main
from ars.config import Config
from ars.errors import ArsError, SettingError, TaskError
from ars.records import Evaluation
from ars.searches.ars import ARS
from ars.sessions import RULES, SETTINGS
from ars.settings import own_fields
from ars.stopping import Stop
from ars.tasks import TaskLike, factory
from ars.tasks.locomotion import TASKS
from ars.tasks.user_code import name_of

DRIFT = "small_envs:Drift"
SMALL: dict[str, Any] = {"alpha": 0.1, "nu": 0.3, "N": 3, "seed": 5, "eval_every": 2, "eval_episodes": 2,
                         "protocol": "paper"}  # fmt: skip
STRANGE = replace(TASKS["Swimmer-v5"], name="strange swimmer", ctrl_weight=0.0)


def make_drift() -> Any:
    return small_envs.Drift()


class Harbour:
    class Drift(small_envs.Drift):
        """An environment inside another class."""

    @staticmethod
    def make() -> Any:
        return small_envs.Drift()


def local() -> Any:
    def make() -> Any:
        return small_envs.Drift()

    return make


def bits(task: TaskLike, **settings: Any) -> list[bytes]:
    return [record.policy.M.tobytes() for record in ars.train(task, **{**SMALL, "iterations": 3, **settings})]


# -- names -----------------------------------------------------------------------------------------------------------

IMPORTABLE: dict[str, Any] = {
    DRIFT: small_envs.Drift,
    "test_library:make_drift": make_drift,
    "test_library:Harbour.Drift": Harbour.Drift,
    "test_library:Harbour.make": Harbour.make,
}
NOT_IMPORTABLE: dict[str, Any] = {
    "test_library:<lambda>": lambda: small_envs.Drift(),
    "test_library:<local.make>": local(),
    "test_library:<make_drift>": functools.partial(make_drift),
}


@pytest.mark.parametrize("name", [*IMPORTABLE, *NOT_IMPORTABLE])
def test_an_environment_as_an_object(name: str, tmp_path: Path) -> None:
    """Its bits are those of the same environment under a name; a run of it is resumed with the object or, where
    Python can import the object, with its name."""
    task = {**IMPORTABLE, **NOT_IMPORTABLE}[name]
    expected = bits(DRIFT)
    assert name_of(task) == name
    assert bits(task, out=tmp_path / "run", iterations=2) == expected[:2]
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["task"] == name
    with pytest.raises(SettingError) as error:
        ars.resume(tmp_path / "run", iterations=3)
    assert f"This run is for {name}, " in str(error.value)
    with pytest.raises(SettingError, match=f"is a run of {name}, not of small_envs:Slow"):
        ars.resume(tmp_path / "run", iterations=3, task=small_envs.Slow)
    if name in NOT_IMPORTABLE:
        with pytest.raises(TaskError, match="cannot be imported"):
            ars.resume(tmp_path / "run", iterations=3, task=name)
    *_, record = ars.resume(tmp_path / "run", iterations=3, task=name if name in IMPORTABLE else task)
    assert record.policy.M.tobytes() == expected[2]
    by_name = ars.evaluate(record.policy, DRIFT, episodes=3)
    assert (ars.evaluate(record.policy, task, episodes=3).rewards == by_name.rewards).all()


def test_objects_of_notebooks_are_needed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can import what a notebook defines, even if it is found in its main module."""
    monkeypatch.setattr(sys.modules["__main__"], "make_drift", make_drift, raising=False)
    monkeypatch.setattr(make_drift, "__module__", "__main__")
    assert name_of(make_drift) == "__main__:<make_drift>"


def test_a_description_of_a_robot() -> None:
    """One of ours has its name and preset; any other one is compiled as well."""
    settings = {"H": 50, "eval_every": 0}
    assert bits(TASKS["Swimmer-v5"], **settings) == bits("Swimmer-v5", **settings)
    made = factory(STRANGE)
    assert (made.name, made.releases_gil) == ("Locomotion:<strange swimmer>", True)
    assert bits(STRANGE, **settings, workers=2) == bits(STRANGE, **settings) != bits("Swimmer-v5", **settings)


def test_ask_and_tell_takes_objects(tmp_path: Path) -> None:
    with ars.AskTell.create(tmp_path / "run", small_envs.Drift, **SMALL) as run:
        assert run.config.task == DRIFT
        assert (run.policy.p, run.policy.n) == (2, 3)


class NotAnEnvironment: ...


class NeedsMass(small_envs.Drift):
    def __init__(self, mass: float) -> None: ...


class NoSpaces(gymnasium.Env[Any, Any]): ...


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (3, "task = 3 is not a task: give a name, a gymnasium.Env class, or a function"),
        (None, "task = None is not a task"),
        (small_envs.Drift(), "is an environment, and every worker needs its own: give its name or class, or a func"),
        (gymnasium.spec("CartPole-v1"), "is not a task"),
        (NotAnEnvironment, "is not a subclass of gymnasium.Env"),
        (NeedsMass, "needs arguments (missing a required argument: 'mass')"),
        (lambda size: size, "needs arguments (missing a required argument: 'size')"),
        (lambda: 3, "Cannot make test_library:<lambda>: TypeError: the factory returned int, not a gymnasium.Env"),
        (NoSpaces, "Cannot make test_library:NoSpaces: TypeError: the environment has no observation_space"),
    ],
)
def test_what_cannot_be_a_task_is_a_sentence(task: Any, words: str, tmp_path: Path) -> None:
    policy = ars.LinearPolicy(np.zeros((2, 3)), np.zeros(3), np.ones(3))
    calls: list[Callable[[], Any]] = [
        lambda: ars.train(task, iterations=1, out=tmp_path / "run"),
        lambda: ars.AskTell.create(tmp_path / "run", task),
    ]
    if task is not None:
        calls.append(lambda: ars.evaluate(policy, task))
    for call in calls:
        with pytest.raises(ArsError) as error:
            call()
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


# -- workers ---------------------------------------------------------------------------------------------------------


def test_all_cores_by_default(default_workers: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    """One where processes would not do: for what they cannot import, and in a process that is one of many."""
    monkeypatch.setattr("ars.executors.cores", lambda: 5)
    tasks: list[Any] = ["Swimmer-v5", STRANGE, DRIFT, small_envs.Drift, *NOT_IMPORTABLE.values()]
    assert [default_workers(factory(task)) for task in tasks] == [5, 5, 5, 5, 1, 1, 1]
    with monkeypatch.context() as patch:
        patch.setattr("multiprocessing.parent_process", lambda: "somebody")
        assert {default_workers(factory(task)) for task in tasks} == {1}
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)  # imports its script
    assert {default_workers(factory(task)) for task in tasks} == {1}


@pytest.mark.parametrize("task", NOT_IMPORTABLE.values(), ids=NOT_IMPORTABLE)
def test_processes_need_what_they_can_import(task: Any) -> None:
    with pytest.raises(SettingError, match=r"workers = 2 needs a task that processes can import, and test_library:<"):
        ars.train(task, **SMALL, iterations=1, workers=2)


GUARDED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import ars, small_envs

class Boat(small_envs.Drift):
    steps = 10

if __name__ == "__main__":
    class Inner(Boat): pass
    if sys.argv[1] == "train":
        for record in ars.train(Boat, **{settings!r}, iterations=6, out="run"):
            print(os.getpid(), flush=True)
            if record.iteration == 4:
                os.kill(os.getpid(), signal.SIGKILL)
    else:
        for record in ars.resume("run", task=Boat):
            print(record)
        print(ars.evaluate(record.policy, Inner, episodes=2))  # in one process: no other could import it
        try:
            ars.resume("run", task=Inner)
        except ars.ArsError as error:
            print(error)
"""


def run_script(path: Path, *words: str, code: int = 0) -> str:
    """What it prints, and nothing on standard error; Python's resource tracker complains there after a kill."""
    result = subprocess.run(
        [sys.executable, path.name, *words], cwd=path.parent, capture_output=True, text=True, timeout=120
    )
    assert (result.returncode, "" if code < 0 else result.stderr) == (code, "")
    return result.stdout


def test_a_class_of_a_script_is_killed_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script trains its own class in processes; the run has the bits and the name of that class in a module, hence
    the command line can continue it as well."""
    script = tmp_path / "boat_script.py"
    script.write_text(GUARDED.format(tests=str(Path(__file__).parent), settings=SMALL))
    run_script(script, "train", code=-9)
    said = run_script(script, "resume").splitlines()
    assert said[-1] == f"{tmp_path / 'run'} is a run of boat_script:Boat, not of boat_script:<Inner>."
    assert said[-2].startswith("Evaluation(")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import boat_script  # type: ignore[import-not-found]

    bits(boat_script.Boat, iterations=6, out=tmp_path / "uninterrupted")
    for file in ("policy.npz", "best.npz"):
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "uninterrupted" / file).read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["resume", "run", "--task", "boat_script:Boat", "--iterations", "7", "--workers", "1"])
    assert ended.value.code == 0
    assert "7 iterations are done" in capsys.readouterr().out


UNGUARDED = """
import ars
for record in ars.train("CartPole-v1", N=2, H=5, iterations=2, eval_every=0):
    pass
print(record.iteration)
try:
    list(ars.train("CartPole-v1", N=2, H=5, iterations=2, eval_every=0, workers=2))
except ars.ArsError as error:
    print(error)
"""


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    """By default it trains in one process; with more, each would train anew, and the user is told what to do."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    said = run_script(script).splitlines()
    assert said[0] == "2"
    assert said[1].endswith("In a script, training with worker processes must be inside `if __name__ == '__main__':`.")
    assert len(said) == 2


def test_where_a_script_is_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["import os", "def f():", "    g()", "f()", "if 1:", "    f()", 'if __name__ == "__main__":', "    f()"]
    lines += ["    with open(os.devnull):", "        f()", "else:", "    f()"]
    (tmp_path / "script.py").write_text("\n".join(lines))
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "script.py"), raising=False)
    guarded = {number for number in range(len(lines) + 1) if workers.is_guarded(number)}
    assert guarded == {8, 9, 10}
    (tmp_path / "script.py").write_text("not Python")
    assert not workers.is_guarded(8)


# -- keywords --------------------------------------------------------------------------------------------------------


def test_settings_are_typed_keywords() -> None:
    """The signature of `train` has every setting of ARS, every shared one and every stopping rule, with its type."""
    parameters = inspect.signature(ars.train).parameters
    declared = {f.name: f.type for f in (*own_fields(ARS), *own_fields(Config))}
    assert set(SETTINGS) == {"search", "variant", *declared}
    for name, kind in declared.items():
        assert parameters[name].annotation == (kind if name == "seed" else kind | None), name
        assert parameters[name].default == (0 if name == "seed" else None)
    rules = inspect.get_annotations(Stop)
    for function in (ars.train, ars.resume):
        found = inspect.signature(function).parameters
        assert {name: found[name].annotation for name in RULES} == rules


# -- what is printed -------------------------------------------------------------------------------------------------


def test_policies_and_records_are_printed_in_one_line(tmp_path: Path) -> None:
    first, record = ars.train(DRIFT, **SMALL, iterations=2, out=tmp_path / "run")
    assert str(record) == repr(record)
    assert str(first).startswith("Record(iteration 1, training reward ")
    assert str(record).startswith("Record(iteration 2, reward ")
    assert f" over 2 episodes; trained for 12 episodes, {record.timesteps} timesteps, " in str(record)
    assert str(first.policy) == "LinearPolicy(small_envs:Drift, 2×3, iteration 1)"
    assert str(record.state) == f"State(iteration 2, 2×3, 12 episodes, {record.timesteps} timesteps)"
    best = ars.LinearPolicy.load(tmp_path / "run" / "best.npz")
    assert (
        str(best)
        == str(record.policy)
        == f"LinearPolicy(small_envs:Drift, 2×3, iteration 2, reward {record.eval_mean:.4g})"
    )


def test_whatever_a_policy_file_holds_is_printed_in_one_line() -> None:
    M = np.zeros((6, 17))

    def policy(**task: Any) -> str:
        return repr(ars.LinearPolicy(M, M[0], M[0] + 1, task))

    known = policy(name="HalfCheetah-v5", iteration=20, eval_mean=1569.7)
    assert known == "LinearPolicy(HalfCheetah-v5, 6×17, iteration 20, reward 1570)"
    assert policy() == policy(name=[1], iteration="x", eval_mean=None) == "LinearPolicy(6×17)"
    assert policy(eval_mean=-0.0) == "LinearPolicy(6×17, reward 0)"
    assert policy(name="a\nb\x1b[31m") == "LinearPolicy(a\\nb\\x1b[31m, 6×17)"
    assert len(policy(name="x" * 1000, eval_mean=1e300)) < 120


def test_evaluations_are_printed_in_one_line() -> None:
    steps = np.full(3, 7)
    assert repr(Evaluation(np.array([1.0, 2.0, 3.0]), steps, 0)) == "Evaluation(reward 2 ± 0.8165 over 3 episodes)"
    assert repr(Evaluation(np.zeros(0), steps, 3)) == "Evaluation(no finite reward over 3 episodes)"


def test_a_folder_in_use_names_what_can_continue_it(tmp_path: Path) -> None:
    """The command line does not have the object."""
    few: Any = {"iterations": 1, "N": 1, "H": 5, "eval_every": 0, "workers": 1, "out": tmp_path / "run"}
    list(ars.train(lambda: small_envs.Drift(), **few))
    with pytest.raises(ars.ArsError, match=r"already holds config.json of a run: ars\.resume with the same task"):
        ars.train(lambda: small_envs.Drift(), **few)
