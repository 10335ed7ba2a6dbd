"""Presets, workers, stopping rules and the run folder around the loop of training.py.

`train` and `resume` are the library's entry points; a Session is for callers that inspect a training before it runs.
"""

import itertools
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ars import notes, subset
from ars.checkpoint import initial_state
from ars.config import LARGEST_EVALUATION, Config, shared_settings
from ars.errors import SettingError, TaskError
from ars.executors import Executor, local_executor, make_executor
from ars.mirror import Mirror
from ars.network import AnyPolicy
from ars.noise import Stream, check_table_size
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.records import Evaluation, Record, State
from ars.run_files import each_record
from ars.runs import MEASURED_ELSEWHERE, Run
from ars.saved_config import check_size, run_identity
from ars.searches import Search
from ars.searches.ars import ARS
from ars.settings import LARGEST_SEED, own_fields, whole_number
from ars.stopping import Stop
from ars.tasks import Measure, TaskFactory, TaskLike, factory, measure_of
from ars.tasks.user_code import confirmed, name_of
from ars.training import CONFIRMATION, confirmation_batch, evaluated, evaluation_batch, iterate
from ars.warm_start import WarmStart, warm_start_of
from ars.workers import end_if_importing_main

# The keywords of `train` that are settings: `train` names those of ARS and takes those of other searches unnamed.
SETTINGS = ("search", "variant", *(f.name for f in own_fields(ARS)), *shared_settings())
RULES = tuple(f.name for f in fields(Stop))


@dataclass(frozen=True)
class Session:
    """A training that is ready to run; `records` runs it, once."""

    config: Config
    definition: dict[str, Any]
    stop: Stop
    state: State
    executor: Executor
    close_executor: Callable[[], None]
    run: Run | None
    measure: Measure | None
    seconds: float = 0.0  # that the run has already taken
    goal_mean: tuple[float | None, int | None] = None, None  # so far: Run.goal_mean

    def already(self) -> str:
        """Why there is nothing left to do; empty if there is something."""
        state = self.state
        return self.stop.reason(state.j, state.episodes, state.timesteps, self.seconds, *self.goal_mean)

    def records(self, phase: Callable[[str], None] = lambda _: None) -> Generator[Record, None, None]:
        """Iterate until a stopping rule applies, and write the run folder; `phase` is told what begins."""
        with ExitStack() as stack:
            if self.run:
                stack.callback(self.run.close)
            stack.callback(self.close_executor)
            if self.already():
                return
            watch = notes.Watch(self.config, self.definition, self._before())
            if self.run:
                self.run.begin_session()
            for record in iterate(
                self.config, self.state, self.executor, self.definition, measure=self.measure, seconds=self.seconds,
                phase=phase,
            ):  # fmt: skip
                if self.config.protocol == "frugal" and self.stop.is_goal(record.eval_mean):
                    record = self._confirm(record, phase)
                record = watch.add(record)
                if self.run:
                    self.run.append(record)
                yield record
                if self.stop.reached(record):
                    return

    def _confirm(self, record: Record, phase: Callable[[str], None]) -> Record:
        """Confirm an evaluation that seems to reach `until`. The state does not have it: stopping rules do not affect
        a run's bits."""
        began = time.monotonic()
        phase(f"confirming, {CONFIRMATION} rollouts")
        batch = confirmation_batch(self.config, record.state, self.definition["H"], record.policy)
        confirmation = evaluated(self.executor.run(batch))
        took = time.monotonic() - began
        seconds, eval_seconds = record.seconds + took, record.eval_seconds + took
        return replace(record, confirmation=confirmation, seconds=seconds, eval_seconds=eval_seconds)

    def _before(self) -> Iterable[dict[str, Any]]:
        """The records of earlier sessions."""
        return each_record(self.run.path / "records.jsonl") if self.run and self.state.j else ()


