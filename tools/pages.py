"""Update the tables in pages of the documentation from results/: the text between two marks is replaced.

    python -m tools.pages results docs/results.md README.md

The marks are `<!-- table1 -->` (for the table in results/tables/table1.md, or results/searches/) and `<!-- end -->`;
`<!-- coverage -->` is the line of results/index.md on what is complete.
"""

import re
import sys
from pathlib import Path

from ars.files import write_atomic

MARKS = re.compile(r"(<!-- ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def refresh(text: str, results: Path) -> str:
    """The page with the current tables."""

    def table(match: "re.Match[str]") -> str:
        if match[2] == "coverage":
            return "\n".join([match[1].rstrip(), coverage((results / "index.md").read_text()), match[3]])
        places = [results / folder / f"{match[2]}.md" for folder in ("tables", "searches")]
        lines = next((place for place in places if place.is_file()), places[0]).read_text().splitlines()
        rows = [line for line in lines if line.startswith("|")]
        return "\n".join([match[1].rstrip(), *rows, match[3]])

    return MARKS.sub(table, text)


def coverage(index: str) -> str:
    return next(line for line in index.splitlines() if line.startswith("Coverage: "))


def prose(text: str) -> str:
    """The sentences of a page: without what is generated, tables, captions, headings, code and the targets of links."""
    text = re.sub(r"```.*?```", "", MARKS.sub("", text), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "!", "#", "    ", "<!--"))]
    return re.sub(r"\]\([^)]*\)", "]", "\n".join(lines))


def main(results: Path, *pages: Path) -> None:
    for page in pages:
        write_atomic(page, refresh(page.read_text(), results).encode())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
