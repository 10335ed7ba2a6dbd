"""Damaged files: one of our sentences, never anything else, and nothing on disk changes; or what is read is of use."""

import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stnp
from torture_bombs import BOMBS
from torture_damage import FILES, Case
from torture_runs import FIGURES, contents, keep_figure, refused, size

from ars.runs import Run

HERE = Path(__file__).parent
MANY = settings(max_examples=size(15, 600), suppress_health_check=list(HealthCheck))


def child(script: str, *words: str) -> dict[str, Any]:
    """What a script of this folder prints; any warning in it would be an error."""
    command = [sys.executable, "-W", "error", str(HERE / script), *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr
    value: dict[str, Any] = json.loads(result.stdout)
    return value


@pytest.mark.parametrize("kind", FILES)
def test_generated_damage(kind: str, figure: Callable[..., None]) -> None:
    """Cut, flipped, spliced, swapped, emptied; archives with wrong contents; JSON with odd values: a sentence without a
    change on disk, or values that are finite and fit. The process's memory is measured over all of them."""
    done = child("torture_damage.py", kind, "0", str(size(60, 2200)))
    assert done["refused"] > 0.6 * done["cases"]
    assert done["peak_MB"] < 1000
    figure(f"damage_{kind}", **done)


@pytest.mark.parametrize("name", list(BOMBS)[:: size(9, 1)])
def test_files_that_would_fill_the_memory(name: str, figure: Callable[..., None]) -> None:
    done = child("torture_bombs.py", name)
    assert done["peak_MB"] < 1000
    assert "\n" not in done["said"]
    figure(f"bomb_{list(BOMBS).index(name)}", peak_MB=done["peak_MB"])


# -- by hypothesis ---------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=8), part, max_size=4),
    max_leaves=12,
)
ARRAYS = stnp.arrays(
    dtype=stnp.scalar_dtypes() | st.sampled_from([np.dtype("f8"), np.dtype("i8"), np.dtype("U3"), np.dtype("S3")]),
    shape=stnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@pytest.fixture(scope="module", params=FILES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    made = Case(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    keep_figure(f"damage_hypothesis_{made.kind}_{os.environ.get('PYTEST_XDIST_WORKER', '')}", cases=made.reads)


def read(case: Case, content: bytes) -> None:
    """Reading raises nothing but our errors, which `Case.read` looks at."""
    case.put(content)
    case.read()


def with_entries(good: bytes, **changed: Any) -> bytes:
    """An archive with other arrays in it."""
    with np.load(io.BytesIO(good), allow_pickle=False) as arrays:
        entries = dict(arrays)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.savez(buffer, **{**entries, **changed})
    return buffer.getvalue()


@MANY
@given(content=st.binary(max_size=500))
def test_any_bytes(case: Case, content: bytes) -> None:
    read(case, content)


@MANY
@given(data=st.data())
def test_any_values_in_their_places(case: Case, data: st.DataObject) -> None:
    """Arrays of any kind and shape in an archive, any JSON in a configuration or a record."""
    if case.kind in ("policy", "checkpoint"):
        with np.load(io.BytesIO(case.good)) as arrays:
            name = data.draw(st.sampled_from(arrays.files))
        if name in ("task", "last_line") and data.draw(st.booleans()):
            return read(case, with_entries(case.good, **{name: np.array(json.dumps(data.draw(JSON)))}))
        return read(case, with_entries(case.good, **{name: data.draw(ARRAYS)}))
    if case.kind == "config":
        value = json.loads(case.good)
        part = data.draw(st.sampled_from([*value]))
        if isinstance(value[part], dict) and data.draw(st.booleans()):
            value[part][data.draw(st.sampled_from([*value[part]]))] = data.draw(JSON)
        else:
            value[part] = data.draw(JSON)
        return read(case, json.dumps(value).encode())
    lines = case.good.splitlines()
    lines[data.draw(st.integers(0, len(lines) - 1))] = json.dumps(data.draw(JSON)).encode()
    return read(case, b"\n".join(lines) + b"\n")


# -- files of others -------------------------------------------------------------------------------------------------

if FIGURES is not None:  # `make test` runs tests/interop/test_imports.py by itself

    def test_damaged_imports(figure: Callable[..., None]) -> None:
        """The fuzz of tests/interop/test_imports.py, at length."""
        cases = 2000
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "interop/test_imports.py"]
        result = subprocess.run(
            command, cwd=HERE.parent, env=os.environ | {"ARS_FUZZ_CASES": str(cases)}, capture_output=True, text=True,
            timeout=900,
        )  # fmt: skip
        assert result.returncode == 0, result.stdout
        assert " passed in " in result.stdout
        figure("imports", cases=cases)


# -- by the command line ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FILES)
def test_the_command_line_says_one_sentence(kind: str, tmp_path: Path, figure: Callable[..., None]) -> None:
    """Exit code 2, one line, no traceback, no file changed."""
    case, found, number = Case(kind, tmp_path), 0, 0
    while found < size(1, 12):
        number += 1
        case.make(10_000 + number)
        if not case.read():
            continue
        found += 1
        case.make(10_000 + number)
        before = contents(tmp_path)
        words = ("evaluate", str(case.path)) if kind == "policy" else ("resume", str(case.path.parent))
        refused(*words, "--workers", "1", cwd=tmp_path)
        assert contents(tmp_path) == before
    figure(f"damage_command_line_{kind}", cases=found)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 1.0])
def test_a_damaged_last_line_of_records_is_mended(run: Path, kept: float) -> None:
    """Half of it, none of it, zeros in its place, rubbish behind it."""
    path = run / "records.jsonl"
    good = path.read_bytes()
    start = good[:-1].rfind(b"\n") + 1
    part = good[start : start + int(kept * (len(good) - 1 - start))]
    for rest in (b"", bytes(50), b"\n", b'{"iteration": 9', b"\xff\n\xff"):
        path.write_bytes(good[:start] + part + rest)
        Run.open(run).close()
        assert path.read_bytes() == good
