"""Mirror symmetry of left and right: signed permutations P_s of observations and P_a of actions.

A policy is symmetric if π(P_s x) = P_a π(x): P_a M P_s = M with mu = P_s mu and sigma that mirrored entries share.
Directions are projected onto these matrices and moments are those of the states and their mirror images, so that every
search stays among symmetric policies by itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Mirror:
    """Entry i of a mirrored vector is sign · x[j], written as sign · (j + 1): (1, -2) negates the second of two."""

    observation: tuple[int, ...]
    action: tuple[int, ...]

    def __post_init__(self) -> None:
        for axis in (self.observation, self.action):
            if any(type(entry) is not int for entry in axis) or sorted(map(abs, axis)) != [*range(1, len(axis) + 1)]:
                raise ValueError("the mirror is not a signed permutation")
            if any(axis[abs(entry) - 1] != math.copysign(i, entry) for i, entry in enumerate(axis, 1)):
                raise ValueError("the mirror image of a mirror image is not the original")

    @property
    def shape(self) -> tuple[int, int]:
        """(p, n)."""
        return len(self.action), len(self.observation)

    @cached_property
    def _axes(self) -> tuple[tuple[NDArray[np.intp], FloatArray], tuple[NDArray[np.intp], FloatArray]]:
        """Order and signs of the observations, and of the actions."""
        s, a = (np.array(axis) for axis in (self.observation, self.action))
        return (np.abs(s) - 1, np.sign(s).astype(np.float64)), (np.abs(a) - 1, np.sign(a).astype(np.float64))

    def image(self, M: FloatArray) -> FloatArray:
        """P_a M P_s, also of leading axes."""
        (s, s_signs), (a, a_signs) = self._axes
        return np.asarray(M[..., a, :][..., s] * (a_signs[:, None] * s_signs))

    def project(self, delta: FloatArray) -> FloatArray:
        """The symmetric direction of a direction of independent standard normal numbers: (δ + P_a δ P_s)/√2. Each entry
        is again standard normal; one that is its own image is unchanged, or 0 if the image is negated."""
        (s, _), (a, _) = self._axes
        own = (a == np.arange(len(a)))[:, None] & (s == np.arange(len(s)))
        image = self.image(delta)
        projected = np.where(own & (image == delta), delta, (delta + image) / math.sqrt(2.0))
        projected.flags.writeable = False
        return projected

    @property
    def states(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Order and signs of the observations."""
        return self._axes[0]

    def keeps(self, M: FloatArray, mu: FloatArray, sigma: FloatArray) -> bool:
        """Whether a policy is symmetric, up to rounding."""
        order, signs = self.states
        close = (np.allclose(one, image, rtol=1e-9, atol=0.0) for one, image in (
            (M, self.image(M)), (mu, signs * mu[order]), (sigma, sigma[order]),
        ))  # fmt: skip
        return all(close)

    def select(self, indices: Sequence[int]) -> "Mirror":
        """The mirror of a subset of the observation; ValueError with the first index whose image is not in it."""
        place = {index: i for i, index in enumerate(indices, 1)}
        for index in indices:
            if (image := abs(self.observation[index]) - 1) not in place:
                raise ValueError(f"it has {index} without {image}, its mirror image")
        chosen = (self.observation[index] for index in indices)
        return Mirror(tuple(place[abs(e) - 1] * (1 if e > 0 else -1) for e in chosen), self.action)

    def to_dict(self) -> dict[str, list[int]]:
        return {"observation": list(self.observation), "action": list(self.action)}

    @staticmethod
    def of(definition: Mapping[str, Any]) -> "Mirror | None":
        """The mirror in the definition of a task, if any; ValueError, TypeError or KeyError if it is damaged."""
        if "mirror" not in definition:
            return None
        mirror = Mirror(tuple(definition["mirror"]["observation"]), tuple(definition["mirror"]["action"]))
        if mirror.shape != (definition["p"], definition["n"]):
            raise ValueError("the mirror does not fit n and p")
        return mirror
