"""Augmented random search and, without its augmentations, basic random search: Algorithms 1 and 2 of the paper.

The arithmetic is in ars/algorithm.py. BRS, V1, V1-t, V2 and V2-t are values of this class, with states normalised or
not; normalisation (section 3.2) belongs to the configuration, because it works with any search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ars.errors import SettingError
from ars.settings import check_settings, setting

if TYPE_CHECKING:
    from ars.searches import FloatArray, Params, Telemetry


@dataclass(frozen=True, kw_only=True)
class ARS:
    """Algorithm 2; with scaled=False Algorithm 1."""

    signs: ClassVar[tuple[int, ...]] = (+1, -1)

    alpha: float = setting(0.02, help="Step size.", above=0, shrink=True)
    nu: float = setting(0.03, help="Standard deviation of the exploration noise.", above=0, shrink=True)
    N: int = setting(8, help="Directions sampled per iteration.", least=1, most=10**6)
    b: int = setting(None, help="Top-performing directions used; all N if not given.", least=1, most=10**6)
    scaled: bool = setting(True, help="Divide the step by sigma_R (section 3.1).", named=False)

    def __post_init__(self) -> None:
        check_settings(self)
        if getattr(self, "b") is None:  # noqa: B009 (an int from here on)
            object.__setattr__(self, "b", self.N)
        if self.b > self.N:
            raise SettingError(f"b = {self.b} is larger than N = {self.N}: choose b from 1 to {self.N}.")
        if self.b < self.N and not self.scaled:
            raise SettingError(
                f"b = {self.b} < N = {self.N} is not basic random search: leave b out, or set it to {self.N}."
            )

    def initial(self, shape: tuple[int, int]) -> "Params":
        import numpy as np

        return {"M": np.zeros(shape)}  # Alg. 2, line 2

    def size(self, params: "Params") -> int:
        return self.N

    def candidate(self, params: "Params", delta: "FloatArray", sign: int) -> "FloatArray":
        return params["M"] + (sign * self.nu) * delta  # Alg. 2, line 5

    def step(
        self, params: "Params", deltas: "Sequence[FloatArray]", rewards: "FloatArray"
    ) -> "tuple[Params, Telemetry]":
        from ars import algorithm

        M, (r_plus, r_minus) = params["M"], rewards.T
        if self.scaled:
            step = algorithm.ars_step(M, deltas, r_plus, r_minus, alpha=self.alpha, b=self.b)
        else:
            step = algorithm.brs_step(M, deltas, r_plus, r_minus, alpha=self.alpha)
        telemetry: Telemetry = {"sigma_R": step.sigma_R, "update_norm": algorithm.norm(step.M - M)}
        return {"M": step.M}, {**telemetry, "step_taken": step.sigma_R > 0.0}

    def label(self, normalise: bool) -> str:
        """The paper's name of the variant. V1-t with b = N is V1."""
        if not self.scaled:
            return "BRS-normalised" if normalise else "BRS"
        return ("V2" if normalise else "V1") + ("-t" if self.b < self.N else "")


class Variant(NamedTuple):
    """Which of the paper's three augmentations of basic random search are on."""

    scaled: bool  # section 3.1
    normalise: bool  # section 3.2
    top_directions: bool  # section 3.3: b < N


VARIANTS = {
    "BRS": Variant(False, False, False),
    "V1": Variant(True, False, False),
    "V1-t": Variant(True, False, True),
    "V2": Variant(True, True, False),
    "V2-t": Variant(True, True, True),
}
