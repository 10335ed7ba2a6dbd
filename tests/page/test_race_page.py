"""A race on the report page: its table, the winner's curve, and the faded curves of seeds that were stopped."""

from pathlib import Path

import pytest

from ars.cli import main
from ars.experiments.engine import _outcome, run, to_do
from ars.experiments.race import Race, make_race, run_race
from ars.page.report import report_data
from ars.races import read_race
from ars.run_files import read_run, run_folders
from browser import Opened
from small_runs import train


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Race:
    made = make_race(
        "lqr", seeds=(1, 2, 3, 4), budget=3000, N=1, H=5, protocol="paper", eval_every=20, eval_episodes=1,
        out=tmp_path_factory.mktemp("page") / "a race",
    )  # fmt: skip
    run_race(made, lambda jobs: [_outcome(job, run(job)) for job in to_do(jobs)])
    return made


def test_the_data_of_a_race(raced: Race, tmp_path: Path) -> None:
    other = train(tmp_path / "other", "lqr", N=1)
    file = read_race(raced.folder)
    assert file is not None
    runs = [read_run(path) for path in run_folders([raced.folder, other])]
    data = report_data(runs, task=None, seconds=0, races=[(raced.folder, file)])
    outcomes = {run.config.seed: shown["race"] for run, shown in zip(runs[:-1], data["runs"], strict=False)}
    assert outcomes == {seed: "won" if seed == file.winner else "stopped" for seed in (1, 2, 3, 4)}
    assert data["runs"][-1]["race"] is None
    [task] = data["tasks"]
    [race] = task["races"]
    assert (race["name"], race["runs"]) == ("a race", [0, 1, 2, 3])
    assert [len(row) for row in race["rows"]] == [len(race["heads"])] * 4
    assert race["rows"][0][0] == str(file.winner)
    assert all(band is None for chart in task["charts"] for band in chart["bands"])
    without = report_data(runs, task=None, seconds=0)
    assert without["tasks"][0]["charts"][0]["bands"][0] is not None


def test_the_race_in_the_browser(opened: Opened, raced: Race, tmp_path: Path) -> None:
    out = tmp_path / "race.html"
    with pytest.raises(SystemExit) as end:
        main(["report", str(raced.folder), "--seconds", "0", "--out", str(out), "--quiet"])
    assert not end.value.code
    page = opened.go(out)
    assert opened.complaints == []
    assert page.locator("table.race tbody tr").count() == 4
    assert page.locator("table.race tr.won").count() == 1
    plot = page.locator("svg.plot[aria-label^='Learning curve']")
    assert plot.locator("path.curve").count() == 1  # the winner
    faded = plot.locator(".single")  # a line, and two dots: the seeds of the first round have one evaluation
    assert plot.locator("circle.single").count() == 2
    assert [faded.nth(i).evaluate("one => one.style.opacity") for i in range(3)] == ["0.3"] * 3
