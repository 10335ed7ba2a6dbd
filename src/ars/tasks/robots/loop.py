"""The loop of a robot, generated from its terms: compiled for training, and in plain Python as the oracle.

The text names the terms' functions f0, f1, …, and that of the policy; they are global constants of the compiled code.
(As arguments they would have it compiled again at every start.) Numba keeps compiled code on disk under a name that has
a digest of these functions and of all that they call, because it does not notice changes in them itself. All robots
with the same terms share one loop for each kind of policy: constants and sizes are arguments.
"""

import ctypes
import dis
import hashlib
import linecache
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import llvmlite.binding
import mujoco
import numba
import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from ars.compiled import compiled_text
from ars.errors import TaskError
from ars.files import one_line
from ars.tasks.robots import generated
from ars.tasks.robots.robot import Parts
from ars.tasks.robots.state import State
from ars.tasks.robots.terms import Bound

# Symbols are resolved by name when compiled code is linked, so that the code can be cached on disk.
llvmlite.binding.load_library_permanently(str(next(Path(mujoco.__file__).parent.glob("libmujoco.*"))))
_ON_MODEL = ("mj_step", "mj_step1", "mj_step2", "mj_rnePostConstraint", "mj_kinematics", "mj_comPos", "mj_comVel")
_LIBRARY: dict[str, Any] = {
    name: types.ExternalFunction(name, types.void(types.intp, types.intp)) for name in _ON_MODEL
}
_LIBRARY["mju_copy"] = types.ExternalFunction("mju_copy", types.void(types.intp, types.intp, types.int32))
# Of functions that only compiled code calls: the wrappers for others would take a third of the time to compile.
_INNER: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Arrays(NamedTuple):
    """Numbers of a robot, for the loop."""

    k: Any  # constants of all terms
    m: Any  # memory of all terms
    spans: Any  # (terms + 1, 3): where each term begins in k, m and the whole observation
    weights: Any  # of the rewards
    clip: Any  # of the whole observation
    index: Any  # entries of the whole observation that the policy sees
    whole: Any  # the whole observation
    action: Any
    last_action: Any
    ctrl: Any  # what the action asks for
    queue: Any  # (delay + 1, nu): controls on their way to the actuators
    noise: Any  # (steps, n) added to what is observed, or (0, 0)
    bias: Any  # (whole,) added to it
    push: Any  # (pushes, 4): first step, steps, force along x and y
    pushed: Any  # xfrc_applied of the pushed body
    warnings: Any  # counters of MjData
    divergence: Any  # their indices that count
    parts: Any  # the sum of each reward term
    rewards: Any  # (steps,) that of each step, or (0,) if nobody asks
    frame_skip: int
    dt: float
    fresh: bool  # whether to bring kinematics up to date after each control step
    split: (
        bool  # whether by taking MuJoCo's steps from the middle of one to the middle of the next, which costs nothing
    )
    contact_forces: bool


def text(parts: Parts) -> str:
    """The source of the loop."""
    number = iter(range(len(parts.all)))

    def arguments(i: int) -> str:
        return f"s, r.k[r.spans[{i}, 0] : r.spans[{i + 1}, 0]], r.m[r.spans[{i}, 1] : r.spans[{i + 1}, 1]]"

    act = f"    f{(i := next(number))}({arguments(i)}, r.action, r.ctrl)"
    observe = [
        f"    f{(i := next(number))}({arguments(i)}, r.whole[r.spans[{i}, 2] : r.spans[{i + 1}, 2]])"
        for _ in parts.observe
    ]
    reward = [
        f"    v = r.weights[{place}] * f{(i := next(number))}({arguments(i)})\n"
        f"    r.parts[{place}] += v\n    total += v"
        for place in range(len(parts.reward))
    ]
    stop = [f"    if f{(i := next(number))}({arguments(i)}):\n        return True" for _ in parts.stop]
    used = fields_used(bound.function for bound in parts.all)
    state = [
        f"{'r' if name in OURS else 'v'}.{name}" if name in used else "None"
        for name in State._fields[: State._fields.index("t")]
    ]
    generated = {
        "STATE": f"    return State({', '.join(state)}, step * r.dt, step, r.dt)", "ACT": act,
        "OBSERVE": "\n".join(observe), "REWARD": "\n".join(reward), "STOP": "\n".join(stop),
    }  # fmt: skip
    source = TEMPLATE
    for name, lines in generated.items():
        source = source.replace(f"    {name}", lines or "    pass")
    return source


