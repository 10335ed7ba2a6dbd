"""Exports: each against `act`. C is compiled with the machine's compiler, ONNX is run by onnxruntime."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ars.errors import SettingError
from ars.interop.exports import C_FLAGS, export, file_name
from ars.policy import Actions, LinearPolicy
from ars.tasks import make

CC = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", C_FLAGS]
SOURCE = """\
#include <stdio.h>
#include "policy.h"

int main(void)
{
    double observation[ARS_N], a[ARS_P], action[ARS_ACTIONS];
    while (fread(observation, sizeof(double), ARS_N, stdin) == ARS_N) {
        ars_pi(observation, a);
        ars_act(observation, action);
        fwrite(a, sizeof(double), ARS_P, stdout);
        fwrite(action, sizeof(double), ARS_ACTIONS, stdout);
    }
    return 0;
}
"""
HOSTILE = '*/ int main(void) { /* ??/ " \\ \n\r\x00 \u2028 é %s */ #error'


def random_policy(p: int, n: int, seed: int = 0, **task: Any) -> LinearPolicy:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-9, 9, (p, n))
    sigma = np.where(rng.random(n) < 0.2, np.inf, rng.uniform(1e-4, 3.0, n))
    return LinearPolicy(rng.standard_normal((p, n)) * scale, rng.standard_normal(n), sigma, task)


def box(**more: Any) -> dict[str, Any]:
    return Actions("box", **more).to_dict()


def run_c(policy: LinearPolicy, x: np.ndarray, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """π(x) and the actions, by the compiled header."""
    if shutil.which("cc") is None and os.environ.get("CI") != "true":
        pytest.skip("no C compiler: apt-get install gcc")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.h").write_bytes(export(policy, "c"))
    (folder / "main.c").write_text(SOURCE)
    subprocess.run([*CC, "main.c", "-o", "main"], cwd=folder, check=True, capture_output=True, text=True)
    out = subprocess.run([folder / "main"], input=x.tobytes(), capture_output=True, check=True).stdout
    rows = np.frombuffer(out).reshape(len(x), -1)
    return rows[:, : policy.p], rows[:, policy.p :]


def run_onnx(policy: LinearPolicy, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(export(policy, "onnx"), providers=["CPUExecutionProvider"])
    pi, action = session.run(["pi", "action"], {"observation": x})
    return pi, action


def summation_error(policy: LinearPolicy, x: np.ndarray) -> np.ndarray:
    """How far two orders of adding the same n + 1 products can lie apart: 2 γ_n Σ |terms| (Higham, section 4.2)."""
    terms = np.abs(x) @ np.abs(policy.W).T + np.abs(policy.c)
    return 2 * (policy.n + 2) * np.finfo(float).eps * terms


KINDS = {
    "plain": {},
    "clipped": box(low=(-1.0, -0.5, -2.0), high=(1.0, 0.5, 2.0)),
    "one-sided": box(low=(-1.0, -np.inf, 0.0), high=(np.inf, 0.5, np.inf)),
    "float32": box(low=(-1.0,) * 3, high=(1.0,) * 3, dtype="float32"),
    "whole": box(low=(-4.0,) * 3, high=(4.0,) * 3, dtype="int64"),
    "shaped": box(shape=(3, 1)),
    "discrete": Actions("discrete", start=-2).to_dict(),
}


def policy_of_kind(kind: str) -> LinearPolicy:
    policy = random_policy(3, 5, seed=7)
    M = np.random.default_rng(1).standard_normal((3, 5))
    return LinearPolicy(M, policy.mu, policy.sigma, {"actions": KINDS[kind]} if KINDS[kind] else {})


@pytest.mark.parametrize("kind", KINDS)
def test_c_has_the_bits_of_act(kind: str, tmp_path: Path) -> None:
    """Compiled without warnings: π(x) to the bit, and the actions as the environment would get them."""
    policy = policy_of_kind(kind)
    x = np.random.default_rng(2).standard_normal((500, 5)) * 3
    pi, actions = run_c(policy, x, tmp_path)
    assert pi.tobytes() == policy.act(x).tobytes()
    expected = policy.actions.apply(policy.act(x)).astype(np.float64).reshape(len(x), -1)
    assert actions.tobytes() == expected.tobytes()


def test_c_rounds_halves_to_even(tmp_path: Path) -> None:
    """As NumPy's rint."""
    policy = LinearPolicy(
        np.ones((1, 1)), np.zeros(1), np.ones(1), {"actions": box(low=(-9.0,), high=(9.0,), dtype="int8")}
    )
    x = np.array([[-2.5], [-1.5], [-0.5], [0.5], [1.5], [2.5], [3.4999999999999996], [40.0], [-40.0]])
    _, actions = run_c(policy, x, tmp_path)
    assert actions[:, 0].tolist() == [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0, 3.0, 9.0, -9.0]


