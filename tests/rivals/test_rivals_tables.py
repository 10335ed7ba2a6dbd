"""The tables by hand, from made-up runs, and that everything can be drawn from any of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rival_curves import curve_of

from ars.curves import Curve
from ars.rivals import tables
from ars.rivals.draw import draw_all
from ars.rivals.groups import final, finished, r_max, rewards_at
from ars.rivals.roster import Spec
from tools.pages import refresh

MILLION = 10**6


def spec(rival: str, seed: int = 1, task: str = "Hopper-v1", timesteps: int = MILLION) -> Spec:
    return Spec(rival, task, seed, timesteps)


@pytest.fixture
def curves(tmp_path: Path) -> list[Curve]:
    """Hopper: ARS on three seeds, one of which also has a longer run; PPO on two, ahead; SAC under way."""
    runs = tmp_path / "runs"
    return [
        curve_of(runs, spec("ars", 1), [1000, 3200], cpu=50),
        curve_of(runs, spec("ars", 2), [1500, 900], cpu=70),
        curve_of(runs, spec("ars", 3), [500, 400], cpu=60),
        curve_of(runs, spec("ars", 3, timesteps=2 * MILLION), [500, 450, 3300, 3400], cpu=120),
        curve_of(runs, spec("ppo", 1), [1000, 2000, 2500, 3000], cpu=800),
        curve_of(runs, spec("ppo", 2), [100, 3450, 1000, 2600], cpu=1000),
        curve_of(runs, spec("sac", 1), [10, 20], status="unfinished"),
    ]


def test_one_run_per_seed(curves: list[Curve]) -> None:
    assert [c.timesteps for c in finished(curves, "ars", "Hopper-v1", MILLION)] == [1_000_500] * 3
    assert [c.timesteps for c in finished(curves, "ars", "Hopper-v1")] == [1_000_500, 1_000_500, 2_000_500]
    assert [c.seed for c in finished(curves, "ars", "Hopper-v1", 2 * MILLION)] == [3]
    assert finished(curves, "sac", "Hopper-v1") == []
    assert finished(curves, "ppo", "Swimmer-v1") == []


def test_rewards_at_a_budget(curves: list[Curve]) -> None:
    """The last evaluation, a little late, counts at the budget; before the first there is nothing."""
    one = curves[0]
    np.testing.assert_array_equal(rewards_at(one, [499_999, 500_000, 999_999, MILLION]), [np.nan, 1000, 1000, 3200])
    assert final(one, MILLION) == 3200
    long = curves[3]
    assert final(long, MILLION) == 450


def test_the_maximum_of_the_mean_curve(curves: list[Curve]) -> None:
    """ARS: (1000, 1500, 500) at half, (3200, 900, 400) at the end; PPO's means are 550, 2725, 1750, 2800."""
    assert r_max(finished(curves, "ars", "Hopper-v1", MILLION), MILLION) == pytest.approx(1500)
    assert r_max(finished(curves, "ppo", "Hopper-v1", MILLION), MILLION) == pytest.approx(2800)


def test_where_ars_loses(curves: list[Curve]) -> None:
    """2800 against 1500, of a threshold of 3120; 900 CPU seconds against 60, each for 1e6 of 1 000 500 timesteps."""
    [row] = tables.losses(curves).rows
    assert row == ["Hopper-v1", "PPO", "2800 (2600 to 3000, 2 seeds)", "1500 (400 to 3200)", "42%", "15.0"]


def test_scores(curves: list[Curve], tmp_path: Path) -> None:
    lost = curve_of(tmp_path / "runs", spec("es"), [5.0], status="diverged: not finite", cpu=1)
    assert tables.scores([*curves, lost]).rows == [
        ["Hopper-v1", "PPO", "2", "2800 (2600 to 3000, 2 seeds)", "2800", "900"],
        ["Hopper-v1", "ARS", "3", "1500 (400 to 3200)", "1500", "60"],
        ["Hopper-v1", "ES, N = 10", "1, 1 diverged", "5 (1 seed)", "5", "1"],
    ]


