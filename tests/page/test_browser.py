"""The page as people meet it, in Chromium: it shows its curves, answers the mouse and the keyboard, and keeps still."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ars.page.charts import band
from ars.page.gait import film_gait
from ars.page.gallery import write_gallery
from ars.page.html import page as html
from ars.page.html import write_page
from ars.page.report import _number, report_data, write_report
from ars.run_files import read_run
from ars.timing import duration
from browser import Opened, until
from small_runs import small_policy, train

CHEETAH = ["bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"]


@pytest.fixture(scope="module")
def report(runs: list[Path], tmp_path_factory: pytest.TempPathFactory, opengl: None) -> Path:
    """Three runs with a short film."""
    out = tmp_path_factory.mktemp("page") / "report.html"
    data = write_report([read_run(path) for path in runs], out, seconds=0.5)
    assert all("why_not" not in (run["gait"] or {}) for run in data["runs"])
    return out


def chart(page: Any, label: str) -> Any:
    return page.locator(f"svg.plot[aria-label^='{label}']")


def texts(locator: Any) -> list[str]:
    return [text.strip() for text in locator.all_text_contents()]


def test_it_opens_without_a_complaint_or_a_request(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    page.wait_for_timeout(300)
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [report.as_uri()]
    assert page.title() == "HalfCheetah-v1 · ARS report"
    assert page.locator("h1").inner_text() == "HalfCheetah-v1"


def test_curves_are_drawn_with_the_threshold(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    for label in ("Learning curve", "sigma_R", "update_norm", "Training timesteps"):
        plot = chart(page, label)
        assert plot.locator("path.curve").count() == 1  # the median
        assert plot.locator("path.band").count() == 1
        box = plot.locator("path.curve").bounding_box()
        assert box["width"] > 100
    assert page.locator(".limit-text").text_content() == "the paper's threshold 3,430"
    assert page.locator("svg .limit-text").count() == 0  # below the plot, where no curve crosses it
    assert chart(page, "sigma_R").locator("line.limit").count() == 0


def test_axes_single_runs_and_choosing_runs(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    plot = chart(page, "Learning curve")
    shapes = {}
    for axis in ("Episodes", "Timesteps", "Time"):
        page.get_by_role("button", name=axis, exact=True).click()
        assert axis.lower() in texts(plot.locator("text"))
        shapes[axis] = plot.locator("path.curve, path.single").first.get_attribute("d")
    assert shapes["Time"] != shapes["Episodes"]
    page.get_by_role("button", name="Episodes", exact=True).click()  # by time, runs need not have a median together
    page.get_by_role("button", name="Single runs too").click()
    assert plot.locator("path.single").count() == 3
    page.get_by_label("Draw cheetah-1").uncheck()
    legend = plot.locator("xpath=following-sibling::*[1]")
    assert plot.locator("path.single").count() == 2
    assert plot.locator("path.curve, path.band").count() == 0  # the band is that of all three
    assert texts(legend.locator("span")) == ["cheetah-0", "cheetah-2", "the paper's threshold 3,430"]
    page.get_by_role("button", name="Median", exact=True).click()
    assert plot.locator("path.single").count() == 2
    page.get_by_label("Draw cheetah-0").uncheck()
    assert plot.locator("path.curve").count() == plot.locator("path.band").count() == 1  # one run, with its deviation
    assert "cheetah-2: mean of an evaluation ± its standard deviation" in legend.inner_text()
    page.get_by_role("button", name="Single runs too").click()
    page.get_by_role("button", name="Draw none").click()
    assert plot.locator("path.single, path.curve").count() == 0
    assert "Nothing to show yet" in texts(plot.locator("text"))
    page.get_by_role("button", name="Draw all").click()
    assert plot.locator("path.single").count() == 3
    assert "median and 10th to 90th percentile of 3 runs" in legend.inner_text()
    assert opened.complaints == []


def test_looking_at_another_run_changes_policy_and_commands(opened: Opened, report: Path, runs: list[Path]) -> None:
    page = opened.go(report)
    filmed = page.locator("tr.chosen button").inner_text()
    other = next(path for path in runs if path.name != filmed)
    page.get_by_role("button", name=other.name, exact=True).click()
    assert page.locator("tr.chosen button").inner_text() == other.name
    assert f"--seed {read_run(other).config.seed} " in page.locator(".commands").inner_text()
    assert "Only the best run of a task is filmed" in page.locator(".why-not").inner_text()
    page.get_by_role("button", name="Show the run that is filmed").click()
    assert page.locator("tr.chosen button").inner_text() == filmed
    assert page.locator(".film canvas").count() == 1


def test_hover_and_zoom(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    plot = chart(page, "sigma_R")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    middle = box["y"] + box["height"] / 2
    legend = plot.locator("xpath=following-sibling::*[1]")
    assert "Episodes" not in legend.inner_text()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle)
    assert legend.inner_text().startswith("Episodes ")
    whole = plot.locator("path.curve").get_attribute("d")
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=4)
    page.mouse.up()
    assert plot.locator("path.curve").get_attribute("d") != whole
    low, high = page.evaluate("ars.state.zoom")
    assert 0 < low < high
    page.get_by_role("button", name="Show everything").click()
    assert plot.locator("path.curve").get_attribute("d") == whole
    page.mouse.move(1, 1)
    assert "Episodes" not in legend.inner_text()


def test_the_heat_map_has_the_names_of_the_model(opened: Opened, report: Path, runs: list[Path]) -> None:
    page = opened.go(report)
    cells = page.locator("svg.cells")
    assert texts(cells.locator(".row-label")) == CHEETAH
    assert texts(cells.locator(".column-label")) == ["rootz", "rooty", *CHEETAH, "rootx", "rootz", "rooty", *CHEETAH]
    assert texts(cells.locator(".block-label")) == ["positions", "velocities"]
    assert cells.locator("rect.cell").count() == 6 * 17
    filmed = read_run(next(path for path in runs if path.name == page.locator("tr.chosen button").inner_text()))
    assert filmed.policy is not None
    cells.locator("rect.cell").nth(17 * 2 + 3).hover()  # third row, fourth column
    readout = page.locator("section[aria-label='The policy'] .readout")
    assert "bfoot ← bshin (positions)" in readout.inner_text()
    shown = float(readout.locator("b").nth(2).inner_text())
    assert shown == pytest.approx(filmed.policy.W[2, 3], rel=1e-3)
    page.get_by_role("button", name="per standard deviation").click()
    assert float(readout.locator("b").nth(2).inner_text()) == pytest.approx(filmed.policy.M[2, 3], rel=1e-3)
    page.get_by_role("button", name="velocities", exact=True).click()
    assert texts(cells.locator(".column-label")) == ["rootx", "rootz", "rooty", *CHEETAH]


def test_everything_works_by_keyboard(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(
            "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || ''"))  # fmt: skip
    for wanted in (
        "Switch to",
        "Draw cheetah-0",
        "cheetah-1",
        "Timesteps",
        "Learning curve",
        "Heat map",
        "Time in the film",
    ):
        assert any(name.startswith(wanted) for name in reached), wanted
    plot = chart(page, "Learning curve")
    legend = plot.locator("xpath=following-sibling::*[1]")
    plot.focus()
    page.keyboard.press("Home")
    first = legend.inner_text()
    page.keyboard.press("ArrowRight")
    assert legend.inner_text() != first
    page.keyboard.press("+")
    assert page.evaluate("ars.state.zoom") is not None
    page.keyboard.press("0")
    assert page.evaluate("ars.state.zoom") is None
    page.locator("svg.cells").focus()
    readout = page.locator("section[aria-label='The policy'] .readout")
    for key, expected in (
        ("ArrowRight", "bthigh ← rootz"),
        ("ArrowRight", "bthigh ← rooty"),
        ("ArrowDown", "bshin ← rooty"),
    ):
        page.keyboard.press(key)
        assert expected in readout.inner_text()
    page.get_by_role("button", name="Time", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("ars.state.axis") == "seconds"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, svg[tabindex]')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.innerText)).length"
    )
    assert unnamed == 0


def pixels(page: Any) -> str:
    return str(page.evaluate("document.querySelector('.film canvas').toDataURL()"))


def test_the_film_plays_stops_and_goes_where_it_is_told(opened: Opened, report: Path) -> None:
    opened.page.emulate_media(reduced_motion="reduce")  # it does not start by itself then
    page = opened.go(report)
    slider = page.get_by_label("Time in the film")
    page.locator(".film canvas").scroll_into_view_if_needed()
    until(page, "document.querySelector('.film canvas').width === 480")
    first = pixels(page)
    assert len(first) > 5000
    slider.focus()
    page.keyboard.press("End")
    until(page, "first => document.querySelector('.film canvas').toDataURL() !== first", first)
    assert slider.input_value() == "10"  # 0.5 s of 0.05 s each, and the first
    page.get_by_role("button", name="Play").click()
    until(page, "document.querySelector('.film input').value !== '10'")
    page.get_by_role("button", name="Pause").click()
    stopped = slider.input_value()
    page.wait_for_timeout(150)
    assert slider.input_value() == stopped


def test_feet_are_drawn_where_they_touch(opened: Opened, tmp_path: Path, opengl: None) -> None:
    shown = film_gait(small_policy("Walker2d-v5"), None, seconds=0.4)
    assert [foot["name"] for foot in shown["feet"]] == ["right foot", "left foot"]
    down = [foot["down"] for foot in shown["feet"]]
    assert sum(map(len, down)) > 0
    data = {"kind": "gallery", "version": "0", "policies": [{"name": "w", "facts": ["Walker"], "gait": shown}]}
    write_page(data, tmp_path / "g.html")
    page = opened.go(tmp_path / "g.html")
    assert page.locator(".feet rect.down").count() == sum(map(len, down))
    assert page.locator(".feet rect.air").count() == 2
    assert page.locator(".feet path.speed").count() == 1
    assert page.locator(".feet .commanded").count() == 0
    box = page.locator(".feet rect.air").first.bounding_box()
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 5)
    total = page.evaluate("Number(document.querySelector('.film input').max)")
    assert float(page.locator(".film input").input_value()) == pytest.approx(0.9 * total, abs=1)
    assert opened.complaints == []


def test_the_page_of_a_robot_of_terms(opened: Opened, tmp_path: Path, opengl: None) -> None:
    run = train(tmp_path / "q", "Quadruped-v1", iterations=2)
    data = write_report([read_run(run)], tmp_path / "q.html", seconds=0.2)
    page = opened.go(tmp_path / "q.html")
    cells, gait = page.locator("svg.cells"), data["runs"][0]["gait"]
    assert texts(cells.locator(".row-label"))[:2] == ["FR_hip_joint", "FR_thigh_joint"]
    assert data["runs"][0]["policy"]["blocks"][0] == {"title": "Gyro", "columns": ["imu ωx", "imu ωy", "imu ωz"]}
    page.get_by_role("button", name="JointVelocities", exact=True).click()
    assert texts(cells.locator(".column-label"))[-1] == "RL_calf_joint velocity"
    assert gait["summary"].endswith("0.8 m/s commanded")
    assert page.locator(".feet line.commanded").count() == 1
    assert texts(page.locator(".feet text.over")) == ["commanded"]
    assert [foot["name"] for foot in gait["feet"]] == ["FR_foot", "FL_foot", "RR_foot", "RL_foot"]
    assert page.locator(".feet rect.air").count() == 4
    assert opened.complaints == []


def test_dark_and_light(opened: Opened, report: Path) -> None:
    opened.page.emulate_media(color_scheme="dark")
    page = opened.go(report)

    def brightness() -> int:
        return int(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"))

    assert brightness() < 60
    page.get_by_label("Switch to light colours").click()
    assert brightness() > 200
    page.get_by_label("Switch to dark colours").click()
    assert brightness() < 60
    opened.page.emulate_media(color_scheme="light")
    assert brightness() < 60  # what the user chose stays


@pytest.mark.parametrize("width", [320, 390, 768])
def test_it_fits_a_phone(opened: Opened, report: Path, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 800})
    page = opened.go(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert chart(page, "Learning curve").bounding_box()["width"] > 0.8 * (width - 60)
    small = page.evaluate(
        "[...document.querySelectorAll('button:not([hidden])')]"
        ".filter(button => button.getBoundingClientRect().height < 28).length"
    )
    assert small == 0


def drawn(path: str) -> list[list[tuple[float, float]]]:
    """The points of an SVG path, by its parts."""
    parts = [part.strip("Z").split("L") for part in path.split("M")[1:]]
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in part)] for part in parts]


def test_the_band_is_drawn_as_python_computed_it(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    shown = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    sent = next(one for one in shown["tasks"][0]["charts"] if one["column"] == "sigma_R")["bands"][0]["episodes"]
    ours = [run["telemetry"] for run in shown["runs"]]
    assert sent == band([(run["episodes"], run["columns"]["sigma_R"]) for run in ours])
    plot = chart(page, "sigma_R")
    ((_, *points),) = drawn(plot.locator("path.curve").get_attribute("d"))
    (edge,) = drawn(plot.locator("path.band").get_attribute("d"))
    n = len(sent["xs"])
    assert (len(points), len(edge)) == (n, 2 * n)
    # Every pixel is one linear function of the values.
    for column, values in ((0, [sent["xs"], sent["xs"], sent["xs"]]), (1, [sent["ys"], sent["high"], sent["low"]])):
        pixels = [point[column] for point in [*points, *edge[:n], *edge[: -n - 1 : -1]]]
        wanted = [value for part in values for value in part]
        slope, offset = np.polyfit(wanted, pixels, 1)
        assert [slope * value + offset for value in wanted] == pytest.approx(pixels, abs=0.11)


def test_a_new_quantity_has_its_chart_and_its_gaps(opened: Opened, runs: list[Path], tmp_path: Path) -> None:
    """A column that no part of the page knows, with values that are missing; and a duel."""
    folder = Path(shutil.copytree(runs[0], tmp_path / "run"))
    (folder / "checkpoint.npz").unlink()  # it would not match
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    for line, value in zip(lines, [None, 4.0, 3.0, None, 2.0, None, 1.5, 1.0], strict=True):
        line["trust <radius>"] = value
    lines[2]["duel"] = lines[3]["duel"] = 1
    (folder / "records.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    write_report([read_run(folder)], tmp_path / "r.html", seconds=0)
    page = opened.go(tmp_path / "r.html")
    plot = chart(page, "trust <radius>")
    assert page.locator("section[aria-label='trust <radius>'] h2").inner_text() == "trust <radius>"
    assert [len(part) - 1 for part in drawn(plot.locator("path.curve").get_attribute("d"))] == [2, 1, 2]
    assert plot.locator("rect.shaded").count() == 1  # a fresh start trained in two of eight iterations
    shaded, whole = (plot.locator(what).bounding_box()["width"] for what in ("rect.shaded", "line.grid >> nth=0"))
    assert shaded == pytest.approx(whole / 4, rel=0.02)
    legend = plot.locator("xpath=following-sibling::*[1]")
    plot.focus()
    for key, value in (("Home", ""), ("ArrowRight", " 4"), ("ArrowRight", " 3"), ("ArrowRight", ""), ("End", " 1")):
        page.keyboard.press(key)
        assert legend.locator("span b").all_text_contents() == ([value] if value else [])
    assert opened.complaints == []


def test_numbers_and_durations_are_written_as_by_python(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    numbers = [0, 7, -3.14159, 0.000123456, 99.996, 362.44, 999.4, 1234.56, -123456.7, 12_345_678]
    assert page.evaluate("values => values.map(ars.number)", numbers) == [_number(value) for value in numbers]
    seconds = [0, 0.0123, 9.876, 59.4, 59.6, 61, 123, 3599.4, 3599.6, 3723, 12600, 86399, 90000, 34_560_000]
    assert page.evaluate("values => values.map(ars.duration)", seconds) == [duration(value) for value in seconds]


def test_the_run_at_a_glance(opened: Opened, report: Path) -> None:
    page = opened.go(report)
    heads, tiles = texts(page.locator(".runs th")), texts(page.locator(".tile span"))
    assert heads == ["draw", "run", *tiles]
    assert texts(page.locator("tr.chosen td.number")) == texts(page.locator(".tile b"))
    assert tiles[:2] == ["seed", "best evaluation, mean"]


def test_several_tasks_have_a_page_each(opened: Opened, runs: list[Path], tmp_path: Path) -> None:
    from small_runs import train

    cart = train(tmp_path / "cart", "CartPole-v1", iterations=4)
    data = report_data([read_run(runs[0]), read_run(cart)], task=None, seconds=0)
    write_page(data, tmp_path / "r.html")
    page = opened.go(tmp_path / "r.html")
    assert texts(page.locator("svg.cells .row-label")) == CHEETAH
    page.get_by_role("button", name="CartPole-v1", exact=True).click()
    assert page.locator("h1").inner_text() == "CartPole-v1"
    assert texts(page.locator("svg.cells .row-label")) == ["choice 0", "choice 1"]
    assert texts(page.locator("svg.cells .column-label")) == ["x0", "x1", "x2", "x3"]
    assert chart(page, "Learning curve").locator("line.limit").count() == 0
    assert opened.complaints == []


def test_a_hostile_run_is_only_text(opened: Opened, runs: list[Path], tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)><b id=evil>"
    folder = Path(shutil.copytree(runs[0], tmp_path / "x <img src=x onerror=alert(3)>"))
    (folder / "checkpoint.npz").unlink()  # it would not match
    saved = json.loads((folder / "config.json").read_text())
    saved["config"]["task"] = saved["task"]["name"] = evil
    saved["task"][evil] = evil
    saved["task"]["__proto__"] = {"constructor": evil}
    saved["task"]["observation"] = {"dict": [[evil, {"shape": [17]}]]}
    saved["sessions"][-1]["versions"][evil] = evil
    (folder / "config.json").write_text(json.dumps(saved))
    out = tmp_path / "r.html"
    write_report([read_run(folder), read_run(runs[1])], out, seconds=0)
    page = opened.go(out)
    page.locator("summary").click()
    page.wait_for_timeout(200)
    assert opened.complaints == []
    assert opened.requests == [out.as_uri()]
    assert page.locator("#evil, img").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("h1").inner_text() == evil
    assert evil in page.locator("details").inner_text()
    assert texts(page.locator("svg.cells .column-label"))[0] == f"{evil} 0"


def test_the_page_may_not_reach_the_network(opened: Opened, tmp_path: Path) -> None:
    """The browser itself refuses, by the page's own policy."""
    (tmp_path / "g.html").write_text(html({"kind": "gallery", "version": "0", "policies": []}))
    page = opened.go(tmp_path / "g.html")
    refused = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'fetched', error => error.message)")
    assert refused == "Failed to fetch"
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)
    ran = page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.injected = true';
        document.body.append(script);
        return window.injected === true;
    }""")
    assert not ran


def test_a_gallery_has_films_side_by_side(opened: Opened, tmp_path: Path, opengl: None) -> None:
    policies = [(f"gait {seed}", small_policy("Swimmer-v1", seed)) for seed in range(2)]
    blind = small_policy("Swimmer-v1", 3)
    policies.append(("another's", type(blind)(blind.M, blind.mu, blind.sigma, {"name": "mine:make"})))
    out, shares = tmp_path / "gallery.html", list[float]()
    write_gallery(policies, out, seconds=0.3, at=lambda what, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[0] == 0.0 < shares[-1] < 1.0  # the last could not be filmed
    page = opened.go(out)
    assert texts(page.locator("h2")) == ["gait 0", "gait 1", "another's"]
    boxes = [page.locator(".film").nth(i).bounding_box() for i in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]
    until(page, "[...document.querySelectorAll('canvas')].every(c => c.width === 480)")
    assert pixels(page) != page.evaluate("document.querySelectorAll('canvas')[1].toDataURL()")
    assert "--task mine:make" in page.locator(".why-not").inner_text()
    assert opened.complaints == []


def test_a_report_without_a_film_says_why(opened: Opened, runs: list[Path], tmp_path: Path) -> None:
    data = report_data([read_run(runs[0])], task=None, seconds=0)
    data["runs"][0]["gait"] = {"why_not": "Pictures need OpenGL."}
    write_page(data, tmp_path / "r.html")
    page = opened.go(tmp_path / "r.html")
    assert page.locator(".why-not").inner_text() == "No film: Pictures need OpenGL."
    assert page.locator("canvas").count() == 0
