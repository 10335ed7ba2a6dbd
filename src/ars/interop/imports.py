"""Policies from other software: lin_policy_plus.npz of the paper's authors and sb3-contrib's ARS .zip, read as data.

Nothing in these files is executed (pickles.py). What a linear policy cannot express is refused or, if it changes
little, recorded as a note in the policy's `task`.
"""

import io
import json
import warnings
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.errors import ArsError, FileError, SettingError
from ars.files import LARGEST_JSON, PLAIN, each_once, one_line, read_bytes
from ars.interop.formats import AUTHORS_ENTRY, SB3_ENTRY, foreign_format, open_zip
from ars.interop.pickles import (
    ARRAY_NAMES,
    LARGEST_PICKLE,
    Made,
    Name,
    raw_array,
    read_pickle,
    sizes,
    to_array,
    to_list,
)
from ars.policy import LinearPolicy, check_policy_arrays

FloatArray = NDArray[np.float64]

SMALLEST_STD = 1e-7  # below it the authors' code ignores a coordinate
SB3_WEIGHTS = "action_net.0.weight"
TORCH_NAMES = frozenset({"torch._utils._rebuild_tensor_v2", "torch.FloatStorage", "collections.OrderedDict"})
SB3_NAMES = ARRAY_NAMES | {
    "stable_baselines3.common.vec_env.vec_normalize.VecNormalize",
    "stable_baselines3.common.running_mean_std.RunningMeanStd",
    "gymnasium.spaces.box.Box",
    "gymnasium.spaces.discrete.Discrete",
    "gym.spaces.box.Box",
    "gym.spaces.discrete.Discrete",
    "numpy.random._pickle.__generator_ctor",  # the spaces' generators, which we ignore
    "numpy.random._pickle.__bit_generator_ctor",
    "numpy.random._pcg64.PCG64",
    "numpy.random.bit_generator.__pyx_unpickle_SeedSequence",
    "numpy.random.bit_generator.SeedSequence",
}


@dataclass(frozen=True)
class Foreign:
    """The content of a foreign file: M (p, n), mu and sigma (n,), its source, and notes for the user."""

    M: FloatArray
    mu: FloatArray
    sigma: FloatArray
    source: str
    notes: tuple[str, ...] = ()


def import_policy(path: Path, task: str | None, *, statistics: str | Path | None = None) -> LinearPolicy:
    """A foreign file as a policy for `task`, whose shapes it must match."""
    foreign = read_foreign(path, statistics)
    p, n = foreign.M.shape
    if task is None:
        raise SettingError(f"{path} does not name the task of its {p} × {n} policy: name it with --task.")
    from ars.records import policy_task
    from ars.tasks import make

    with closing(make(task)) as made:
        if (p, n) != (made.p, made.n):
            raise FileError(f"{path} contains a policy of {p} × {n}, and {task} needs {made.p} × {made.n}.")
        definition = policy_task(made.definition())
    origin = {"imported": {"file": path.name, "kind": foreign.source, "notes": list(foreign.notes)}}
    return LinearPolicy(foreign.M, foreign.mu, foreign.sigma, {**definition, **origin})


def read_foreign(path: Path, statistics: str | Path | None = None) -> Foreign:
    """The arrays of a foreign file, for any task."""
    kind = foreign_format(path)
    if not kind:
        raise FileError(f"{path} is neither the authors' .npz nor an sb3-contrib .zip: there is nothing to import.")
    if kind == "authors" and statistics is not None:
        raise SettingError(f"statistics = {statistics} cannot be used with {path}, which contains its own: omit it.")
    try:
        foreign = _read_authors(path) if kind == "authors" else _read_sb3(path, statistics)
    except ArsError:
        raise
    except Exception as error:  # zipfile, NumPy and JSON raise many kinds of errors for damaged bytes
        raise FileError(f"{path} cannot be imported: {one_line(error).rstrip('.')}.") from error
    check_policy_arrays(path, foreign.M, foreign.mu, foreign.sigma)
    return foreign


