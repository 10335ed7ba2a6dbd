"""Many runs in real processes: skipped when done, continued when not, and one failure ends one run only."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ars
from ars.curves import from_run, load
from ars.errors import FileError
from ars.experiments.cost import costs, remaining_cost
from ars.experiments.engine import Job, _keep_curve, _outcome, collect, run, run_all, share_done, to_do
from ars.experiments.run_specs import RunSpec, choose_curves, missing, run_spec
from curve_maker import curve
from specs import change, spec

PLAN = change(spec("Swimmer-v5", "V1", 0.01, 0.03, 1, 1, seed=5, episodes=40, eval_episodes=1), H=50)


def jobs(tmp_path: Path, *specs: RunSpec) -> list[Job]:
    return [Job(one, tmp_path / "runs", tmp_path / "results" / "runs") for one in specs]


def policy(folder: Path) -> np.ndarray:
    return ars.LinearPolicy.load(folder / "policy.npz").M


def test_runs_end_with_their_curves_and_one_failure_ends_one_run(tmp_path: Path) -> None:
    bad = change(PLAN, task="Nothing-v0")
    outcomes = {o.spec: o for o in run_all(jobs(tmp_path, PLAN, bad, change(PLAN, seed=6)), workers=2)}
    assert "Nothing-v0" in outcomes[bad].failure
    assert outcomes[bad].curve is None
    for seed in (5, 6):
        done = outcomes[change(PLAN, seed=seed)].curve
        assert done is not None
        assert (done.status, done.episodes, len(done.rewards)) == ("finished", 40, 2)


def test_a_run_is_the_same_as_train_and_is_skipped_once_done(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    assert run(job) == ""
    own = {"variant": "V1", "alpha": 0.01, "nu": 0.03, "N": 1, "b": 1, "seed": 5, "H": 50}
    *_, last = ars.train("Swimmer-v5", **own, episodes=40, eval_every=0)
    np.testing.assert_array_equal(policy(job.folder), last.policy.M)
    assert to_do([job]) == []
    assert to_do([replace(job, spec=change(PLAN, episodes=60))]) != []


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    long = change(PLAN, episodes=10**6)
    [job] = jobs(tmp_path, long)
    ended = run_all([job], workers=1, watch=lambda shares: shares[long] > 0 and os.kill(os.getpid(), signal.SIGUSR1))
    handler = signal.signal(signal.SIGUSR1, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        with pytest.raises(KeyboardInterrupt), closing(ended):
            next(ended)
    finally:
        signal.signal(signal.SIGUSR1, handler)
    there = load(job.file)  # what it had done is kept
    assert (there.status, 0 < there.episodes < 10**6) == ("unfinished", True)
    cap = there.episodes + 20
    assert run(replace(job, spec=change(long, episodes=cap))) == ""
    *_, last = ars.train("Swimmer-v5", **PLAN.settings(), episodes=cap)
    np.testing.assert_array_equal(policy(job.folder), last.policy.M)


def test_after_the_minutes_the_runs_are_saved_and_stop(tmp_path: Path) -> None:
    started = time.monotonic()
    [job] = jobs(tmp_path, change(PLAN, episodes=10**7))
    assert list(run_all([job], workers=1, minutes=0.15)) == []
    assert time.monotonic() - started < 60
    assert load(job.file).status == "unfinished"
    assert load(job.file).episodes > 0


def test_over_ray_the_curves_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    bad = change(PLAN, task="Nothing-v0")
    here, there = (jobs(tmp_path / where, PLAN, bad) for where in ("here", "there"))
    with subprocess.Popen(["sleep", "600"]) as ours:
        outcomes = {o.spec: o for o in run_all(there, workers=2, executor="ray")}
        with pytest.raises(subprocess.TimeoutExpired):  # the end of Ray is that of its own processes only
            ours.wait(0.5)
        ours.kill()
    run(here[0])
    assert "Nothing-v0" in outcomes[bad].failure
    np.testing.assert_array_equal(load(there[0].file).rewards, load(here[0].file).rewards)
    assert outcomes[PLAN].curve is not None


def test_a_run_that_diverged_is_a_result(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, change(PLAN, task="small_envs:AlwaysNan"))
    assert run(job) == ""
    done = load(job.file)
    assert done.status.startswith("diverged: ")
    assert to_do([job]) == []


def test_an_unfinished_run_kept_beside_the_results_goes_on(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    for _ in ars.train("Swimmer-v5", **PLAN.settings(), episodes=20, out=job.kept):
        pass
    assert run(job) == ""
    assert from_run(job.folder).episodes == 40
    assert from_run(job.kept).episodes == 20  # the kept one is not touched


def test_unfinished_runs_are_kept_until_they_are_finished(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    records = ars.train("Swimmer-v5", **PLAN.settings(), episodes=40, out=job.folder)
    next(records)
    records.close()  # interrupted after an iteration
    collect(job.runs, job.curves)
    assert {path.name for path in job.kept.iterdir()} >= {"config.json", "records.jsonl", "checkpoint.npz"}
    run(job)
    collect(job.runs, job.curves)
    assert not job.kept.exists()


def test_a_kept_run_is_not_replaced_by_one_that_is_not_as_far(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    for folder, iterations in ((job.kept, 6), (job.folder, 1)):
        records = ars.train("Swimmer-v5", **PLAN.settings(), episodes=40, out=folder)
        for _ in range(iterations):
            next(records)
        records.close()
    collect(job.runs, job.curves)
    assert from_run(job.kept).iterations == 6


def test_a_run_that_diverged_stays_so(tmp_path: Path) -> None:
    """Collected as a folder that is not at its end, it would be begun again for ever."""
    [job] = jobs(tmp_path, PLAN)
    records = ars.train("Swimmer-v5", **PLAN.settings(), episodes=40, out=job.folder)
    next(records)
    records.close()
    from_run(job.folder, status="diverged: …").save(job.file)
    collect(job.runs, job.curves)
    assert load(job.file).status == "diverged: …"
    assert not job.kept.exists()
    assert to_do([job]) == []


def test_run_folders_are_collected_into_small_files(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    for episodes in (20, 40):
        run(replace(job, spec=change(PLAN, episodes=episodes), curves=tmp_path / "elsewhere"))
        assert collect(job.runs, job.curves) == []
        assert load(job.file).episodes == episodes


def test_progress_is_read_from_the_records(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    assert share_done(job) == 0.0
    run(replace(job, spec=change(PLAN, episodes=20)))
    assert share_done(job) == 0.5


def test_a_long_curve_is_never_replaced_by_a_short_one(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    run(job)
    long = job.file.read_bytes()
    again = replace(job, runs=tmp_path / "elsewhere", spec=change(PLAN, episodes=20))  # as in a fresh clone
    run(again)
    assert job.file.read_bytes() == long


def test_a_folder_with_other_settings_is_neither_continued_nor_collected(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    for _ in ars.train("Swimmer-v5", **{**PLAN.settings(), "H": 10}, episodes=20, out=job.folder):
        pass
    assert "other settings" in run(job)
    (job.runs / "damaged").mkdir()
    (job.runs / "damaged" / "config.json").write_text("{")
    [problem] = collect(job.runs, job.curves)
    assert "damaged" in problem
    assert not PLAN.met_by(load(job.file))  # its curve is there, and is not taken for the plan's


def test_a_curve_of_the_same_name_by_other_settings_is_set_aside(tmp_path: Path) -> None:
    """csa's stride is not part of the name, so that a changed default finds the old curve, and here a longer one."""
    made = {
        stride: run_spec("Swimmer-v5", 1, search="csa", N=2, H=10, stride=stride, episodes=episodes, eval_episodes=1)
        for stride, episodes in ((1.0, 60), (1.5, 40))
    }
    assert made[1.0].name == made[1.5].name
    for stride, folder in ((1.0, "before"), (1.5, "after")):
        job = Job(made[stride], tmp_path / folder, tmp_path / "curves")
        outcome = _outcome(job, run(job))
        assert (outcome.failure, to_do([job])) == ("", [])
        assert outcome.curve is not None
        assert made[stride].met_by(outcome.curve)
    old = job.file.with_name(f"{job.file.name}.other")
    assert made[1.0].met_by(load(old))
    assert collect(tmp_path / "before", tmp_path / "curves") == []  # a stale folder displaces nothing
    assert made[1.5].met_by(load(job.file))
    again = Job(made[1.0], tmp_path / "again", tmp_path / "curves")  # and back: neither curve is lost
    assert _outcome(again, run(again)).failure == ""
    assert made[1.0].met_by(load(old))
    assert made[1.5].met_by(load(old.with_name(f"{old.name}1")))


