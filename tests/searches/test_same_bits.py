"""Every search gives the same bits with any number of workers and BLAS threads; see also test_ray.py, test_kills.py."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import ars
from ars.executors.processes import ProcessExecutor
from ars.searches import SEARCHES
from ars.tasks import factory
from small_runs import SMALL_SEARCHES, run_bits

DRIFT = "small_envs:Drift"


@pytest.fixture(scope="module")
def executors() -> Iterator[list[ProcessExecutor]]:
    """Two and three processes, for all searches: starting them takes longer than a run."""
    make = factory(DRIFT)
    with closing(ProcessExecutor(make, 2)) as two, closing(ProcessExecutor(make, 3)) as three:
        yield [two, three]


@pytest.mark.parametrize("search", SEARCHES)
def test_any_number_of_workers(search: str, executors: list[ProcessExecutor]) -> None:
    settings: dict[str, Any] = {"search": search, **SMALL_SEARCHES[search], "seed": 3}
    robot = {**settings, "H": 40, "iterations": 4, "eval_episodes": 2}
    one, *others = (run_bits(ars.train("Hopper-v1", **robot, workers=workers)) for workers in (1, 2, 3))
    assert others == [one, one]  # threads
    serial = run_bits(ars.train(DRIFT, **settings, iterations=6, workers=1))
    for executor in executors:
        assert run_bits(ars.train(DRIFT, **settings, iterations=6, executor=executor)) == serial


DECOMPOSE = """
import hashlib, sys
import numpy as np
import ars
from ars.searches.cma import square_root
half = np.random.default_rng(1).standard_normal((300, 300))
digest = hashlib.sha256(square_root(np.einsum("ik,jk->ij", half, half) / 300).tobytes())
settings = {"observe": "0-36", "N": 20, "H": 5, "eval_every": 0, "iterations": 8}
for record in ars.train("Ant-v1", search="cma", **settings, workers=int(sys.argv[1])):
    for name, array in record.state.params.items():
        digest.update(name.encode() + array.tobytes())
assert float(record.state.params["decomposed"]) > 1
print(digest.hexdigest())
"""


def test_any_number_of_blas_threads() -> None:
    """Of the decomposition of cma, with some 300 parameters, by itself and in a training."""

    def digest(threads: str) -> str:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        words = [sys.executable, "-c", DECOMPOSE, threads]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout

    assert len(one := digest("1")) == 65
    assert digest("2") == one
