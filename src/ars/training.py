"""Training is a pure function of (config, seed): state → batch → rollouts → state', one Record an iteration.

`iterate` is the loop itself; `train` adds presets, workers, stopping rules and the run folder; `resume` goes on from
a saved state.
"""

import json
import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ars import algorithm
from ars.config import LARGEST, Config, whole_number
from ars.errors import DivergedError, SettingError, TaskError
from ars.executors import Batch, Executor, Rollouts, make_executor
from ars.noise import Stream, check_table_size, direction
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.records import Evaluation, Record, State
from ars.runs import Run, policy_task
from ars.stopping import Stop
from ars.tasks import make, measure_of
from ars.tasks.user_code import confirmed

RULES = ("episodes", "timesteps", "minutes", "until")


def training_batch(config: Config, state: State) -> Batch:
    """The 2N rollouts of an iteration.  # Alg. 2, line 5"""
    policy = state.policy(normalised=config.features.normalised, task={})
    return Batch(
        policy.M, policy.mu, policy.sigma, config.nu, config.N, (+1, -1), Stream.TRAINING, config.seed, state.j,
        config.H, config.shift, gather=config.features.normalised and state.j % config.stats_every == 0,
        table_size=config.table_size,
    )  # fmt: skip


def update(config: Config, state: State, rollouts: Rollouts) -> tuple[State, algorithm.Step]:
    """state → state' once the rollouts are in.  # Alg. 1, lines 6 and 7; Alg. 2, lines 6 to 9"""
    r_plus, r_minus = rollouts.rewards.T
    if not len(algorithm.finite_directions(r_plus, r_minus)):
        raise DivergedError(
            f"In iteration {state.j + 1} none of the N = {config.N} directions of {config.task} gave finite rewards: "
            f"try a smaller nu (now {config.nu:g}) or alpha (now {config.alpha:g})."
        )
    shape, size = state.M.shape, config.table_size
    deltas = np.stack([direction(config.seed, state.j, k, *shape, table_size=size) for k in range(config.N)])
    if config.features.scaled_by_sigma_R:
        step = algorithm.ars_step(state.M, deltas, r_plus, r_minus, alpha=config.alpha, b=config.b)
    else:
        step = algorithm.brs_step(state.M, deltas, r_plus, r_minus, alpha=config.alpha)
    if not (np.isfinite(step.M).all() and math.isfinite(step.sigma_R)):
        raise DivergedError(
            f"The update of iteration {state.j + 1} is not finite: try a smaller alpha (now {config.alpha:g})."
        )
    moments = state.moments.merge(rollouts.moments)  # Alg. 2, line 8
    episodes, timesteps = state.episodes + rollouts.steps.size, state.timesteps + int(rollouts.steps.sum())
    return State(state.j + 1, step.M, moments, episodes, timesteps), step


def run_evaluation(
    policy: LinearPolicy, executor: Executor, *, episodes: int, H: int, seed: int, j: int, stream: Stream
) -> Evaluation:
    """Rollouts with the task's own reward and horizon, from random numbers of their own, that enter nothing."""
    arrays = policy.M, policy.mu, policy.sigma
    rollouts = executor.run(Batch(*arrays, 0.0, episodes, (0,), stream, seed, j, H, shift=0.0, gather=False))
    rewards = rollouts.rewards[:, 0]
    finite = np.isfinite(rewards)
    return Evaluation(rewards[finite], rollouts.steps[:, 0], int(episodes - finite.sum()))


def iterate(
    config: Config,
    state: State,
    executor: Executor,
    definition: dict[str, Any],
    *,
    measure: Callable[[LinearPolicy], dict[str, float]] | None = None,
    seconds: float = 0.0,
) -> Iterator[Record]:
    """Records without end, from any state; `seconds` is what the run has taken before."""
    started = time.monotonic() - seconds
    while True:
        rollouts = executor.run(training_batch(config, state))
        before, (state, step) = state, update(config, state, rollouts)
        policy = state.policy(normalised=config.features.normalised, task=policy_task(definition))
        evaluation = None
        if config.eval_every and state.j % config.eval_every == 0:
            evaluation = run_evaluation(
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
            update_norm=algorithm.norm(state.M - before.M),
            dropped=config.N - len(ks),
            step_taken=step.sigma_R > 0.0,
            evaluation=evaluation,
            measures=measure(policy) if measure else {},
            state=state,
            policy=policy,
            wire_bytes_out=rollouts.wire[0] if rollouts.wire else None,
            wire_bytes_in=rollouts.wire[1] if rollouts.wire else None,
        )


@dataclass(frozen=True)
class Session:
    """A training about to run: what it will do, and `records` to do it, once."""

    config: Config
    definition: dict[str, Any]
    stop: Stop
    state: State
    executor: Executor
    run: Run | None
    measure: Callable[[LinearPolicy], dict[str, float]] | None

    def already(self) -> str:
        """Why there is nothing left to do, in words; empty if there is."""
        seconds = self.run.seconds if self.run else 0.0
        best = self.run.best.mean if self.run and self.run.best else None
        return self.stop.reason(self.state.j, self.state.episodes, self.state.timesteps, seconds, best)

    def records(self) -> Generator[Record, None, None]:
        """Iterate until a rule says stop, keeping the run folder."""
        with ExitStack() as stack:
            if self.run:
                stack.callback(self.run.close)
            stack.callback(self.executor.close)
            if self.already():
                return
            seconds = self.run.seconds if self.run else 0.0
            for record in iterate(
                self.config, self.state, self.executor, self.definition, measure=self.measure, seconds=seconds
            ):
                if self.run:
                    self.run.append(record)
                yield record
                if self.stop.reached(record):
                    return


