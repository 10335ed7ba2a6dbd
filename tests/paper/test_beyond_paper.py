"""What is beyond the paper: which runs the ablation, the caps and the selection ask for, and their tables by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ars.curves import Curve
from ars.errors import SettingError
from ars.experiments.engine import Outcome
from ars.experiments.run_specs import CAPS, RunSpec
from ars.paper import ablation, caps, selection
from ars.paper.artefact import MANY, Shown, Table
from ars.paper.reproduce import Request, coverage, draw, run_missing, up_to_cap
from ars.presets import Preset
from curve_maker import curve

SEEDS = (237, 759, 959)


def shown(curves: Sequence[Curve], task: str, seeds: Sequence[int]) -> Shown:
    return Shown(curves, [task], seeds, {task: 320})


def rows(table: Table) -> list[list[str]]:
    return [list(row) for row in table.rows]


# -- the ablation --------------------------------------------------------------------------------------------------


def test_the_ablation_changes_one_feature_at_a_time() -> None:
    specs = ablation.runs(["Hopper-v1", "Swimmer-v1"], (1, 2))
    assert [(one.task, one.config.label, one.config.seed) for one in specs[:6]] == [
        *(("Hopper-v1", name, 1) for name in ("V1", "V1-t", "V2", "V2-t")),
        *(("Swimmer-v1", name, 1) for name in ("V1", "V2")),  # with N = 1 there is no better half
    ]
    for task in ("Hopper-v1", "Swimmer-v1"):
        fixed = {(s.config.search.alpha, s.config.search.nu, s.config.search.N) for s in specs if s.task == task}
        assert len(fixed) == 1
    assert {one.config.eval_episodes for one in specs} == {10}  # one protocol


def test_brs_gets_the_step_of_v1_in_the_first_iteration() -> None:
    """By the same ten seeds whichever are asked for, so that its alpha is one."""
    first = [hopper("V1", [0], seed) for seed in ablation.SCALE]
    assert ablation.basic(["Hopper-v1"], ablation.SCALE, first[1:]) == []  # one is not there
    for asked in (ablation.SCALE[:2], ablation.SCALE, ablation.SEEDS):
        found = ablation.basic(["Hopper-v1"], asked, first)
        assert [(one.config.label, one.config.seed) for one in found] == [("BRS", seed) for seed in asked]
        assert {one.config.search.alpha for one in found} == {0.01}  # sigma_R begins with 1 in curves made by hand


def hopper(variant: str, rewards: list[float], seed: int) -> Curve:
    point = ablation.point("Hopper-v1", variant)._asdict()
    return curve(rewards, variant=variant, seed=seed, eval_episodes=10, **point)


def test_the_ablation_of_few_seeds_has_brs_too(tmp_path: Path) -> None:
    """Its scale needs ten seeds of V1, which are then among the runs."""
    request = Request(["ablation"], tmp_path, ["Hopper-v1"], ablation.SEEDS[:2])
    labels: list[str] = []
    while todo := request.to_do():
        labels += [spec.config.label for spec in todo]
        for spec in todo:
            one = hopper(spec.config.label, [0, 9], spec.config.seed)
            replace(one, episodes=CAPS["Hopper"]).save(tmp_path / "runs" / f"{spec.name}.json")
    assert {name: labels.count(name) for name in labels} == {"V1": 10, "V1-t": 2, "V2": 2, "V2-t": 2, "BRS": 2}


def test_the_ablation_by_hand() -> None:
    seeds = range(8)
    arrives = [hopper("V2", [0, 3200], s) for s in seeds]
    sooner = [hopper("V2-t", [3200], s) for s in seeds]
    never = [hopper("V1", [0, 312.0 + s], s) for s in seeds]
    scale = [hopper("V1", [0], seed) for seed in ablation.SCALE]
    all_shown = shown([*arrives, *sooner, *never, *scale], "Hopper-v1", seeds)
    assert rows(ablation.table(all_shown)) == [
        ["Hopper-v1", "BRS", "0.01", "0.025", "8", "8", "0 of 8", "–", "–"],
        ["Hopper-v1", "V1", "0.01", "0.025", "8", "8", "8 of 8", "0% [0%, 32%]", "never [never, never]"],
        ["Hopper-v1", "V1-t", "0.01", "0.025", "8", "4", "0 of 8", "–", "–"],
        ["Hopper-v1", "V2", "0.01", "0.025", "8", "8", "8 of 8", "100% [68%, 100%]", "320 [320, 320]"],
        ["Hopper-v1", "V2-t", "0.01", "0.025", "8", "4", "8 of 8", "100% [68%, 100%]", "160 [160, 160]"],
    ]
    pairs = {row[1]: row[2] for row in rows(ablation.pairs(all_shown))}
    assert pairs["V2 > V1"] == pairs["V2-t > V2"] == "1.00, p = 0.00 (8·8)"
    assert pairs["V1 > BRS"] == pairs["V2-t > V1-t"] == "–"
    worse = [hopper("V1-t", [0, 100.0], s) for s in seeds]  # neither arrives: the best evaluation decides
    pairs = {row[1]: row[2] for row in rows(ablation.pairs(shown([*never, *worse], "Hopper-v1", seeds)))}
    assert pairs["V1-t > V1"] == "0.00, p = 0.00 (8·8)"


# -- the selection -------------------------------------------------------------------------------------------------


def cheetah(point: Preset, rewards: list[float], seed: int) -> Curve:
    return curve(rewards, task="HalfCheetah-v1", seed=seed, eval_episodes=10, **point._asdict())


def test_the_winner_is_known_when_the_grid_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    every = selection.points("HalfCheetah-v1")
    assert len(every) == 27
    assert {(point.nu, point.N) for point in every} == {(0.025, 4), (0.025, 8), (0.025, 16)}
    assert len(selection.runs(["HalfCheetah-v1"], SEEDS)) == 3 * 27 + 2 * 20
    monkeypatch.setattr(selection, "DIRECTIONS", (4,))
    points = selection.points("HalfCheetah-v1")
    best = points[3]
    curves = [cheetah(p, [3500] if p == best else [0, 3500], s) for p in points for s in SEEDS]
    task = ["HalfCheetah-v1"]
    assert selection.on_fresh_seeds(task, SEEDS, curves[1:]) == []
    chosen = selection.on_fresh_seeds(task, SEEDS, curves)
    assert [one.config.seed for one in chosen] == list(MANY[:20])
    assert {(one.config.search.alpha, one.config.search.b) for one in chosen} == {(best.alpha, best.b)}
    assert not {one.config.seed for one in chosen} & set(SEEDS)
    grid = rows(selection.grid_table(shown(curves, "HalfCheetah-v1", SEEDS)))
    assert grid[0] == ["HalfCheetah-v1", *(f"{value:g}" for value in best), "160", "3500"]
    fresh = [cheetah(best, [3500], s) for s in MANY[:9]]
    found = rows(selection.fresh_table(shown([*curves, *fresh], "HalfCheetah-v1", SEEDS)))
    assert [row[1] for row in found] == ["printed, V2", "printed, V2-t", "chosen here"]
    assert found[2][-3:] == ["9 of 20", "100% [70%, 100%]", "160 [160, 160]"]


def test_a_command_runs_what_depends_on_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the grid, then its winner; runs are not made, but their curves appear."""
    monkeypatch.setattr(selection, "DIRECTIONS", (4,))
    rounds: list[int] = []

    def run(jobs: Sequence, seconds: object) -> list:
        rounds.append(len(jobs))
        for job in jobs:
            search = job.spec.config.search
            point = Preset(search.alpha, search.nu, search.N, search.b)
            cheetah(point, [3500], job.spec.config.seed).save(job.file)
        return []

    request = Request(["selection"], tmp_path, None, SEEDS)
    run_missing(request, cores=1, runs=tmp_path / "folders", run=run, say=lambda text: None)
    assert rounds == [3 * 6 + 2 * 20, 20]
    assert request.to_do() == []