# -- the authors' files ----------------------------------------------------------------------------------------------


def _read_authors(path: Path) -> Foreign:
    """An object array [M, mean, std] under arr_0; mean and std are the numbers 0 and 1 for V1."""
    with open_zip(path, read_bytes(path)) as archive:
        content = _entry(archive, AUTHORS_ENTRY)
    parts = to_list(read_pickle(_pickle_of_npy(content)))
    if len(parts) != 3:
        raise FileError(f"{path} contains {len(parts)} objects, not [M, mean, std]: it is not the authors' format.")
    M, mean, std = (to_array(part) for part in parts)
    if M.ndim != 2:
        raise FileError(f"{path} contains an M of shape {M.shape}: a matrix was expected.")
    mu, std = (_row(path, values, M.shape[1]) for values in (mean, std))
    if not (std >= 0).all():
        raise FileError(f"{path} is damaged: a std is negative or not a number.")
    return Foreign(M, mu, np.where(std < SMALLEST_STD, np.inf, std), "lin_policy_plus.npz of the paper's authors")


def _pickle_of_npy(content: bytes) -> bytes:
    """The part after the header of an .npy file with objects."""
    stream = io.BytesIO(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about a header from Python 2
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"its .npy version {version} is unknown")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        _, _, dtype = read(stream)
    if dtype != np.dtype(object):
        raise ValueError(f"its array has numbers of {dtype} instead of the objects [M, mean, std]")
    return stream.read()


def _row(path: Path, values: FloatArray, n: int) -> FloatArray:
    if values.shape not in ((), (n,)):
        raise FileError(f"{path} contains statistics of shape {values.shape} for {n} observations.")
    return np.array(np.broadcast_to(values, (n,)))


def _entry(archive: zipfile.ZipFile, name: str, most: int = LARGEST_PICKLE) -> bytes:
    """An entry of a zip file of limited size; LZMA, which may allocate gigabytes at once, is refused."""
    entry = archive.getinfo(name)
    if entry.file_size > most or entry.compress_type not in PLAIN:
        raise ValueError(f"its entry {name} is too large or packed in an unusual way")
    return archive.read(name)


# -- sb3-contrib -----------------------------------------------------------------------------------------------------


def _read_sb3(path: Path, statistics: str | Path | None) -> Foreign:
    """The weights of a LinearPolicy without bias and tanh, and VecNormalize's statistics if there are any."""
    with open_zip(path, read_bytes(path)) as archive:
        data = json.loads(_entry(archive, "data", LARGEST_JSON), object_pairs_hook=each_once)
        tensors = _entry(archive, SB3_ENTRY)
    if "ARSLinearPolicy." not in str(_of(data, "policy_class").get("__init__", "")):
        raise FileError(f"{path} does not contain sb3-contrib's ARS LinearPolicy: a network cannot become one matrix.")
    if _of(data, "policy_kwargs").get("squash_output", False) is not False:
        raise FileError(f"{path} squashes its actions with tanh, which a linear policy cannot do.")
    M = _only_tensor(path, tensors)
    if M.ndim != 2:
        raise FileError(f"{path} contains weights of shape {M.shape}: a matrix was expected.")
    notes = [
        "stable-baselines3 computes in float32: its actions agree with these to about seven digits.",
        "stable-baselines3 clips actions to their bounds; the MuJoCo robots here take, and charge for, unclipped ones.",
    ]
    mu, sigma = np.zeros(M.shape[1]), np.ones(M.shape[1])
    if statistics is None:
        notes.append("No VecNormalize statistics were given: observations are not normalised.")
    else:
        mu, sigma, clip = _vec_normalize(Path(statistics), M.shape[1])
        if clip < np.inf:
            notes.append(f"VecNormalize clips normalised observations to ±{clip:g}: beyond that the actions differ.")
    return Foreign(M, mu, sigma, "sb3-contrib's ARS", tuple(notes))


