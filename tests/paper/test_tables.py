"""Tables from curves made by hand; every number is worked out in the test."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ars.curves import Curve
from ars.paper import figure1, figure3, figure4, table1, table2, table3, table4, table5, table6, table7
from ars.paper.artefact import Shown, Table
from curve_maker import curve

SEEDS = (237, 759, 959)
CAPS = {"Hopper-v1": 2000, "Swimmer-v1": 500}


def shown(curves: Sequence[Curve], *tasks: str, seeds: Sequence[int] = SEEDS, caps: Mapping[str, int] = CAPS) -> Shown:
    return Shown(curves, tasks or ["Hopper-v1"], seeds, caps)


def hopper(*rewards: list[float], **settings: object) -> list:
    return [curve(r, seed=s, **settings) for r, s in zip(rewards, SEEDS, strict=False)]


def cell(table: Table, row: str, column: str) -> str:
    found = next(cells for cells in table.rows if cells[0] == row)
    return found[list(table.columns).index(column)]


def test_table1_averages_over_the_seeds_and_shows_the_paper_beside() -> None:
    curves = hopper([0, 3200], [3120], [0, 0, 4000])  # 320, 160, 480 episodes
    table = table1.table(shown(curves))
    assert cell(table, "Hopper-v1", "V2-t") == "320 / 1973"
    assert cell(table, "Hopper-v1", "V2") == "– / 3013†"
    assert cell(table, "Hopper-v1", "TRPO-nn") == "10000"


def test_a_seed_that_never_arrives_leaves_no_mean() -> None:
    """A mean of those that arrived beside the paper's mean of all would flatter us."""
    curves = hopper([0, 0, 3200], [3119.9], [0, 4000])
    caps = {"Hopper-v1": 160}
    assert cell(table1.table(shown(curves, caps=caps)), "Hopper-v1", "V2-t") == "2 of 3: 320, 480 / 1973†"
    none = hopper([0], [0], [0])
    assert cell(table1.table(shown(none, caps=caps)), "Hopper-v1", "V2-t") == "0 of 3 / 1973†"


def test_what_the_paper_needed_more_episodes_for_than_our_cap_is_marked() -> None:
    table = table1.table(shown([], caps={"Hopper-v1": 3013}))
    assert cell(table, "Hopper-v1", "V1") == "– / 89493†"
    assert cell(table, "Hopper-v1", "V2") == "– / 3013"
    assert "Hopper-v1 3013" in table.notes[0]


def test_runs_under_way_and_missing_seeds_are_marked() -> None:
    curves = [curve([3200]), curve([10], seed=759)]
    caps = {"Hopper-v1": 8000}  # not spent: the second is under way, whatever ended it
    found = cell(table1.table(shown(curves, caps=caps)), "Hopper-v1", "V2-t")
    assert found == "1 of 1: 160; 1 under way / 1973"
    assert cell(table1.table(shown(curves[1:], caps=caps)), "Hopper-v1", "V2-t") == "1 under way / 1973"
    assert cell(table1.table(shown(curves[:1])), "Hopper-v1", "V2-t") == "160 (1 seed) / 1973"


def test_other_points_and_other_seeds_are_not_mixed_in() -> None:
    curves = [*hopper([3200], [3200], [3200]), curve([0], alpha=0.5), curve([0], seed=1)]
    assert cell(table1.table(shown(curves)), "Hopper-v1", "V2-t") == "160 / 1973"


def test_on_swimmer_the_t_variants_are_the_others() -> None:
    curves = [curve([400], task="Swimmer-v1", variant="V1", seed=s, every=20) for s in SEEDS]
    table = table1.table(shown(curves, "Swimmer-v1"))
    assert cell(table, "Swimmer-v1", "V1") == cell(table, "Swimmer-v1", "V1-t") == "20 / 100"


def test_tables_2_and_3_use_the_appendix_estimator() -> None:
    curves = hopper([100, 500, 900], [300, 700, 800], [200, 600, 700], every=2000, steps=250)  # 5e5 steps apart
    table = table2.table(shown(curves))
    assert [cell(table, "Hopper-v1", name) for name in ("timesteps", "ours", "within")] == ["1e6", "600", "600"]
    table = table3.table(shown(curves))  # 2e6 timesteps are not spent
    assert cell(table, "Hopper-v1", "ours") == "≥ 800"
    assert cell(table, "Hopper-v1", "SAC") == "≈3000"
    curves = hopper([100, 500, 900], [300, 700, 800], [200, 600, 700], every=2000, steps=300)  # 6e5, 1.2e6, 1.8e6
    table = table2.table(shown(curves))
    assert [cell(table, "Hopper-v1", name) for name in ("ours", "within")] == ["600", "200"]