def test_c_of_awkward_numbers(tmp_path: Path) -> None:
    """Subnormal, huge, negative zero and thirds are printed so that they come back."""
    M = np.array([[5e-324, -0.0, 1 / 3, 1.7e308], [2.2250738585072014e-308, 0.1, -1e22, 1e-5]])
    policy = LinearPolicy(M, np.array([0.0, -0.0, 1e-300, 0.0]), np.ones(4))
    x = np.random.default_rng(3).standard_normal((50, 4)) * 0.1
    pi, _ = run_c(policy, x, tmp_path)
    assert pi.tobytes() == policy.act(x).tobytes()


@pytest.mark.parametrize("size", [(1, 1), (17, 376)])
def test_c_of_small_and_humanoid_size(size: tuple[int, int], tmp_path: Path) -> None:
    policy = random_policy(*size, seed=5)
    x = np.random.default_rng(4).standard_normal((20, size[1]))
    assert run_c(policy, x, tmp_path)[0].tobytes() == policy.act(x).tobytes()


@settings(max_examples=8)
@given(st.text(max_size=60))
def test_c_comments_cannot_be_left(text: str) -> None:
    """A task's name comes from a file: it stays inside the comment, whatever it is."""
    for name in (text, HOSTILE, text + "*/", "/*/" * 3, "?" * 4 + "/", "x" * 10_000):
        content = export(LinearPolicy(np.ones((1, 1)), np.zeros(1), np.ones(1), {"name": name}), "c").decode("ascii")
        comment, _, code = content.partition(" */\n")
        assert "*/" not in comment
        assert "/*" not in comment[2:]
        assert code.startswith("#ifndef ARS_POLICY_H")


def test_c_with_a_hostile_name_compiles(tmp_path: Path) -> None:
    policy = random_policy(2, 3, name=HOSTILE, imported={"file": HOSTILE, "notes": [HOSTILE]})
    x = np.ones((1, 3))
    assert run_c(policy, x, tmp_path)[0].tobytes() == policy.act(x).tobytes()


@pytest.mark.parametrize(
    ("actions", "words"),
    [(box(dtype="float16"), "float16"), (box(dtype="int32"), "without bounds")],
)
def test_what_c_does_not_have_is_a_sentence(actions: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        export(random_policy(2, 3, actions=actions), "c")


# -- ONNX ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_agrees_with_act(kind: str) -> None:
    """onnxruntime adds in its own order: equal to the rounding error of a sum; the actions follow their rules."""
    policy = policy_of_kind(kind)
    x = np.random.default_rng(2).standard_normal((500, 5)) * 3
    pi, action = run_onnx(policy, x)
    assert (np.abs(pi - policy.act(x)) <= summation_error(policy, x)).all()
    expected = policy.actions.apply(pi)
    assert action.dtype == expected.dtype
    assert action.shape == expected.shape
    assert action.tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [(1, 1), (17, 376)])
def test_onnx_of_small_and_humanoid_size(size: tuple[int, int]) -> None:
    policy = random_policy(*size, seed=5)
    x = np.random.default_rng(4).standard_normal((20, size[1]))
    assert (np.abs(run_onnx(policy, x)[0] - policy.act(x)) <= summation_error(policy, x)).all()


def test_onnx_carries_its_origin() -> None:
    import onnx

    model = onnx.load_model_from_string(export(random_policy(2, 3, name=HOSTILE), "onnx"))
    props = {prop.key: prop.value for prop in model.metadata_props}
    assert props["task"] == HOSTILE
    assert json.loads(props["definition"]) == {"name": HOSTILE}
    assert "W = M / sigma" in props["formula"]


def test_without_onnx_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SettingError, match=r"pip install 'ars-rl\[onnx\]'"):
        export(random_policy(2, 3), "onnx")


# -- JSON ------------------------------------------------------------------------------------------------------------


def test_json_is_valid_and_complete() -> None:
    """Strict JSON, with every number to the bit; from it, a plain loop gives the bits of act."""
    policy = random_policy(2, 9, seed=3, name=HOSTILE, actions=box(low=(-1.0, -np.inf), high=(1.0, 2.0)))
    assert np.isinf(policy.sigma).any()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    value = json.loads(export(policy, "json"), parse_constant=refuse)
    sigma = [np.inf if entry is None else entry for entry in value["sigma"]]
    assert (value["n"], value["p"], value["task"], value["definition"]) == (9, 2, HOSTILE, policy.task)
    assert np.array(sigma).tobytes() == policy.sigma.tobytes()
    for name in ("W", "c", "M", "mu"):
        assert np.array(value[name]).tobytes() == getattr(policy, name).tobytes()
    assert value["actions"]["low"] == [-1.0, None]
    x = np.random.default_rng(0).standard_normal(9)
    actions = []
    for W_i, c_i in zip(value["W"], value["c"], strict=True):
        a = -c_i
        for w, x_j in zip(W_i, x.tolist(), strict=True):
            a += w * x_j
        actions.append(a)
    assert actions == policy.act(x).tolist()


