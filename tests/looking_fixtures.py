"""Small runs, a browser and OpenGL for the tests that look; where these are missing the tests say what to install."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ars.errors import ArsError
from browser import Opened
from small_runs import train

CHROMIUM = next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def do_without(why: str) -> None:
    """Skip with the reason; where CI=true nothing is skipped."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI does not skip: {why}")
    pytest.skip(why)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three seeds of HalfCheetah; tests read them only."""
    folder = tmp_path_factory.mktemp("runs")
    return [train(folder / f"cheetah-{seed}", seed=seed, iterations=8 + 2 * seed) for seed in range(3)]


@pytest.fixture(scope="session")
def opengl() -> None:
    """MuJoCo can draw here."""
    import mujoco

    from ars.video.camera import Camera

    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    try:
        Camera(model, None, width=32, height=32).close()
    except ArsError as error:
        do_without(str(error))


@pytest.fixture(scope="module")  # not longer: Playwright keeps an event loop running, which other tests may not expect
def chromium() -> Iterator[Any]:
    """A browser of this test process alone, without network."""
    if CHROMIUM is None:
        do_without("There is no Chromium to open the page with: `apt-get install chromium`.")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, headless=True, args=list(FLAGS), offline=True,
            viewport={"width": 1200, "height": 900},
        )  # fmt: skip
        yield context
        context.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Opened]:
    page = chromium.new_page()
    yield Opened(page)
    page.close()
