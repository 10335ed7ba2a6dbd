"""Training: against a plain re-implementation of Algorithms 1 and 2, by learning, and by what must not matter."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
import small_envs
from ars import training
from ars.errors import ArsError, DivergedError, FileError, SettingError, TaskError
from ars.executors import SerialExecutor
from ars.noise import Key, Stream, direction, environment_seed
from ars.policy import LinearPolicy
from ars.records import Record
from ars.runs import Run
from ars.searches.ars import VARIANTS
from ars.sessions import evaluate
from ars.tasks import factory, make
from ars.training import evaluation_batch

DRIFT = "small_envs:Drift"
SMALL: dict[str, Any] = {"variant": "V2-t", "alpha": 0.1, "nu": 0.3, "N": 6, "b": 3, "eval_episodes": 4,
                         "protocol": "paper"}  # fmt: skip


def train(task: str = DRIFT, **settings: Any) -> list[Record]:
    return list(ars.train(task, **{**SMALL, "iterations": 6, "seed": 5, **settings}))


# -- the oracle ------------------------------------------------------------------------------------------------------


def reference(
    variant: str, *, alpha: float, nu: float, N: int, b: int, shift: float, seed: int, iterations: int, env: Any
) -> list[tuple[Any, ...]]:
    """Algorithms 1 and 2 as the paper writes them, keeping every state; only the random numbers are ours."""
    p, n = 2, 3
    M = np.zeros((p, n))
    states: list[Any] = []
    history = []
    for j in range(iterations):
        normalise = variant.startswith("V2") and states
        mu = np.mean(states, axis=0) if normalise else np.zeros(n)
        Sigma_diag = np.var(states, axis=0) if normalise else np.ones(n)
        Sigma_diag[Sigma_diag < 1e-8] = np.inf
        rewards, seen = {}, []
        for k, sign in itertools.product(range(N), (+1, -1)):
            delta = direction(seed, j, k, p, n)
            obs, _ = env.reset(seed=environment_seed(Key(seed, Stream.TRAINING, j, k, sign)))
            total, visited, done = 0.0, [], False
            while not done:
                visited.append(obs)
                action = (M + sign * nu * delta) @ np.diag(Sigma_diag**-0.5) @ (obs - mu)
                obs, reward, terminated, truncated, _ = env.step(action.astype(env.action_space.dtype))
                total += reward - shift
                done = terminated or truncated or math.isnan(total)
            rewards[k, sign] = total
            seen.append((k, visited))
        alive = [k for k in range(N) if math.isfinite(rewards[k, 1] + rewards[k, -1])]
        best = sorted(alive, key=lambda k: (-max(rewards[k, 1], rewards[k, -1]), k))[:b]
        step = sum((rewards[k, 1] - rewards[k, -1]) * direction(seed, j, k, p, n) for k in best)
        sigma_R = np.std([rewards[k, sign] for k in best for sign in (1, -1)])
        M = M + alpha / len(best) * step / (1.0 if variant == "BRS" else sigma_R)
        states += [state for k, visited in seen if k in alive for state in visited]
        history.append((M, np.mean(states, axis=0), np.var(states, axis=0), len(states), sigma_R))
    return history


@pytest.mark.parametrize("env", ["Drift", "SometimesNan"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_the_papers_algorithm(variant: str, env: str) -> None:
    """The reference implementation's mean moves within an iteration, stable-baselines3-contrib's AsyncEval counts
    states twice, others divide by another deviation: any of these would show here, also with dropped directions."""
    b = 3 if variant.endswith("-t") else 6
    settings = {"alpha": 0.1, "nu": 0.3, "N": 6, "b": b, "shift": 0.25, "seed": 5}
    records = train(f"small_envs:{env}", variant=variant, eval_every=0, **settings)
    expected = reference(variant, iterations=6, env=getattr(small_envs, env)(), **settings)
    assert len(records) == len(expected) == 6
    assert (sum(record.dropped for record in records) > 0) is (env == "SometimesNan")
    for record, (M, mean, variance, count, sigma_R) in zip(records, expected, strict=True):
        np.testing.assert_allclose(record.state.M, M, rtol=1e-8, atol=1e-11)
        assert record.sigma_R == pytest.approx(sigma_R, rel=1e-9)
        if variant.startswith("V2"):
            moments = record.state.moments
            assert moments.count == count
            np.testing.assert_allclose(moments.mean, mean, rtol=1e-9)
            np.testing.assert_allclose(moments.m2 / moments.count, variance, rtol=1e-7, atol=1e-14)
            np.testing.assert_allclose(record.policy.mu, mean, rtol=1e-9)
            ignored = variance < 1e-8
            assert ignored.tolist() == [False, False, True]  # the constant coordinate
            assert np.isinf(record.policy.sigma).tolist() == ignored.tolist()
            np.testing.assert_allclose(record.policy.sigma[:2], np.sqrt(variance[:2]), rtol=1e-8)
        else:
            assert record.policy.mu.tolist() == [0.0] * 3
            assert record.policy.sigma.tolist() == [1.0] * 3


def test_mu_and_sigma_are_frozen_within_an_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 2N rollouts of an iteration see the same mu and sigma: those of all states before it, no more."""
    seen: list[tuple[bytes, bytes]] = []
    task_class = type(make(DRIFT))
    real = task_class.rollout

    def noting(self: Any, policy: Any, key: Any, **kwargs: Any) -> Any:
        seen.append((policy.mu.tobytes(), policy.sigma.tobytes()))
        return real(self, policy, key, **kwargs)

    monkeypatch.setattr(task_class, "rollout", noting)
    records = train(eval_every=0)
    groups = [set(seen[12 * j : 12 * (j + 1)]) for j in range(6)]
    assert all(len(group) == 1 for group in groups)
    assert len(set.union(*groups)) == 6  # and they do move between iterations
    for record, group in zip(records, groups[1:], strict=False):
        assert group == {(record.policy.mu.tobytes(), record.policy.sigma.tobytes())}


