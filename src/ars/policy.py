"""The linear policy of Algorithm 2, line 5: π(x) = M diag(Sigma)^(-1/2) (x − mu), and its one-file form.

One arithmetic everywhere (here, the compiled loop, the exports): W = M / sigma, c = W mu, and
a_i = −c_i + Σ_j W_ij x_j, added in the order of j: no BLAS and no fused multiply-add, so the bits agree.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ars.errors import FileError, SettingError
from ars.files import read_npz, write_npz

FloatArray = NDArray[np.float64]
FORMAT = 1


@dataclass(frozen=True)
class Actions:
    """How the p numbers of π(x) become what an environment takes."""

    kind: str = "box"  # "box": an array of `shape`; "discrete": start + argmax
    shape: tuple[int, ...] | None = None
    start: int = 0
    low: tuple[float, ...] | None = None  # bounds to clip to, if any
    high: tuple[float, ...] | None = None

    def apply(self, a: FloatArray) -> Any:
        """a: (..., p) → actions (..., *shape), or integers (...)."""
        if self.kind == "discrete":
            return np.argmax(a, axis=-1) + self.start
        if self.low is not None:
            a = np.clip(a, self.low, self.high)
        return a if self.shape is None else a.reshape(*a.shape[:-1], *self.shape)

    def to_dict(self) -> dict[str, Any]:
        bounds = {} if self.low is None else {"low": self.low, "high": self.high}
        return {"kind": self.kind, "shape": self.shape, "start": self.start, **bounds}

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> "Actions":
        def numbers(name: str, kind: type) -> tuple[Any, ...] | None:
            return None if value.get(name) is None else tuple(kind(v) for v in value[name])

        if value["kind"] not in ("box", "discrete"):
            raise ValueError(f"unknown kind of actions {value['kind']!r}")
        return Actions(
            str(value["kind"]), numbers("shape", int), int(value.get("start", 0)),
            numbers("low", float), numbers("high", float),
        )  # fmt: skip


@dataclass(frozen=True)
class LinearPolicy:
    """M: (p, n); mu, sigma: (n,), sigma infinite where a coordinate is ignored; `task` tells what it was made for."""

    M: FloatArray
    mu: FloatArray
    sigma: FloatArray
    task: dict[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return int(self.M.shape[1])

    @property
    def p(self) -> int:
        return int(self.M.shape[0])

    @cached_property
    def W(self) -> FloatArray:
        """(p, n): M diag(Sigma)^(-1/2)."""
        return self.M / self.sigma

    @cached_property
    def c(self) -> FloatArray:
        """(p,): W mu."""
        return _ordered_sum((self.W * self.mu).T)

    @cached_property
    def actions(self) -> Actions:
        return Actions.from_dict(self.task["actions"]) if "actions" in self.task else Actions()

    def act(self, obs: ArrayLike) -> FloatArray:
        """π(x): (n,) → (p,), or (..., n) → (..., p)."""
        x = np.asarray(obs, dtype=np.float64)
        if x.shape[-1:] != (self.n,):
            raise SettingError(f"This policy takes observations of {self.n} numbers, not of shape {x.shape}.")
        terms = np.empty((self.n + 1, *x.shape[:-1], self.p))
        np.negative(self.c, out=terms[0])
        np.multiply(np.moveaxis(x, -1, 0)[..., None], self._columns(x.ndim), out=terms[1:])
        return _ordered_sum(terms)

    def _columns(self, ndim: int) -> FloatArray:
        """W as (n, 1, ..., p), for x with ndim axes."""
        return self.W.T.reshape(self.n, *[1] * (ndim - 1), self.p)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The interface of stable-baselines3: the actions for one observation or a batch, and the state as it was."""
        x, batched = self._flat(observation)
        actions = self.actions.apply(self.act(x))
        return (actions if batched else actions[0]), state

    def _flat(self, observation: Any) -> tuple[FloatArray, bool]:
        """(batch, n), and whether there was a batch axis. Dict and Tuple observations are joined in their order."""
        if isinstance(observation, Mapping | tuple):
            leaves = list(observation.values()) if isinstance(observation, Mapping) else list(observation)
            arrays = [np.asarray(leaf, dtype=np.float64) for leaf in leaves]
            batched = sum(a.size for a in arrays) != self.n
            rows = len(arrays[0]) if batched else 1
            return np.concatenate([a.reshape(rows, -1) for a in arrays], axis=1), batched
        x = np.asarray(observation, dtype=np.float64)
        shape = tuple(self.task.get("observation_shape", (self.n,)))
        batched = x.shape != shape
        rows = len(x) if batched and x.ndim else 1
        if x.size != rows * self.n:
            raise SettingError(f"This policy takes observations of shape {shape}, not {x.shape}.")
        return x.reshape(rows, self.n), batched

    def save(self, path: str | Path) -> None:
        """One .npz with M, mu, sigma and `task` (JSON text); NumPy alone can read it."""
        text = json.dumps({"format": FORMAT, **self.task}, allow_nan=False)
        write_npz(Path(path), {"M": self.M, "mu": self.mu, "sigma": self.sigma, "task": np.array(text)})

    @staticmethod
    def load(path: str | Path) -> "LinearPolicy":
        """Read a policy; nothing in the file is executed."""
        arrays = read_npz(Path(path), ("M", "mu", "sigma", "task"))
        M, mu, sigma = arrays["M"], arrays["mu"], arrays["sigma"]
        check_policy_arrays(path, M, mu, sigma)
        return LinearPolicy(M, mu, sigma, _task_of(path, arrays["task"]))


def _ordered_sum(terms: FloatArray) -> FloatArray:
    """Over the first axis, one after the other: accumulate adds in order, which sum and matmul need not."""
    total: FloatArray = np.add.accumulate(terms, axis=0)[-1]
    return total


def check_policy_arrays(path: str | Path, M: NDArray[Any], mu: NDArray[Any], sigma: NDArray[Any]) -> None:
    """M, mu and sigma fit together and are numbers a policy can have, or a sentence says what is wrong."""
    if any(a.dtype != np.float64 for a in (M, mu, sigma)):
        raise FileError(f"{path} is damaged: M, mu and sigma must be float64.")
    if M.ndim != 2 or M.size == 0 or mu.shape != (M.shape[1],) or sigma.shape != (M.shape[1],):
        raise FileError(f"{path} is damaged: shapes M {M.shape}, mu {mu.shape}, sigma {sigma.shape} do not fit.")
    if not (np.isfinite(M).all() and np.isfinite(mu).all()):
        raise FileError(f"{path} is damaged: M and mu must be finite.")
    if not (sigma > 0).all():
        raise FileError(f"{path} is damaged: sigma must be positive, or infinite for an ignored coordinate.")


def _task_of(path: str | Path, text: NDArray[Any]) -> dict[str, Any]:
    try:
        if text.dtype.kind != "U" or text.ndim != 0:
            raise ValueError("the entry 'task' is not text")
        task = json.loads(str(text))
        if not isinstance(task, dict):
            raise ValueError("the entry 'task' is not a JSON object")
        version = task.pop("format", None)
        if version != FORMAT:
            raise ValueError(f"format {version!r} is unknown to this version of ars, which reads {FORMAT}")
        if "actions" in task:
            Actions.from_dict(task["actions"])
        shape = task.get("observation_shape", ())
        if not all(isinstance(size, int) and 0 < size < sys.maxsize for size in shape):
            raise ValueError("observation_shape is not a list of sizes")
        return task
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {error}.") from error
