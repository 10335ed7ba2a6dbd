"""A subset of an observation as text: ascending indices and ranges, such as 0-26,30; "all" is all of it."""

import re
from collections.abc import Iterable
from itertools import pairwise

TEXT = re.compile(r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*")
ALL = "all"
LONGEST = 100_000  # letters


def to_text(indices: Iterable[int]) -> str:
    """The text of ascending indices."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in runs)


def ranges(text: str) -> list[tuple[int, int]]:
    """The first and last index of each range; ValueError unless `text` is what `to_text` writes."""
    if len(text) > LONGEST or not TEXT.fullmatch(text):
        raise ValueError(f"{text!r:.60} is not a list of ascending indices and ranges")
    found = [(int(first), int(last or first)) for first, _, last in (part.partition("-") for part in text.split(","))]
    written = ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in found)
    if written != text or any(after[0] <= before[1] + 1 for before, after in pairwise(found)):
        raise ValueError(f"{text!r:.60} is not a list of ascending indices and ranges")
    return found


def size(text: str) -> int:
    """How many indices there are."""
    return sum(last - first + 1 for first, last in ranges(text))


def to_indices(text: str, most: int) -> list[int]:
    """The indices, all below `most`; ValueError otherwise."""
    found = ranges(text)
    if found[-1][1] >= most:
        raise ValueError(f"index {found[-1][1]} is beyond an observation of {most} numbers")
    return [index for first, last in found for index in range(first, last + 1)]
