"""Which policies come with the package."""

from pathlib import Path

import pytest

import ars
from tools import shipping


def test_few_rollouts_count_only_where_no_run_with_many_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "EPISODES", 4)
    for seed, rollouts in ((1, 4), (2, 3), (2, 2)):
        settings = {"N": 1, "H": 5, "protocol": "paper", "eval_every": 1, "eval_episodes": rollouts, "iterations": 2}
        list(ars.train("Swimmer-v1", seed=seed, out=tmp_path / f"{seed}-{rollouts}", **settings))

    def chosen() -> set[int]:
        return {curve.seed for _, curve in shipping.candidates(tmp_path)["Swimmer-v1"]}

    assert chosen() == {1, 2}  # none has reached 325
    best = {path.parent.name: curve.best for path, curve in shipping.candidates(tmp_path)["Swimmer-v1"]}
    assert list(best.values()) == sorted(best.values(), reverse=True)
    monkeypatch.setattr(shipping, "threshold", lambda task: -1e9)
    assert chosen() == {1}
