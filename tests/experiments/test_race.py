"""Raced seeds: rungs and ranks by hand, the same bits however it is run, and every timestep accounted for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

import ars
from ars.errors import FileError, SettingError
from ars.experiments.engine import Job, Outcome, _outcome, run, to_do
from ars.experiments.race import Race, make_race, mean_return, run_race, rungs, seeds_left, up_to
from ars.races import read_race
from ars.sessions import new_session
from ars.stopping import Stop

DRIFT = "small_envs:Drift"
QUICK = {"N": 2, "alpha": 0.1, "nu": 0.1, "eval_every": 1, "eval_episodes": 3}
SEEDS, BUDGET = (11, 12, 13, 14), 3600  # rungs of 300, 900 and 2100 timesteps


def here(jobs: Sequence[Job]) -> list[Outcome]:
    """Every run in this process, one after the other."""
    return [_outcome(job, run(job)) for job in to_do(jobs)]


def race(out: Path, task: str = DRIFT, **more: object) -> Race:
    return make_race(task, out=out, **{"seeds": SEEDS, "budget": BUDGET, **QUICK, **more})  # type: ignore[arg-type]


def policy(race: Race, seed: int) -> np.ndarray:
    return ars.LinearPolicy.load(race.run_folder(seed) / "policy.npz").M


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Race:
    made = race(tmp_path_factory.mktemp("races") / "one")
    assert run_race(made, here).file.winner in SEEDS
    return made


def test_rungs_by_hand() -> None:
    assert seeds_left(8) == [8, 4, 2, 1]
    assert rungs(8, 3200) == [100, 300, 700, 1500]  # B/32, 3B/32, 7B/32, 15B/32
    assert seeds_left(5) == [5, 2, 1]
    assert rungs(5, 90) == [6, 21, 51]  # 30 a round: 5 × 6, 2 × 15, 30
    assert rungs(2, 7) == [1, 5]  # 7/4, 7/4 + 7/2: rounded down only here
    for seeds in (2, 3, 7, 8, 100):
        counts, limits = seeds_left(seeds), rungs(seeds, 10**6)
        spent = sum(n * (t - s) for n, s, t in zip(counts, [0, *limits], limits, strict=False))
        assert 10**6 - 2 * seeds < spent <= 10**6


def test_returns_by_hand() -> None:
    records = [{"timesteps": 10 * i, "reward_mean": float(i)} for i in range(1, 31)]
    assert up_to(records, 100) == records[:10]
    assert up_to(records, 101) == records[:11]
    assert up_to(records, 1000) == records
    assert mean_return(up_to(records, 200), 200) == 19.5  # iterations 19 and 20 end after 180
    assert mean_return(up_to(records, 195), 195) == 19.0  # 18, 19 and 20 end after 175.5
    assert mean_return(records[:3], 200) == 3.0  # it ended early
    better = [{**record, "eval_mean": record["reward_mean"]} for record in records]
    assert up_to(better, 100, until=4.0) == better[:4]


def test_the_better_half_goes_on(raced: Race) -> None:
    """Each round as by single runs of `ars.train`; the budget is spent to less than one iteration."""
    file = read_race(raced.folder)
    assert file is not None
    racing, spent = set(SEEDS), {}
    limits = [*rungs(4, BUDGET)[:2], file.rounds[-1].timesteps]
    for rung, one, count in zip(limits, file.rounds, (2, 1, 1), strict=True):
        assert {standing.seed for standing in one.standings} == racing
        returns = {}
        for standing in one.standings:
            records = list(ars.train(DRIFT, **QUICK, seed=standing.seed, timesteps=rung, workers=1))
            late = [record.reward_mean for record in records if record.timesteps > 0.9 * rung]
            returns[standing.seed] = standing.mean_return
            assert standing.mean_return == pytest.approx(fmean(late), rel=1e-12)
            assert standing.timesteps == records[-1].timesteps
            spent[standing.seed] = standing.timesteps
        assert list(returns) == sorted(returns, key=lambda seed: -returns[seed])
        racing = set(list(returns)[:count])
        assert {standing.seed for standing in one.standings if standing.goes_on} == racing
    [winner] = racing
    assert file.winner == winner
    np.testing.assert_array_equal(policy(raced, winner), records[-1].policy.M)
    assert BUDGET <= sum(spent.values()) < BUDGET + 4 * 12


def test_ties_go_to_the_lower_seed(tmp_path: Path) -> None:
    flat = race(tmp_path, "small_envs:Flat", seeds=(9, 3, 5, 7), budget=900)
    file = run_race(flat, here).file
    assert file.winner == 3
    assert [standing.seed for standing in file.rounds[0].standings] == [3, 5, 7, 9]


def test_with_until_the_race_ends_when_a_seed_reaches_it(raced: Race, tmp_path: Path) -> None:
    first = read_race(raced.folder).rounds[0].standings[0]  # type: ignore[union-attr]
    until = -1000.0  # by the first evaluation of every seed
    made = race(tmp_path / "a", until=until)
    file = run_race(made, here).file
    fewest = min((standing.timesteps, standing.seed) for standing in file.rounds[0].standings)
    assert (len(file.rounds), file.winner) == (1, fewest[1])
    assert fewest[0] < first.timesteps
    never = race(tmp_path / "b", until=1e6)
    assert run_race(never, here).file.winner == read_race(raced.folder).winner  # type: ignore[union-attr]


def test_a_seed_that_diverges_does_not_win(tmp_path: Path) -> None:
    lost = run_race(race(tmp_path, "small_envs:AlwaysNan"), here).file
    assert (lost.winner, len(lost.rounds)) == (None, 1)
    assert lost.table()[1][0][1] == "diverged"


def test_a_race_with_a_failed_run_waits(raced: Race, tmp_path: Path) -> None:
    made = race(tmp_path)

    def without_one(jobs: Sequence[Job]) -> list[Outcome]:
        return [*here(jobs[:-1]), Outcome(jobs[-1].spec, None, "it broke.")]

    stopped = run_race(made, without_one)
    assert (stopped.file.rounds, stopped.file.winner) == ((), None)
    assert run_race(made, here).file == read_race(raced.folder)


def test_runs_that_went_further_change_nothing(raced: Race, tmp_path: Path) -> None:
    made = race(tmp_path)
    for seed in SEEDS[:2]:
        here([made.job(seed, 2000)])
    assert run_race(made, here).file == read_race(raced.folder)


def test_a_finished_race_is_never_lost(raced: Race, tmp_path: Path) -> None:
    """Its file stays while it is run again, even if that is stopped: the runs may have been deleted."""
    again = race(tmp_path / "again")
    finished = (raced.folder / "race.json").read_text()
    again.folder.mkdir()
    (again.folder / "race.json").write_text(finished)
    for rounds in (0, 1):
        left = iter(range(rounds))

        def some(jobs: Sequence[Job], left: Iterator[int] = left) -> list[Outcome]:
            return here(jobs) if next(left, None) is not None else []

        assert run_race(again, some).file.winner is None
        assert (again.folder / "race.json").read_text() == finished
    assert run_race(again, here).file.winner == run_race(raced, here).file.winner
    assert (again.folder / "race.json").read_text() == finished


def test_a_race_over_a_subset_of_the_observation(tmp_path: Path) -> None:
    """Names become indices, all of it becomes `all`, and settings are suggested for the matrix that is searched."""
    ant = race(tmp_path / "ant", "Ant-v1", observe="qpos,qvel")
    assert {spec.config.observe for spec in ant.specs.values()} == {"0-26"}
    whole = race(tmp_path / "whole", "CartPole-v1", observe="0-3", search="csa", N=3, alpha=None, nu=None)
    assert run_race(whole, here).file.winner in SEEDS
    assert {spec.config.observe for spec in whole.specs.values()} == {"all"}
    for wrong in ("", [0, 1]):
        with pytest.raises(SettingError, match=r"^observe = "):
            race(tmp_path / "wrong", "CartPole-v1", observe=wrong)
    default = dict.fromkeys(QUICK)
    suggested = race(tmp_path / "less", "Reacher-v5", observe="0-3", **default)
    trained = new_session("Reacher-v5", {"observe": "0-3", "duel": 0}, workers=1, stop=Stop())
    trained.close_executor()
    assert suggested.specs[11].config == replace(trained.config, seed=11)
    assert suggested.specs[11].config.search != race(tmp_path / "all", "Reacher-v5", **default).specs[11].config.search


def test_the_same_bits_from_two_workers_and_after_a_kill(raced: Race, tmp_path: Path) -> None:
    """The parent is killed in the second round; the same command ends as a race without processes did."""
    paths = [str(Path(ars.__file__).parents[1]), str(Path(__file__).parents[1])]
    flags = [word for name, value in QUICK.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "ars", "race", DRIFT, "--seed-list", ",".join(map(str, SEEDS)), "--budget",
               str(BUDGET), "--out", str(tmp_path / "race"), "--jobs", "2", *flags]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        ends = time.monotonic() + 60
        while first.poll() is None and time.monotonic() < ends:
            there = read_race(tmp_path / "race")
            if there is not None and there.rounds:
                break
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
    assert first.returncode == -signal.SIGKILL
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    ours = race(tmp_path / "race")
    assert read_race(ours.folder) == read_race(raced.folder)
    assert (ours.folder / "race.json").read_bytes() == (raced.folder / "race.json").read_bytes()
    for seed in SEEDS:
        for file in ("policy.npz", "best.npz"):
            assert (ours.run_folder(seed) / file).read_bytes() == (raced.run_folder(seed) / file).read_bytes()
    winner = read_race(raced.folder).winner  # type: ignore[union-attr]
    assert f"Seed {winner} won" in done.stdout
    assert f"ars report {ours.folder} --task {DRIFT}" in done.stdout


def test_over_ray_the_race_is_the_same(raced: Race, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The round of two seeds over Ray, the others here: each start of Ray takes seconds."""
    pytest.importorskip("ray")
    from ars.experiments.display import run_with_display

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))

    def over_ray(jobs: Sequence[Job]) -> list[Outcome]:
        return run_with_display(jobs, workers=2, executor="ray", quiet=True) if len(jobs) == 2 else here(jobs)

    assert run_race(race(tmp_path), over_ray).file == read_race(raced.folder)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"seeds": (1,)}, "seeds = 1 must be"),
        ({"seeds": (1, 1)}, "twice"),
        ({"budget": 11}, "budget = 11 must be a whole number from 12"),
        ({"until": float("nan")}, "until"),
        ({"until": 5.0, "eval_every": 0}, "eval_every = 0"),
        ({"N": 0}, "N = 0"),
        ({"step_size": 1}, "step_size"),
    ],
)
def test_mistakes_are_said_before_anything_runs(more: dict, match: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=match):
        race(tmp_path / "new", **more)
    assert not (tmp_path / "new").exists()


def test_another_race_in_the_same_folder(raced: Race) -> None:
    for name, more in {"budget": {"budget": 4000}, "seeds": {"seeds": (1, 2)}, "config": {"N": 3}}.items():
        with pytest.raises(SettingError, match=f"holds a race with another {name}"):
            race(raced.folder, **more)


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 9}', '{"format": 1, "rounds": [3], "winner": null}'])
def test_a_damaged_file_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "race.json").write_text(text)
    with pytest.raises(FileError, match=r"race\.json is damaged"):
        read_race(tmp_path)
