"""Evolution strategies as specified by their publication: what they must reach. A step by hand is in test_steps.py."""

import pytest

import ars


@pytest.mark.parametrize("seed", [0, 1])
def test_lqr_within_20_percent_after_9e5_timesteps(seed: int) -> None:
    *_, last = ars.train("lqr", search="es", iterations=37, seed=seed, eval_every=0, workers=1)
    assert last.timesteps < 9e5
    assert last.relative_cost < 0.2
