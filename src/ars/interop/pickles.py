"""Reads the arrays in a pickle without executing any of it.

A pickle is a program for a stack machine. This is that machine without imports and calls: a name becomes a `Name`, a
call becomes a `Made` that records its arguments, and both are only data. Names that the caller does not list, and
opcodes that no array needs, are refused.
"""

import codecs
import io
import math
import pickletools
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_PICKLE = 32 * 2**20  # bytes; a policy for 4000 observations and 1000 actions
MOST_OPCODES = 100_000  # an array takes fifty, stable-baselines3's statistics seven hundred

ARRAY_NAMES = frozenset(
    f"{module}.{name}"
    for module, names in {
        "numpy": ("dtype", "ndarray"),
        "numpy.core.multiarray": ("_reconstruct", "scalar"),  # before NumPy 2
        "numpy._core.multiarray": ("_reconstruct", "scalar"),
        "numpy.core.numeric": ("_frombuffer",),  # protocol 5
        "numpy._core.numeric": ("_frombuffer",),
        "_codecs": ("encode",),  # bytes in protocol 2, written by Python 3
    }.items()
    for name in names
)
DTYPES = ("f8", "f4", "i8", "i4")


class PickleError(ValueError):
    """The pickle contains something that is not allowed, or is damaged; the message is the end of a sentence."""


@dataclass(frozen=True)
class Name:
    """What a pickle would import."""

    path: str


@dataclass(eq=False)
class Made:
    """What a pickle would call, with the arguments, and the state and items that it would then set."""

    path: str
    arguments: tuple[Any, ...]
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)


_MARK = object()
_VALUES = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8",
})  # fmt: skip


