"""Scenarios: how the world may differ from the model while a policy is trained. Filled in by its own page."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Scenarios:
    """Ranges that scenarios are drawn from."""

    each: int = 4

    def describe(self) -> dict[str, Any]:
        return {}