def new_session(
    task: TaskLike,
    settings: dict[str, Any],
    *,
    workers: int | None,
    stop: Stop,
    out: str | Path | Callable[[Config], Path] | None = None,
    executor: str | Executor = "local",
    address: str | None = None,
    start: WarmStart | None = None,
    step_timeout: float | None = None,
) -> Session:
    """A new run: the task's preset, overridden by `settings`. `out` is its folder, or a function that chooses one."""
    here = _here()
    make = factory(task, observe=settings.get("observe"), mirror=settings.get("mirror"), over=settings.get("over"))
    with closing(make()) as made:
        definition = made.definition()
        given = {name: value for name, value in settings.items() if value is not None}
        given["observe"] = definition.get("observe", subset.ALL)
        if start is not None:
            given["start"] = start.name
        config = make_config(make.name, shape=(made.p, made.n), **{"H": made.H, "shift": made.survival_bonus, **given})
        if made.time_limit is not None and made.time_limit < config.H:
            raise SettingError(
                f"H = {config.H} is longer than {make.name} lasts: choose H from 1 to {made.time_limit}."
            )
        if stop.until is not None and not config.eval_every:
            raise SettingError(f"until = {stop.until:g} needs evaluations, and eval_every = 0 has none.")
        check_table_size(config.table_size, *config.shape(made.p, made.n))
        if out is not None:
            check_size(config, definition)
        state = initial_state(config, definition)
        if start is not None:
            state = start.apply(config, state, Mirror.of(definition))
    with ExitStack() as on_failure:  # the executor creates its own tasks, now that this one is closed
        executor, close = _executor(make, workers, executor, address, step_timeout)
        on_failure.callback(close)
        folder = out(config) if callable(out) else out
        run = None if folder is None else Run.create(here / folder, config, definition, stop, state)
        on_failure.pop_all()
    return Session(config, definition, stop, state, executor, close, run, measure_of(made))


def _here() -> Path:
    """The current folder, which an environment may change: paths of a run are absolute."""
    try:
        return Path.cwd()
    except OSError:  # it is deleted
        return Path()


def _executor(
    make: TaskFactory, workers: int | None, executor: str | Executor, address: str | None, step_timeout: float | None
) -> tuple[Executor, Callable[[], None]]:
    """What runs the rollouts, and how to close it; an executor object is closed by the caller who created it."""
    made = make_executor(make, workers, kind=executor, address=address, step_timeout=step_timeout)
    return made, made.close if isinstance(executor, str) else _nothing


def _nothing() -> None:
    pass


def resume_session(
    out: str | Path,
    *,
    workers: int | None,
    stop: Stop,
    task: "TaskLike | None" = None,
    executor: str | Executor = "local",
    address: str | None = None,
    step_timeout: float | None = None,
) -> Session:
    """A run from its last checkpoint; `stop` replaces its stopping rules if it has any."""
    with ExitStack() as on_failure:
        run = Run.open(_here() / out, mend=False)
        on_failure.callback(run.release)
        name = run.config.task
        if run.definition.get(MEASURED_ELSEWHERE):
            raise TaskError(f"{name} is measured elsewhere: continue this run with `ars ask {run.path}`.")
        given = None if task is None else name_of(task)
        if confirmed(name, given, "This run") != name:
            raise SettingError(f"{run.path} is a run of {name}, not of {given}.")
        config = run.config
        make = factory(name if task is None else task, observe=config.observe, mirror=config.mirror, over=config.over)
        with closing(make()) as made:
            if run_identity(run.config, made.definition()) != run_identity(run.config, run.definition):
                raise TaskError(f"{name} is not what it was when this run began: see `task` in {run.path}/config.json.")
        executor, close = _executor(make, workers, executor, address, step_timeout)
        on_failure.callback(close)
        run.mend()
        if stop:
            run.set_stop(stop)
        on_failure.pop_all()
    return Session(
        run.config,
        run.definition,
        run.stop,
        run.state,
        executor,
        close,
        run,
        measure_of(made),
        run.seconds,
        run.goal_mean(),
    )