def new_session(
    task: str,
    settings: dict[str, Any],
    *,
    workers: int,
    stop: Stop,
    out: str | Path | Callable[[Config], Path] | None = None,
    executor: str = "local",
    address: str | None = None,
) -> Session:
    """A run from the start: the task's preset, with `settings` instead where given. `out` is its folder, or a
    function that chooses one."""
    with ExitStack() as on_failure:
        made = make(task)
        on_failure.callback(made.close)
        definition = made.definition()
        config = make_config(task, **{"H": made.H, "shift": made.survival_bonus, **_given(settings)})
        if made.time_limit is not None and made.time_limit < config.H:
            raise SettingError(f"H = {config.H} is longer than {task} lasts: choose H from 1 to {made.time_limit}.")
        if stop.until is not None and not config.eval_every:
            raise SettingError(f"until = {stop.until:g} needs evaluations, and eval_every = 0 has none.")
        check_table_size(config.table_size, made.p, made.n)
        crew = make_executor(made, workers, kind=executor, address=address)
        on_failure.callback(crew.close)
        folder = out(config) if callable(out) else out
        run = None if folder is None else Run.create(Path(folder), config, definition, stop)
        on_failure.pop_all()
    return Session(config, definition, stop, State.initial(made.p, made.n), crew, run, measure_of(made))


def old_session(
    out: str | Path,
    *,
    workers: int,
    stop: Stop,
    task: str | None = None,
    executor: str = "local",
    address: str | None = None,
) -> Session:
    """A run from its last checkpoint; rules in `stop` replace those that it has."""
    with ExitStack() as on_failure:
        run = Run.open(Path(out), mend=False)
        on_failure.callback(run.release)
        name = run.config.task
        if confirmed(name, task, "This run") != name:
            raise SettingError(f"{run.path} is a run of {name}, not of {task}.")
        made = make(name)
        on_failure.callback(made.close)
        if json.loads(json.dumps(made.definition())) != run.definition:
            raise TaskError(f"{name} is not what it was when this run began: see `task` in {run.path}/config.json.")
        crew = make_executor(made, workers, kind=executor, address=address)
        on_failure.callback(crew.close)
        run.mend()
        if stop:
            run.set_stop(stop)
        on_failure.pop_all()
    return Session(run.config, run.definition, run.stop, run.state, crew, run, measure_of(made))


def train(
    task: str,
    *,
    seed: int = 0,
    iterations: int | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    executor: str = "local",
    address: str | None = None,
    **overrides: Any,
) -> Generator[Record, None, None]:
    """Train a policy; a generator of Records, each with its `policy`.

    Settings are the paper's (`variant`, `alpha`, `nu`, `N`, `b`, `H`, `shift`), `eval_every`, `eval_episodes`, `noise`,
    `table_size`, `stats_every`, and the other stopping rules (`episodes`, `timesteps`, `minutes`, `until`); what is not
    given comes from the task's preset. executor="ray" runs on the cluster at `address`, or on a Ray of its own. With
    `out`, a run folder is written that `resume` can continue. Mistakes raise ArsError at once.
    """
    stop = Stop(iterations=iterations, **{name: overrides.pop(name) for name in RULES if name in overrides})
    settings = {"seed": seed, **overrides}
    session = new_session(task, settings, workers=workers, stop=stop, out=out, executor=executor, address=address)
    return session.records()


def resume(
    out: str | Path,
    *,
    workers: int = 1,
    task: str | None = None,
    executor: str = "local",
    address: str | None = None,
    **rules: Any,
) -> Generator[Record, None, None]:
    """Continue a run to the bits of an uninterrupted one; new stopping rules replace the old.

    A run of `module:factory` needs that name again as `task`: a file shall not decide what code is imported.
    """
    unknown = sorted(set(rules) - {"iterations", *RULES})
    if unknown:
        raise SettingError(f"{unknown[0]!r} is no stopping rule, and the rest of a run cannot be changed.")
    stop = Stop(**_given(rules))
    return old_session(out, workers=workers, stop=stop, task=task, executor=executor, address=address).records()


def evaluate(
    policy: LinearPolicy, task: str | None = None, *, episodes: int = 100, seed: int = 0, workers: int = 1
) -> Evaluation:
    """Rewards of a policy on its task, or another of the same shape, with the task's own reward and horizon."""
    name = confirmed(policy.task.get("name"), task, "This policy")
    episodes = whole_number("episodes", episodes, 1, LARGEST["eval_episodes"])
    seed = whole_number("seed", seed, 0, LARGEST["seed"])
    made = make(name)
    try:
        if (policy.p, policy.n) != (made.p, made.n):
            raise SettingError(
                f"This policy is {policy.p} × {policy.n} and {name} needs {made.p} × {made.n}: "
                f"it was made for {policy.task.get('name', 'another task')}."
            )
        executor = make_executor(made, workers)
    except BaseException:
        made.close()
        raise
    try:
        return run_evaluation(policy, executor, episodes=episodes, H=made.H, seed=seed, j=0, stream=Stream.TEST)
    finally:
        executor.close()


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
