"""A policy that is a network of tanh layers, as the paper's rivals have it, and its one-file form.

T. Salimans et al., "Evolution strategies as a scalable alternative to reinforcement learning" (2017): two hidden layers
of 64, states clip((x − mu) / sigma, ±5), weights of unit norm per neuron at first and of norm 0.01 in the last layer.
Searches see its numbers as a matrix M of one row. Sums run in the order of inputs without BLAS and tanh is libm's, so
that `act` and `act_mlp`, which is compiled into the loop of robots, have the same bits.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ars import subset
from ars.errors import FileError, SettingError
from ars.files import npz_bytes, one_line, parse_json, read_npz, write_atomic
from ars.layers import count, hidden_layers
from ars.noise import Key, Stream, generator
from ars.policy import FORMAT, LinearPolicy, brief, check_policy_arrays, ordered_sum, read_task

FloatArray = NDArray[np.float64]

KIND = "mlp"
CLIP = 5.0
LAST = 0.01  # norm of the weights of an output, at first
ENTRIES = ("theta", "mu", "sigma", "task")


def initial(sizes: Sequence[int], seed: int) -> FloatArray:
    """(1, d): the numbers of a network before its training; offsets are 0."""
    random, parts = generator(Key(seed, Stream.NETWORK, 0, 0)), []
    for layer, (m, k) in enumerate(pairwise(sizes), 2):
        W = random.standard_normal((m, k))
        norm = LAST if layer == len(sizes) else 1.0
        parts += [(W * (norm / np.sqrt(ordered_sum(np.square(W))))).ravel(), np.zeros(k)]
    return np.concatenate(parts)[None]


def act_mlp(parameters: Any, x: Any, a: Any) -> None:
    """Fill a with π(x), for the compiled loop: see MLPPolicy.parameters."""
    theta, mu, sigma, sizes, scratch = parameters
    here, there = scratch[0], scratch[1]
    for j in range(len(x)):
        here[j] = min(max((x[j] - mu[j]) / sigma[j], -CLIP), CLIP)
    at = 0
    for layer in range(1, len(sizes)):
        m, k = sizes[layer - 1], sizes[layer]
        W = theta[at : at + m * k].reshape(m, k)
        b = theta[at + m * k : at + (m + 1) * k]
        at += (m + 1) * k
        for i in range(k):
            there[i] = b[i]
        for j in range(m):
            row, value = W[j], here[j]
            for i in range(k):
                there[i] += row[i] * value
        if layer < len(sizes) - 1:
            for i in range(k):
                there[i] = math.tanh(there[i])
        here, there = there, here
    for i in range(len(a)):
        a[i] = here[i]


@dataclass(frozen=True)
class MLPPolicy:
    """M: (1, d), layer by layer the weights (inputs, neurons) and the offsets; mu, sigma: (n,); hidden: the sizes of
    the layers between."""

    M: FloatArray
    mu: FloatArray
    sigma: FloatArray
    hidden: tuple[int, ...]
    task: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line: MLPPolicy(Hopper-v1, 11-64-64-3), as far as it is known."""
        name, mean = self.task.get("name"), self.task.get("eval_mean")
        parts = [name] if isinstance(name, str) else []
        parts.append("-".join(map(str, self.sizes)))
        parts += [f"reward {brief(mean)}"] if type(mean) is float else []
        return f"MLPPolicy({', '.join(parts)})"

    @property
    def n(self) -> int:
        return len(self.mu)

    @cached_property
    def p(self) -> int:
        """From d, which the other layers take but for the last."""
        before = count((self.n, *self.hidden))
        return int((self.M.shape[1] - before) // ((self.n, *self.hidden)[-1] + 1))

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.n, *self.hidden, self.p)

    @property
    def observe(self) -> str:
        """As of LinearPolicy."""
        return str(self.task.get("observe", subset.ALL))

    @property
    def function(self) -> Callable[..., None]:
        return act_mlp

    @property
    def parameters(self) -> tuple[NDArray[Any], ...]:
        """For the loop, with room for two layers: new each time, because threads share policies."""
        theta, sizes = np.ascontiguousarray(self.M[0]), np.array(self.sizes, dtype=np.int64)
        return theta, self.mu, self.sigma, sizes, np.empty((2, max(self.sizes)))

    def act(self, obs: ArrayLike) -> FloatArray:
        """π(x): (n,) → (p,), or (..., n) → (..., p)."""
        x = np.asarray(obs, dtype=np.float64)
        if x.shape[-1:] != (self.n,):
            raise SettingError(f"This policy takes observations of {self.n} numbers, not of shape {x.shape}.")
        here, at = np.minimum(np.maximum((x - self.mu) / self.sigma, -CLIP), CLIP), 0
        for layer, (m, k) in enumerate(pairwise(self.sizes), 2):
            W, b = self.M[0, at : at + m * k], self.M[0, at + m * k : at + (m + 1) * k]
            at += (m + 1) * k
            terms = np.empty((m + 1, *x.shape[:-1], k))
            terms[0] = b
            np.multiply(np.moveaxis(here, -1, 0)[..., None], W.reshape(m, *[1] * (x.ndim - 1), k), out=terms[1:])
            here = ordered_sum(terms)
            if layer < len(self.sizes):  # NumPy's own tanh has other bits
                here = np.array([math.tanh(v) for v in here.ravel().tolist()]).reshape(here.shape)
        return here

    def save(self, path: str | Path) -> None:
        """One .npz with theta (d,), mu, sigma and `task` (JSON text), which has the sizes of the hidden layers."""
        write_atomic(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of that file; equal policies give equal bytes."""
        text = json.dumps({"format": FORMAT, "kind": KIND, "hidden": self.hidden, **self.task}, allow_nan=False)
        return npz_bytes({"theta": self.M[0], "mu": self.mu, "sigma": self.sigma, "task": np.array(text)})


AnyPolicy: TypeAlias = LinearPolicy | MLPPolicy


def load_policy(path: str | Path) -> AnyPolicy:
    """Read a policy of either kind; nothing in the file is executed."""
    arrays = read_npz(Path(path), ENTRIES, ("M", "mu", "sigma", "task"))
    if "theta" not in arrays:
        return LinearPolicy.load(path)
    hidden = _hidden_of(path, arrays["task"])
    policy = checked_network(path, arrays["theta"][None], arrays["mu"], arrays["sigma"], hidden)
    task = read_task(path, arrays["task"], policy.p, policy.n)
    return replace(policy, task={name: value for name, value in task.items() if name not in ("kind", "hidden")})


def _hidden_of(path: str | Path, text: NDArray[Any]) -> tuple[int, ...]:
    try:
        task = parse_json(str(text)) if text.dtype.kind == "U" and text.ndim == 0 else {}
        if task.get("kind") != KIND or not isinstance(task.get("hidden"), list):
            raise ValueError("it does not describe the layers of a network")
        return hidden_layers(",".join(map(str, task["hidden"])))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {one_line(error)}.") from error


def checked_network(
    path: str | Path, M: NDArray[Any], mu: NDArray[Any], sigma: NDArray[Any], hidden: tuple[int, ...]
) -> MLPPolicy:
    """The policy of these arrays, or FileError unless they fit one another."""
    check_policy_arrays(path, M, mu, sigma, linear=False)
    policy = MLPPolicy(M, mu, sigma, hidden)
    if len(M) != 1 or not hidden or policy.p < 1 or count(policy.sizes) != M.shape[1]:
        raise FileError(f"{path} is damaged: {M.size} numbers are not a network with hidden layers {hidden}.")
    return policy