# -- all -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["c", "onnx", "json"])
@pytest.mark.parametrize("name", ["\ud800", "", "ü" * 1000, 3, None, ["*/"], {"a": "*/"}])
def test_any_name_can_be_exported(to: str, name: Any) -> None:
    """What stands in a policy's description may be anything that JSON has."""
    policy = LinearPolicy(np.ones((1, 1)), np.zeros(1), np.ones(1), {"name": name})
    assert export(policy, to)
    file_name(policy, to).encode()


@pytest.mark.parametrize("to", ["onnx", "json"])
def test_a_description_that_is_not_json_is_a_sentence(to: str) -> None:
    policy = LinearPolicy(np.ones((1, 1)), np.zeros(1), np.ones(1), {"eval_mean": {1, 2}})
    with pytest.raises(SettingError, match="cannot be exported"):
        export(policy, to)


@pytest.mark.parametrize("to", ["c", "onnx", "json"])
def test_weights_that_overflow_are_refused(to: str) -> None:
    policy = LinearPolicy(np.full((1, 1), 1e300), np.zeros(1), np.full(1, 1e-300))
    with pytest.raises(SettingError, match="not finite"):
        export(policy, to)


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(SettingError, match="c, onnx, json"):
        export(random_policy(1, 1), "pdf")


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ({"name": "Hopper-v1"}, "Hopper-v1.h"),
        ({}, "policy.h"),
        ({"name": "../my:env"}, "-my-env.h"),
        ({"name": "."}, "policy.h"),
    ],
)
def test_file_names_stay_here(task: dict[str, Any], name: str) -> None:
    assert file_name(LinearPolicy(np.ones((1, 1)), np.zeros(1), np.ones(1), task), "c") == name


@pytest.mark.parametrize("name", ["Hopper-v1", "Pendulum-v1", "CartPole-v1"])
def test_real_tasks_in_c(name: str, tmp_path: Path) -> None:
    """With the action conventions of the task: as they are, clipped, argmax."""
    task = make(name)
    task.close()
    rng = np.random.default_rng(6)
    policy = LinearPolicy(
        rng.standard_normal((task.p, task.n)), rng.standard_normal(task.n), np.ones(task.n), task.definition()
    )
    x = rng.standard_normal((100, task.n))
    pi, actions = run_c(policy, x, tmp_path)
    assert pi.tobytes() == policy.act(x).tobytes()
    expected, _ = policy.predict(x)
    assert actions.tobytes() == expected.astype(np.float64).reshape(len(x), -1).tobytes()


def test_numbers_have_their_names() -> None:
    """A robot's are its model's, in the order of the observation; a Dict's are its keys."""
    task = make("Hopper-v1")
    task.close()
    policy = LinearPolicy(np.ones((3, 11)), np.zeros(11), np.ones(11), task.definition())
    found = json.loads(export(policy, "json"))["names"]
    assert (len(found["observation"]), len(found["action"])) == (11, 3)
    assert found["action"] == ["thigh_joint", "leg_joint", "foot_joint"]
    assert "thigh_joint" in found["observation"][2]
    assert 'a[2]: "foot_joint"' in export(policy, "c").decode()
    structure = {"dict": [["position", {"shape": [2]}], ["*/", {"shape": [1]}]]}
    policy = LinearPolicy(np.ones((1, 3)), np.zeros(3), np.ones(3), {"observation": structure})
    assert "position" in json.loads(export(policy, "json"))["names"]["observation"][0]
    assert "*/" not in export(policy, "c").decode().partition(" */\n")[0]


def test_the_program_in_the_documentation(tmp_path: Path) -> None:
    """docs/exports.md: it compiles as it says and prints the action."""
    if shutil.which("cc") is None and os.environ.get("CI") != "true":
        pytest.skip("no C compiler: apt-get install gcc")
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()
    (tmp_path / "main.c").write_text(page.split("```c\n")[1].split("```")[0])
    policy = random_policy(2, 3, name="Any-v0")
    (tmp_path / "policy.h").write_bytes(export(policy, "c"))
    assert "cc -std=c99 -O2 -ffp-contract=off main.c -o main" in page
    subprocess.run([*CC, "main.c", "-o", "main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    said = subprocess.run([tmp_path / "main", "0.1", "-0.2"], capture_output=True, text=True, check=True).stdout
    assert [float(line) for line in said.split()] == policy.act([0.1, -0.2, 0.0]).tolist()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """ars export writes the file that the library makes, and never over its source."""
    from ars.cli import main

    monkeypatch.chdir(tmp_path)
    policy = random_policy(2, 3, name="Any-v0")
    policy.save("policy.npz")
    for to, file in (("c", "Any-v0.h"), ("onnx", "Any-v0.onnx"), ("json", "Any-v0.json")):
        with pytest.raises(SystemExit, match="0"):
            main(["export", "policy.npz", "--to", to])
        assert Path(file).read_bytes() == export(policy, to)
        assert f"Wrote {file}" in capsys.readouterr().out
    before = Path("policy.npz").read_bytes()
    with pytest.raises(SystemExit, match="2"):
        main(["export", "policy.npz", "--to", "c", "--out", "./policy.npz"])
    assert "is the input file" in capsys.readouterr().err
    assert Path("policy.npz").read_bytes() == before
