"""Searches over the matrix M of a linear policy: one file per search, and one line in SEARCHES.

A search is a frozen dataclass of settings with the members of `Search`. Everything that changes is in named arrays, so
that a checkpoint can hold any search and any worker can make any candidate. Heavy imports belong inside the methods,
because the command line loads every search for its help.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ars.errors import SearchError, SettingError
from ars.settings import own_fields, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

Params = Mapping[str, "FloatArray"]  # float64 arrays by name; "M" (p, n) is what is evaluated and saved
Telemetry = dict[str, float]  # numbers for the records, under the search's own names

# Name → module:class below this package.
SEARCHES = {
    "ars": "ars:ARS",
    "csa": "csa:CSA",
    "cma": "cma:CMA",
    "sep-cma": "cma:SepCMA",
    "clipup": "clipup:ClipUp",
    "es": "es:ES",
    "cem": "cem:CEM",
}
DEFAULT = "ars"
RESERVED = ("name", "search", "variant", "task", "start", "normalise", "H", "shift", "seed", "protocol",
            "eval_every", "eval_episodes", "average", "noise", "table_size", "stats_every", "observe",
            "mirror", "steady", "least_timesteps", "over", "hidden", "ramp", "duel")  # fmt: skip


class Search(Protocol):
    """What the training loop needs from a search; its fields are declared by `ars.settings.setting`."""

    signs: ClassVar[tuple[int, ...]]  # the rollouts of each direction: (+1, −1), or (+1,) for one-sided searches

    def initial(self, shape: tuple[int, int]) -> "Params":
        """The parameters before the first iteration; their names and shapes never change."""

    def size(self, params: "Params") -> int:
        """Directions of the next iteration; there may be more (`least_timesteps`)."""

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        """The matrix (p, n) that a worker evaluates. Pure."""

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        """The next parameters, and numbers for the record. Pure. rewards: (size, len(signs)), NaN where a rollout was
        not finite; the whole direction is then ignored (D3). At least one direction is finite. deltas[k] is drawn on
        access."""

    def label(self, normalise: bool) -> str:
        """Its usual name, for titles and names of runs: V2-t."""


def search_class(name: str) -> Any:
    """The class registered under a name."""
    if not isinstance(name, str) or name not in SEARCHES:
        raise SettingError(f"search = {shown(name)} is unknown: choose {' or '.join(SEARCHES)}.")
    return _load(name)


@cache
def _load(name: str) -> Any:
    """A registered class; its settings are checked once, because flags, files and run names are derived from them."""
    module, _, attribute = SEARCHES[name].partition(":")
    cls = getattr(import_module(f"ars.searches.{module}"), attribute)
    for f in own_fields(cls):
        if f.type not in (int, float, bool, str):
            raise SearchError(f"{attribute}.{f.name} must be an int, float, bool or str, not {shown(f.type)}.")
        if f.type is int and f.metadata["least"] is None:
            raise SearchError(f"{attribute}.{f.name} needs the least value that it may have.")
        if f.name in RESERVED:
            raise SearchError(f"{attribute}.{f.name} has a name that the configuration needs.")
    return cls


def search_name(search: Search) -> str:
    """The name that a search is registered under."""
    for name in SEARCHES:
        if search_class(name) is type(search):
            return name
    raise SettingError(
        f"search = {shown(search)} is not registered: add {type(search).__name__} to ars.searches.SEARCHES."
    )


def search_settings(search: Search) -> dict[str, Any]:
    """Its settings by name, in the order of its class."""
    return {f.name: getattr(search, f.name) for f in own_fields(search)}


def make_search(name: str, settings: Mapping[str, Any]) -> Search:
    """A search from its name and all of its settings, as files hold them."""
    cls = search_class(name)
    odd = sorted({f.name for f in own_fields(cls)}.symmetric_difference(settings))
    if odd:
        raise SettingError(f"missing or unknown setting of the search {name}: {shown(odd[0])}.")
    search: Search = cls(**settings)
    return search


# -- what a search returns: a mistake in its code is reported at once, not when a checkpoint cannot be read ------------


def initial_params(search: Search, shape: tuple[int, int]) -> Params:
    """The parameters that a training starts from."""
    params = search.initial(shape)
    shapes = {**{name: getattr(array, "shape", None) for name, array in params.items()}, "M": shape}
    checked = _checked(search, params, shapes)
    if odd := [name for name, array in checked.items() if not bool((abs(array) < float("inf")).all())]:
        raise SearchError(f"{type(search).__name__}.initial returned {odd[0]} with values that are not finite.")
    return checked


def next_size(search: Search, params: Params) -> int:
    """The number of directions of the next iteration."""
    size = search.size(params)
    if type(size) is not int or size < 1:
        raise SearchError(f"{type(search).__name__}.size returned {shown(size)}, which is not a number of directions.")
    return size


def next_params(
    search: Search, params: Params, deltas: "Sequence[FloatArray]", rewards: "FloatArray"
) -> tuple[Params, Telemetry]:
    """One step: the parameters keep their names and shapes, and telemetry consists of numbers."""
    after, telemetry = search.step(params, deltas, rewards)
    for name, value in telemetry.items():
        if not isinstance(value, bool | int | float):
            raise SearchError(f"{type(search).__name__}.step returned {name} = {shown(value)}: telemetry is a float.")
    return _checked(search, after, {name: array.shape for name, array in params.items()}), telemetry


def _checked(search: Search, params: Params, shapes: Mapping[str, Any]) -> Params:
    import numpy as np

    checked = {name: np.asarray(value) for name, value in params.items()}  # arithmetic on 0-d arrays gives scalars
    for name in shapes.keys() | checked.keys():
        array = checked.get(name)
        if array is None or array.dtype != np.float64 or array.shape != shapes.get(name):
            raise SearchError(f"{type(search).__name__} has no float64 array {name} of shape {shapes.get(name)}.")
    return checked
