"""Which entries of an observation a policy sees: the user's words (`observe`), resolved to indices for one task."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ars import subset
from ars.errors import SettingError
from ars.mirror import Mirror
from ars.settings import shown

INDICES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class Group(NamedTuple):
    """Neighbouring entries: the field that they come from, the title of the group, and the names of the entries."""

    field: str
    title: str
    names: Sequence[str]


class View(NamedTuple):
    """What a task shows of its observation: the text of a subset, its indices (None: all), and the mirror if policies
    are to keep it."""

    observe: str
    indices: Sequence[int] | None
    mirror: Mirror | None

    def definition(self) -> dict[str, Any]:
        """What it adds to the task's definition; nothing for the whole observation."""
        observe = {} if self.indices is None else {"observe": self.observe}
        return observe | ({"mirror": self.mirror.to_dict()} if self.mirror else {})


def make_view(
    task: str,
    observe: str,
    n: int,
    groups: Callable[[], Sequence[Group]],
    mirror: Callable[[], Mirror] | None = None,
) -> View:
    """The view of a task with n observations; `groups` name them, and `mirror` is given if it is to be kept."""
    indices = choose(observe, n, groups, task)
    text = subset.ALL if indices is None else subset.to_text(indices)
    made = mirror() if mirror else None
    if made and indices is not None:
        try:
            made = made.select(indices)
        except ValueError as error:
            raise SettingError(f"observe = {shown(observe)} cannot be mirrored: {error}.") from error
    return View(text, indices, made)


def choose(observe: str, n: int, groups: Callable[[], Sequence[Group]], task: str) -> list[int] | None:
    """The indices of `0-26`, `qpos,qvel` or names of entries, ascending; None for all of them."""
    check_text(observe)
    if observe == subset.ALL:
        return None
    chosen: list[int] = []
    for word in observe.split(","):
        found = _find(word.strip(), n, groups)
        if isinstance(found, str):
            raise SettingError(f"observe = {shown(observe)} {found}: {task} has {_listed(n, groups())}.")
        chosen += found
    ordered = sorted(set(chosen))
    if len(ordered) < len(chosen):
        twice = next(index for index in ordered if chosen.count(index) > 1)
        raise SettingError(f"observe = {shown(observe)} has entry {twice} twice: give each once.")
    return None if len(ordered) == n else ordered


def check_text(observe: object) -> None:
    """Raise an error for what cannot name a subset of any observation."""
    if not isinstance(observe, str) or len(observe) > subset.LONGEST:
        raise SettingError(f"observe = {shown(observe)} is not a list of indices, ranges and names.")


def _find(word: str, n: int, groups: Callable[[], Sequence[Group]]) -> Sequence[int] | str:
    """The indices of one word, or what is wrong with it."""
    if match := INDICES.fullmatch(word):
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            return f"has the empty range {word}"
        return range(first, last + 1) if last < n else f"has {last}, which is beyond the observation"
    if not word:
        return "has an empty entry"
    at, fields, entries = 0, list[range](), list[tuple[int, str]]()
    for group in groups():
        if word in (group.field, group.title):
            fields.append(range(at, at + len(group.names)))
        for i, name in enumerate(group.names, at):
            if word in (name, f"{group.field} {name}", f"{group.title}: {name}"):
                entries.append((i, f"{group.field} {name}"))
        at += len(group.names)
    if fields:
        return [index for field in fields for index in field]
    if len(entries) > 1:
        return f"has {word!r:.60}, which may be {' or '.join(full for _, full in entries[:4])}"
    return [index for index, _ in entries] or f"has {word!r:.60}, which is not in the observation"


def _listed(n: int, groups: Sequence[Group]) -> str:
    """What there is to choose from."""
    listed, at = [], 0
    for group in groups:
        if group.field:
            field = shown(group.field).strip("'")  # a key of the user's may be any text
            listed.append(f"{field} ({subset.to_text(range(at, at + len(group.names)))})")
        at += len(group.names)
    example = groups[-1].names[-1] if groups and groups[-1].names else ""
    kinds = [f"the indices 0 to {n - 1}", *listed[:12], *(["…"] if len(listed) > 12 else [])]
    return f"{', '.join(kinds)} and names such as {example!r:.60}"