def _of(data: Any, key: str) -> dict[str, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, dict):
        raise ValueError(f"its description has no {key}")
    return value


def _only_tensor(path: Path, content: bytes) -> FloatArray:
    """The weights in a state dict with nothing else: torch's zip with data.pkl and the raw storages."""
    with open_zip(path, content) as archive:
        inside = set(archive.namelist())
        root = next((name.removesuffix("data.pkl") for name in inside if name.endswith("/data.pkl")), None)
        if root is None:
            raise ValueError("its policy.pth has an unknown format")
        if f"{root}byteorder" in inside and _entry(archive, f"{root}byteorder") != b"little":
            raise ValueError("its tensors are not little-endian")
        saved = read_pickle(_entry(archive, f"{root}data.pkl"), TORCH_NAMES, persistent=True)
        if not isinstance(saved, Made) or saved.path != "collections.OrderedDict":
            raise ValueError("its policy.pth contains something other than named tensors")
        if set(saved.items) != {SB3_WEIGHTS}:
            raise FileError(f"{path} has a bias or further layers: a policy here is one matrix.")
        return _tensor(archive, root, saved.items[SB3_WEIGHTS])


def _tensor(archive: zipfile.ZipFile, root: str, value: Any) -> FloatArray:
    """_rebuild_tensor_v2(storage, offset, size, stride, …), if it is contiguous."""
    if not isinstance(value, Made) or not value.path.endswith("._rebuild_tensor_v2") or len(value.arguments) < 4:
        raise ValueError("its policy.pth contains something other than tensors")
    storage, offset, size, stride = value.arguments[:4]
    shape = sizes(size)
    contiguous = tuple(int(np.prod(shape[i + 1 :], dtype=object)) for i in range(len(shape)))
    identity = storage.arguments[0] if isinstance(storage, Made) and storage.path == "persistent" else None
    if not isinstance(identity, tuple) or len(identity) != 5 or identity[1] != Name("torch.FloatStorage"):
        raise ValueError("its tensors are not float32")
    if type(offset) is not int or offset < 0 or sizes(stride) != contiguous or not isinstance(identity[2], str):
        raise ValueError("its tensors are not contiguous")
    content = _entry(archive, f"{root}data/{identity[2]}")
    length = 4 * int(np.prod(shape, dtype=object))
    return raw_array(content[4 * offset : 4 * offset + length], np.dtype("<f4"), shape)


def _vec_normalize(path: Path, n: int) -> tuple[FloatArray, FloatArray, float]:
    """mu = mean, sigma = sqrt(var + epsilon), and the limit to which normalised observations are clipped."""
    content = read_bytes(path)
    try:
        state = _state(read_pickle(content, SB3_NAMES), "VecNormalize")
        if state.get("norm_obs") is False:
            return np.zeros(n), np.ones(n), np.inf
        moments = _state(state.get("obs_rms"), "RunningMeanStd")
        mean, var = (to_array(moments.get(name)) for name in ("mean", "var"))
        epsilon, clip = (float(to_array(state.get(name))) for name in ("epsilon", "clip_obs"))
        if mean.shape != (n,) or var.shape != (n,):
            raise FileError(f"{path} has statistics of shape {mean.shape} for a policy of {n} observations.")
        if not ((var >= 0).all() and np.isfinite(var).all() and 0 <= epsilon < np.inf and clip > 0):
            raise FileError(f"{path} is damaged: variances, epsilon and clip_obs must be positive numbers.")
    except ArsError:
        raise
    except Exception as error:
        raise FileError(f"{path} cannot be read as VecNormalize statistics: {one_line(error).rstrip('.')}.") from error
    return mean, np.sqrt(var + epsilon), clip


def _state(value: Any, name: str) -> dict[str, Any]:
    """The attributes of a pickled object of a class."""
    if not isinstance(value, Made) or not value.path.endswith(f".{name}") or not isinstance(value.state, dict):
        raise ValueError(f"it contains no {name}")
    return value.state
