"""The configuration of a run: everything that determines its bits, the seed included. The settings that all searches
share are here; a search's own settings are one block, `search`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ars import subset
from ars.errors import SettingError
from ars.layers import count, hidden_layers
from ars.searches import Search, make_search, search_name, search_settings
from ars.searches.ars import ARS, VARIANTS
from ars.settings import LARGEST_SEED, check_settings, own_fields, setting, shown

DEFAULT_TABLE_SIZE = 25_000_000  # numbers of a shared noise table: 200 MB
LARGEST_EVALUATION = 10**6  # rollouts
LONGEST_TASK = 1000  # letters of its name
ADDED_TO_FORMAT_1 = {"noise": "counter", "table_size": 0, "stats_every": 1}  # missing in its oldest files
# Settings younger than format 2: a file without one means this value, and a file with this value does not have it, so
# that the files and identities of older runs stay as they are.
ADDED_TO_FORMAT_2 = {"protocol": "paper", "average": 0, "observe": subset.ALL, "mirror": False, "steady": False,
                     "least_timesteps": 0, "over": "mean", "hidden": "", "ramp": 0, "duel": 0}  # fmt: skip
FRUGAL = 10  # training timesteps per timestep of evaluation, at least, by the frugal protocol
PROTOCOLS = {"frugal": (1, 10), "paper": (10, 100)}  # eval_every and eval_episodes, if not given


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings under the paper's symbols; H and shift apply to training only."""

    task: str
    search: Search
    normalise: bool = setting(True, help="Normalise states by their running mean and deviation (section 3.2).")
    H: int = setting(help="Horizon of training rollouts.", least=1, most=10**9)
    shift: float = setting(help="Subtracted from the reward of every training step: the survival bonus.")
    seed: int = setting(0, help="Random seed; it fully determines the run.", least=0, most=LARGEST_SEED)
    protocol: str = setting(
        "frugal",
        help="When to evaluate: at the start, then for a tenth of training's cost, or as in the paper.",
        choices=tuple(PROTOCOLS),
    )
    eval_every: int = setting(
        None, help="Iterations between evaluations, frugal: at least [default: 1; paper: 10]; 0: never.", least=0,
        most=10**9,
    )  # fmt: skip
    eval_episodes: int = setting(
        None, help="Rollouts per evaluation [default: 10; paper: 100].", least=1, most=LARGEST_EVALUATION
    )
    average: int = setting(
        0, help="Evaluate and save the mean of M over about this many iterations; 0: M itself.", least=0, most=10**9
    )
    noise: str = setting(
        "counter", help="Directions from counters, or from a shared table of numbers.", choices=("counter", "table")
    )
    table_size: int = setting(0, help=f"Numbers in that table; {DEFAULT_TABLE_SIZE} if not given.", least=0, most=10**9)
    stats_every: int = setting(1, help="Gather states once per this many iterations.", least=1, most=10**9)
    observe: str = setting(
        subset.ALL, help="Entries of the observation that the policy sees: 0-26, or names such as qpos,qvel."
    )
    mirror: bool = setting(False, help="Keep policies symmetric in left and right, if the robot has two sides.")
    least_timesteps: int = setting(
        0, help="Add directions while episodes are short, until an iteration takes so many timesteps.", least=0,
        most=10**9,
    )  # fmt: skip
    ramp: int = setting(
        0, help="Whole episodes' worth of timesteps in which the horizon grows from H/4 to H; 0: it is H.", least=0,
        most=10**9,
    )  # fmt: skip
    duel: int = setting(
        0, help="Whole episodes' worth of timesteps before a fresh start is tried; the better goes on; 0: never.",
        least=0, most=10**9,
    )  # fmt: skip
    over: str = setting(
        "mean", help="How a direction's rewards in a robot's scenarios become one; cvar: mean of the worse half.",
        choices=("mean", "worst", "cvar"),
    )  # fmt: skip
    steady: bool = setting(False, help="Keep the policy itself unchanged when the statistics of states change.")
    hidden: str = setting(
        "", help="Sizes of hidden tanh layers, such as 64,64, for a network in place of the matrix M."
    )
    start: str = ""  # of a warm start: the SHA-256 of the policy file, a colon, and the weight of its statistics

    def __new__(cls, **given: Any) -> "Config":
        """Reject the ARS settings that Config took in the first version."""
        for name in ("variant", "alpha", "nu", "N", "b"):
            if name in given:
                raise SettingError(
                    f"Config takes search=ARS(...) instead of {name}: ars.presets.make_config takes {name}."
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        search_name(self.search)  # raises an error if it is not registered
        if not isinstance(self.task, str) or not self.task.isprintable() or len(self.task) >= LONGEST_TASK:
            raise SettingError(f"task = {shown(self.task)} is not a name.")
        check_settings(self)
        for name, value in zip(("eval_every", "eval_episodes"), PROTOCOLS[self.protocol], strict=True):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.observe != subset.ALL:
            try:
                subset.ranges(self.observe)
            except ValueError as error:
                raise SettingError(f"observe: {error}.") from error
        if (self.noise == "table") != (self.table_size > 0):
            raise SettingError(f"noise = {self.noise} and table_size = {self.table_size} contradict each other.")
        if self.steady and not self.normalise:
            raise SettingError(
                f"steady = True needs statistics, and {self.label} has none: normalise, or leave it out."
            )
        self._check_network()
        if self.stats_every > 1 and not self.normalise:
            raise SettingError(f"stats_every = {self.stats_every} needs statistics, and {self.label} has none.")

    def _check_network(self) -> None:
        try:
            hidden_layers(self.hidden)
        except ValueError as error:
            raise SettingError(f"hidden: {error}.") from error
        for name in ("steady", "mirror", "start", "duel"):
            if self.hidden and getattr(self, name):
                raise SettingError(f"{name} is for linear policies, and hidden = {self.hidden} is a network.")
        if self.start and self.duel:
            raise SettingError(f"duel = {self.duel} starts from nothing, and this run from a policy: give duel = 0.")

    def shape(self, p: int, n: int) -> tuple[int, int]:
        """The shape of M: (p, n), or one row with all numbers of a network."""
        hidden = hidden_layers(self.hidden)
        return (1, count((n, *hidden, p))) if hidden else (p, n)

    @property
    def label(self) -> str:
        """The usual name of this search, such as V2-t, with "-raw" if it would be the same for normalised states."""
        label = self.search.label(self.normalise)
        raw = not self.normalise and label == self.search.label(True)
        return f"{label}-raw{self._view}" if raw else f"{label}{self._view}"

    @property
    def _view(self) -> str:
        """What its policies see, if not the whole observation, and whether they are symmetric and steady."""
        seen = self.observe if len(self.observe) <= 20 else hashlib.sha256(self.observe.encode()).hexdigest()[:8]
        observed = "" if self.observe == subset.ALL else f"-observe{seen}"
        moving = "-steady" if self.steady else "-running"
        usual = self.steady == usually_steady(self.search, self.normalise, self.hidden)
        scenarios = "" if self.over == "mean" else f"-{self.over}"
        network = "-mlp" + self.hidden.replace(",", "x") if self.hidden else ""
        return network + observed + ("-mirror" if self.mirror else "") + scenarios + ("" if usual else moving)

    def __getattr__(self, name: str) -> Any:
        if name == "variant":
            raise AttributeError("Config has no variant: config.label is the name of its search, V2-t for example.")
        if name != "search" and not name.startswith("_") and hasattr(self.search, name):
            raise AttributeError(f"Config has no {name}: it is a setting of the search, config.search.{name}.")
        raise AttributeError(f"Config has no {name}.")

    def to_dict(self) -> dict[str, Any]:
        """As JSON; the search is one block with its name."""
        shared = {f.name: getattr(self, f.name) for f in fields(self)}
        shared = {name: value for name, value in shared.items() if (name, value) not in ADDED_TO_FORMAT_2.items()}
        return {**shared, "search": {"name": search_name(self.search), **search_settings(self.search)}}

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Config":
        """The inverse of to_dict; unknown and missing names are errors."""
        value = {**ADDED_TO_FORMAT_2, **value}
        odd = sorted({f.name for f in fields(Config)}.symmetric_difference(value))
        if odd:
            raise SettingError(f"missing or unknown setting: {shown(odd[0])}.")
        if none := [name for name, part in value.items() if part is None]:  # derived values are in files too
            raise SettingError(f"{none[0]} = None is not a value.")
        block = value["search"]
        if not isinstance(block, Mapping) or not isinstance(block.get("name"), str):
            raise SettingError("search is not a block of settings with a name.")
        if not isinstance(value["start"], str) or not value["start"].isascii() or len(value["start"]) > 100:
            raise SettingError(f"start = {shown(value['start'])} is not a policy's hash and weight.")
        search = make_search(block["name"], {name: part for name, part in block.items() if name != "name"})
        return Config(**{**value, "search": search})

    @staticmethod
    def from_format_1(value: Mapping[str, Any]) -> "Config":
        """The configuration in format 1, which had only ARS, with its settings among the others."""
        value = {**ADDED_TO_FORMAT_1, **value}
        variant = value.pop("variant", None)
        if not isinstance(variant, str) or variant not in VARIANTS:
            raise SettingError(f"variant = {shown(variant)} is unknown: choose one of {', '.join(VARIANTS)}.")
        scaled, normalise, top = VARIANTS[variant]
        names = ("alpha", "nu", "N", "b")
        block = {name: value.pop(name) for name in names if name in value}
        if not top and block.get("b") != block.get("N"):
            raise SettingError(f"b = {shown(block.get('b'))} is not N, and {variant} uses all directions.")
        search = {"name": "ars", **block, "scaled": scaled}
        if {"search", "normalise", "start", *ADDED_TO_FORMAT_2} & value.keys():
            raise SettingError("missing or unknown setting: format 1 has no search block.")
        return Config.from_dict({**value, "search": search, "normalise": normalise, "start": ""})


def usually_steady(search: Search, normalise: bool, hidden: str) -> bool:
    """Whether policies are steady unless the user says otherwise: not those of the paper's search, and not networks."""
    return normalise and not isinstance(search, ARS) and not hidden


def shared_settings() -> list[str]:
    """The names of the settings that all searches share."""
    return [f.name for f in own_fields(Config)]
