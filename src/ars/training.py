"""Training is a pure function of (config, seed): state → batch → rollouts → state', one Record an iteration.

`iterate` is the loop itself; `train` adds presets, workers, stopping rules and the run folder; `resume` goes on from
a saved state.
"""

import json
import math
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ars import algorithm
from ars.config import Config
from ars.errors import DivergedError, SettingError, TaskError
from ars.executors import Batch, Executor, Rollouts, make_executor
from ars.noise import Stream, direction
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.records import Evaluation, Record, State
from ars.runs import Run, policy_task
from ars.stopping import Stop
from ars.tasks import Task, make

STOPS = ("iterations", "episodes", "timesteps", "minutes", "until")


def training_batch(config: Config, state: State) -> Batch:
    """The 2N rollouts of an iteration.  # Alg. 2, line 5"""
    policy = state.policy(normalised=config.features.normalised, task={})
    return Batch(
        policy.M, policy.mu, policy.sigma, config.nu, config.N, (+1, -1), Stream.TRAINING, config.seed, state.j,
        config.H, config.shift, gather=config.features.normalised,
    )  # fmt: skip


def update(config: Config, state: State, rollouts: Rollouts) -> tuple[State, algorithm.Step]:
    """state → state' once the rollouts are in.  # Alg. 1, lines 6 and 7; Alg. 2, lines 6 to 9"""
    r_plus, r_minus = rollouts.rewards.T
    if not len(algorithm.finite_directions(r_plus, r_minus)):
        raise DivergedError(
            f"In iteration {state.j + 1} none of the N = {config.N} directions gave finite rewards: "
            f"try a smaller nu (now {config.nu:g}) or alpha (now {config.alpha:g})."
        )
    deltas = np.stack([direction(config.seed, state.j, k, *state.M.shape) for k in range(config.N)])
    if config.features.scaled_by_sigma_R:
        step = algorithm.ars_step(state.M, deltas, r_plus, r_minus, alpha=config.alpha, b=config.b)
    else:
        step = algorithm.brs_step(state.M, deltas, r_plus, r_minus, alpha=config.alpha)
    if not np.isfinite(step.M).all():
        raise DivergedError(
            f"The update of iteration {state.j + 1} is not finite: try a smaller alpha (now {config.alpha:g})."
        )
    moments = state.moments.merge(rollouts.moments)  # Alg. 2, line 8
    episodes, timesteps = state.episodes + rollouts.steps.size, state.timesteps + int(rollouts.steps.sum())
    return State(state.j + 1, step.M, moments, episodes, timesteps), step


def evaluate(
    policy: LinearPolicy, executor: Executor, *, episodes: int, H: int, seed: int, j: int, stream: Stream
) -> Evaluation:
    """Rollouts with the task's own reward and horizon, from random numbers of their own, that enter nothing."""
    arrays = policy.M, policy.mu, policy.sigma
    rollouts = executor.run(Batch(*arrays, 0.0, episodes, (0,), stream, seed, j, H, shift=0.0, gather=False))
    rewards = rollouts.rewards[:, 0]
    finite = np.isfinite(rewards)
    return Evaluation(rewards[finite], rollouts.steps[:, 0], int(episodes - finite.sum()))


def iterate(
    config: Config, state: State, executor: Executor, definition: dict[str, Any], *, seconds: float = 0.0
) -> Iterator[Record]:
    """Records without end, from any state; `seconds` is what the run has taken before."""
    started = time.monotonic() - seconds
    while True:
        rollouts = executor.run(training_batch(config, state))
        before, (state, step) = state, update(config, state, rollouts)
        policy = state.policy(normalised=config.features.normalised, task=policy_task(definition))
        evaluation = None
        if config.eval_every and state.j % config.eval_every == 0:
            evaluation = evaluate(
                policy, executor, episodes=config.eval_episodes, H=definition["H"],
                seed=config.seed, j=state.j, stream=Stream.EVALUATION,
            )  # fmt: skip
        ks = algorithm.finite_directions(*rollouts.rewards.T)
        rewards = rollouts.rewards[ks]
        yield Record(
            iteration=state.j,
            episodes=state.episodes,
            timesteps=state.timesteps,
            seconds=time.monotonic() - started,
            sigma_R=step.sigma_R,
            reward_mean=float(rewards.mean()),
            reward_max=float(rewards.max()),
            update_norm=math.sqrt(float(np.square(state.M - before.M).sum())),
            dropped=config.N - len(ks),
            step_taken=step.sigma_R > 0.0,
            evaluation=evaluation,
            state=state,
            policy=policy,
        )


def train(
    task: str,
    *,
    seed: int = 0,
    iterations: int | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    **overrides: Any,
) -> Generator[Record, None, None]:
    """Train a policy; a generator of Records, each with its `policy`.

    Settings are the paper's (`variant`, `alpha`, `nu`, `N`, `b`, `H`, `shift`), `eval_every`, `eval_episodes`, and
    the other stopping rules (`episodes`, `timesteps`, `minutes`, `until`); what is not given comes from the task's
    preset. With `out`, a run folder is written that `resume` can continue. Mistakes raise ArsError at once.
    """
    stop = Stop(iterations=iterations, **{name: overrides.pop(name) for name in STOPS if name in overrides})
    made = make(task)
    try:
        definition = made.definition()
        bonus = made.survival_bonus
        config = make_config(task, **{"H": made.H, "shift": bonus, **_given(overrides)}, seed=seed)
        executor = make_executor(made, workers)
    except BaseException:
        made.close()
        raise
    try:
        run = Run.create(Path(out), config, definition, stop) if out is not None else None
    except BaseException:
        executor.close()
        raise
    return _records(config, State.initial(made.p, made.n), executor, definition, stop, run)


def resume(
    out: str | Path, *, workers: int = 1, task: str | None = None, **stops: Any
) -> Generator[Record, None, None]:
    """Continue a run to the bits of an uninterrupted one; new stopping rules replace the old.

    A run of `module:factory` needs that name again as `task`: a file shall not decide what code is imported.
    """
    run = Run.open(Path(out))
    try:
        name = run.config.task
        if ":" in name and task != name:
            raise SettingError(f"This run imports code of yours: confirm it with --task {name}.")
        if task not in (None, name):
            raise SettingError(f"{run.path} is a run of {name}, not of {task}.")
        new = Stop(**_given(stops))
        if new:
            run.set_stop(new)
        made = make(name)
        try:
            _check_same_task(made, run.definition)
            executor = make_executor(made, workers)
        except BaseException:
            made.close()
            raise
    except BaseException:
        run.close()
        raise
    return _records(run.config, run.state, executor, run.definition, run.stop, run)


def _records(
    config: Config, state: State, executor: Executor, definition: dict[str, Any], stop: Stop, run: Run | None
) -> Generator[Record, None, None]:
    """Iterate until a rule says stop, keeping the run folder."""
    with ExitStack() as stack:
        if run is not None:
            stack.callback(run.close)
        stack.callback(executor.close)
        seconds = run.seconds if run is not None else 0.0
        best = run.best.mean if run is not None and run.best else None
        if stop.reason(state.j, state.episodes, state.timesteps, seconds, best):
            return
        for record in iterate(config, state, executor, definition, seconds=seconds):
            if run is not None:
                run.append(record)
            yield record
            if stop.reached(record):
                return


def _check_same_task(task: Task, definition: dict[str, Any]) -> None:
    if json.loads(json.dumps(task.definition())) != definition:
        raise TaskError(f"{task.name} is not what it was when this run began: its definition in config.json differs.")


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
