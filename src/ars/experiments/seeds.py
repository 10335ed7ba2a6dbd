"""Seeds: the paper's three for tuning, and others, drawn without repetition, for evaluation."""

from collections.abc import Sequence

from ars.noise import Key, Stream, generator
from ars.settings import whole_number

PAPER_SEEDS = (237, 759, 959)  # the authors' own, in [0, 1000)
TRIAL_SEEDS = (1001, 1002)  # of docs/presets.md
MASTER_SEED = 2018


def draw_seeds(
    count: int, *, below: int = 10_000, master: int = MASTER_SEED, but: Sequence[int] = ()
) -> tuple[int, ...]:
    """`count` distinct seeds from [0, below), without those used for tuning or listed in `but`; a smaller count gives
    the first of a larger one."""
    used = {*PAPER_SEEDS, *TRIAL_SEEDS, *but}
    whole_number("below", below, 10, 10**7)
    order = generator(Key(whole_number("master", master, 0), Stream.TEST, 0, below)).permutation(below)
    seeds = [int(seed) for seed in order if seed not in used]
    return tuple(seeds[: whole_number("seeds", count, 1, len(seeds))])
