"""One HTML file with its data, style and script, which opens on any device without a network connection.

The data is JSON that the script inserts as text; the page's security policy allows only our own script, by its hash,
and nothing is loaded.
"""

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from ars.files import check_writable, write_atomic

SCRIPTS = (
    "elements.js",
    "numbers.js",
    "chart.js",
    "gait.js",
    "heat_map.js",
    "robustness.js",
    "report.js",
    "gallery.js",
    "main.js",
)


def write_page(data: dict[str, Any], out: Path) -> None:
    check_writable(out)
    write_atomic(out, page(data).encode())


def page(data: dict[str, Any]) -> str:
    """The HTML. The data is inserted last, so that placeholders in it are not replaced."""
    style, frame = _asset("page.css"), _asset("page.html")
    script = '"use strict";\n{\n' + "\n".join(map(_asset, SCRIPTS)) + "}\n"
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    before, after = (
        frame.replace("{{POLICY}}", policy).replace("{{STYLE}}", style).replace("{{SCRIPT}}", script).split("{{DATA}}")
    )
    return before + as_json(data) + after


def as_json(data: Any) -> str:
    """JSON that no HTML parser can mistake for markup, in ASCII, so that invalid Unicode is no problem."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return (files("ars.page") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
