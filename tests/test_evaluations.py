"""When a run is evaluated by the frugal protocol, what confirms `until`, and the averaged policy."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars import curves
from ars.ask_tell import AskTell
from ars.config import Config
from ars.dashboards import scalars
from ars.errors import FileError
from ars.executors import SerialExecutor
from ars.files import read_npz, write_npz
from ars.noise import Stream
from ars.policy import LinearPolicy
from ars.presets import make_config
from ars.records import CLOCKS, Record
from ars.run_files import read_run
from ars.runs import Run
from ars.saved_config import read_config
from ars.tasks import factory
from ars.training import evaluated, evaluation_batch

DRIFT, FLAT = "small_envs:Drift", "small_envs:Flat"  # episodes of Flat have 12 steps
SMALL: dict[str, Any] = {"variant": "V2", "alpha": 0.1, "nu": 0.3, "N": 2, "eval_episodes": 2, "seed": 5}


def train(task: str = DRIFT, **settings: Any) -> list[Record]:
    return list(ars.train(task, **{**SMALL, "iterations": 30, **settings}))


def lines(records: list[Record]) -> list[dict[str, Any]]:
    """Everything in records but clocks."""
    return [{name: value for name, value in r.to_dict().items() if name not in CLOCKS} for r in records]


def without_confirmations(records: list[Record]) -> list[dict[str, Any]]:
    return [{name: v for name, v in line.items() if not name.startswith("confirm_")} for line in lines(records)]


# -- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "at"),
    [
        ({}, [1, 10, 15, 20, 25, 30]),  # 48 timesteps per iteration, 24 per evaluation
        ({"eval_every": 7}, [1, 10, 17, 24]),  # never more often than that
        ({"eval_every": 3}, [1, 10, 15, 20, 25, 30]),
        ({"eval_every": 0}, []),
        ({"eval_episodes": 50}, [1]),  # the first whatever it costs
        ({"H": 5}, [1, 24]),  # 20 per iteration; predicted by 24, the length of an evaluation, not by 10
        ({"protocol": "paper"}, [10, 20, 30]),
        ({"protocol": "paper", "eval_every": 12}, [12, 24]),
    ],
)
def test_when_an_evaluation_is_due(settings: dict[str, Any], at: list[int]) -> None:
    records = train(FLAT, **settings)
    assert [r.iteration for r in records if r.evaluation] == at
    spent = 0 if settings.get("protocol") == "paper" else 12 * settings.get("eval_episodes", 2) * len(at)
    assert records[-1].state.evaluations.timesteps == spent


def test_evaluations_cost_a_tenth_at_most() -> None:
    """Whatever the lengths of episodes do: more than a tenth is only the first one, and what an evaluation took longer
    than predicted."""
    records = train(eval_episodes=3, iterations=100)
    spent = [0, *(int(r.evaluation.steps.sum()) for r in records if r.evaluation)]
    assert len(spent) > 3
    assert records[-1].state.evaluations.timesteps == sum(spent)
    for r in records:
        assert 10 * (r.state.evaluations.timesteps - 3 * 12) <= r.timesteps


def test_the_defaults() -> None:
    frugal = make_config(FLAT, H=12, shift=0.0)
    paper = make_config(FLAT, H=12, shift=0.0, protocol="paper")
    assert (frugal.protocol, frugal.eval_every, frugal.eval_episodes, frugal.average) == ("frugal", 1, 10, 0)
    assert (paper.eval_every, paper.eval_episodes) == (10, 100)


def test_the_schedule_is_resumed(tmp_path: Path) -> None:
    """From a checkpoint: the same evaluations as without interruption, and the same averaged policy."""
    whole = train(average=4, eval_episodes=3, out=tmp_path / "whole")
    for cut in (2, 8, 17):
        out = tmp_path / str(cut)
        begun = list(islice(records := ars.train(DRIFT, **{**SMALL, "average": 4, "eval_episodes": 3}, out=out), cut))
        records.close()
        rest = list(ars.resume(out, task=DRIFT, iterations=30))
        assert lines([*begun, *rest]) == lines(whole)
        for file in ("policy.npz", "best.npz"):
            assert (out / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_workers_do_not_matter() -> None:
    runs = [train("Hopper-v1", N=4, H=60, iterations=8, average=3, workers=workers) for workers in (1, 3)]
    assert any(r.evaluation for r in runs[0])
    assert lines(runs[0]) == lines(runs[1])
    assert runs[0][-1].policy.M.tobytes() == runs[1][-1].policy.M.tobytes()


def test_ask_and_tell_has_the_same_schedule(tmp_path: Path) -> None:
    """Opened anew for every result, as by `ars ask` and `ars tell`."""
    expected = train(FLAT, iterations=10, average=3)
    AskTell.create(tmp_path, FLAT, **SMALL, average=3).close()
    records: list[Record] = []
    while len(records) < 10:
        with AskTell.open(tmp_path) as run:
            for asked in run.ask():
                result = {"key": asked.key, "reward": 0.0, "steps": 12}
                states = {"count": 12, "mean": [0.0] * 3, "m2": [1.0] * 3}
                records += run.tell([{**result, "moments": states} if asked.states else result])
            policy = run.policy
    assert [r.iteration for r in records if r.evaluation] == [r.iteration for r in expected if r.evaluation] == [1, 10]
    assert records[-1].state.evaluations == expected[-1].state.evaluations
    assert policy.M.tobytes() == records[-1].policy.M.tobytes()


@pytest.mark.parametrize("damage", [np.zeros(2, np.int64), np.array([1, 1, 99]), np.array([-1, 0, 0]), np.zeros(3)])
def test_a_damaged_schedule_is_a_sentence(damage: Any, tmp_path: Path) -> None:
    train(FLAT, iterations=6, out=tmp_path / "run")
    checkpoint = tmp_path / "run" / "checkpoint.npz"
    with np.load(checkpoint) as arrays:
        names = arrays.files
    write_npz(checkpoint, {**read_npz(checkpoint, names), "evaluations": damage})
    with pytest.raises(FileError, match="its evaluations are impossible"):
        Run.open(tmp_path / "run")


# -- every run has an evaluation -------------------------------------------------------------------------------------


def test_a_short_run_has_an_evaluation(tmp_path: Path) -> None:
    """A newcomer sees what was learned, and what follows does not depend on where a run stopped."""
    whole = train(iterations=20)
    short = train(iterations=2, out=tmp_path / "run")
    assert lines(short) == lines(whole[:2])
    assert [r.evaluation is not None for r in short] == [True, False]
    assert read_run(tmp_path / "run").policy_file == "best.npz"
    assert curves.from_run(tmp_path / "run").columns["at_iteration"].tolist() == [1]
    rest = list(ars.resume(tmp_path / "run", task=DRIFT, iterations=20))
    assert lines(rest) == lines(whole[2:])
    assert not train(iterations=2, eval_every=0)[0].evaluation
    assert not train(iterations=2, protocol="paper")[-1].evaluation


# -- confirmation ----------------------------------------------------------------------------------------------------


def confirmation(record: Record) -> float:
    """The mean of 100 fresh rollouts, by hand."""
    batch = evaluation_batch(
        record.policy, episodes=100, H=1000, seed=5, j=record.iteration, stream=Stream.CONFIRMATION
    )
    return float(evaluated(SerialExecutor(factory(DRIFT)).run(batch)).rewards.mean())


def test_until_is_confirmed_by_fresh_rollouts(tmp_path: Path) -> None:
    """A lucky evaluation ends nothing, and a confirmation influences nothing but the end."""
    plain = train(iterations=60)
    lucky = next(r for r in plain if r.eval_mean is not None and confirmation(r) < r.eval_mean)
    assert lucky.eval_mean is not None
    refused = train(until=lucky.eval_mean, iterations=60, out=tmp_path / "refused")
    assert len(refused) > lucky.iteration
    assert without_confirmations(refused) == lines(plain)[: len(refused)]
    for r in refused:
        seems = r.eval_mean is not None and r.eval_mean >= lucky.eval_mean
        assert (r.confirmation is not None) == seems
        assert not seems or r.to_dict()["confirm_mean"] == confirmation(r)
    assert refused[lucky.iteration - 1].to_dict()["confirm_episodes"] == 100
    assert scalars(refused[lucky.iteration - 1], None)["eval/confirmed_mean_reward"] == confirmation(lucky)

    goal = confirmation(lucky)
    reached = train(until=goal, iterations=60, out=tmp_path / "reached")
    last = reached[-1]
    assert last.best_known_mean is not None
    assert last.best_known_mean >= goal
    assert last.iteration <= lucky.iteration
    assert not list(ars.resume(tmp_path / "reached", task=DRIFT))  # nothing is left to do
    run = read_run(tmp_path / "reached")
    assert run.policy is not None
    assert run.policy.task["eval_mean"] == last.best_known_mean
    curve = curves.from_run(tmp_path / "reached")
    assert (curve.status, curve.reach(goal, "iteration")) == ("finished", last.iteration)


def test_an_unconfirmed_evaluation_is_not_the_goal_of_a_resumed_run(tmp_path: Path) -> None:
    """Ten lucky rollouts before `until` was given: training goes on until the next evaluation is confirmed."""
    records = train(out=tmp_path / "run")
    best = max(r.eval_mean for r in records if r.eval_mean is not None)
    rest = list(ars.resume(tmp_path / "run", task=DRIFT, until=best - 100.0, iterations=60))
    assert rest[-1].confirmation is not None
    assert rest[-1].iteration < 60
    by_paper = train(protocol="paper", eval_every=5, out=tmp_path / "paper")
    goal = max(r.eval_mean for r in by_paper if r.eval_mean is not None)
    assert not list(ars.resume(tmp_path / "paper", task=DRIFT, until=goal, iterations=60))


# -- the averaged policy ---------------------------------------------------------------------------------------------


def test_the_average_by_hand(tmp_path: Path) -> None:
    """A plain mean of the first three, then exponential; M itself is untouched."""
    plain, records = train(iterations=7), train(iterations=7, average=3, out=tmp_path / "run")
    average = np.zeros((2, 3))
    for j, (before, r) in enumerate(zip(plain, records, strict=True), 1):
        assert r.state.M.tobytes() == before.state.M.tobytes()
        average = r.state.M if j == 1 else average + (r.state.M - average) / min(j, 3)
        assert r.policy.M.tobytes() == average.tobytes()
    np.testing.assert_allclose(records[2].policy.M, np.mean([r.state.M for r in plain[:3]], axis=0), rtol=1e-12)
    assert LinearPolicy.load(tmp_path / "run" / "policy.npz").M.tobytes() == average.tobytes()
    assert lines(train(average=1)) == lines(train())


def test_an_average_starts_from_a_policy(tmp_path: Path) -> None:
    """A warm start: before the first iteration the policy is the given one, then it is forgotten as M = 0 is."""
    start = train(iterations=3)[-1].policy
    records = train(start=start, average=4, iterations=1, out=tmp_path / "run")
    assert records[0].policy.M.tobytes() == records[0].state.M.tobytes()
    with AskTell.create(tmp_path / "asked", DRIFT, start=start, average=4) as run:
        assert run.policy.M.tobytes() == start.M.tobytes()


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["format1", "format2"])
@pytest.mark.parametrize("task", ["cartpole", "lqr", "swimmer"])
def test_older_files_mean_the_papers_protocol(version: str, task: str) -> None:
    config = read_config(Path(__file__).parent / "fixtures" / version / task).config
    assert (config.protocol, config.average) == ("paper", 0)
    assert not {"protocol", "average"} & config.to_dict().keys()


@pytest.mark.parametrize("settings", [{}, {"protocol": "paper"}, {"average": 7}, {"protocol": "paper", "average": 7}])
def test_a_configuration_survives_its_file(settings: dict[str, Any]) -> None:
    config = make_config(FLAT, H=12, shift=0.0, **settings)
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
