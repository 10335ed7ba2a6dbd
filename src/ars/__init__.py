"""Augmented Random Search: static linear policies for continuous control, trained by random search.

import ars

for record in ars.train("Swimmer-v5", seed=1, iterations=100):
    ...
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ars.ask_tell import AskTell
    from ars.config import Config
    from ars.errors import ArsError
    from ars.policy import LinearPolicy
    from ars.records import Record
    from ars.sessions import evaluate, resume, train

__all__ = ["ArsError", "AskTell", "Config", "LinearPolicy", "Record", "evaluate", "resume", "train"]

_HOMES = {
    "ArsError": "ars.errors",
    "AskTell": "ars.ask_tell",
    "Config": "ars.config",
    "LinearPolicy": "ars.policy",
    "Record": "ars.records",
    "evaluate": "ars.sessions",
    "resume": "ars.sessions",
    "train": "ars.sessions",
}


def __getattr__(name: str) -> Any:
    """Import names on first use, so that `import ars` and `ars --help` are instant."""
    if name == "lqr":
        import ars.lqr

        return ars.lqr
    if name not in _HOMES:
        raise AttributeError(f"module 'ars' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
