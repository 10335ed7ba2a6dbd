"""Sizes of a network's layers, as the setting `hidden` has them; without NumPy, because the command line loads it."""

import re
from collections.abc import Sequence
from itertools import pairwise

TEXT = re.compile(r"[1-9]\d{0,4}(,[1-9]\d{0,4}){0,7}")


def hidden_layers(text: str) -> tuple[int, ...]:
    """The sizes in text such as 64,64; none for empty text; ValueError for any other."""
    if text and not TEXT.fullmatch(text):
        raise ValueError(f"{text!r:.60} is not a list of sizes such as 64,64")
    return tuple(map(int, text.split(","))) if text else ()


def count(sizes: Sequence[int]) -> int:
    """Numbers of a network: each layer has a weight per input and neuron, and an offset per neuron."""
    return sum((m + 1) * k for m, k in pairwise(sizes))