def test_the_seeds_of_the_grid_are_not_those_that_judge_its_winner() -> None:
    with pytest.raises(SettingError, match=rf"Seed {MANY[3]} is among those that the winner is measured on"):
        selection.runs(["HalfCheetah-v1"], (*SEEDS, MANY[3]))


def test_a_run_that_failed_once_and_then_succeeded_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A printed point has no space in the first round; the second one, for the winner, runs it again."""
    monkeypatch.setattr(selection, "DIRECTIONS", (4,))
    rounds: list[list[RunSpec]] = []

    def run(jobs: Sequence, seconds: object) -> list[Outcome]:
        rounds.append([job.spec for job in jobs])
        ended = []
        for job in jobs:
            search, failed = job.spec.config.search, len(rounds) == 1 and job is jobs[-1]
            if not failed:
                point = Preset(search.alpha, search.nu, search.N, search.b)
                cheetah(point, [3500], job.spec.config.seed).save(job.file)
            ended.append(Outcome(job.spec, None, "No space." if failed else ""))
        return ended

    request = Request(["selection"], tmp_path, None, SEEDS)
    ended = run_missing(request, cores=1, runs=tmp_path / "folders", run=run, say=lambda text: None)
    assert rounds[0][-1] in rounds[1]
    assert len(ended) == len({outcome.spec for outcome in ended})
    assert [outcome.failure for outcome in ended if outcome.failure] == []


# -- the caps ------------------------------------------------------------------------------------------------------


def failures(curves: Sequence[Curve]) -> list[RunSpec]:
    return caps.going_on(["Hopper-v1"], (237, 759, *MANY[:2]), curves)


def test_seeds_that_failed_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPS, "Hopper", 320)
    arrived, failed = curve([0, 3200]), curve([0, 9], seed=759)
    under_way = curve([0], seed=MANY[0], eval_episodes=10)
    [one] = failures([arrived, failed, under_way])
    assert (one.config.seed, one.episodes, one.until) == (759, 16_000, 3120.0)
    assert one.name.endswith("-seed759")  # the same run, continued
    diverged = curve([0, 9], seed=759, status="diverged: …")
    assert failures([diverged]) == []


def test_the_caps_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPS, "Hopper", 320)
    curves = [curve([0, 3200]), curve([0, 9], seed=759), curve([0, 9, 3300], seed=959)]
    [row] = rows(caps.table(shown(curves, "Hopper-v1", SEEDS)))
    assert row == ["Hopper-v1", "V2-t", "20", "1 of 3", "2", "1 of 1: 480"]


def test_a_run_that_went_further_than_1000_iterations_is_seen_up_to_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPS, "Hopper", 320)
    monkeypatch.setattr(caps, "ITERATIONS", 30)  # 480 episodes
    late = curve([0, 9, 10, 3300], seed=759)
    [row] = rows(caps.table(shown([late], "Hopper-v1", SEEDS)))
    assert row[3:] == ["0 of 1", "1", "0 of 1"]


def test_a_run_whose_1000_iterations_are_within_the_cap_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPS, "Hopper", 320)
    monkeypatch.setattr(caps, "ITERATIONS", 20)
    assert failures([curve([0, 9], seed=759)]) == []
    [row] = rows(caps.table(shown([curve([0, 9], seed=759)], "Hopper-v1", SEEDS)))
    assert row[3:] == ["0 of 1", "0", "–"]
    [row] = rows(caps.table(shown([curve([0, 9, 10, 3300], seed=759)], "Hopper-v1", SEEDS)))
    assert row[3:] == ["0 of 1", "0", "–"]  # it arrives beyond the cap


def test_what_went_on_does_not_change_the_other_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPS, "Hopper", 320)
    assert up_to_cap(curve([0, 9, 3300])).best == 9
    texts = []
    for rewards in ([0, 9], [0, 9, 3300]):
        for seed in SEEDS:
            curve(rewards, seed=seed).save(tmp_path / "runs" / f"{seed}.json")
        texts.append([path.read_text() for path in draw(Request(["table1"], tmp_path), "table1")])
    assert texts[0] == texts[1]
    assert "0 of 3 / 1973" in texts[0][0]


# -- coverage ------------------------------------------------------------------------------------------------------


def test_coverage_counts_each_run_once_and_no_brs(tmp_path: Path) -> None:
    nothing = coverage(tmp_path)
    assert nothing.startswith("Coverage: 0 of the ")
    assert "Swimmer 0 of 130, " in nothing  # V1 and V2 on 3 seeds, 100 more of V1, and 8 more points of the grid on 3
    curve([400] * 25, task="Swimmer-v1", variant="V1", every=20).save(tmp_path / "runs" / "1.json")  # to the cap
    curve([400] * 25, task="Swimmer-v1", variant="BRS", every=20).save(tmp_path / "runs" / "2.json")
    assert "Swimmer 1 of 130, " in coverage(tmp_path)
