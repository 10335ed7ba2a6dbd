"""A page in the browser, as the tests hold it."""

import time
from pathlib import Path
from typing import Any


class Opened:
    """A page in the browser, with everything that it complained about or asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def go(self, path: Path) -> Any:
        self.page.goto(path.absolute().as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        return self.page


def until(page: Any, expression: str, argument: Any = None) -> None:
    """Wait until a JavaScript expression is true. Playwright's own waiting is refused by the page's policy."""
    ends = time.monotonic() + 20
    while not page.evaluate(expression, argument):
        assert time.monotonic() < ends, f"never came true: {expression}"
        page.wait_for_timeout(20)