def test_brs_and_v1_take_the_same_first_step_but_for_sigma_R() -> None:
    """The first iteration starts from the same M: the steps differ by 1/sigma_R exactly, nothing else does."""
    brs, v1 = (train(variant=variant, b=6, iterations=1)[0] for variant in ("BRS", "V1"))
    assert (brs.sigma_R, brs.reward_mean, brs.timesteps) == (v1.sigma_R, v1.reward_mean, v1.timesteps)
    np.testing.assert_allclose(brs.state.M, v1.state.M * v1.sigma_R, rtol=1e-13)


# -- learning --------------------------------------------------------------------------------------------------------


def test_cartpole_learns_with_the_defaults() -> None:
    """475 is where CartPole counts as solved; ten iterations of the defaults are enough."""
    records = list(ars.train("CartPole-v1", seed=1, iterations=10, eval_episodes=50, protocol="paper"))
    assert records[-1].eval_mean is not None
    assert records[-1].eval_mean >= 475


def test_swimmer_learns_with_the_papers_defaults() -> None:
    """V1, N = 1: hardly anything can be earned before learning, more than 80 after forty episodes."""
    settings: dict[str, Any] = {"protocol": "paper", "eval_every": 20, "eval_episodes": 2, "workers": 2}
    record = list(ars.train("Swimmer-v5", seed=5, iterations=20, **settings))[-1]
    untrained = LinearPolicy(np.zeros((2, 8)), np.zeros(8), np.ones(8), record.policy.task)
    assert abs(evaluate(untrained, episodes=2).rewards.mean()) < 10
    assert record.eval_mean is not None
    assert record.eval_mean > 80


# -- what a record says ----------------------------------------------------------------------------------------------


def test_totals_and_rewards_of_a_record() -> None:
    """Totals since the start; this iteration's rewards over all finite directions."""
    records = train(eval_every=2)
    assert [record.iteration for record in records] == [1, 2, 3, 4, 5, 6]
    assert [record.episodes for record in records] == [12, 24, 36, 48, 60, 72]
    timesteps = [record.timesteps for record in records]
    assert timesteps == sorted(set(timesteps))
    assert timesteps[-1] <= 72 * 12
    seconds = [record.seconds for record in records]
    assert seconds == sorted(seconds)
    assert all(record.reward_max >= record.reward_mean for record in records)
    before = np.zeros((2, 3))
    for record in records:
        assert record.update_norm == pytest.approx(np.linalg.norm(record.state.M - before), rel=1e-12)
        before = record.state.M
    assert [record.iteration for record in records if record.evaluation] == [2, 4, 6]  # not by chance, as in RLlib


