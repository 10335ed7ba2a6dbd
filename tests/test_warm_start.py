"""Training that starts from a policy: what it starts with, by hand, and that nothing else changes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ars
from ars.errors import ArsError, SettingError
from ars.policy import LinearPolicy
from ars.records import State
from ars.searches.ars import ARS
from ars.warm_start import warm_start_of
from batches import paper_config

DRIFT = "small_envs:Drift"
SMALL: dict[str, Any] = {"N": 2, "eval_every": 0, "seed": 5, "alpha": 0.1, "nu": 0.3}


def policy(mu: Any = (0.5, -1.0, 7.0), sigma: Any = (2.0, 0.5, np.inf)) -> LinearPolicy:
    return LinearPolicy(np.arange(6.0).reshape(2, 3) / 10, np.array(mu), np.array(sigma), {"name": DRIFT})


def first(start: Any, **settings: Any) -> Any:
    """The state before the first update, as the first rollouts see it: by an executor that only looks."""

    class Looks:
        batch: Any = None

        def run(self, batch: Any) -> Any:
            self.batch = batch
            raise KeyboardInterrupt

        def close(self) -> None:
            raise AssertionError("an executor of the caller's is the caller's to close")

    looks = Looks()
    with pytest.raises(KeyboardInterrupt):
        list(ars.train(DRIFT, start=start, executor=looks, iterations=1, **{**SMALL, **settings}))
    return looks.batch


def test_statistics_are_kept_as_a_prior() -> None:
    """The first iteration runs the policy itself; an ignored coordinate stays ignored."""
    batch = first(policy(), variant="V2", start_weight=1000)
    np.testing.assert_array_equal(batch.policy.M, policy().M)
    np.testing.assert_allclose(batch.policy.mu, policy().mu, rtol=1e-14)
    np.testing.assert_allclose(batch.policy.sigma, policy().sigma, rtol=1e-14)
    shipped = ars.LinearPolicy.load(Path(ars.__file__).parent / "policies" / "Humanoid-v1.npz")
    config, state = paper_config("V2", H=1, shift=0.0), State.initial(ARS(), 17, 376)
    kept = warm_start_of(shipped, None, "x").apply(config, state).policy(normalised=True, task={})
    np.testing.assert_array_equal(kept.mu, shipped.mu)  # with the default weight, a power of two, to the bit
    np.testing.assert_array_equal(kept.sigma, shipped.sigma)


def test_the_weight_is_a_number_of_states() -> None:
    """By hand: 100 states of the policy's mean, and those of the first iteration."""
    record = next(iter(ars.train(DRIFT, start=policy(), start_weight=100, variant="V2", iterations=1, **SMALL)))
    fresh = record.timesteps
    assert record.state.moments.count == 100 + fresh
    seen = (record.state.moments.mean * (100 + fresh) - 100 * policy().mu) / fresh  # their own mean
    assert seen[2] == pytest.approx(7.0)
    assert abs(seen[0] - 0.5) > 1e-3


def test_fresh_statistics_start_at_nothing() -> None:
    batch = first(policy(), variant="V2", start_weight=0)
    assert batch.policy.mu.tolist() == [0.0] * 3
    assert batch.policy.sigma.tolist() == [1.0] * 3
    np.testing.assert_array_equal(batch.policy.M, policy().M)


def test_without_normalisation_the_weights_are_those_of_the_states() -> None:
    """V1 has no sigma: M / sigma acts the same; a mean it cannot subtract."""
    batch = first(policy(mu=np.zeros(3)), variant="V1")
    np.testing.assert_array_equal(batch.policy.M, policy().W)
    with pytest.raises(SettingError, match="subtracts a mean"):
        ars.train(DRIFT, start=policy(), variant="V1", **SMALL)


def test_the_configuration_keeps_the_hash_of_the_file_and_the_run_resumes(tmp_path: Path) -> None:
    file = tmp_path / "start.npz"
    policy().save(file)
    settings: dict[str, Any] = {**SMALL, "variant": "V2", "start": file}
    whole = list(ars.train(DRIFT, iterations=4, out=tmp_path / "whole", **settings))
    config = json.loads((tmp_path / "whole" / "config.json").read_text())["config"]
    assert config["start"] == f"{hashlib.sha256(file.read_bytes()).hexdigest()}:16384"
    list(ars.train(DRIFT, iterations=2, out=tmp_path / "half", **settings))
    file.unlink()  # the checkpoint has all that is needed
    rest = list(ars.resume(tmp_path / "half", task=DRIFT, iterations=4))
    assert rest[-1].policy.M.tobytes() == whole[-1].policy.M.tobytes()
    assert rest[-1].policy.sigma.tobytes() == whole[-1].policy.sigma.tobytes()
    (tmp_path / "half" / "checkpoint.npz").unlink()
    (tmp_path / "half" / "records.jsonl").unlink()
    with pytest.raises(ArsError, match="killed before it began"):  # M = 0 would be another run
        ars.resume(tmp_path / "half", task=DRIFT, iterations=4)


def test_by_name_by_folder_and_mistakes(tmp_path: Path) -> None:
    """What `ars evaluate` takes."""
    record = next(iter(ars.train("Swimmer-v5", start="Swimmer-v1", iterations=1, N=1, H=50, eval_every=0)))
    assert record.policy.M.any()
    list(ars.train(DRIFT, iterations=1, out=tmp_path / "run", **SMALL))
    assert next(iter(ars.train(DRIFT, start=tmp_path / "run", iterations=1, **SMALL))).iteration == 1
    for settings, words in (
        ({"start": "Hopper-v1"}, r"3 × 11, and small_envs:Drift needs 2 × 3"),
        ({"start": tmp_path / "nothing.npz"}, "no file"),
        ({"start_weight": 5}, "needs a policy to start from"),
        ({"start": policy(), "start_weight": -1}, "start_weight = -1"),
        ({"start": policy(), "start_weight": 0.5}, "start_weight = 0.5"),
    ):
        with pytest.raises(ArsError, match=words):
            ars.train(DRIFT, iterations=1, out=tmp_path / "never", **SMALL, **settings)
    assert not (tmp_path / "never").exists()


def test_statistics_too_large_to_count_are_refused() -> None:
    with pytest.raises(SettingError, match="too large a sigma"):
        ars.train(DRIFT, start=policy(sigma=(1e200, 1.0, 1.0)), variant="V2", **SMALL)
