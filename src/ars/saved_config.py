"""config.json of a run folder: its settings, the definition of its task, when it stops, and who has trained it.

It may be from anyone: everything in it is checked, and nothing is executed.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ars import subset
from ars.config import Config
from ars.errors import ArsError, FileError, SettingError, UnknownSearchError
from ars.files import LARGEST_TASK, one_line, read_json
from ars.mirror import Mirror
from ars.noise import check_table_size
from ars.policy import LARGEST_M, observed_count
from ars.records import LARGEST_COUNT
from ars.searches import SEARCHES, search_class
from ars.settings import own_fields
from ars.stopping import Stop
from ars.versions import machine, versions

FORMAT = 2  # of config.json and checkpoint.npz; format 1 is read, and converted when a run is resumed


@dataclass(frozen=True)
class SavedConfig:
    """A checked config.json. `sessions` are the machines and versions that trained, each with its first iteration;
    `notes` list how this machine's versions differ from the last."""

    config: Config
    definition: dict[str, Any]
    stop: Stop
    sessions: list[dict[str, Any]]
    notes: list[str]


def run_identity(config: Config, definition: dict[str, Any]) -> str:
    """A hash of what determines a run's bits, so that a checkpoint of another run is detected. Names are labels, which
    older runs of a user's robot do not have."""
    task = {name: value for name, value in definition.items() if name != "names"}
    content = json.dumps({"config": config.to_dict(), "task": task}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def this_session(iteration: int) -> dict[str, Any]:
    """What config.json keeps about a process that trains from this iteration on."""
    return {"iteration": iteration, "machine": machine(), "versions": versions()}


def read_config(path: Path) -> SavedConfig:
    """The configuration of a run folder."""
    file = path / "config.json"
    saved = read_json(file, LARGEST_TASK)
    try:
        version = saved.get("format")
        if type(version) is not int or version not in (1, FORMAT):
            raise ValueError(f"format {version!r:.50} is unknown to this version of ars, which reads {FORMAT} and 1")
        parts = {"format", "config", "task", "stop", "versions" if version == 1 else "sessions"}
        if odd := sorted(parts.symmetric_difference(saved)):
            raise ValueError(f"missing or unknown part: {odd[0]!r:.100}")
        definition = saved["task"]
        if not all(type(definition[name]) is int and definition[name] > 0 for name in ("n", "p")):
            raise ValueError("n and p of the task are not sizes")
        _check_task(definition)
        search = saved["config"].get("search", {"name": "ars"}).get("name")
        if isinstance(search, str) and search.isidentifier() and search not in SEARCHES:
            raise UnknownSearchError(f"{file} is of the search {search}: this ars has {', '.join(SEARCHES)}.")
        if search in SEARCHES and "search" in saved["config"]:
            names = [f.name for f in own_fields(search_class(search))]
            if missing := [name for name in names if name not in saved["config"]["search"]]:
                raise UnknownSearchError(
                    f"{file} is of an earlier {search}, without {missing[0]}: train anew, or continue it with the "
                    "version of ars that made it."
                )
        config = (Config.from_format_1 if version == 1 else Config.from_dict)(saved["config"])
        _check_view(config, definition)
        stop = Stop(**saved["stop"])
        if stop.to_dict().keys() != saved["stop"].keys():
            raise ValueError("a stopping rule is null")
        check_table_size(config.table_size, *config.shape(definition["p"], definition["n"]))
        _check_matrix(*config.shape(definition["p"], definition["n"]))
        old = [{"iteration": 0, "machine": "unknown", "versions": saved.get("versions")}]
        sessions = [_session(session) for session in (old if version == 1 else saved["sessions"])]
        then, now = sessions[-1]["versions"], versions()
    except UnknownSearchError:
        raise
    except (ArsError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise FileError(f"{file} is damaged: {one_line(error)}") from error
    notes = [
        f"{name} was {then[name]} and is {now.get(name)} now: the bits may differ from an uninterrupted run."
        for name in then
        if then[name] != now.get(name)
    ]
    return SavedConfig(config, definition, stop, sessions, notes)


def _session(value: Any) -> dict[str, Any]:
    """An entry of `sessions`, or ValueError."""
    iteration, made_by, then = value["iteration"], value["machine"], dict(value["versions"])
    if len(value) != 3:
        raise ValueError("a session has iteration, machine and versions, and nothing else")
    if type(iteration) is not int or not 0 <= iteration <= LARGEST_COUNT or not _is_word(made_by):
        raise ValueError("its sessions are not iterations and machines")
    if not all(_is_word(word) for pair in then.items() for word in pair):
        raise ValueError("its versions are not printable text")
    return {"iteration": iteration, "machine": made_by, "versions": then}


def check_size(config: Config, definition: dict[str, Any]) -> None:
    """Refuse tasks that are too large to be read back."""
    _check_matrix(*config.shape(definition["p"], definition["n"]))
    described = len(json.dumps(definition, indent=2))
    if 2 * described > LARGEST_TASK:  # half of config.json is for the rest
        raise SettingError(f"The task's definition has {described} bytes: a run folder holds {LARGEST_TASK // 2}.")


def _check_matrix(p: int, n: int) -> None:
    if p * n > LARGEST_M:
        raise SettingError(f"M would be {p} × {n}: a run folder holds matrices of at most {LARGEST_M} numbers.")


def _check_task(definition: dict[str, Any]) -> None:
    """Check the types of what every definition has, n and p excepted."""
    _check_matrix(definition["p"], definition["n"])
    bonus = definition["survival_bonus"]
    if type(definition["H"]) is not int or definition["H"] < 1:
        raise ValueError("H of the task is not a horizon")
    if isinstance(bonus, bool) or not isinstance(bonus, int | float) or not isinstance(definition["name"], str):
        raise ValueError("name and survival_bonus of the task are not a name and a number")


def _check_view(config: Config, definition: dict[str, Any]) -> None:
    """Check that the configuration and the task agree on what policies see."""
    if config.observe != definition.get("observe", subset.ALL) or config.mirror != ("mirror" in definition):
        raise ValueError("observe and mirror are not those of its task")
    if "observe" in definition and observed_count(definition) != definition["n"]:
        raise ValueError("observe does not have n entries")
    Mirror.of(definition)


def _is_word(word: Any) -> bool:
    """Safe to print: a file must not send control codes to the terminal."""
    return isinstance(word, str) and word.isprintable() and len(word) < 200