def test_statistics_count_every_timestep_once() -> None:
    """All training steps, none of the evaluations'."""
    record = train(eval_every=1)[-1]
    assert record.state.moments.count == record.timesteps


def test_statistics_leave_out_dropped_directions() -> None:
    """timesteps counts what was simulated; the statistics only finite directions."""
    records = train("small_envs:SometimesNan")
    assert sum(record.dropped for record in records) > 0
    assert 0 < records[-1].state.moments.count < records[-1].timesteps


def test_equal_rewards_take_no_step_and_say_so() -> None:
    """sigma_R = 0: the reference divides by zero."""
    records = train("small_envs:Flat", eval_every=0)
    for record in records:
        assert (record.sigma_R, record.step_taken, record.update_norm) == (0.0, False, 0.0)
        assert not record.state.M.any()
    assert records[-1].state.moments.count == 6 * 12 * 12  # the statistics still grow
    assert train(iterations=1)[0].step_taken


def test_shift_is_for_training_only() -> None:
    """Flat pays 0.1 in each of 12 steps; with shift 0.5 training sees −0.4, the evaluation still 0.1."""
    record = train("small_envs:Flat", shift=0.5, eval_every=1, iterations=1)[0]
    assert record.reward_mean == pytest.approx(12 * (0.1 - 0.5))
    assert record.eval_mean == pytest.approx(12 * 0.1)


def test_H_is_for_training_only() -> None:
    """Training rollouts of 5 steps, evaluations of the task's 12."""
    record = train("small_envs:Flat", H=5, eval_every=1, iterations=1)[0]
    assert record.timesteps == 12 * 5
    assert record.eval_mean == pytest.approx(12 * 0.1)
    assert record.evaluation is not None
    assert record.evaluation.steps.tolist() == [12] * 4


def test_a_longer_H_than_the_default_is_not_clamped() -> None:
    """An environment without a horizon of its own: H = 1500 is 1500 steps, never silently 1000."""
    record = train("small_envs:Endless", H=1500, N=1, b=1, iterations=1, eval_every=0)[0]
    assert record.timesteps == 2 * 1500


def test_the_survival_bonus_is_known_to_the_task() -> None:
    """Hopper's shift is 1 unless said otherwise (section 4.3)."""
    shifted = train("Hopper-v5", H=20, iterations=1, eval_every=0)[0]
    plain = train("Hopper-v5", H=20, iterations=1, eval_every=0, shift=0.0)[0]
    assert plain.reward_mean - shifted.reward_mean == pytest.approx(shifted.timesteps / shifted.episodes)


# -- what must not matter --------------------------------------------------------------------------------------------


def bits(records: list[Record]) -> list[tuple[Any, ...]]:
    return [
        (r.timesteps, r.sigma_R, r.reward_mean, *(a.tobytes() for a in (r.state.M, r.policy.mu, r.policy.sigma)))
        for r in records
    ]


def test_evaluation_changes_nothing() -> None:
    """rl-baselines3-zoo#276: neither statistics nor random numbers."""
    without = bits(train(eval_every=0))
    assert bits(train(eval_every=1)) == without
    assert bits(train(eval_every=2, eval_episodes=9)) == without


@pytest.mark.parametrize("task", ["CartPole-v1", "Hopper-v1"])
def test_workers_do_not_matter(task: str) -> None:
    """1, 2 and 4 workers: the same bits, evaluations included."""
    settings: dict[str, Any] = {"N": 3, "b": 2, "H": 60, "iterations": 3, "eval_every": 2, "eval_episodes": 3}
    runs = [train(task, workers=workers, **settings) for workers in (1, 2, 4)]
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])
    assert len({tuple(run[1].evaluation.rewards.tolist()) for run in runs if run[1].evaluation}) == 1


def test_numpys_global_state_does_not_matter() -> None:
    np.random.seed(1)  # noqa: NPY002
    first = bits(train())
    np.random.seed(2)  # noqa: NPY002
    second = []
    for record in ars.train(DRIFT, **SMALL, iterations=6, seed=5):
        np.random.random_sample(3)  # noqa: NPY002
        second.append(record)
    assert bits(second) == first