def test_a_run_under_way_does_not_cut_the_others_short() -> None:
    settings = {"every": 2000, "steps": 250}
    curves = [curve([100, 500, 900], **settings), curve([50], seed=759, status="unfinished", **settings)]
    table = table2.table(shown(curves))
    assert [cell(table, "Hopper-v1", name) for name in ("ours", "within")] == ["500 (1 seed)"] * 2
    table = table2.table(shown(curves[1:]))
    assert cell(table, "Hopper-v1", "ours") == "–"


def test_table4_counts_timesteps() -> None:
    curves = hopper([3500], [0, 3500], [0, 0, 3500])
    table = table4.table(shown(curves))
    assert cell(table, "Hopper-v1", "ours") == "3.20e4"
    assert cell(table, "Hopper-v1", "ES") == "3.16e7"


def test_table5_is_the_best_of_all_runs() -> None:
    curves = [curve([5, 9]), curve([7], alpha=0.5), curve([99], task="Ant-v1")]
    curves += [curve([50], eval_episodes=10), curve([60], seed=4444)]  # few rollouts, another seed: not the paper's
    curves.append(replace(curve([70]), learner="another"))
    table = table5.table(shown(curves, "Hopper-v1", "Walker2d-v1"))
    assert cell(table, "Hopper-v1", "ours") == "9"
    assert cell(table, "Hopper-v1", "runs") == "2"
    assert cell(table, "Walker2d-v1", "ours") == "–"


def test_tables_6_and_7_by_hand() -> None:
    curves = [
        curve([6000.0 if i == last else 0.0 for i in range(1, 5)], task="Humanoid-v1", variant="V2", seed=s, every=600)
        for s, last in ((237, 1), (759, 2), (959, 3), (1, 9))
    ]  # 10, 20 and 30 minutes, and never
    seeds = (*SEEDS, 1)
    six, seven = (module.table(shown(curves, "Humanoid-v1", seeds=seeds)) for module in (table6, table7))
    each = "each: 10 min, 20 min, 30 min, > 40 min", "≤ 0.2 h, ≤ 0.3 h, ≤ 0.5 h, ≤ 0.7 h so far"
    assert list(six.rows[-1][-2:]) == list(each)
    assert list(seven.rows[-1][-4:]) == ["–"] * 4  # percentiles of four runs would be these runs
    done = "Seed 1: finished, 40 iterations, 2400 episodes, 2.40e5 training timesteps in 40 minutes"
    assert any(note.startswith(done) and "(100 a second)" in note for note in six.notes)
    assert six.rows[-1][0] == seven.rows[-1][0] == "ours, V2, 4 of 4 seeds"
    assert table6.table(shown([], "Humanoid-v1", seeds=seeds)).rows[-1] == ["ours, V2", "–", "–", "–", "–"]
    assert len(table7.table(shown([], "Humanoid-v1", seeds=seeds)).rows[-1]) == len(seven.columns)


def test_tables_6_and_7_of_many_seeds() -> None:
    curves = [
        curve([6000.0 if i == last else 0.0 for i in range(1, 9)], task="Humanoid-v1", variant="V2", seed=s, every=600)
        for s, last in enumerate((1, 2, 3, 4, 5, 9, 9, 9))
    ]  # 10 to 50 minutes, and thrice never
    six, seven = (module.table(shown(curves, "Humanoid-v1", seeds=range(8))) for module in (table6, table7))
    assert list(six.rows[-1][-2:]) == ["40 min", "≤ 0.7 h"]
    assert list(seven.rows[-1][-4:]) == ["10", "20", "40", "> 80"]


def test_a_run_under_way_may_change_any_percentile() -> None:
    """Arrived after 60, 61, … 66 minutes, and one that has run for 10: it may arrive next, or never."""
    curves = [
        curve([0.0] * i + [6000.0], task="Humanoid-v1", variant="V2", seed=s, every=60)
        for s, i in enumerate(range(59, 66))
    ]
    curves.append(curve([0.0] * 10, task="Humanoid-v1", variant="V2", seed=7, every=60))
    assert [one.reach(6000.0, "seconds") / 60 for one in curves[:2]] == [60, 61]
    assert table6.minutes(curves, (10, 25, 50, 75)) == [("> ", 10.0), ("> ", 60.0), ("> ", 62.0), ("> ", 64.0)]
    assert table6.minutes([*curves[:7], *curves[:2]], (10, 50)) == [("", 60.0), ("", 62.0)]


def test_the_growth_of_sigma_R() -> None:
    long, short = curve([0.0] * 31), curve([0.0] * 2, seed=759)  # sigma_R goes from 1 to 2
    rows = [list(row) for row in figure1.growth([long, short]).rows]
    assert rows[0] == ["Hopper-v1", "237", "310", "1.0", "2.0", "1.9", "2.0"]
    assert rows[1] == ["Hopper-v1", "759", "20", "1.2", "–", "–", "1.4"]


