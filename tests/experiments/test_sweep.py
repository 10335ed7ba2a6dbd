"""The grid, and the choice of a point as table 1 makes it."""

from pathlib import Path

import pytest

from ars.errors import SettingError
from ars.experiments.run_specs import RunSpec
from ars.experiments.sweep import make_sweep, points, ranking, rollouts, table
from ars.presets import Preset, grid
from curve_maker import curve


def presets(task: str, variant: str, axes: list[str]) -> list[Preset]:
    """The points of a sweep over one seed."""
    specs = make_sweep(task, seeds=(1,), variant=variant, axes=axes).specs()
    return [Preset(**{name: getattr(spec.config.search, name) for name in Preset._fields}) for spec in specs]


def test_axes_span_the_grid() -> None:
    found = presets("Hopper-v1", "V2-t", ["alpha=0.01,0.02", "nu=0.02,0.03"])
    assert found == [Preset(a, n, 8, 4) for a in (0.01, 0.02) for n in (0.02, 0.03)]
    assert presets("Hopper-v1", "V2", ["N=4,16"]) == [Preset(0.02, 0.02, 4, 4), Preset(0.02, 0.02, 16, 16)]
    assert presets("Hopper-v1", "V2-t", ["N=2,16"]) == [Preset(0.01, 0.025, 2, 2), Preset(0.01, 0.025, 16, 4)]
    assert presets("Swimmer-v1", "V1", ["paper"]) == grid("Swimmer")
    assert all(point.b == point.N for point in presets("Hopper-v1", "V2", ["paper"]))


def test_a_grid_may_vary_what_all_searches_share() -> None:
    """A robot that stands still at shift 0 may walk at 0.5; each point has a name of its own."""
    found = make_sweep("Hopper-v1", seeds=(1, 2), axes=["shift=0,0.5", "H=500"], N=4).specs()
    assert [(spec.config.shift, spec.config.H, spec.config.seed) for spec in found] == [
        (0.0, 500, 1), (0.5, 500, 1), (0.0, 500, 2), (0.5, 500, 2),
    ]  # fmt: skip
    assert len({spec.name for spec in found}) == 4
    assert found[0].name == "Hopper-v1-V2-alpha0.01-nu0.025-N4-b4-H500-shift0.0-seed1"


def test_settings_that_names_leave_out_tell_points_apart_where_they_vary() -> None:
    made = make_sweep("Swimmer-v5", seeds=(1, 2), axes=["stride=0.5,1.5"], search="csa", N=3, episodes=60, threshold=9)
    assert len({spec.name for spec in made.specs()}) == 4
    assert [(row.point["stride"], row.seeds) for row in ranking([], 9.0, made.specs())] == [(0.5, 2), (1.5, 2)]
    fixed = make_sweep("Swimmer-v5", seeds=(1,), search="csa", stride=0.5, N=3, episodes=60, threshold=9).specs()
    assert "stride" not in fixed[0].name  # as before


@pytest.mark.parametrize(
    "axes", [["alfa=1"], ["alpha"], ["alpha="], ["alpha=x"], ["N=1.5"], ["nu=1", "nu=2"], ["paper", "nu=1"]]
)
def test_bad_axes_are_one_sentence(axes: list[str]) -> None:
    with pytest.raises(SettingError, match="grid = "):
        points(axes, task="Hopper-v1", variant="V2-t")


def grid_of(*alphas: float) -> list[RunSpec]:
    return make_sweep("Hopper-v1", seeds=(1, 2), axes=[f"alpha={','.join(map(str, alphas))}"]).specs()


def test_the_point_with_the_least_mean_episodes_is_chosen() -> None:
    slow = [curve([0, 0, 3200], seed=s, alpha=0.1) for s in (1, 2)]  # 480
    mixed = [curve([3200], seed=1, alpha=0.2), curve([0, 3200], seed=2, alpha=0.2)]  # 160, 320: mean 240
    lucky = [curve([3200], seed=1, alpha=0.3), curve([0], seed=2, alpha=0.3)]  # one never arrives
    rows = ranking([*slow, *lucky, *mixed], 3120, grid_of(0.1, 0.2, 0.3))
    assert [row.point["alpha"] for row in rows] == [0.2, 0.1, 0.3]
    assert (rows[0].mean_episodes, rows[0].reached, rows[-1].reached) == (240, 2, 1)
    assert table(rows).splitlines()[-1] == "0.3,0.025,8,4,2,1,never,1600.00"


