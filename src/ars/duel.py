"""Duels (`--duel`): a fresh start against the run, at equal age; the better goes on.

Whether a seed finds a good gait is decided early and largely by luck, and a search in a poor one improves it for ever.
So when the run has spent `duel` whole episodes' worth of timesteps, it waits while the search starts anew, with new
noise, until the fresh start has spent as many; then the one with the higher score goes on, and the other is forgotten.
The next duels are at three times that age, at nine times, and so on, so that the start that goes on has had at least
two fifths of all timesteps. The score is an average of the mean training return over some iterations:

    score ← score + (mean return − score) / min(iterations, 5)

While a duel lasts, the policy that is evaluated and saved is that of the start that waits.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ars.records import Age, State

if TYPE_CHECKING:
    from ars.config import Config

FURTHER = 3  # times the age of the duel before
ITERATIONS = 5  # that the score is an average over


def duel_age(config: "Config", duels: int) -> int:
    """The age in timesteps at which a start that has had so many duels has its next one."""
    return int(config.duel * config.H * FURTHER**duels)


def next_score(state: State, reward: float) -> float:
    """The score after another iteration with this mean return, which is the iteration state.age.j + 1 of its start."""
    return state.score + (reward - state.score) / min(state.age.j + 1, ITERATIONS)


def after_duel(config: "Config", state: State) -> State:
    """The state with which training goes on: a fresh one if a duel begins, the better one if a duel ends."""
    if not config.duel:
        return state
    waiting = state.waiting
    if waiting is None:
        return fresh(config, state) if state.age.timesteps >= duel_age(config, state.duels) else state
    if state.age.timesteps < waiting.age.timesteps:
        return state
    return replace(state, waiting=None) if state.score > waiting.score else continued(waiting, state)


def fresh(config: "Config", state: State) -> State:
    """A start from the beginning, with the counts of the run; `state` waits."""
    p, n = state.M.shape
    return replace(continued(State.initial(config.search, p, n), state), duels=state.duels + 1, waiting=state)


def continued(start: State, run: State) -> State:
    """A start with the counts of a run, on which its noise and evaluations depend."""
    return replace(
        start, j=run.j, episodes=run.episodes, timesteps=run.timesteps, evaluations=run.evaluations, duels=run.duels
    )


def in_duel(state: State) -> int | None:
    """The number of the duel, if the next rollouts are those of a fresh start."""
    return None if state.waiting is None else state.duels


def duel_columns(before: State, after: State) -> dict[str, Any]:
    """What the record of an iteration says of duels: its number, and whether the fresh start goes on where it ends."""
    if before.waiting is None:
        return {}
    ended = after.waiting is None
    return {"duel": before.duels, "fresh_won": after.score > before.waiting.score if ended else None}


def begins(state: State) -> bool:
    """Whether the start that waits has had the last iteration."""
    return state.waiting is not None and state.age == Age()