def test_figure_3_in_numbers() -> None:
    curves = [curve([3120], seed=s) for s in range(6)] + [curve([1560], seed=s) for s in (6, 7)]
    open_run, begun = curve([], seed=8), curve([], seed=0)  # the second again, by more rollouts: not instead
    curves[0] = curve([3120], seed=0, eval_episodes=10)
    table = figure3.numbers(shown([*curves, open_run, begun], seeds=range(10), caps={"Hopper-v1": 160}))
    assert cell(table, "Hopper-v1", "seeds") == "8 of 10, 1 under way"
    assert cell(table, "Hopper-v1", "success") == "75% [41%, 93%]"
    assert cell(table, "Hopper-v1", "the paper's") == "70%"
    assert cell(table, "Hopper-v1", "episodes, 75th") == "160"
    assert cell(table, "Hopper-v1", "episodes, 50th") == "160 [160, never]"
    few = figure3.numbers(shown(curves[:7], seeds=range(10), caps={"Hopper-v1": 160}))  # percentiles would be runs
    assert cell(few, "Hopper-v1", "success") == "6 of 7 [49%, 97%]"
    assert [cell(few, "Hopper-v1", f"episodes, {p}th") for p in (10, 25, 50, 75)] == ["–"] * 4


def test_improvement_and_sensitivity() -> None:
    curves = [*hopper([9], [8], [7]), *hopper([1], [2], [8], variant="BRS")]
    caps = {"Hopper-v1": 160}
    table = table1.improvement(shown(curves, caps=caps))
    assert cell(table, "Hopper-v1", "V2-t > BRS") == "0.83 (3·3)"
    table = table1.improvement(shown(curves, caps={"Hopper-v1": 320}))  # they are under way
    assert cell(table, "Hopper-v1", "V2-t > BRS") == "–"
    few = hopper([1], [2], [8], variant="BRS", eval_episodes=10)  # a best evaluation of few rollouts is more lucky
    assert cell(table1.improvement(shown([*curves[:3], *few], caps=caps)), "Hopper-v1", "V2-t > BRS") == "–"
    table = figure4.numbers({"Hopper-v1": [curve([3200]), curve([1], alpha=0.5)]}, {"Hopper-v1": 10}, caps)
    assert list(table.rows[0]) == ["Hopper-v1", "2", "2 of 10", "1 of 2 (50%)"]


def test_the_plane_of_alpha_and_nu() -> None:
    curves = [*hopper([3200], [0, 3200], [0]), curve([3200], alpha=0.02), curve([9], N=16)]
    rows = figure4.plane({"Hopper-v1": curves, "Ant-v1": []}, SEEDS, {"Hopper-v1": 160, "Ant-v1": 9}).rows
    assert list(map(list, rows)) == [
        ["Hopper-v1", "0.01", "0.025", "8", "4", "2 of 3: 160, 320"],
        ["Hopper-v1", "0.02", "0.025", "8", "4", "160 (1 seed)"],
    ]


def test_markdown_and_csv_hold_the_same_cells() -> None:
    table = Table("T", ["a", "b"], [["x", "1"], ["y", "2"]], ["note"])
    assert table.markdown() == "# T\n\n| a | b |\n|---|--:|\n| x | 1 |\n| y | 2 |\n\nnote\n"
    assert table.csv() == "a,b\nx,1\ny,2\n"


def test_a_second_curve_of_the_same_run_is_not_a_second_run() -> None:
    full = hopper([0, 3500], [0, 3500], [0, 3500])
    short = hopper([3200], [3200], [3200], eval_episodes=10)  # figure 4's runs of the same points end at the threshold
    for curves in ([*full, *short], [*short, *full]):
        assert cell(table1.table(shown(curves)), "Hopper-v1", "V2-t") == "320 / 1973"
        assert cell(table4.table(shown(curves)), "Hopper-v1", "ours") == "3.20e4"


def test_r_max_compares_the_same_iterations() -> None:
    whole, gap = curve([1, 2, 30], every=5000, steps=100), curve([1, 30], seed=759, every=5000, steps=100)
    gap.columns["at_iteration"][:] = [10, 30]  # no rollout of its second evaluation was finite
    table = table2.table(shown([whole, gap], seeds=(237, 759)))
    assert cell(table, "Hopper-v1", "ours") == "30"


def test_humanoid_v2_t_is_v2() -> None:
    assert table1.same_as("Humanoid-v1", "V2-t") == "V2"
    assert table1.same_as("Hopper-v1", "V2-t") == "V2-t"