def test_rollouts_of_tuning_are_counted() -> None:
    assert rollouts([curve([1, 2]), curve([1], eval_episodes=10)]) == (320 + 160, 200 + 10)


def test_final_seeds_are_others(tmp_path: Path) -> None:
    tuning = make_sweep("Hopper-v1", seeds=(1, 2), axes=["alpha=0.1,0.2"], out=tmp_path)
    assert len(tuning.specs()) == 4
    chosen = ranking([], None, tuning.specs())[1]
    final = tuning.final(chosen, (2, 3, 4))
    assert [(spec.config.search.alpha, spec.config.seed) for spec in final.specs()] == [(0.2, 3), (0.2, 4)]


def test_a_task_without_a_cap_or_threshold_needs_them() -> None:
    with pytest.raises(SettingError, match="--episodes"):
        make_sweep("CartPole-v1", seeds=(1,))
    with pytest.raises(SettingError, match="--threshold"):
        make_sweep("CartPole-v1", seeds=(1,), episodes=10, until_threshold=True)


def test_a_missing_run_does_not_flatter_its_point() -> None:
    lucky, whole = [curve([3200], seed=1, alpha=0.1)], [curve([0, 3200], seed=s, alpha=0.2) for s in (1, 2)]
    rows = ranking([*lucky, *whole], 3120, grid_of(0.1, 0.2))
    assert [row.point["alpha"] for row in rows] == [0.2, 0.1]
    assert rows[1].mean_episodes == float("inf")


@pytest.mark.parametrize(
    ("axes", "settings", "match"),
    [
        (["N=0"], {}, "N = 0"),
        (["b=99"], {}, "b = 99"),
        (["alpha=nan"], {}, "alpha"),
        ([], {"eval_episodes": 0}, "eval_episodes"),
        ([], {"episodes": 100}, "first evaluation"),
        (["b=2"], {"variant": "V2"}, "b"),
    ],
)
def test_mistakes_are_said_before_anything_runs(axes: list[str], settings: dict, match: str) -> None:
    with pytest.raises(SettingError, match=match):
        make_sweep("Hopper-v1", seeds=(1,), axes=axes, **settings)


def test_the_chosen_point_is_exactly_the_one_that_was_tuned() -> None:
    tuning = make_sweep("Hopper-v1", seeds=(1,), axes=["alpha=0.012345678,0.012345679"])
    first, second = tuning.specs()
    assert first.name != second.name
    chosen = ranking([curve([3200], seed=1, alpha=0.012345679)], 3120, tuning.specs())[0]
    assert tuning.final(chosen, (2,)).specs()[0].config.search == second.config.search


def test_a_grid_over_N_and_b_has_the_combinations_that_there_are() -> None:
    found = presets("Hopper-v1", "V2-t", ["N=2,4", "b=1,4"])
    assert [(point.N, point.b) for point in found] == [(2, 1), (4, 1), (4, 4)]


def test_runs_that_went_further_do_not_change_the_answer(tmp_path: Path) -> None:
    asked = make_sweep("Hopper-v1", seeds=(1,), episodes=320, out=tmp_path, threshold=5.0)
    curve([1, 2, 9], seed=1).save(tmp_path / "curves" / "longer.json")
    [found], _ = asked.results()
    assert (found.episodes, found.best) == (320, 2.0)
    assert ranking([found], 5.0, asked.specs())[0].reached == 0


@pytest.mark.parametrize("threshold", [float("nan"), float("inf")])
def test_a_threshold_is_a_number(threshold: float) -> None:
    with pytest.raises(SettingError, match="threshold"):
        make_sweep("Hopper-v1", seeds=(1,), threshold=threshold)