def test_two_trainings_side_by_side_do_not_matter() -> None:
    """No state is shared between them."""
    alone = bits(train())
    pairs = list(zip(ars.train(DRIFT, **SMALL, iterations=6, seed=5), ars.train(DRIFT, **SMALL, iterations=6, seed=6),
                     strict=True))  # fmt: skip
    assert bits([first for first, _ in pairs]) == alone


def test_seeds_do_matter() -> None:
    assert bits(train(seed=5)) != bits(train(seed=6))


def test_stopping_rules_decide_only_when_to_stop() -> None:
    assert bits(train(iterations=6))[:3] == bits(train(iterations=3))


def test_records_stay_what_they_were() -> None:
    """A list of records is a history, not many names of the last M."""
    records = train()
    assert len({record.state.M.tobytes() for record in records}) == 6
    assert len({record.policy.mu.tobytes() for record in records}) == 6


# -- evaluation and the saved policy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["V1", "V2"])
def test_the_evaluated_policy_is_the_saved_one(variant: str, tmp_path: Path) -> None:
    """The reference saves other statistics than it evaluated with: loading must give the recorded evaluation again,
    to the bit, from policy.npz and from best.npz."""
    records = train(variant=variant, b=6, eval_every=2, eval_episodes=7, out=tmp_path / "run")
    evaluated = {record.iteration: record.evaluation for record in records if record.evaluation}
    best = max(evaluated, key=lambda j: evaluated[j].rewards.mean())
    for file, j in (("policy.npz", 6), ("best.npz", best)):
        policy = LinearPolicy.load(tmp_path / "run" / file)
        batch = evaluation_batch(policy, episodes=7, H=1000, seed=5, j=j, stream=Stream.EVALUATION)
        again = training.evaluated(SerialExecutor(factory(DRIFT)).run(batch))
        assert again.rewards.tobytes() == evaluated[j].rewards.tobytes()
        assert again.steps.tolist() == evaluated[j].steps.tolist()
    assert policy.task["iteration"] == best
    assert policy.task["eval_mean"] == evaluated[best].rewards.mean()


def test_evaluations_have_random_numbers_of_their_own() -> None:
    """Not those of training, not the same at every evaluation, and the same in every run."""
    first, second = (record.evaluation for record in train(eval_every=3) if record.evaluation)
    assert first is not None
    assert second is not None
    assert set(first.rewards).isdisjoint(second.rewards)
    keys = {
        environment_seed(Key(5, stream, j, k, sign))
        for stream, sign in ((Stream.TRAINING, 1), (Stream.TRAINING, -1), (Stream.EVALUATION, 0), (Stream.TEST, 0))
        for j in range(7)
        for k in range(6)
    }
    assert len(keys) == 4 * 7 * 6


def test_an_evaluation_with_non_finite_rollouts_says_so() -> None:
    """Their number is shown, and the mean is of the others."""
    evaluation = train("small_envs:SometimesNan", eval_every=1, eval_episodes=30, iterations=1)[0].evaluation
    assert evaluation is not None
    assert 0 < evaluation.dropped < 30
    assert len(evaluation.rewards) == 30 - evaluation.dropped
    assert np.isfinite(evaluation.rewards).all()
    assert evaluation.summary()["episodes"] == 30


# -- divergence ------------------------------------------------------------------------------------------------------


def test_no_direction_left_stops_with_a_sentence() -> None:
    with pytest.raises(DivergedError, match=r"iteration 1 .* 6 directions .*nu \(now 0\.3\)"):
        train("small_envs:AlwaysNan")


