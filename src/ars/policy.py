"""The linear policy of Algorithm 2, line 5: π(x) = M diag(Sigma)^(-1/2) (x − mu), and its one-file form.

The arithmetic is the same everywhere (here, in the compiled loop, in the exports): W = M / sigma, c = W mu, and
a_i = −c_i + Σ_j W_ij x_j, added in the order of j without BLAS or fused multiply-add, so that the bits agree.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ars import subset
from ars.errors import FileError, SettingError
from ars.files import LARGEST_TASK, npz_bytes, one_line, parse_json, read_npz, write_atomic
from ars.settings import shown

FloatArray = NDArray[np.float64]
FORMAT = 1
LARGEST_M = 10**7  # numbers; a policy file stays below files.LARGEST_FILE
ACTION_DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")


@dataclass(frozen=True)
class Actions:
    """How the p numbers of π(x) become what an environment takes."""

    kind: str = "box"  # "box": an array of `shape`; "discrete": start + argmax
    shape: tuple[int, ...] | None = None
    start: int = 0
    low: tuple[float, ...] | None = None  # bounds to clip to, if any
    high: tuple[float, ...] | None = None
    dtype: str | None = None  # of the action; None: float64

    def apply(self, a: FloatArray) -> Any:
        """a: (..., p) → actions (..., *shape), or integers (...)."""
        if self.kind == "discrete":
            return np.argmax(a, axis=-1) + self.start
        if self.bounds is not None:
            a = np.clip(a, *self.bounds)
        if self.dtype is not None and np.dtype(self.dtype) != a.dtype:
            whole = np.dtype(self.dtype).kind in "iu"
            a = (np.rint(a) if whole else a).astype(self.dtype)
        return a if self.shape is None else a.reshape((*a.shape[:-1], *self.shape))

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """low and high as arrays (p,)."""
        return None if self.low is None or self.high is None else (np.array(self.low), np.array(self.high))

    def to_dict(self) -> dict[str, Any]:
        """As JSON, which has no infinity: an infinite bound is null."""
        value: dict[str, Any] = {"kind": self.kind, "shape": self.shape, "start": self.start, "dtype": self.dtype}
        for name in ("low", "high"):
            bounds = getattr(self, name)
            value[name] = None if bounds is None else [b if math.isfinite(b) else None for b in bounds]
        return value

    @staticmethod
    def from_dict(value: Mapping[str, Any], p: int) -> "Actions":
        """The inverse, for p outputs; raises ValueError, TypeError or KeyError for invalid values."""
        if not isinstance(value, Mapping):
            raise TypeError("the actions are not described")

        def bounds(name: str, open_end: float) -> tuple[float, ...] | None:
            if value.get(name) is None:
                return None
            if not isinstance(value[name], list | tuple) or len(value[name]) != p:
                raise ValueError(f"the bounds of the actions are not {p} numbers")
            numbers = tuple(open_end if b is None else float(b) for b in value[name])
            if any(isinstance(b, str) for b in value[name]) or any(math.isnan(b) for b in numbers):
                raise ValueError(f"the bounds of the actions are not {p} numbers")
            return numbers

        shape = None if value.get("shape") is None else tuple(_sizes(value["shape"]))
        dtype = value.get("dtype")
        if shape is not None and math.prod(shape) != p:
            raise ValueError(f"actions of shape {shape} are not {p} numbers")
        if value["kind"] not in ("box", "discrete") or dtype not in (None, *ACTION_DTYPES):
            raise ValueError(f"unknown actions {value['kind']!r} of {dtype!r}")
        low, high = bounds("low", -math.inf), bounds("high", math.inf)
        if (low is None) != (high is None):
            raise ValueError("the actions have one bound without the other")
        if low is not None and high is not None and any(a > b for a, b in zip(low, high, strict=True)):
            raise ValueError("a lower bound of the actions lies above the upper one")
        start = value.get("start", 0)
        if not isinstance(start, int) or not abs(start) < 2**62:
            raise ValueError("the actions do not start at a whole number")
        return Actions(str(value["kind"]), shape, start, low, high, dtype)


def _sizes(value: Any) -> list[int]:
    """A list of sizes, or ValueError; NumPy has at most 64 axes."""
    if not isinstance(value, list | tuple) or len(value) > 64:
        raise ValueError("a shape is not a list of sizes")
    if not all(isinstance(size, int) and 0 < size < 2**31 for size in value):
        raise ValueError("a shape is not a list of sizes")
    return list(value)


def _count(structure: Any, depth: int = 0) -> int:
    """How many numbers an observation of this structure flattens to; ValueError for an invalid structure."""
    if not isinstance(structure, dict) or depth > 20:
        raise ValueError("the structure of the observation is not known")
    if "dict" in structure:
        return sum(_count(part, depth + 1) for _, part in structure["dict"])
    if "tuple" in structure:
        return sum(_count(part, depth + 1) for part in structure["tuple"])
    return _sizes([structure["n"]])[0] if "n" in structure else math.prod(_sizes(structure["shape"]))


def _leaves(structure: dict[str, Any], observation: Any) -> Iterator[tuple[NDArray[Any], tuple[int, ...]]]:
    """Each leaf of an observation with its unbatched shape; Discrete leaves become one-hot rows."""
    if "dict" in structure:
        for key, part in structure["dict"]:
            yield from _leaves(part, observation[key])
    elif "tuple" in structure:
        for part, value in zip(structure["tuple"], observation, strict=True):
            yield from _leaves(part, value)
    elif "n" in structure:
        hot = np.asarray(observation)[..., None] == np.arange(structure["n"]) + structure.get("start", 0)
        yield hot.astype(np.float64), (structure["n"],)
    else:
        yield np.asarray(observation, dtype=np.float64), tuple(structure["shape"])


@dataclass(frozen=True)
class LinearPolicy:
    """M: (p, n); mu, sigma: (n,), sigma infinite where a coordinate is ignored; `task` describes what it is for."""

    M: FloatArray
    mu: FloatArray
    sigma: FloatArray
    task: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line: LinearPolicy(HalfCheetah-v5, 6×17, iteration 20, reward 1570), as far as these are known."""
        name, j, mean = (self.task.get(key) for key in ("name", "iteration", "eval_mean"))
        parts = [shown(name).strip("'")] if isinstance(name, str) else []
        parts.append(f"{self.p}×{self.n}")
        parts += [f"iteration {j}"] if type(j) is int else []
        parts += [f"reward {brief(mean)}"] if type(mean) is float else []
        return f"LinearPolicy({', '.join(parts)})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cached W and c, which a worker computes itself."""
        return {"M": self.M, "mu": self.mu, "sigma": self.sigma, "task": self.task}

    @property
    def n(self) -> int:
        return int(self.M.shape[1])

    @property
    def p(self) -> int:
        return int(self.M.shape[0])

    @property
    def observe(self) -> str:
        """The entries of the task's observation that this policy sees, as text such as 0-26; "all" for all of them."""
        return str(self.task.get("observe", subset.ALL))

    @cached_property
    def W(self) -> FloatArray:
        """(p, n): M diag(Sigma)^(-1/2)."""
        return self.M / self.sigma

    @cached_property
    def c(self) -> FloatArray:
        """(p,): W mu."""
        return ordered_sum((self.W * self.mu).T)

    @cached_property
    def actions(self) -> Actions:
        return Actions.from_dict(self.task["actions"], self.p) if "actions" in self.task else Actions()

    def act(self, obs: ArrayLike) -> FloatArray:
        """π(x): (n,) → (p,), or (..., n) → (..., p)."""
        x = np.asarray(obs, dtype=np.float64)
        if x.shape[-1:] != (self.n,):
            entries = "" if self.observe == subset.ALL else f", entries {self.observe} of its task's observation"
            raise SettingError(f"This policy takes observations of {self.n} numbers{entries}, not of shape {x.shape}.")
        terms = np.empty((self.n + 1, *x.shape[:-1], self.p))
        np.negative(self.c, out=terms[0])
        np.multiply(np.moveaxis(x, -1, 0)[..., None], self._columns(x.ndim), out=terms[1:])
        return ordered_sum(terms)

    def _columns(self, ndim: int) -> FloatArray:
        """W as (n, 1, ..., p), for x with ndim axes."""
        return self.W.T.reshape(self.n, *[1] * (ndim - 1), self.p)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The interface of stable-baselines3: the actions for one observation or a batch, and `state` unchanged. The
        observation is the environment's, also if the policy sees only a subset of it."""
        x, batched = self._flat(observation)
        actions = self.actions.apply(self.act(x))
        return (actions if batched else actions[0]), state

    def _flat(self, observation: Any) -> tuple[FloatArray, bool]:
        """(batch, n), and whether there was a batch axis; Dict and Tuple observations are flattened as in training."""
        structure = self.task.get("observation", {"shape": [self.n]})
        try:
            leaves = list(_leaves(structure, observation))
            batched = leaves[0][0].ndim > len(leaves[0][1])
            rows = len(leaves[0][0]) if batched else 1
            x = np.concatenate([leaf.reshape(rows, math.prod(shape)) for leaf, shape in leaves], axis=1)
            return x if self.observe == subset.ALL else x[:, subset.to_indices(self.observe, x.shape[1])], batched
        except (ValueError, TypeError, KeyError, IndexError) as error:
            wanted = f"shape {tuple(structure['shape'])}" if "shape" in structure else f"structure {structure}"
            given = f"shape {observation.shape}" if isinstance(observation, np.ndarray) else type(observation).__name__
            raise SettingError(
                f"This policy takes observations of {wanted}, alone or as a batch, not {given}."
            ) from error

    def save(self, path: str | Path) -> None:
        """One .npz with M, mu, sigma and `task` (JSON text); NumPy alone can read it."""
        write_atomic(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of that file; equal policies give equal bytes."""
        text = json.dumps({"format": FORMAT, **self.task}, allow_nan=False)
        return npz_bytes({"M": self.M, "mu": self.mu, "sigma": self.sigma, "task": np.array(text)})

    @staticmethod
    def load(path: str | Path) -> "LinearPolicy":
        """Read a policy; nothing in the file is executed."""
        arrays = read_npz(Path(path), ("theta", "mu", "sigma", "task"), ("M", "mu", "sigma", "task"))
        if "theta" in arrays:
            raise FileError(f"{path} is a network, and this needs a linear policy: `ars evaluate` takes both.")
        M, mu, sigma = arrays["M"], arrays["mu"], arrays["sigma"]
        check_policy_arrays(path, M, mu, sigma)
        return LinearPolicy(M, mu, sigma, read_task(path, arrays["task"], *M.shape))


def observed_count(task: Mapping[str, Any]) -> int:
    """How many numbers of the observation a policy for this task sees; ValueError for an invalid description."""
    whole = _count(task["observation"])
    if "observe" not in task:
        return whole
    if not isinstance(task["observe"], str):
        raise ValueError("observe is not text")
    if subset.ranges(task["observe"])[-1][1] >= whole:
        raise ValueError(f"observe has entries beyond the {whole} numbers of the observation")
    return subset.size(task["observe"])


def brief(number: float) -> str:
    """A reward in about four digits: 1570, 12.35, 0.004."""
    return f"{number:.0f}" if 1000 <= abs(number) < 1e7 else f"{number + 0.0:.4g}"  # + 0.0: no "-0"


def ordered_sum(terms: FloatArray) -> FloatArray:
    """The sum over the first axis, in order: `accumulate` guarantees the order, `sum` and `matmul` do not."""
    total: FloatArray = np.add.accumulate(terms, axis=0)[-1]
    return total


def check_policy_arrays(
    path: str | Path, M: NDArray[Any], mu: NDArray[Any], sigma: NDArray[Any], *, linear: bool = True
) -> None:
    """Raise FileError unless M, mu and sigma have matching shapes and valid values; the M of a network has one row,
    whose length its layers decide."""
    if any(a.dtype != np.float64 for a in (M, mu, sigma)):
        raise FileError(f"{path} is damaged: M, mu and sigma must be float64.")
    n = M.shape[1:] if linear else mu.shape
    if M.ndim != 2 or M.size == 0 or mu.shape != n or sigma.shape != n or mu.ndim != 1:
        raise FileError(f"{path} is damaged: shapes M {M.shape}, mu {mu.shape}, sigma {sigma.shape} do not fit.")
    if M.size > LARGEST_M:
        raise FileError(f"{path} is damaged: M {M.shape} has more than {LARGEST_M} numbers.")
    if not (np.isfinite(M).all() and np.isfinite(mu).all()):
        raise FileError(f"{path} is damaged: M and mu must be finite.")
    if not (sigma > 0).all():
        raise FileError(f"{path} is damaged: sigma must be positive, or infinite for an ignored coordinate.")
    if not linear:
        return
    with np.errstate(all="ignore"):
        W = M / sigma
        usable = np.isfinite(W).all() and np.isfinite(np.abs(W * mu).sum())
    if not usable:
        raise FileError(f"{path} is damaged: M / sigma and its product with mu must be finite.")


def read_task(path: str | Path, text: NDArray[Any], p: int, n: int) -> dict[str, Any]:
    """What a policy file says of its task, for p actions and n observations; FileError if it is invalid."""
    try:
        if text.dtype.kind != "U" or text.ndim != 0:
            raise ValueError("the entry 'task' is not text")
        if text.dtype.itemsize > 4 * LARGEST_TASK:
            raise ValueError(f"the entry 'task' has more than {LARGEST_TASK} letters")
        task = parse_json(str(text))
        version = task.pop("format", None)
        if type(version) is not int or version != FORMAT:
            raise ValueError(f"format {version!r:.50} is unknown to this version of ars, which reads {FORMAT}")
        if "actions" in task:
            Actions.from_dict(task["actions"], p)
        if "observation" in task and observed_count(task) != n:
            raise ValueError(f"its observation does not flatten to n = {n} numbers")
        return task
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {one_line(error)}.") from error