def test_a_stale_run_does_no_harm_to_the_copy_of_another(tmp_path: Path) -> None:
    """A run under way beside a curve, and then a run folder, of the same name by other settings."""
    stale, mine = (
        run_spec("Swimmer-v5", 1, search="csa", N=2, H=10, stride=stride, episodes=episodes, eval_episodes=1)
        for stride, episodes in ((1.0, 60), (1.5, 10**6))
    )
    curves = tmp_path / "results" / "runs"
    before, job = Job(stale, tmp_path / "before", curves), Job(mine, tmp_path / "after", curves)
    assert run(before) == ""
    assert run(replace(job, spec=replace(mine, pause=200))) == ""  # left before its end
    shutil.copyfile(f"{job.file}.other", job.file)  # the stale curve is back, as by another command
    _keep_curve(job)
    assert load(job.file).identity == mine.identity  # and makes room
    assert collect(job.runs, job.curves) == []
    for runs in (before.runs, job.runs):
        assert collect(runs, job.curves) == []
        assert from_run(job.kept).identity == mine.identity


def test_a_goal_that_rounding_hides_was_reached(tmp_path: Path) -> None:
    """Curves have four decimals, and the run ended by more."""
    [job] = jobs(tmp_path, PLAN)
    assert run(job) == ""
    done = load(job.file)
    replace(done, columns={**done.columns, "mean": np.full(len(done.rewards), 99.3495)}).save(job.file)
    goal = change(PLAN, episodes=10**6, until=99.34952356)
    reached = replace(job, spec=goal)
    assert (_outcome(reached, "").failure, to_do([reached])) == ("", [])
    assert to_do([replace(job, spec=change(goal, until=99.3497))]) != []