def test_divergence_leaves_the_last_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three good iterations, then none: the folder has the three and can be resumed when the cause is gone."""
    cause = tmp_path / "cause"
    monkeypatch.setenv("NAN_LATER", str(cause))
    records = ars.train("small_envs:NanLater", **SMALL, iterations=6, seed=5, eval_every=0, out=tmp_path / "run")
    good = list(itertools.islice(records, 3))
    cause.touch()
    with pytest.raises(DivergedError, match="iteration 4"):
        next(records)
    with Run.open(tmp_path / "run") as run:
        assert run.state.j == 3
        assert run.state.M.tobytes() == good[-1].state.M.tobytes()
    cause.unlink()
    rest = list(ars.resume(tmp_path / "run", task="small_envs:NanLater"))
    assert bits([*good, *rest]) == bits(train(eval_every=0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("variant", ["BRS", "V2"])
def test_rewards_whose_squares_overflow_are_a_sentence(variant: str, tmp_path: Path) -> None:
    """Finite rewards of 1e200: sigma_R is not finite; not a traceback from writing the record."""
    with pytest.raises(DivergedError):
        train("small_envs:Huge", variant=variant, b=6, out=tmp_path / "run")


# -- stopping rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "value", "iterations"),
    [("iterations", 4, 4), ("episodes", 36, 3), ("episodes", 37, 4), ("minutes", 1e-9, 1), ("until", -1e9, 2)],
)
def test_each_stopping_rule(rule: str, value: float, iterations: int) -> None:
    """12 episodes an iteration; evaluations every second one."""
    assert len(train(**{"iterations": None, "eval_every": 2, rule: value})) == iterations


def test_stopping_by_timesteps() -> None:
    """After the first iteration that reaches them."""
    all_steps = [record.timesteps for record in train()]
    records = train(iterations=None, timesteps=all_steps[2])
    assert len(records) == 3
    assert len(train(iterations=None, timesteps=all_steps[2] + 1)) == 4


def test_without_a_rule_it_goes_on() -> None:
    records = ars.train(DRIFT, **SMALL, eval_every=0)
    assert len(list(itertools.islice(records, 30))) == 30
    records.close()


# -- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "kind", "words"),
    [
        ({"task": "Hoper-v5"}, TaskError, "Hopper-v5"),
        ({"task": "small_envs:nothing"}, TaskError, "nothing"),
        ({"alpha": 0.0}, SettingError, "alpha = 0"),
        ({"nu": -1.0}, SettingError, "nu = -1"),
        ({"nu": float("nan")}, SettingError, "nu = nan"),
        ({"N": 0, "b": 1}, SettingError, "N = 0"),
        ({"b": 7}, SettingError, "b = 7"),
        ({"variant": "V2", "b": 3}, SettingError, "b = 3"),
        ({"variant": "V4"}, SettingError, "V4"),
        ({"H": 0}, SettingError, "H = 0"),
        ({"seed": -1}, SettingError, "seed = -1"),
        ({"seed": 1.5}, SettingError, "seed = 1.5"),
        ({"eval_every": -1}, SettingError, "eval_every = -1"),
        ({"eval_episodes": 0}, SettingError, "eval_episodes = 0"),
        ({"workers": 0}, SettingError, "workers = 0"),
        ({"iterations": 0}, SettingError, "iterations = 0"),
        ({"minutes": -1}, SettingError, "minutes = -1"),
        ({"until": "high"}, SettingError, "until = 'high'"),
        ({"step_size": 0.1}, SettingError, "step_size"),
        ({"named": False}, SettingError, "named"),
    ],
)
def test_mistakes_raise_at_once_and_leave_nothing(
    mistake: dict[str, Any], kind: type[ArsError], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the call, not at the first record; and no folder that a corrected call would then be refused."""
    monkeypatch.chdir(tmp_path)
    settings = {"task": DRIFT, **SMALL, "iterations": 1, "out": tmp_path / "run", **mistake}
    with pytest.raises(kind, match=words):
        ars.train(settings.pop("task"), **settings)
    assert not list(tmp_path.rglob("config.json"))
    assert len(train(out=tmp_path / "run", iterations=1)) == 1


def test_an_unknown_rule_on_resume_is_a_sentence(tmp_path: Path) -> None:
    """`resume` takes stopping rules; a setting of the run cannot be changed."""
    train(out=tmp_path / "run")
    with pytest.raises(SettingError, match="alpha"):
        ars.resume(tmp_path / "run", task=DRIFT, alpha=0.1)


def test_out_that_is_a_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(FileError, match="file"):
            ars.train(DRIFT, **SMALL, iterations=1, out=out)
    assert (tmp_path / "file").read_text() == "mine"
