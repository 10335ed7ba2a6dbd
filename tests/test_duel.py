"""Duels: when a fresh start begins and ends, which one goes on, and that nothing else of a run depends on it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ars
from ars.ask_tell import AskTell
from ars.config import Config
from ars.duel import after_duel, begins, continued, duel_age, in_duel, next_score
from ars.errors import FileError, SettingError
from ars.files import read_npz, write_npz
from ars.notes import History
from ars.page.report import facts, report_data
from ars.presets import make_config
from ars.progress import duel_text
from ars.records import Age, State, parse_line
from ars.run_files import read_records, read_run
from ars.searches import initial_params
from ars.training import training_batch

TASK = "HalfCheetah-v1"  # whose episodes nothing ends: each iteration has 2 · 2 rollouts of 20 steps, 80 timesteps
SMALL = {"search": "csa", "N": 2, "H": 20, "duel": 8, "least_timesteps": 0, "seed": 3, "workers": 1, "average": 3}
QUIET = {**SMALL, "eval_every": 0}


def config_of(duel: int = 8) -> Config:
    return make_config(TASK, search="csa", H=20, shift=0.0, duel=duel)


def state_of(timesteps: int, score: float, **more: object) -> State:
    start = State.initial(config_of().search, 6, 17)
    return replace(
        start, j=timesteps // 80, timesteps=timesteps, age=Age(timesteps // 80, timesteps), score=score, **more
    )


def test_the_ages_of_duels_by_hand() -> None:
    """8 whole episodes of 20 steps are 160 timesteps, and each duel is at three times the age of the one before."""
    assert [duel_age(config_of(), duels) for duels in range(4)] == [160, 480, 1440, 4320]


def test_the_score_by_hand() -> None:
    """A plain mean of 2, 4, 6, 8, 10 at first, then a fifth of each new return."""
    state = state_of(0, 0.0)
    for j, reward in enumerate((2.0, 4.0, 6.0, 8.0, 10.0)):
        state = replace(state, score=next_score(replace(state, age=Age(j, 0)), reward))
    assert state.score == pytest.approx(6.0)
    assert next_score(replace(state, age=Age(5, 0)), 11.0) == pytest.approx(7.0)


def test_a_fresh_start_begins_with_nothing_but_the_counts() -> None:
    config, state = config_of(), state_of(160, 5.0, episodes=8, average=np.ones((6, 17)), length=20.0, mu=np.ones(17))
    assert after_duel(config, state_of(80, 5.0)).waiting is None
    fresh = after_duel(config, state)
    assert fresh.waiting is state
    assert (fresh.j, fresh.episodes, fresh.timesteps, fresh.duels, fresh.age) == (2, 8, 160, 1, (0, 0))
    assert (fresh.average, fresh.mu, fresh.length, fresh.score) == (None, None, 0.0, 0.0)
    assert {name: array.tolist() for name, array in fresh.params.items()} == {
        name: array.tolist() for name, array in initial_params(config.search, (6, 17)).items()
    }
    assert (in_duel(fresh), begins(fresh), in_duel(state), begins(state)) == (1, True, None, False)


@pytest.mark.parametrize(("score", "fresh_wins"), [(5.1, True), (5.0, False), (-7.0, False)])
def test_the_better_goes_on_at_equal_age(score: float, fresh_wins: bool) -> None:
    """The fresh start has had no chance before it is as old; a draw is for the start that waits."""
    config, waiting = config_of(), state_of(160, 5.0)
    fresh = replace(after_duel(config, waiting), j=4, timesteps=320, episodes=16, score=score)
    young = replace(fresh, age=Age(1, 159))
    assert after_duel(config, young) is young
    after = after_duel(config, replace(fresh, age=Age(2, 160)))
    assert after.waiting is None
    assert (after.j, after.timesteps, after.episodes, after.duels) == (4, 320, 16, 1)
    assert after.score == (score if fresh_wins else 5.0)
    assert after.age == (2, 160)
    assert (after.params is waiting.params) is not fresh_wins
    assert after_duel(config, after) is after  # the next duel is at 480 timesteps of its age


def test_duels_in_a_run() -> None:
    """80 timesteps an iteration: the first duel in iterations 3 and 4, the second when the better one has had 480."""
    records = list(ars.train(TASK, **QUIET, iterations=14))
    assert [record.duel for record in records] == [None, None, 1, 1, *[None] * 4, *[2] * 6]
    assert [record.state.age.timesteps for record in records] == [
        80, 0, 80, 160, 240, 320, 400, 0, 80, 160, 240, 320, 400, 480
    ]  # fmt: skip
    assert "duel" not in records[1].to_dict()
    assert records[2].to_dict()["duel"] == 1
    assert [record.fresh_won is None for record in records] == [i not in (3, 13) for i in range(14)]
    plain = list(ars.train(TASK, **{**QUIET, "duel": 0}, iterations=4))
    assert plain[1].policy.to_bytes() == records[1].policy.to_bytes()  # the same bits up to the first duel
    assert {record.policy.M.tobytes() for record in records[1:3]} == {plain[1].policy.M.tobytes()}  # the one that waits
    scores = [np.mean([record.reward_mean for record in part]) for part in (records[:2], records[2:4])]
    kept = records[3].policy.M.tobytes() == plain[1].policy.M.tobytes()
    assert kept is bool(scores[0] >= scores[1]) is not records[3].fresh_won
    waited, fresh = records[12].state.waiting, records[13].state  # the second duel
    assert waited is not None
    assert records[13].fresh_won is (fresh.M.tobytes() != waited.M.tobytes())
    first, again = (record.reward_mean for record in (records[0], records[2]))
    assert first != again  # with new noise


@pytest.mark.parametrize("cut", range(1, 14))
def test_the_same_bits_after_a_resume_anywhere(tmp_path: Path, whole: list[ars.Record], cut: int) -> None:
    list(ars.train(TASK, **SMALL, iterations=cut, out=tmp_path / "run"))
    resumed = list(ars.resume(tmp_path / "run", iterations=14, workers=2))
    assert resumed[-1].policy.to_bytes() == whole[-1].policy.to_bytes()
    assert [record.reward_mean for record in resumed] == [record.reward_mean for record in whole[cut:]]
    assert [record.eval_mean for record in resumed] == [record.eval_mean for record in whole[cut:]]
    assert resumed[-1].state.score == whole[-1].state.score
    assert (resumed[-1].state.waiting is None) == (whole[-1].state.waiting is None)


@pytest.fixture(scope="module")
def whole() -> list[ars.Record]:
    return list(ars.train(TASK, **SMALL, iterations=14))


def test_no_evaluation_while_the_policy_does_not_change() -> None:
    records = list(ars.train(TASK, **{**SMALL, "eval_episodes": 1, "H": 1000, "duel": 2}, iterations=9))
    evaluated = [record.iteration for record in records if record.evaluation]
    inside = [
        record.iteration for record in records if record.duel and record.state.waiting and not begins(record.state)
    ]
    assert inside
    assert not set(inside) & set(evaluated)
    assert len(evaluated) > 1


def test_told_rewards_have_the_same_duels(tmp_path: Path) -> None:
    """A run that is told its rewards counts duels as any other."""
    settings = {name: value for name, value in QUIET.items() if name != "workers"}
    with AskTell.create(tmp_path / "told", TASK, **settings) as run:
        for _ in range(5):
            results = [
                {"key": c.key, "reward": float(c.seed % 97), "steps": 20, "states": np.zeros((20, 17))}
                for c in run.ask()
            ]
            run.tell(results)
    rows = read_records(tmp_path / "told" / "records.jsonl")
    assert [row.get("duel") for row in rows] == [None, None, 1, 1, None]
    assert [type(row.get("fresh_won")) for row in rows] == [type(None), type(None), type(None), bool, type(None)]


def test_the_outcome_is_in_the_records_the_progress_and_the_report(tmp_path: Path) -> None:
    [*_, young, ended] = ars.train(TASK, **SMALL, iterations=4, out=tmp_path / "run")
    assert duel_text(young) == "fresh start 1"
    assert duel_text(ended).startswith("fresh start 1 was")
    assert ("better and goes on" in duel_text(ended)) is ended.fresh_won
    run = read_run(tmp_path / "run")
    assert dict(facts(run))["fresh starts tried, better"] == f"1, {int(bool(ended.fresh_won))}"
    young_run = replace(run, records=run.records[:2])
    both = report_data([young_run, run], task=None, seconds=0)["runs"]
    assert [what for what, _ in both[0]["facts"]] == [what for what, _ in both[1]["facts"]]  # columns of one table
    assert dict(both[0]["facts"])["fresh starts tried, better"] == "–"
    line = (tmp_path / "run" / "records.jsonl").read_text().splitlines()[-1]
    assert parse_line(line)["fresh_won"] is ended.fresh_won
    with pytest.raises(ValueError, match="neither true nor false"):
        parse_line(line.replace(f'"fresh_won": {str(ended.fresh_won).lower()}', '"fresh_won": 1'))


def test_a_damaged_duel_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    list(ars.train(TASK, **QUIET, iterations=3, out=out))
    checkpoint = out / "checkpoint.npz"
    arrays = dict(np.load(checkpoint, allow_pickle=False))
    assert "waiting.param.M" in arrays
    for name, damage in (
        ("duel", np.array([99, 80, 1])),
        ("duel", np.array([1, 80, -1])),
        ("duel", np.array([1, 80])),
        ("waiting.score", np.array(np.nan)),
        ("waiting.param.M", np.zeros((2, 2))),
        ("waiting.mean", np.full(17, np.inf)),
    ):
        write_npz(checkpoint, {**arrays, name: damage})
        with pytest.raises(FileError, match="is damaged"):
            list(ars.resume(out, iterations=4, workers=1))
    write_npz(checkpoint, {name: array for name, array in arrays.items() if name != "waiting.mean"})
    with pytest.raises(FileError, match="damaged"):
        list(ars.resume(out, iterations=4, workers=1))
    write_npz(checkpoint, arrays)
    assert read_npz(checkpoint, tuple(arrays))["duel"].tolist() == [1, 80, 1]
    assert len(list(ars.resume(out, iterations=4, workers=1))) == 1


def test_where_duels_are_on() -> None:
    """With csa on the paper's tasks; not with its settings for others, in networks, warm starts or other searches."""
    assert config_of().duel == 8
    assert make_config(TASK, search="csa", H=1000, shift=0.0).duel == 300
    assert make_config(TASK, H=1000, shift=0.0).duel == 0
    assert make_config(TASK, search="es", H=1000, shift=0.0).duel == 0
    assert make_config(TASK, search="csa", H=1000, shift=0.0, hidden="4").duel == 0
    assert make_config("CartPole-v1", H=500, shift=0.0, shape=(1, 4)).duel == 0
    assert "duel" not in make_config(TASK, search="csa", H=1000, shift=0.0, duel=0).to_dict()  # older files stay
    with pytest.raises(SettingError, match="duel is for linear policies"):
        make_config(TASK, search="csa", H=1000, shift=0.0, hidden="4", duel=5)
    with pytest.raises(SettingError, match="give duel = 0"):
        make_config(TASK, search="csa", H=1000, shift=0.0, start="0:1", duel=5)


def test_counts_come_from_the_run() -> None:
    run, start = state_of(320, 1.0, duels=1), state_of(160, 2.0)
    after = continued(start, run)
    assert (after.j, after.timesteps, after.duels, after.age, after.score) == (4, 320, 1, (2, 160), 2.0)


def test_notes_do_not_take_a_fresh_start_for_a_symptom() -> None:
    history = History(config_of(), {"survival_bonus": 0.0})
    row = {"iteration": 1, "reward_mean": 1.0, "reward_max": 2.0, "length_mean": 20.0}
    history.add(row)
    history.add({**row, "duel": 1})
    assert len(history.recent) == 1


def test_a_fresh_start_gathers_states_in_its_first_iteration() -> None:
    """As every run does, whatever `stats_every` is: its iterations are counted from its own beginning."""
    config = make_config(TASK, search="csa", N=2, H=20, shift=0.0, duel=8, stats_every=5, steady=False)
    state = replace(state_of(160, 5.0), average=None)
    fresh = after_duel(config, state)
    assert (fresh.j, fresh.age.j) == (2, 0)
    assert [training_batch(config, one).gather for one in (fresh, state)] == [True, False]
