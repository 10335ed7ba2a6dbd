"""The instance of the paper, and one thread for small matrices: more of them only cost time."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

from ars.lqr import Problem


@pytest.fixture(scope="session")
def paper() -> Problem:
    return Problem.paper()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield
