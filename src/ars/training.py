"""Training is a pure function of (config, seed): state → batch → rollouts → state', one Record per iteration.

`iterate` is the loop itself. sessions.py adds presets, workers, stopping rules and the run folder.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ars.config import FRUGAL, Config
from ars.duel import after_duel, begins, duel_columns, in_duel, next_score
from ars.errors import DivergedError, SearchError, SettingError
from ars.executors import Batch, Executor, Rollouts
from ars.mirror import Mirror
from ars.network import AnyPolicy
from ars.noise import Directions, Stream
from ars.records import SHARED, Age, Evaluation, Evaluations, Record, State, policy_task
from ars.searches import Telemetry, next_params, next_size, search_settings
from ars.settings import own_fields
from ars.steady import scale, steady_mean
from ars.tasks import Measure

FloatArray = NDArray[np.float64]

CONFIRMATION = 100  # rollouts
MOST_ADDED = 1000  # directions that short episodes may lead to
SHORTEST = 0.25  # of H, where a ramp begins


def training_batch(config: Config, state: State, mirror: Mirror | None = None) -> Batch:
    """The rollouts of an iteration; `mirror` is that of the task if config.mirror is on.  # Alg. 2, line 5"""
    search = config.search
    if config.mirror != (mirror is not None):
        raise SettingError(f"mirror = {config.mirror} and the task's definition contradict each other.")
    return Batch(
        policy=policy_of(config, replace(state, average=None, waiting=None), {}), search=search, params=state.params,
        size=directions(config, state), signs=search.signs, stream=Stream.TRAINING, seed=config.seed, j=state.j,
        H=horizon(config, state), shift=config.shift, gather=config.normalise and state.age.j % config.stats_every == 0,
        table_size=config.table_size, mirror=mirror,
    )  # fmt: skip


def policy_of(config: Config, state: State, task: dict[str, Any]) -> AnyPolicy:
    """The policy of a state."""
    return state.policy(normalised=config.normalise, task=task, hidden=config.hidden)


def directions(config: Config, state: State) -> int:
    """Directions of the next iteration: the search's own number, or more while episodes are short. A robot that falls
    at once costs little and tells little, and a few directions may all point into the trap of falling sooner."""
    N = next_size(config.search, state.params)
    if not config.least_timesteps or not state.length:
        return N
    return max(N, min(MOST_ADDED, math.ceil(config.least_timesteps / (len(config.search.signs) * state.length))))


def horizon(config: Config, state: State) -> int:
    """Of the next iteration's rollouts: H, or less while `ramp` lasts. Where a quarter of an episode tells nearly as
    much about a gait as the whole, a timestep buys more directions."""
    if not config.ramp:
        return config.H
    done = min(1.0, state.age.timesteps / (config.ramp * config.H))
    return math.ceil(config.H * (SHORTEST + (1.0 - SHORTEST) * done))


def evaluation_batch(policy: AnyPolicy, *, episodes: int, H: int, seed: int, j: int, stream: Stream) -> Batch:
    """Rollouts with the task's own reward and horizon and a separate random stream; they do not affect training."""
    return Batch(policy=policy, size=episodes, stream=stream, seed=seed, j=j, H=H)


def update(config: Config, state: State, rollouts: Rollouts, mirror: Mirror | None = None) -> tuple[State, Telemetry]:
    """state → state' from the rollouts.  # Alg. 1, lines 6 and 7; Alg. 2, lines 6 to 9"""
    rewards = rollouts.rewards
    if not rollouts.finite.any():
        raise DivergedError(
            f"In iteration {state.j + 1} none of the {len(rewards)} directions of {config.task} gave finite rewards: "
            f"{_advice(config)}."
        )
    p, n = state.M.shape
    deltas = Directions(config.seed, state.j, len(rewards), (p, n), table_size=config.table_size, mirror=mirror)
    params, telemetry = next_params(config.search, state.params, deltas, rewards)
    if taken := set(SHARED) & telemetry.keys():
        raise SearchError(f"{config.label} reports {min(taken)}, which is a column that all records have.")
    gathered = rollouts.moments if mirror is None else rollouts.moments.symmetric(*mirror.states)
    moments = state.moments.merge(gathered)  # Alg. 2, line 8
    average, mu = next_average(config, state, params["M"]), None
    if config.steady:  # the equations are in steady.py
        factor = scale(state.moments, moments)
        params, average = {**params, "M": params["M"] * factor}, None if average is None else average * factor
        mu = steady_mean(params["M"], np.zeros(n) if state.mu is None else state.mu, moments, mirror)
    numbers = *params.values(), moments.mean, moments.m2, *(array for array in (average, mu) if array is not None)
    if not all(np.isfinite(array).all() for array in numbers) or any(map(math.isinf, telemetry.values())):
        raise DivergedError(f"The update of iteration {state.j + 1} is not finite: {_advice(config)}.")
    episodes, steps = rollouts.steps.size, int(rollouts.steps.sum())
    after = replace(
        state, j=state.j + 1, params=params, moments=moments, average=average, mu=mu,
        episodes=state.episodes + episodes, timesteps=state.timesteps + steps,
        age=Age(state.age.j + 1, state.age.timesteps + steps),
        length=float(rollouts.steps.mean()) if config.least_timesteps else 0.0,
        score=next_score(state, float(rewards[rollouts.finite].mean())) if config.duel else 0.0,
    )  # fmt: skip
    return after_duel(config, after), telemetry


def next_average(config: Config, state: State, M: FloatArray) -> FloatArray | None:
    """The average of M_1 … M_{j+1}: a plain mean at first, then exponential with a time constant of K iterations."""
    weight = min(state.age.j + 1, config.average)
    if weight <= 1 or state.average is None:
        return M if weight else None
    with np.errstate(over="ignore"):  # the caller checks for infinity
        average: FloatArray = state.average + (M - state.average) / weight
    return average


def _advice(config: Config) -> str:
    """What to try against divergence: the settings that the search marks with `shrink`."""
    values = search_settings(config.search)
    smaller = [f"{f.name} (now {values[f.name]:g})" for f in own_fields(config.search) if f.metadata["shrink"]]
    return f"try a smaller {' or '.join(smaller)}" if smaller else "try other settings"


def evaluated(rollouts: Rollouts) -> Evaluation:
    """The evaluation from its rollouts."""
    rewards = rollouts.rewards[:, 0]
    there = np.isfinite(rewards)
    return Evaluation(rewards[there], rollouts.steps[:, 0], int((~there).sum()))


def is_due(config: Config, state: State, rollouts: Rollouts) -> bool:
    """Whether the policy of this state, the result of these training rollouts, is evaluated."""
    if not config.eval_every or (in_duel(state) and not begins(state)):  # then it has not changed
        return False
    if config.protocol == "paper":
        return state.j % config.eval_every == 0
    spent = state.evaluations
    if not spent.j:  # every run has an evaluation, however short it is
        return True
    if state.j - spent.j < config.eval_every:
        return False
    predicted = max(config.eval_episodes * float(rollouts.steps.mean()), spent.latest)
    return FRUGAL * (spent.timesteps + predicted) <= state.timesteps


def count_evaluation(config: Config, state: State, evaluation: Evaluation) -> State:
    """The state after an evaluation that was due. The paper's protocol does not depend on what evaluations cost."""
    if config.protocol == "paper":
        return state
    cost = int(evaluation.steps.sum())
    return replace(state, evaluations=Evaluations(state.evaluations.timesteps + cost, cost, state.j))


def state_evaluation(config: Config, state: State, H: int, policy: AnyPolicy) -> Batch:
    """The evaluation of a state within a run."""
    return evaluation_batch(
        policy, episodes=config.eval_episodes, H=H, seed=config.seed, j=state.j, stream=Stream.EVALUATION
    )


def confirmation_batch(config: Config, state: State, H: int, policy: AnyPolicy) -> Batch:
    """More rollouts of a policy whose evaluation seems to reach a goal, from a random stream of their own."""
    return evaluation_batch(policy, episodes=CONFIRMATION, H=H, seed=config.seed, j=state.j, stream=Stream.CONFIRMATION)


def make_record(
    config: Config, definition: dict[str, Any], state: State, telemetry: Telemetry, rollouts: Rollouts, **more: Any
) -> Record:
    """The record of the iteration that led to `state`; `more` are its times, evaluation and so on."""
    there = rollouts.finite
    rewards = rollouts.rewards[there]
    wire = rollouts.wire or (None, None)
    policy = more.pop("policy", None) or policy_of(config, state, policy_task(definition))
    known = {"iteration": state.j}
    if (evaluation := more.get("evaluation")) is not None and evaluation.rewards.size:
        known["eval_mean"] = evaluation.summary()["mean"]
    return Record(
        policy=replace(policy, task={**policy.task, **known}),
        iteration=state.j, episodes=state.episodes, timesteps=state.timesteps, reward_mean=float(rewards.mean()),
        reward_max=float(rewards.max()), length_mean=float(rollouts.steps.mean()), dropped=int((~there).sum()),
        telemetry=telemetry, state=state, wire_bytes_out=wire[0], wire_bytes_in=wire[1], **more,
    )  # fmt: skip


def iterate(
    config: Config,
    state: State,
    executor: Executor,
    definition: dict[str, Any],
    *,
    measure: Measure | None = None,
    seconds: float = 0.0,
    phase: Callable[[str], None] = lambda _: None,
) -> Iterator[Record]:
    """An endless iterator of records from any state; `seconds` is the time that the run has already taken, `phase` is
    told what begins."""
    mirror = Mirror.of(definition)
    clock = time.monotonic
    started = clock() - seconds
    while True:
        before = state
        phase("a fresh start" if in_duel(state) else "training")
        began = clock()
        rollouts = executor.run(training_batch(config, state, mirror))
        state, telemetry = update(config, state, rollouts, mirror)
        trained = clock()
        policy = policy_of(config, state, policy_task(definition))
        evaluation = None
        if is_due(config, state, rollouts):
            phase(f"evaluating, {config.eval_episodes} rollouts")
            evaluation = evaluated(executor.run(state_evaluation(config, state, definition["H"], policy)))
            state = count_evaluation(config, state, evaluation)
        now = clock()
        yield make_record(
            config, definition, state, telemetry, rollouts, policy=policy, evaluation=evaluation,
            measures=measure.call(policy) if measure and (evaluation or not measure.dear) else {},
            seconds=now - started, train_seconds=trained - began,
            eval_seconds=now - trained if evaluation else 0.0, **duel_columns(before, state),
        )  # fmt: skip