class _Machine:
    """The stack and the memo; `step` handles one opcode."""

    def __init__(self, known: Collection[str], *, persistent: bool) -> None:
        self._known, self._persistent = known, persistent
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, opcode: str, argument: Any) -> None:
        """Opcodes without a case here are refused: no array needs them."""
        if opcode in _VALUES:
            return self._push(argument)
        match opcode:
            case "PROTO" | "FRAME":
                pass
            case "NONE":
                self._push(None)
            case "NEWTRUE" | "NEWFALSE":
                self._push(opcode == "NEWTRUE")
            case "MARK":
                self._push(_MARK)
            case "EMPTY_LIST":
                self._push([])
            case "EMPTY_TUPLE":
                self._push(())
            case "EMPTY_DICT":
                self._push({})
            case "LIST":
                self._push(self._pop_to_mark())
            case "TUPLE":
                self._push(tuple(self._pop_to_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                self._push(tuple([self.pop() for _ in range(int(opcode[-1]))][::-1]))
            case "APPEND":
                self._append([self.pop()])
            case "APPENDS":
                self._append(self._pop_to_mark())
            case "SETITEM":
                self._set_items([self.pop(), self.pop()][::-1])
            case "SETITEMS":
                self._set_items(self._pop_to_mark())
            case "GET" | "BINGET" | "LONG_BINGET":
                if argument not in self._memo:
                    raise PickleError("it refers to a value that it never stored")
                self._push(self._memo[argument])
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self._memo[int(argument)] = self._top()
            case "MEMOIZE":
                self._memo[len(self._memo)] = self._top()
            case "GLOBAL":
                self._push(self._name(argument.replace(" ", ".", 1)))
            case "STACK_GLOBAL":
                name, module = self.pop(), self.pop()
                if not isinstance(name, str) or not isinstance(module, str):
                    raise PickleError("it imports something that is not a name")
                self._push(self._name(f"{module}.{name}"))
            case "REDUCE" | "NEWOBJ":
                arguments, function = self.pop(), self.pop()
                if not isinstance(function, Name) or not isinstance(arguments, tuple):
                    raise PickleError("it calls something that is not a known name")
                self._push(Made(function.path, arguments))
            case "BUILD":
                state, target = self.pop(), self._top()
                if not isinstance(target, Made) or target.state is not None:
                    raise PickleError("it changes something that cannot be changed")
                target.state = state
            case "BINPERSID" if self._persistent:
                self._push(Made("persistent", (self.pop(),)))
            case _:
                raise PickleError(f"it uses the opcode {opcode}, which no array needs")

    def pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise PickleError("its stack runs empty")
        return self._stack.pop()

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _top(self) -> Any:
        self._push(value := self.pop())
        return value

    def _pop_to_mark(self) -> list[Any]:
        values: list[Any] = []
        while self._stack and self._stack[-1] is not _MARK:
            values.append(self._stack.pop())
        if not self._stack:
            raise PickleError("its stack runs empty")
        self._stack.pop()
        return values[::-1]

    def _name(self, path: str) -> Name:
        if path not in self._known:
            shown = path if len(path) < 80 and path.isprintable() else "something"
            raise PickleError(f"it would import {shown}, which is refused; nothing was run")
        return Name(path)

    def _append(self, values: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, list):
            raise PickleError("it appends to something that is not a list")
        target.extend(values)

    def _set_items(self, values: list[Any]) -> None:
        target = self._top()
        if isinstance(target, Made):
            target = target.items
        if not isinstance(target, dict) or len(values) % 2:
            raise PickleError("it sets items of something that is not a dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | bytes | int):  # a nested tuple may take forever to hash
                raise PickleError("it has keys that are neither text nor numbers")
            target[key] = value


_OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}


def read_pickle(content: bytes, known: Collection[str] = ARRAY_NAMES, *, persistent: bool = False) -> Any:
    """The value as data: numbers, text, lists, tuples, dicts, Name and Made; PickleError for anything else.

    persistent: whether persistent ids are accepted, as Made("persistent", (id,)).
    """
    if len(content) > LARGEST_PICKLE:
        raise PickleError(f"it is larger than the {LARGEST_PICKLE} bytes that we accept")
    machine, stream = _Machine(known, persistent=persistent), io.BytesIO(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escapes in text
        for _ in range(MOST_OPCODES):
            opcode = _OPCODES.get(stream.read(1).decode("latin-1"))
            if opcode is None:
                raise PickleError("it is cut off or not a pickle")
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, _argument(opcode, stream))
    raise PickleError(f"it has more than the {MOST_OPCODES} opcodes that we accept")


def _argument(opcode: pickletools.OpcodeInfo, stream: io.BytesIO) -> Any:
    if opcode.arg is None:
        return None
    try:
        if opcode.name == "STRING":  # Python 2's bytes, in protocol 0; pickletools expects ASCII
            return codecs.escape_decode(pickletools.read_stringnl(stream, decode=False))[0]
        value = opcode.arg.reader(stream)
    except (ValueError, OverflowError) as error:
        raise PickleError("it is cut off or damaged") from error
    return value.encode("latin-1") if opcode.name.endswith("BINSTRING") else value


# -- arrays ----------------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """Text, which Python 2 wrote as bytes."""
    if isinstance(value, bytes) and len(value) < 100:
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise PickleError("it has something else where text should be")
    return value


def to_list(value: Any) -> list[Any]:
    """The elements of an array of objects."""
    shape, dtype, _, content = _array_state(value)
    if dtype is not None or not isinstance(content, list) or len(shape) != 1 or shape[0] != len(content):
        raise PickleError("it is not a row of objects")
    return content


def to_array(value: Any) -> NDArray[np.float64]:
    """An array of numbers, a NumPy scalar or a Python number, as float64."""
    if isinstance(value, int | float):
        return np.array(_float(value))
    shape, dtype, order, content = _scalar_state(value) or _array_state(value)
    if dtype is None:
        raise PickleError("it has objects where numbers should be")
    return raw_array(_bytes(content), dtype, shape, order)


def raw_array(content: bytes, dtype: "np.dtype[Any]", shape: tuple[int, ...], order: str = "C") -> NDArray[np.float64]:
    """Numbers from their bytes; nothing larger than the bytes is allocated."""
    if math.prod(shape) * dtype.itemsize != len(content):
        raise PickleError("an array has more or fewer bytes than its shape claims")
    fortran = order == "F"
    array = np.frombuffer(content, dtype).reshape(shape[::-1] if fortran else shape)
    return np.array(array.T if fortran else array, dtype=np.float64, order="C")


def sizes(value: Any) -> tuple[int, ...]:
    """A shape."""
    if not isinstance(value, tuple) or len(value) > 8 or not all(type(size) is int for size in value):
        raise PickleError("an array's shape is not a tuple of sizes")
    if not all(0 <= size < 2**40 for size in value):
        raise PickleError("an array's shape is impossible")
    return value


_State = tuple[tuple[int, ...], "np.dtype[Any] | None", str, Any]  # shape, dtype (None: objects), order and content


def _scalar_state(value: Any) -> _State | None:
    if isinstance(value, Made) and value.path.endswith(".scalar") and len(value.arguments) == 2:
        return (), _dtype(value.arguments[0]), "C", value.arguments[1]
    return None


def _array_state(value: Any) -> _State:
    if not isinstance(value, Made):
        raise PickleError("it has something else where an array should be")
    if value.path.endswith("._frombuffer") and value.arguments[4:] in ((), (None,)) and len(value.arguments) > 3:
        content, dtype, shape, order = value.arguments[:4]
        if order not in ("C", "F"):
            raise PickleError("it has an array that is not contiguous")
        return sizes(shape), _dtype(dtype), order, content
    first = value.arguments[0] if value.arguments else None
    if not value.path.endswith("._reconstruct") or first != Name("numpy.ndarray"):
        raise PickleError("it has something else where an array should be")
    if not isinstance(value.state, tuple) or len(value.state) != 5:
        raise PickleError("it has an array of an unknown format")
    _, shape, dtype, fortran, content = value.state
    return sizes(shape), _dtype(dtype), "F" if fortran else "C", content


def _dtype(value: Any) -> "np.dtype[Any] | None":
    """float or int of 4 or 8 bytes; None for objects."""
    if not isinstance(value, Made) or value.path != "numpy.dtype" or not value.arguments:
        raise PickleError("it has something else where a dtype should be")
    code, state = text(value.arguments[0]), value.state
    if code in ("O", "O8", "O4"):
        return None
    order = text(state[1]) if isinstance(state, tuple) and len(state) > 1 else ""
    if code not in DTYPES or order not in ("<", ">"):
        raise PickleError("it has an array of neither floats nor integers")
    return np.dtype(order + code)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, Made) and value.path == "_codecs.encode" and len(value.arguments) == 2:
        content, encoding = value.arguments
        if isinstance(content, str) and text(encoding) in ("latin1", "latin-1"):
            try:
                return content.encode("latin-1")
            except UnicodeEncodeError as error:
                raise PickleError("it has characters where bytes should be") from error
    raise PickleError("it has something else where bytes should be")


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise PickleError("it has a number that no float can hold") from error