def train(
    task: TaskLike,
    *,
    search: str | Search | None = None,
    variant: str | None = None,
    alpha: float | None = None,
    nu: float | None = None,
    N: int | None = None,
    b: int | None = None,
    scaled: bool | None = None,
    normalise: bool | None = None,
    H: int | None = None,
    shift: float | None = None,
    seed: int = 0,
    protocol: str | None = None,
    eval_every: int | None = None,
    eval_episodes: int | None = None,
    average: int | None = None,
    noise: str | None = None,
    table_size: int | None = None,
    stats_every: int | None = None,
    observe: str | None = None,
    mirror: bool | None = None,
    over: str | None = None,
    steady: bool | None = None,
    least_timesteps: int | None = None,
    ramp: int | None = None,
    duel: int | None = None,
    hidden: str | None = None,
    iterations: int | None = None,
    episodes: int | None = None,
    timesteps: int | None = None,
    minutes: float | None = None,
    until: float | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: str | Executor = "local",
    address: str | None = None,
    start: str | Path | LinearPolicy | None = None,
    start_weight: int | None = None,
    step_timeout: float | None = None,
    **others: Any,
) -> Generator[Record, None, None]:
    """Train a policy: a generator of Records, each with its `policy`.

    `task` is a task's name, a gymnasium.Env class, a function without arguments that returns an environment, or the
    description of a robot. The task's preset supplies every setting that is not given (docs/algorithm.md explains
    them); `others` are settings of a search other than ARS. Training ends at the first of `iterations`, `episodes`,
    `timesteps`, `minutes` and `until` (the mean reward of a policy), and never without them. With `out`, a run
    folder is written that `resume` can continue.

    `workers` are threads or, for environments in Python, processes; by default all cores (docs/library.md has the
    exceptions). executor="ray" runs on the cluster at `address`, or on a private Ray; an executor object is used as it
    is. `start` is a policy to start from, whose statistics count as `start_weight` states. With `step_timeout`, an
    environment in Python that takes longer than so many seconds for one step or reset is taken for hung, and its worker
    process is replaced. Errors in the arguments raise ArsError immediately.
    """
    given = locals()
    end_if_importing_main()
    session = new_session(
        task, {name: given[name] for name in SETTINGS} | others, workers=workers,
        stop=Stop(**{name: given[name] for name in RULES}), out=out, executor=executor, address=address,
        start=warm_start_of(start, start_weight, name_of(task)), step_timeout=step_timeout,
    )  # fmt: skip
    return session.records()


def resume(
    out: str | Path,
    *,
    iterations: int | None = None,
    episodes: int | None = None,
    timesteps: int | None = None,
    minutes: float | None = None,
    until: float | None = None,
    workers: int | None = None,
    task: "TaskLike | None" = None,
    executor: str | Executor = "local",
    address: str | None = None,
    step_timeout: float | None = None,
    **others: Any,
) -> Generator[Record, None, None]:
    """Continue a run, with the same bits as if it had not been interrupted; new stopping rules replace the old.

    A run of the user's own code needs its `task` again, the object or its name `module:factory`, because a file must
    not choose which code is imported.
    """
    given = locals()
    end_if_importing_main()
    if others:
        raise SettingError(f"{min(others)!r} is not a stopping rule, and the rest of a run cannot be changed.")
    session = resume_session(
        out, workers=workers, stop=Stop(**{name: given[name] for name in RULES}), task=task, executor=executor,
        address=address, step_timeout=step_timeout,
    )  # fmt: skip
    return session.records()


def evaluate(
    policy: AnyPolicy,
    task: "TaskLike | None" = None,
    *,
    episodes: int = 100,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Rewards of a policy on its task, or another of the same shape, with the task's own reward and horizon;
    `progress` gets the number of finished rollouts, from 0."""
    end_if_importing_main()
    if task is None and policy.task.get(MEASURED_ELSEWHERE):
        raise TaskError(f"{policy.task.get('name')!r:.100} is measured elsewhere: name a task to evaluate it on.")
    name = confirmed(policy.task.get("name"), None if task is None else name_of(task), "This policy")
    episodes = whole_number("episodes", episodes, 1, LARGEST_EVALUATION)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    make = factory(name if task is None else task, observe=policy.observe)
    with closing(make()) as made:
        if (policy.p, policy.n) != (made.p, made.n):
            raise SettingError(
                f"This policy is {policy.p} × {policy.n} and {name} needs {made.p} × {made.n}: "
                f"it was made for {policy.task.get('name', 'another task')}."
            )
    with closing(local_executor(make, workers)) as executor:
        batch = evaluation_batch(policy, episodes=episodes, H=made.H, seed=seed, j=0, stream=Stream.TEST)
        progress(0)
        done = itertools.count(1)
        return evaluated(executor.run(batch, lambda: progress(next(done))))