def test_the_papers_tables(curves: list[Curve]) -> None:
    """Thresholds: 3120 in table 1, 3403.46 in table 4. The longer run of a seed is what thresholds are read from."""
    as_published = [replace(curve, learner="ppo-2017") if curve.learner == "ppo" else curve for curve in curves]
    by_task = {row[0]: row for row in tables.paper2(as_published).rows}
    assert tables.paper2(curves).columns == ("task", "published at", "ARS", "csa", "PPO", "A2C", "CEM", "TRPO")
    assert by_task["Hopper-v1"] == [
        "Hopper-v1", "1.00e6", "1500 / 3047", "– / –", "2800 (2 seeds) / ≈2300", "– / ≈900", "– / ≈500", "– / ≈2000",
    ]  # fmt: skip
    third = {row[0]: row for row in tables.paper3(curves).rows}
    assert set(third) == {"Hopper-v1", "HalfCheetah-v1", "Walker2d-v1"}
    assert third["HalfCheetah-v1"][1:] == [
        "1.00e7", "– / 5024", "– / –", "– / ≈11500", "– / ≈6500", "– / ≈8000", "– / ≈1800",
    ]  # fmt: skip
    first = {row[0]: row for row in tables.paper1(curves).rows}
    assert first["Hopper-v1"] == [
        "Hopper-v1", "3120", "2 of 3: 200, 300 / 1973", "– / –", "– / 13920", "– / 8640", "– / 10000",
    ]  # fmt: skip
    assert first["Swimmer-v1"][2] == "– / 100"
    fourth = {row[0]: row for row in tables.paper4(curves).rows}
    assert fourth["Hopper-v1"] == [
        "Hopper-v1", "3403.46", "0 of 3 / 2.00e6", "– / –", "– / 3.16e7", "– / 4.56e6",
    ]  # fmt: skip


def test_equal_cpu_time(curves: list[Curve]) -> None:
    """ARS evaluates after 25, 35 and 30 s, and ends after 50, 70 and 120 s; PPO first after 200 and 250 s."""
    rows = {row[1]: row[2:] for row in tables.by_cpu(curves).rows}
    assert rows == {"ARS": ["–", "1717†", "2500†", "2500†"], "PPO": ["–", "–", "550", "2800†"]}


def test_policies(curves: list[Curve]) -> None:
    cell = "33; 440 B; 8 µs"
    assert tables.policies(curves).rows == [["ARS", "–", cell, "–", "–"], ["PPO", "–", cell, "–", "–"]]


def test_every_rival_is_measured_or_has_its_reason(curves: list[Curve]) -> None:
    rows = tables.unmeasured(curves).rows
    assert rows[0][0] == "SQL"
    listed = [row for row in rows if row[0] == "SAC"]
    assert [row[1:3] for row in listed] == [
        ["Hopper-v1, HalfCheetah-v1", "not run yet"],
        ["Swimmer-v1, Walker2d-v1", "left out for its cost"],
    ]
    assert listed[0][3] == "5.00"  # estimated: it has not ended


@pytest.mark.parametrize("some", [True, False])
def test_everything_is_drawn(curves: list[Curve], tmp_path: Path, some: bool) -> None:
    """From some runs, or from none; twice to the same bytes; and the tables can be put into a page."""
    out = tmp_path if some else tmp_path / "empty"
    draw_all(out, say=lambda text: None)
    files = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert set(files) == {
        "rivals.png", "rivals.svg", *(f"rivals-{name}.{kind}" for name in tables.TABLES for kind in ("md", "csv")),
    }  # fmt: skip
    assert (b"PPO" in files["rivals.svg"]) == some
    draw_all(out, say=lambda text: None)
    assert all((out / name).read_bytes() == content for name, content in files.items())
    (tmp_path / "rivals").symlink_to(out)
    page = refresh("<!-- rivals-table4 -->\n<!-- end -->\n", tmp_path)
    assert page.count("\n| Hopper-v1 | 3403.46 | ") == 1
