"""What goes onto the page, without a browser: numbers by hand, and nothing that a file says gets out of its place."""

import base64
import hashlib
import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ars.errors import ArsError, FileError, SettingError
from ars.page.charts import band, speeds, telemetry_names, thin
from ars.page.gallery import gallery_names
from ars.page.html import as_json, page
from ars.page.report import commands, group, report_data, settings, short_names, write_report
from ars.run_files import read_run


def record(timesteps: int, seconds: float, **more: float) -> dict[str, float]:
    return {"episodes": timesteps // 10, "timesteps": timesteps, "seconds": seconds, **more}


def test_speeds_over_stretches_of_the_run() -> None:
    lines = [record(100, 1.0), record(200, 2.0), record(300, 12.0, eval_mean=5.0), record(500, 13.0)]
    found = speeds(lines)
    assert found["columns"]["steps_per_second"] == [100.0, 200.0]  # without the evaluation
    assert found["timesteps"] == [200, 500]
    assert speeds(lines, most=1)["columns"]["steps_per_second"] == [150.0]
    assert speeds([])["columns"]["steps_per_second"] == speeds(lines[:1])["columns"]["steps_per_second"] == []


def test_medians_and_percentiles_by_hand() -> None:
    """Percentiles are values that a run had: the definition of ars.statistics, for pages and figures alike."""
    curves = [([0, 10], [0, 10]), ([0, 10], [20, 20]), ([0, 5], [4, 4])]
    found = band(curves)
    assert found["xs"] == [0, 5, 10]
    assert found["ys"] == [4, 5, 10]  # the third has ended at 10: of 10 and 20 the lower is the median
    assert found["low"] == [0, 4, 10]
    assert found["high"] == [20, 20, 20]
    apart = [([0, 1], [0, 0]), ([2, 3], [0, 0])]
    assert band(apart)["xs"] == []
    late = [*curves[:2], ([8, 10], [100, 100])]
    assert band(late)["ys"][0] == 0  # of the two that have begun
    assert band(curves[::2])["xs"] == [0, 5]  # never of one run alone
    relay = [([0, 2], [1, 1]), ([0, 2], [2, 2]), ([9, 9.5], [3, 3]), ([1, 5, 9], [4, 4, 4])]
    assert band(relay)["xs"] == [0, 1, 2, 9]  # at 5 there is only the last
    assert band([([7], [1]), ([7], [3]), ([7], [5])]) == {"xs": [7], "ys": [3], "low": [1], "high": [5]}
    assert len(band([(list(range(1000)), [0.0] * 1000)] * 2)["xs"]) == 200


def test_a_band_has_a_gap_where_a_run_has_no_value() -> None:
    """An infinite cost is written as null: leaving that run out would flatter the others."""
    found = band([([0, 1, 2, 3], [None, None, 5, 4]), ([0, 1, 2, 3], [9, 8, 7, 6])])
    assert found["ys"] == [None, None, 5, 4]
    assert found["high"] == [None, None, 7, 6]


def test_telemetry_is_every_other_number() -> None:
    shared = {"iteration": 1, "episodes": 2, "timesteps": 3, "seconds": 0.5, "train_seconds": 0.4, "eval_seconds": 0.1,
              "reward_mean": 1.0, "reward_max": 2.0, "dropped": 0, "step_taken": True, "wire_bytes_out": 7,
              "wire_bytes_in": 7, "eval_mean": 1.0, "eval_std": 0.0, "eval_episodes": 3}  # fmt: skip
    lines = [{**shared, "sigma_R": 1.0, "cost": None, "never": None, "word": "x", "yes": True},
             {**shared, "sigma_R": 1.0, "cost": 2, "huge": 10**400}]  # fmt: skip
    assert telemetry_names(lines) == ["sigma_R", "cost"]


def test_telemetry_of_a_run_and_of_the_task(runs: list[Path]) -> None:
    one, two = read_run(runs[0]), read_run(runs[1])
    costly = [{**line, "relative_cost": None if i < 2 else 1.5} for i, line in enumerate(two.records)]
    data = report_data([one, replace(two, records=costly)], task=None, seconds=0)
    assert list(data["runs"][0]["telemetry"]["columns"]) == ["length_mean", "sigma_R", "update_norm"]
    assert data["runs"][1]["telemetry"]["columns"]["relative_cost"][:3] == [None, None, 1.5]
    names = ["eval_mean", "eval_min", "length_mean", "sigma_R", "update_norm", "relative_cost", "steps_per_second"]
    shown = data["tasks"][0]["charts"]
    assert [chart["column"] for chart in shown] == names
    assert [bool(chart["bands"][0]) for chart in shown] == [True] * 5 + [False, True]  # of one run no band
    assert [chart["limit"] for chart in shown] == [3430.0] + 6 * [None]
    assert shown[3]["title"] == "σ_R, the deviation of the rewards used in a step"


def test_groups_are_named_by_what_tells_them_apart() -> None:
    pairs = [("variant", "V2"), ("alpha", 0.02), ("N", 4)]
    assert group({0: pairs, 3: pairs}) == [("", [0, 3])]
    faster = [("variant", "V2"), ("alpha", 0.05), ("N", 4)]
    assert group({0: pairs, 1: faster, 2: pairs}) == [("alpha 0.02: ", [0, 2]), ("alpha 0.05: ", [1])]
    toy = [("search", "toy"), ("step", 0.5)]  # another search has other settings
    assert group({0: pairs, 1: toy}) == [("V2, alpha 0.02, N 4: ", [0]), ("toy, step 0.5: ", [1])]


def test_long_curves_are_thinned_with_both_ends() -> None:
    lines = [{"iteration": i} for i in range(10_001)]
    found = thin(lines, most=101)
    assert len(found) == 101
    assert [found[0], found[1], found[-1]] == [lines[0], lines[100], lines[-1]]
    assert thin(lines[:50], most=101) == lines[:50]


def test_names_are_as_short_as_can_be() -> None:
    assert short_names([Path("runs/a"), Path("runs/b")]) == ["a", "b"]
    assert short_names([Path("x/a"), Path("y/a"), Path("y/b")]) == ["x/a", "y/a", "y/b"]
    assert short_names([Path("x/a"), Path("x/a")]) == ["a", "a"]
    assert gallery_names(["Hopper-v1", "runs/a/best.npz", "runs/b"]) == ["Hopper-v1", "a", "b"]


def test_the_run_at_a_glance(runs: list[Path]) -> None:
    run = read_run(runs[0])
    evaluations = [(r["eval_mean"], r["iteration"]) for r in run.records if "eval_mean" in r]
    data = report_data([run], task=None, seconds=0)
    (shown,), (task,) = data["runs"], data["tasks"]
    facts = dict(shown["facts"])
    mean, iteration = max(evaluations)
    assert facts["best evaluation, mean"].startswith(f"{mean:.4g} ± ")
    assert (facts["seed"], facts["at iteration"]) == ("0", str(iteration))
    assert (facts["episodes to threshold"], facts["time to threshold"]) == ("not reached", "–")
    best = next(r for r in run.records if r["iteration"] == iteration)
    assert facts["its lowest reward"] == f"{best['eval_min']:.4g}"
    assert facts["episode length, change"] == f"{run.records[-1]['length_mean']:.0f}"  # HalfCheetah never falls
    assert facts["episodes"] == str(run.records[-1]["episodes"])
    assert (task["name"], task["headline"], task["best"]) == ("HalfCheetah-v1", "V2, seed 0", 0)
    assert len(shown["evaluations"]["columns"]["eval_mean"]) == len(evaluations)
    low, high = (shown["evaluations"][name][-1] for name in ("low", "high"))
    last = next(r for r in reversed(run.records) if "eval_mean" in r)
    assert (low + high) / 2 == pytest.approx(last["eval_mean"], rel=1e-4)
    assert (high - low) / 2 == pytest.approx(last["eval_std"], rel=1e-4)
    assert shown["gait"] is None
    paid = {**run.records[3], "eval_mean": 3500.0, "episodes": 12_345, "seconds": 75.0}
    shown = report_data([replace(run, records=[*run.records[:3], paid])], task=None, seconds=0)["runs"][0]
    assert dict(shown["facts"])["episodes to threshold"] == "12,345"
    assert dict(shown["facts"])["time to threshold"] == "1 min 15 s"
    shown = report_data([replace(run, records=[])], task=None, seconds=0)["runs"][0]
    assert dict(shown["facts"])["best evaluation, mean"] == dict(shown["facts"])["training steps/s"] == "–"


def test_settings_that_differ_are_marked(runs: list[Path]) -> None:
    shown = report_data([read_run(path) for path in runs[:2]], task=None, seconds=0)["runs"]
    for run in shown:
        assert {name for _, name, _, differs in run["settings"] if differs} == {"seed", "iterations"}


def test_the_heat_map_is_m_over_sigma(runs: list[Path]) -> None:
    import numpy as np

    run = read_run(runs[0])
    assert run.policy is not None
    sigma = run.policy.sigma.copy()
    sigma[2] = np.inf
    policy = replace(run.policy, sigma=sigma)
    shown = report_data([replace(run, policy=policy)], task=None, seconds=0)["runs"][0]["policy"]
    assert shown["W"][1][4] == float(f"{run.policy.M[1, 4] / sigma[4]:.4g}")
    assert [row[2] for row in shown["W"]] == [0.0] * 6
    assert shown["ignored"] == [2]
    assert shown["scales"]["W"][0] == float(f"{np.abs(policy.W).max():.4g}")
    assert shown["scales"]["M"][1:] == [float(f"{np.abs(part).max():.4g}") for part in np.split(policy.M, [8], axis=1)]
    assert shown["rows"] == ["bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"]


def test_every_setting_is_there(runs: list[Path]) -> None:
    found = {(where, name): value for where, name, value in settings(read_run(runs[2]))}
    assert found["configuration", "search.alpha"] == "0.02"
    assert found["configuration", "seed"] == "2"
    assert found["stops at", "iterations"] == "12"
    assert found["task", "locomotion.frame_skip"] == "5"
    saved = json.loads((runs[2] / "config.json").read_text())
    assert {name for where, name in found if where == "configuration"} == {
        *(name for name in saved["config"] if name != "search"),
        *(f"search.{name}" for name in saved["config"]["search"]),
    }
    assert {name for where, name in found if where == "versions"} == set(saved["sessions"][-1]["versions"])


def test_commands_make_the_run_again(runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ars.cli import main

    words = shlex.split(dict(commands(read_run(runs[1])))["train it again"])
    assert words[:3] == ["ars", "train", "HalfCheetah-v1"]
    with pytest.raises(SystemExit) as ended:
        main([*words[1:], "--out", str(tmp_path / "again"), "--quiet", "--workers", "1"])
    assert ended.value.code == 0
    for name in ("config.json", "policy.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (runs[1] / name).read_bytes()
    odd = replace(read_run(runs[0]), path=Path("my runs/$(rm -rf x); 'q'"))
    for _, command in commands(odd):
        assert shlex.join(shlex.split(command)) == command  # quoted: a shell sees words, nothing else


def test_json_cannot_be_taken_for_markup() -> None:
    nasty = {"</script><script>alert(1)</script>": "<!-- \u2028 & ]]> {{SCRIPT}} 'ü'"}
    text = as_json(nasty)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == nasty


def test_odd_text_and_deep_nesting_come_through(runs: list[Path]) -> None:
    run = read_run(runs[0])
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    deeper = {"a": {"b": 2.5}}
    for _ in range(300):
        deeper = {"c": deeper}
    odd = replace(run, definition={**run.definition, "\ud800": "\udfff ü", "deep": deep, "deeper": deeper})
    assert "\\udfff \\u00fc" in page(report_data([odd], task=None, seconds=0))
    assert ("task", "deep", "…") in settings(odd)


@pytest.mark.parametrize("name", ["config.json", "records.jsonl", "best.npz"])
def test_damaged_bytes_are_a_sentence_or_a_page(tmp_path: Path, name: str) -> None:
    """A hundred damaged files each: other bytes, lost ones, lost ends, foreign words."""
    from random import Random

    from small_runs import train

    folder = train(tmp_path / "run", "CartPole-v1", iterations=4)
    good, random = (folder / name).read_bytes(), Random(name)
    refused = 0
    for _ in range(100):
        bad = bytearray(good)
        for _ in range(random.choice((1, 1, 2, 20))):
            at = random.randrange(len(bad) + 1)
            kind = random.randrange(4)
            if kind == 0:
                bad[at : at + 1] = random.randbytes(1)
            elif kind == 1:
                del bad[at : at + random.randrange(1, 40)]
            elif kind == 2:
                bad[at:at] = random.choice((b"1e999", b"NaN", b"null", b"{", b"[]", b'"', b"-", b"\xff", b"9" * 400))
            else:
                del bad[max(1, at) :]
        (folder / name).write_bytes(bytes(bad))
        try:
            page(report_data([read_run(folder)], task=None, seconds=0))
        except ArsError:
            refused += 1
    assert refused > 20


def test_the_page_allows_its_own_script_only_and_no_network() -> None:
    text = page({"kind": "gallery", "version": "{{SCRIPT}}", "policies": []})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert text.count("{{SCRIPT}}") == 1  # what the data says is not filled in


def test_the_same_runs_give_the_same_page(runs: list[Path], tmp_path: Path) -> None:
    found = [read_run(path) for path in runs]
    write_report(found, tmp_path / "a.html", seconds=0)
    write_report(found, tmp_path / "b.html", seconds=0)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    with pytest.raises(FileError, match="there is no folder"):
        write_report(found, tmp_path / "nowhere" / "a.html", seconds=0)


def test_a_task_of_ones_own_is_not_imported_by_a_report(runs: list[Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs[0], tmp_path / "run"))
    (folder / "checkpoint.npz").unlink()  # it would not match
    text = (folder / "config.json").read_text()
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')")
    (folder / "config.json").write_text(text.replace('"task": "HalfCheetah-v1"', '"task": "evil:make"'))
    shown = report_data([read_run(folder)], task=None, seconds=0.1)["runs"][0]
    assert "--task evil:make" in shown["gait"]["why_not"]
    assert shown["policy"]["rows"] == ["a0", "a1", "a2", "a3", "a4", "a5"]
    assert not (tmp_path / "was here").exists()


def test_a_task_is_confirmed_for_its_own_runs_only(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from small_runs import train

    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    mine = read_run(train(tmp_path / "mine", "film_envs:Painted", iterations=2))
    monkeypatch.setenv("MUJOCO_GL", "off")  # the robot's film fails for a reason of its own
    shown = report_data([mine, read_run(runs[0])], task="film_envs:Painted", seconds=0.3)["runs"]
    assert len(shown[0]["gait"]["frames"]) == 4
    assert "MUJOCO_GL" in shown[1]["gait"]["why_not"]
    with pytest.raises(SettingError, match="task = other:make has no run among these"):
        report_data([mine], task="other:make", seconds=0.3)
