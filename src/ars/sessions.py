"""Presets, workers, stopping rules and the run folder around the loop of training.py.

`train` and `resume` are the library's entry points; a Session is for callers that inspect a training before it runs.
"""

import json
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ars.config import LARGEST_EVALUATION, Config
from ars.errors import SettingError, TaskError
from ars.executors import Executor, make_executor
from ars.noise import Stream, check_table_size
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.records import Evaluation, Record, State
from ars.runs import MEASURED_ELSEWHERE, Run
from ars.searches import Search
from ars.settings import LARGEST_SEED, whole_number
from ars.stopping import Stop
from ars.tasks import factory, make, measure_of
from ars.tasks.user_code import confirmed
from ars.training import evaluated, evaluation_batch, iterate
from ars.warm_start import WarmStart, warm_start_of

RULES = ("episodes", "timesteps", "minutes", "until")


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
    measure: Callable[[LinearPolicy], dict[str, float]] | None
    seconds: float = 0.0  # that the run has already taken
    best_mean: float | None = None  # of its evaluations so far

    def already(self) -> str:
        """Why there is nothing left to do; empty if there is something."""
        state = self.state
        return self.stop.reason(state.j, state.episodes, state.timesteps, self.seconds, self.best_mean)

    def records(self) -> Generator[Record, None, None]:
        """Iterate until a stopping rule applies, and write the run folder."""
        with ExitStack() as stack:
            if self.run:
                stack.callback(self.run.close)
            stack.callback(self.close_executor)
            if self.already():
                return
            if self.run:
                self.run.begin_session()
            for record in iterate(
                self.config, self.state, self.executor, self.definition, measure=self.measure, seconds=self.seconds
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
    executor: str | Executor = "local",
    address: str | None = None,
    start: WarmStart | None = None,
    step_timeout: float | None = None,
) -> Session:
    """A new run: the task's preset, overridden by `settings`. `out` is its folder, or a function that chooses one."""
    here = _here()
    with closing(make(task)) as made:
        definition = made.definition()
        given = {name: value for name, value in settings.items() if value is not None}
        if start is not None:
            given["start"] = start.name
        config = make_config(task, **{"H": made.H, "shift": made.survival_bonus, **given})
        if made.time_limit is not None and made.time_limit < config.H:
            raise SettingError(f"H = {config.H} is longer than {task} lasts: choose H from 1 to {made.time_limit}.")
        if stop.until is not None and not config.eval_every:
            raise SettingError(f"until = {stop.until:g} needs evaluations, and eval_every = 0 has none.")
        check_table_size(config.table_size, made.p, made.n)
        state = State.initial(config.search, made.p, made.n)
        if start is not None:
            state = start.apply(config, state)
    with ExitStack() as on_failure:  # the executor creates its own tasks, now that this one is closed
        executor, close = _executor(task, workers, executor, address, step_timeout)
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
    task: str, workers: int, executor: str | Executor, address: str | None, step_timeout: float | None
) -> tuple[Executor, Callable[[], None]]:
    """What runs the rollouts, and how to close it; an executor object is closed by the caller who created it."""
    made = make_executor(factory(task), workers, kind=executor, address=address, step_timeout=step_timeout)
    return made, made.close if isinstance(executor, str) else _nothing


def _nothing() -> None:
    pass


def resume_session(
    out: str | Path,
    *,
    workers: int,
    stop: Stop,
    task: str | None = None,
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
        if confirmed(name, task, "This run") != name:
            raise SettingError(f"{run.path} is a run of {name}, not of {task}.")
        with closing(make(name)) as made:
            if json.loads(json.dumps(made.definition())) != run.definition:
                raise TaskError(f"{name} is not what it was when this run began: see `task` in {run.path}/config.json.")
        executor, close = _executor(name, workers, executor, address, step_timeout)
        on_failure.callback(close)
        run.mend()
        if stop:
            run.set_stop(stop)
        on_failure.pop_all()
    best = run.best.mean if run.best else None
    return Session(
        run.config, run.definition, run.stop, run.state, executor, close, run, measure_of(made), run.seconds, best
    )


def train(
    task: str,
    *,
    search: str | Search | None = None,
    seed: int = 0,
    iterations: int | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    executor: str | Executor = "local",
    address: str | None = None,
    start: str | Path | LinearPolicy | None = None,
    start_weight: int | None = None,
    step_timeout: float | None = None,
    **overrides: Any,
) -> Generator[Record, None, None]:
    """Train a policy: a generator of Records, each with its `policy`.

    Settings are those of the search (for ARS `alpha`, `nu`, `N`, `b`, or its `variant`), those that all searches share
    (`normalise`, `H`, `shift`, `eval_every`, `eval_episodes`, `noise`, `table_size`, `stats_every`), and the other
    stopping rules (`episodes`, `timesteps`, `minutes`, `until`); the task's preset supplies the rest. executor="ray"
    runs on the cluster at `address`, or on a private Ray; an executor object is used as it is. `start` is a policy to
    start from, whose statistics count as `start_weight` states. With `out`, a run folder is written that `resume` can
    continue. With `step_timeout`, an environment in Python that takes longer than so many seconds for one step or reset
    is taken for hung and its worker process is replaced. Errors in the arguments raise ArsError immediately.
    """
    stop = Stop(iterations=iterations, **{name: overrides.pop(name) for name in RULES if name in overrides})
    session = new_session(
        task, {"search": search, "seed": seed, **overrides}, workers=workers, stop=stop, out=out, executor=executor,
        address=address, start=warm_start_of(start, start_weight, task), step_timeout=step_timeout,
    )  # fmt: skip
    return session.records()


def resume(
    out: str | Path,
    *,
    workers: int = 1,
    task: str | None = None,
    executor: str | Executor = "local",
    address: str | None = None,
    step_timeout: float | None = None,
    **rules: Any,
) -> Generator[Record, None, None]:
    """Continue a run, with the same bits as if it had not been interrupted; new stopping rules replace the old.

    A run of `module:factory` needs that name again as `task`, because a file must not choose which code is imported.
    """
    unknown = sorted(set(rules) - {"iterations", *RULES})
    if unknown:
        raise SettingError(f"{unknown[0]!r} is not a stopping rule, and the rest of a run cannot be changed.")
    stop = Stop(**{name: value for name, value in rules.items() if value is not None})
    session = resume_session(
        out, workers=workers, stop=stop, task=task, executor=executor, address=address, step_timeout=step_timeout
    )
    return session.records()


def evaluate(
    policy: LinearPolicy, task: str | None = None, *, episodes: int = 100, seed: int = 0, workers: int = 1
) -> Evaluation:
    """Rewards of a policy on its task, or another of the same shape, with the task's own reward and horizon."""
    if task is None and policy.task.get(MEASURED_ELSEWHERE):
        raise TaskError(f"{policy.task.get('name')!r:.100} is measured elsewhere: name a task to evaluate it on.")
    name = confirmed(policy.task.get("name"), task, "This policy")
    episodes = whole_number("episodes", episodes, 1, LARGEST_EVALUATION)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    with closing(make(name)) as made:
        if (policy.p, policy.n) != (made.p, made.n):
            raise SettingError(
                f"This policy is {policy.p} × {policy.n} and {name} needs {made.p} × {made.n}: "
                f"it was made for {policy.task.get('name', 'another task')}."
            )
    with closing(make_executor(factory(name), workers)) as executor:
        batch = evaluation_batch(policy, episodes=episodes, H=made.H, seed=seed, j=0, stream=Stream.TEST)
        return evaluated(executor.run(batch))
