"""The size of a checkpoint: a run that could not be read back is refused before it trains."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import ars
from ars.checkpoint import LARGEST_REST, initial_state, largest_checkpoint
from ars.errors import SettingError
from ars.run_files import read_run
from ars.runs import Run
from ars.saved_config import read_config
from small_runs import SMALL_SEARCHES

TASK = "Ant-v1"  # a matrix has 7104 bytes
REST = 4096  # that the rest of a file has at most, a few small arrays: less than a matrix
SHORT = {"H": 20, "workers": 1, "seed": 3, "eval_every": 2, "eval_episodes": 1}


def stopped(out: Path, iterations: int, **settings: Any) -> Run:
    """A run that was left after so many iterations."""
    records = ars.train(TASK, out=out, **{**SHORT, **settings})
    list(islice(records, iterations))
    records.close()
    with Run.open(out) as run:
        return run


def announced(run: Run, **changes: Any) -> int:
    """The bytes of the checkpoint's arrays, as they are known before training."""
    saved = read_config(run.path)
    config = replace(saved.config, **changes)
    return largest_checkpoint(config, initial_state(config, saved.definition)) - LARGEST_REST


def size_of(run: Run) -> int:
    return (run.path / "checkpoint.npz").stat().st_size


@pytest.mark.parametrize("search", SMALL_SEARCHES)
@pytest.mark.parametrize("more", [{}, {"average": 3, "normalise": True, "steady": True}], ids=["", "average-steady"])
def test_a_checkpoint_is_never_larger_than_announced(tmp_path: Path, search: str, more: dict[str, Any]) -> None:
    run = stopped(tmp_path / "run", 4, search=search, **{**SMALL_SEARCHES[search], **more})
    assert size_of(run) <= announced(run) + REST


def test_a_duel_doubles_a_checkpoint(tmp_path: Path) -> None:
    settings = {"search": "csa", "N": 2, "duel": 8, "least_timesteps": 0}
    before = stopped(tmp_path / "before", 1, **settings)
    within = stopped(tmp_path / "within", 4, **settings)
    assert before.state.waiting is None
    assert within.state.waiting is not None
    alone = announced(within, duel=0) + REST
    assert size_of(before) <= alone < size_of(within) <= announced(within) + REST
    assert read_run(within.path).records[-1]["duel"] == 1


def test_a_run_that_could_not_be_read_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sep-cma keeps more matrices than ARS: the limit is between the two."""
    size = {}
    for search in ("ars", "sep-cma"):
        run = stopped(tmp_path / search, 1, search=search, N=4)
        size[search] = announced(run) + LARGEST_REST
    assert size["ars"] < size["sep-cma"]
    monkeypatch.setattr("ars.checkpoint.LARGEST_FILE", size["sep-cma"] - 1)
    stopped(tmp_path / "fits", 1, search="ars", N=4)
    with pytest.raises(SettingError, match=r"checkpoint of this run would have \d+ bytes.* choose a search"):
        ars.train(TASK, search="sep-cma", N=4, out=tmp_path / "refused", **SHORT)
    assert not (tmp_path / "refused").exists()
    ars.train(TASK, search="sep-cma", N=4, **SHORT).close()  # without a folder nothing is written
