"""Seeds by the paper's protocol."""

import pytest

from ars.errors import SettingError
from ars.experiments.seeds import PAPER_SEEDS, TRIAL_SEEDS, draw_seeds


def test_seeds_are_distinct_in_range_and_not_those_of_tuning() -> None:
    seeds = draw_seeds(100)
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 10_000 for seed in seeds)
    assert not {*PAPER_SEEDS, *TRIAL_SEEDS} & set(draw_seeds(9_995))


def test_fewer_seeds_are_the_beginning_of_more() -> None:
    assert draw_seeds(20) == draw_seeds(100)[:20]
    assert draw_seeds(3) == (1611, 6493, 5627)  # those of results/: another generator would be another figure 3
    assert draw_seeds(3, master=1) != draw_seeds(3)
    assert set(draw_seeds(5, below=1000)) <= set(range(1000))


def test_seeds_can_leave_out_others() -> None:
    assert not set(draw_seeds(3)) & set(draw_seeds(50, but=draw_seeds(3)))


@pytest.mark.parametrize(("count", "below"), [(0, 1000), (11, 10), (1001, 1000), (3, 0), (-1, 1000)])
def test_impossible_draws_are_refused(count: int, below: int) -> None:
    with pytest.raises(SettingError):
        draw_seeds(count, below=below)