def fields_used(functions: Iterable[Any]) -> set[str]:
    """The fields of a State that these functions, and those that they call, may use. The others are left out, because
    a call copies each array of the state: with all of them, the calls of a dozen terms take 1% of a step."""
    names: set[str] = set()
    todo, seen = list(functions), set[Any]()
    while todo:
        function = todo.pop()
        function = function.py_func if isinstance(function, Dispatcher) else function
        if function in seen:
            continue
        seen.add(function)
        for value in _used(function).values():
            if isinstance(value, FunctionType | Dispatcher):
                todo.append(value)
            elif isinstance(value, ModuleType) and value not in (math, np):
                return set(State._fields)  # it may have functions that get the state
        codes = [function.__code__]
        while codes:
            names |= set((code := codes.pop()).co_names)
            codes += [const for const in code.co_consts if hasattr(const, "co_code")]
    return names & set(State._fields)


OURS = ("action", "last_action")  # fields that are not views of MjData
TEMPLATE = (Path(__file__).parent / "loop_template.txt").read_text()


def act_linear(parameters: Any, x: Any, a: Any) -> None:
    """The linear policy: a_i = −c_i + Σ_j W_ij x_j, for parameters (W_columns, c), W_columns: (n, p)."""
    W_columns, c = parameters
    for i in range(len(a)):
        a[i] = -c[i]
    for j in range(len(x)):
        for i in range(len(a)):
            a[i] += W_columns[j, i] * x[j]


class Loop(NamedTuple):
    """episode(model, data, views, arrays, parameters, first, H, shift, gather, x, x_first, s1, s2)."""

    episode: Callable[..., tuple[float, int, bool, bool]]
    digest: str


def make_loop(parts: Parts, policy: Callable[..., None] = act_linear, *, compiled: bool = True) -> Loop:
    """The loop of these terms, compiled at its first call or loaded from the disk; or as it is, in plain Python.
    `policy(parameters, x, a)` fills a, within Numba's subset like a term; parameters are a tuple of arrays."""
    return _make_loop((*(bound.function for bound in parts.all), policy), text(parts), compiled)


def is_ours(bound: Bound) -> bool:
    """Whether a term's function comes with ars."""
    return str(bound.function.__module__).startswith("ars.tasks.robots.")


def _compiling(episode: Any) -> Callable[..., tuple[float, int, bool, bool]]:
    """The compiled loop, where a term that Numba cannot compile is one sentence."""

    def call(*arguments: Any) -> tuple[float, int, bool, bool]:
        try:
            result: tuple[float, int, bool, bool] = episode(*arguments)
        except NumbaError as error:
            reason = next((line for line in str(error).splitlines() if "rror" in line or "nknown" in line), str(error))
            raise TaskError(f"A term cannot be compiled by Numba: {one_line(Exception(reason))}") from error
        return result

    call.dispatcher = episode  # type: ignore[attr-defined]
    return call


@cache
def _make_loop(functions: tuple[Callable[..., Any], ...], source: str, compiled: bool) -> Loop:
    """`functions`: of the terms, and of the policy."""
    digest = hashlib.sha256("\n".join([source, numba.__version__, *map(fingerprint, functions)]).encode()).hexdigest()
    for name in re.findall(r"^def (\w+)", source, re.MULTILINE):  # linked code is found by name: no two may share one
        source = re.sub(rf"\b{name}\b", f"{name}_{digest[:16]}", source)
    name = f"<ars loop {digest[:16]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for Numba's messages
    scope: dict[str, Any] = {"np": np, "State": State, "__name__": generated.__name__}
    names = [*(f"f{i}" for i in range(len(functions) - 1)), "policy"]
    if compiled:
        scope |= {name: compiled_function(f) for name, f in zip(names, functions, strict=True)}
        scope |= {
            **_LIBRARY,
            "inlined": lambda f: njit(**_INNER, forceinline=True)(f),
            "cached": lambda f: compiled_text(f, digest),
        }
    else:
        library = _plain_library()
        scope |= {name: _plain_function(f, library) for name, f in zip(names, functions, strict=True)}
        scope |= {**library, "inlined": lambda f: f, "cached": lambda f: f}
    exec(compile(source, name, "exec"), scope)
    episode = scope[f"episode_{digest[:16]}"]
    return Loop(_compiling(episode) if compiled else episode, digest)