def test_a_run_whose_file_is_that_of_another_has_failed(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    curve([1, 2]).save(job.file)
    outcome = _outcome(job, "")
    assert outcome.curve is None
    assert "is not the curve of this run" in outcome.failure


def test_runs_of_ones_own_environment_go_on(tmp_path: Path) -> None:
    mine = spec("small_envs:Drift", "V2", 0.02, 0.03, 1, 1, seed=1, episodes=20, eval_episodes=1)
    [job] = jobs(tmp_path, mine)
    assert run(job) == ""
    assert run(replace(job, spec=change(mine, episodes=40))) == ""
    assert load(job.file).episodes == 40


def test_a_run_is_asked_for_once_if_a_fuller_plan_includes_it() -> None:
    full = spec("Hopper-v1", "V2-t", 0.01, 0.025, 8, 4, 237, episodes=8000)
    part = change(full, eval_episodes=10, until=3120.0)
    assert missing([part, full], []) == [full]
    assert missing([part, change(full, seed=1)], []) == [part, change(full, seed=1)]


def test_a_finished_curve_is_preferred_to_a_fuller_one_under_way() -> None:
    wanted = spec("Hopper-v1", "V2-t", 0.01, 0.025, 8, 4, 237, episodes=320, eval_episodes=10)
    [chosen] = choose_curves([wanted], [curve([1]), curve([1, 2], eval_episodes=10)])
    assert chosen.episodes == 320


def test_which_curve_meets_a_plan() -> None:
    wanted = spec("Hopper-v1", "V2-t", 0.01, 0.025, 8, 4, 237, episodes=320)
    assert wanted.met_by(curve([1, 2]))
    assert not wanted.met_by(curve([1]))  # 160 episodes
    assert not wanted.met_by(curve([1, 2], eval_episodes=10))  # too few rollouts an evaluation
    assert not wanted.met_by(curve([1, 2], seed=1))
    assert change(wanted, until=5.0).met_by(curve([9]))  # arrived
    assert not wanted.met_by(curve([9]))
    assert wanted.met_by(curve([1], status="diverged: …"))
    assert missing([wanted, wanted, change(wanted, seed=1)], [curve([1, 2])]) == [change(wanted, seed=1)]
    assert choose_curves([wanted], [curve([1]), curve([1, 2])])[0].episodes == 320


def test_what_a_failed_run_has_spent_is_kept(tmp_path: Path) -> None:
    """It is part of the cost of tuning."""
    mine = spec("small_envs:RaisesLater", "V2", 0.02, 0.03, 1, 1, seed=1, episodes=400, eval_episodes=1)
    [job] = jobs(tmp_path, mine)
    [outcome] = run_all([job], workers=1)
    assert "it is tired" in outcome.failure
    kept = load(job.file)
    assert (kept.status, 0 < kept.episodes < 400) == ("unfinished", True)
    assert to_do([job]) == [job]


def test_a_process_that_ends_without_a_word_is_a_failure(tmp_path: Path) -> None:
    mine = spec("small_envs:Leaves", "V2", 0.02, 0.03, 1, 1, seed=1, episodes=400, eval_episodes=1)
    [outcome] = run_all(jobs(tmp_path, mine), workers=1)
    assert outcome.curve is None
    assert "the same command continues it" in outcome.failure


def test_the_cost_of_an_environment_is_measured_where_it_can_do_no_harm() -> None:
    plans = [
        spec(f"small_envs:{name}", "V2", 0.02, 0.03, 1, 1, seed=1, episodes=20, eval_episodes=1)
        for name in ("Leaves", "Drift")
    ]
    found = costs(plans)
    assert found[plans[0]] == 21.0  # a second an episode
    assert 0 < found[plans[1]] < 21.0


def test_what_a_run_under_way_has_done_is_not_to_be_paid_again() -> None:
    wanted = spec("Hopper-v1", "V2-t", 0.01, 0.025, 8, 4, 237, episodes=640)
    begun, other = curve([1.0], status="unfinished"), curve([1.0, 2.0], eval_episodes=10)  # 160; and another run folder
    assert remaining_cost({wanted: 100.0}, [begun, other]) == {wanted: 75.0}
    assert remaining_cost({wanted: 100.0}, []) == {wanted: 100.0}


def test_a_damaged_small_file_is_mended_from_the_run_folder(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    run(job)
    whole = job.file.read_bytes()
    job.file.write_bytes(whole[:100])
    assert to_do([job]) == [job]
    assert run(job) == ""
    assert job.file.read_bytes() == whole
    job.file.write_bytes(whole[:100])
    assert collect(job.runs, job.curves) == []
    assert job.file.read_bytes() == whole


@pytest.mark.parametrize("place", ["runs", "results"])
def test_folders_that_cannot_be_made_are_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / place).write_text("a file")
    with pytest.raises(FileError, match="Cannot create the folder"):
        list(run_all(jobs(tmp_path, PLAN), workers=1))


def test_a_damaged_copy_is_named(tmp_path: Path) -> None:
    [job] = jobs(tmp_path, PLAN)
    for _ in ars.train("Swimmer-v5", **PLAN.settings(), episodes=20, out=job.kept):
        pass
    (job.kept / "checkpoint.npz").write_bytes(b"no")
    assert f"remove {job.folder} to continue from {job.kept}" in run(job)


def test_a_cap_of_timesteps(tmp_path: Path) -> None:
    """A run may end by timesteps, by episodes, or by whichever comes first."""
    short = replace(change(PLAN, episodes=None), timesteps=600)
    assert (short.cap, short.stop.timesteps, short.stop.episodes) == (("timesteps", 600), 600, None)
    [job] = jobs(tmp_path, short)
    assert run(job) == ""
    done = load(job.file)
    assert (done.status, done.timesteps, done.episodes) == ("finished", 600, 12)
    assert (share_done(job), to_do([job])) == (1.0, [])
    longer = replace(short, timesteps=1200)
    assert to_do([replace(job, spec=longer)]) != []
    assert share_done(replace(job, spec=longer)) == 0.5
    assert longer.includes(short)
    assert not longer.includes(PLAN)  # its cap is of episodes
    assert replace(PLAN, episodes=None).includes(PLAN)
    later = replace(longer, pause=900)  # left for another time, not ended
    [job] = jobs(tmp_path, later)
    assert (later.cap, later.stop.timesteps, share_done(job)) == (("timesteps", 900), 1200, 2 / 3)
    assert run(job) == ""
    assert (load(job.file).status, load(job.file).timesteps, to_do([job])) == ("unfinished", 900, [])
    collect(job.runs, job.curves)
    assert job.kept.is_dir()  # and from there
    [job] = jobs(tmp_path, longer)
    assert run(job) == ""
    assert (load(job.file).status, load(job.file).timesteps) == ("finished", 1200)
    both = replace(short, episodes=10)
    assert both.met_by(done)
    cost = costs([short, both])  # by one measurement of speed
    assert cost[short] > cost[both] > 0
    assert remaining_cost({longer: 8.0}, [done]) == {longer: 4.0}
