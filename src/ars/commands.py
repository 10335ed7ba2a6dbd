"""Command lines to copy: what to type next, with every flag that is needed. Words without the program's name; only
here is `--task` added, which a run or policy of the user's own code needs."""

import shlex
from pathlib import Path
from typing import Any

from ars.config import Config
from ars.searches import search_name, search_settings
from ars.searches.ars import ARS
from ars.settings import own_fields
from ars.stopping import Stop
from ars.tasks.user_code import task_flag

# Omitted at their defaults, which never change; RARE_IN_ARS only with ARS, because other searches have defaults of
# their own for them.
RARE = ("noise", "table_size", "stats_every", "observe", "mirror", "ramp", "hidden")
RARE_IN_ARS = ("average", "steady", "least_timesteps", "duel")


def train_words(config: Config, stop: Stop) -> list[str]:
    """`train` with all settings, so that they stay valid if a preset changes."""
    rare = (*RARE, *RARE_IN_ARS) if isinstance(config.search, ARS) else RARE
    usual = {f.name: f.default for f in own_fields(config) if f.name in rare}
    shared = {f.name: getattr(config, f.name) for f in own_fields(config)}
    shared = {name: value for name, value in shared.items() if name not in usual or usual[name] != value}
    start = {"from": "POLICY", "from-weight": config.start.partition(":")[2]} if config.start else {}
    flags = {"search": search_name(config.search), **search_settings(config.search), **shared, **start}
    return ["train", config.task, *(word for item in {**flags, **stop.to_dict()}.items() for word in flag_words(*item))]


def file_words(verb: str, path: Path, task: str, *more: str) -> list[str]:
    """A command on a run folder or a policy file of this task."""
    text = str(path)
    return [verb, f"./{text}" if text.startswith("-") else text, *more, *shlex.split(task_flag(task))]


def flag_words(name: str, value: Any) -> tuple[str, ...]:
    """A flag as it is typed."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return (f"--{flag}" if value else f"--no-{flag}",)
    return f"--{flag}", str(value)