def _plain_library() -> dict[str, Callable[..., None]]:
    """The same functions of MuJoCo for plain Python, called by addresses too."""
    library = ctypes.CDLL(str(next(Path(mujoco.__file__).parent.glob("libmujoco.*"))))
    found: dict[str, Any] = {}
    for name in _ON_MODEL:
        found[name] = getattr(library, name)
        found[name].argtypes, found[name].restype = [ctypes.c_void_p, ctypes.c_void_p], None
    found["mju_copy"] = library.mju_copy
    found["mju_copy"].argtypes, found["mju_copy"].restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int], None
    return found


def _used(function: FunctionType) -> dict[str, Any]:
    """The globals and closed-over values that a function uses, by name."""
    code, used = [function.__code__], {}
    while code:
        one = code.pop()
        code += [const for const in one.co_consts if hasattr(const, "co_code")]
        for name in {step.argval for step in dis.get_instructions(one) if step.opname == "LOAD_GLOBAL"}:
            if name in function.__globals__:
                used[name] = function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        used[name] = cell.cell_contents
    return used


@cache
def compiled_function(function: Any) -> Any:
    """A term's function for Numba; the plain functions that it calls are compiled too."""
    if isinstance(function, Dispatcher):
        return function
    used = _used(function)
    inner = {name: compiled_function(value) for name, value in used.items() if isinstance(value, FunctionType)}
    own = _within(function, {name: _LIBRARY[name] for name in used if name in _LIBRARY} | inner)
    own.__qualname__ = f"{function.__qualname__}_{fingerprint(function)[:16]}"  # see _make_loop
    return njit(**_INNER)(own)


def _plain_function(function: Any, library: dict[str, Callable[..., None]]) -> Any:
    """The same for plain Python."""
    if isinstance(function, Dispatcher):
        return function.py_func
    return _within(function, {name: library[name] for name in _used(function) if name in library})


def _within(function: Any, names: dict[str, Any]) -> Any:
    """A copy of the function with other globals of these names."""
    scope = {**function.__globals__, **names}
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)


def fingerprint(value: Any, seen: tuple[Any, ...] = ()) -> str:
    """A digest of all that decides what a function compiles to: its code, and what it uses."""
    if isinstance(value, Dispatcher):
        value = value.py_func
    if isinstance(value, FunctionType):
        if value in seen:
            return value.__name__
        uses = [f"{name}={fingerprint(one, (*seen, value))}" for name, one in sorted(_used(value).items())]
        parts = [_code(value.__code__), repr(value.__defaults__), *uses]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.tobytes() + repr((value.dtype, value.shape)).encode()).hexdigest()
    if isinstance(value, ModuleType | BuiltinFunctionType | type):
        return str(getattr(value, "__name__", value))
    return repr(value)


def _code(code: Any) -> str:
    consts = [_code(const) if hasattr(const, "co_code") else repr(const) for const in code.co_consts]
    return "\n".join([code.co_code.hex(), repr(code.co_names), repr(code.co_varnames), *consts])


def spans(parts: Parts) -> tuple[Any, Any, Any]:
    """(constants, zeros for memory, where each term begins in them and in the observation)."""
    terms = parts.all
    seen = [len(bound.names) if 1 <= i <= len(parts.observe) else 0 for i, bound in enumerate(terms)]
    sizes = np.array([(len(b.constants), b.memory, n) for b, n in zip(terms, seen, strict=True)], dtype=np.int64)
    at = np.vstack([np.zeros((1, 3), dtype=np.int64), np.cumsum(sizes, axis=0)])
    k = np.array([value for bound in terms for value in bound.constants], dtype=np.float64)
    return k, np.zeros(int(at[-1, 1])), at


def clips(observe: Sequence[Any]) -> Any:
    return np.array([bound.clip for bound in observe for _ in bound.names], dtype=np.float64)
