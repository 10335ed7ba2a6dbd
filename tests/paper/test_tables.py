"""Tables from curves made by hand; every number is worked out in the test."""

from ars.paper import tables
from ars.paper.targets import main_variant
from curve_maker import curve

SEEDS = (237, 759, 959)
CAPS = {"Hopper-v1": 2000, "Swimmer-v1": 500}


def hopper(*rewards: list[float], **settings: object) -> list:
    return [curve(r, seed=s, **settings) for r, s in zip(rewards, SEEDS, strict=False)]


def cell(table: tables.Table, row: str, column: str) -> str:
    found = next(cells for cells in table.rows if cells[0] == row)
    return found[list(table.columns).index(column)]


def test_table1_averages_over_the_seeds_and_shows_the_paper_beside() -> None:
    curves = hopper([0, 3200], [3120], [0, 0, 4000])  # 320, 160, 480 episodes
    table = tables.table1(curves, ["Hopper-v1"], SEEDS, CAPS)
    assert cell(table, "Hopper-v1", "V2-t") == "320 / 1973"
    assert cell(table, "Hopper-v1", "V2") == "– / 3013†"
    assert cell(table, "Hopper-v1", "TRPO-nn") == "10000"


def test_a_seed_that_never_arrives_leaves_no_mean() -> None:
    """A mean of those that arrived beside the paper's mean of all would flatter us."""
    curves = hopper([0, 0, 3200], [3119.9], [0, 4000])
    caps = {"Hopper-v1": 160}
    assert cell(tables.table1(curves, ["Hopper-v1"], SEEDS, caps), "Hopper-v1", "V2-t") == "2 of 3: 320, 480 / 1973†"
    none = hopper([0], [0], [0])
    assert cell(tables.table1(none, ["Hopper-v1"], SEEDS, caps), "Hopper-v1", "V2-t") == "0 of 3 / 1973†"


def test_what_the_paper_needed_more_episodes_for_than_our_cap_is_marked() -> None:
    table = tables.table1([], ["Hopper-v1"], SEEDS, {"Hopper-v1": 3013})
    assert cell(table, "Hopper-v1", "V1") == "– / 89493†"
    assert cell(table, "Hopper-v1", "V2") == "– / 3013"
    assert "Hopper-v1 3013" in table.notes[0]


def test_runs_under_way_and_missing_seeds_are_marked() -> None:
    curves = [curve([3200]), curve([10], seed=759)]
    caps = {"Hopper-v1": 8000}  # not spent: the second is under way, whatever ended it
    found = cell(tables.table1(curves, ["Hopper-v1"], SEEDS, caps), "Hopper-v1", "V2-t")
    assert found == "1 of 1: 160; 1 under way / 1973"
    assert cell(tables.table1(curves[1:], ["Hopper-v1"], SEEDS, caps), "Hopper-v1", "V2-t") == "1 under way / 1973"
    assert cell(tables.table1(curves[:1], ["Hopper-v1"], SEEDS, CAPS), "Hopper-v1", "V2-t") == "160 (1 seed) / 1973"


def test_other_points_and_other_seeds_are_not_mixed_in() -> None:
    curves = [*hopper([3200], [3200], [3200]), curve([0], alpha=0.5), curve([0], seed=1)]
    assert cell(tables.table1(curves, ["Hopper-v1"], SEEDS, CAPS), "Hopper-v1", "V2-t") == "160 / 1973"


def test_on_swimmer_the_t_variants_are_the_others() -> None:
    curves = [curve([400], task="Swimmer-v1", variant="V1", seed=s, every=20) for s in SEEDS]
    table = tables.table1(curves, ["Swimmer-v1"], SEEDS, CAPS)
    assert cell(table, "Swimmer-v1", "V1") == cell(table, "Swimmer-v1", "V1-t") == "20 / 100"


def test_tables_2_and_3_use_the_appendix_estimator() -> None:
    curves = hopper([100, 500, 900], [300, 700, 800], [200, 600, 700], every=2000, steps=250)  # 5e5 steps apart
    table = tables.table2(curves, ["Hopper-v1"], SEEDS, main_variant)
    assert [cell(table, "Hopper-v1", name) for name in ("timesteps", "ours", "within")] == ["1e6", "600", "600"]
    table = tables.table3(curves, ["Hopper-v1"], SEEDS, main_variant)  # 2e6 timesteps are not spent
    assert cell(table, "Hopper-v1", "ours") == "≥ 800"
    assert cell(table, "Hopper-v1", "SAC") == "≈3000"
    curves = hopper([100, 500, 900], [300, 700, 800], [200, 600, 700], every=2000, steps=300)  # 6e5, 1.2e6, 1.8e6
    table = tables.table2(curves, ["Hopper-v1"], SEEDS, main_variant)
    assert [cell(table, "Hopper-v1", name) for name in ("ours", "within")] == ["600", "200"]


def test_a_run_under_way_does_not_cut_the_others_short() -> None:
    settings = {"every": 2000, "steps": 250}
    curves = [curve([100, 500, 900], **settings), curve([50], seed=759, status="unfinished", **settings)]
    table = tables.table2(curves, ["Hopper-v1"], SEEDS, main_variant)
    assert [cell(table, "Hopper-v1", name) for name in ("ours", "within")] == ["500 (1 seed)"] * 2
    table = tables.table2(curves[1:], ["Hopper-v1"], SEEDS, main_variant)
    assert cell(table, "Hopper-v1", "ours") == "–"


def test_table4_counts_timesteps() -> None:
    curves = hopper([3500], [0, 3500], [0, 0, 3500])
    table = tables.table4(curves, ["Hopper-v1"], SEEDS, main_variant, CAPS)
    assert cell(table, "Hopper-v1", "ours") == "3.20e4"
    assert cell(table, "Hopper-v1", "ES") == "3.16e7"


def test_table5_is_the_best_of_all_runs() -> None:
    curves = [curve([5, 9]), curve([7], alpha=0.5), curve([99], task="Ant-v1")]
    curves += [curve([50], eval_episodes=10), curve([60], seed=4444)]  # few rollouts, another seed: not the paper's
    table = tables.table5(curves, ["Hopper-v1", "Walker2d-v1"], SEEDS)
    assert cell(table, "Hopper-v1", "ours") == "9"
    assert cell(table, "Hopper-v1", "runs") == "2"
    assert cell(table, "Walker2d-v1", "ours") == "–"


def test_tables_6_and_7_by_hand() -> None:
    curves = [
        curve([6000.0 if i == last else 0.0 for i in range(1, 5)], task="Humanoid-v1", variant="V2", seed=s, every=600)
        for s, last in ((237, 1), (759, 2), (959, 3), (1, 9))
    ]  # 10, 20 and 30 minutes, and never
    seeds = (*SEEDS, 1)
    six, seven = tables.table6(curves, "Humanoid-v1", seeds), tables.table7(curves, "Humanoid-v1", seeds)
    assert list(six.rows[-1][-2:]) == ["20 min", "≤ 0.3 h"]
    assert list(seven.rows[-1][-4:]) == ["10", "10", "20", "30"]
    done = "Seed 1: finished, 40 iterations, 2400 episodes, 2.40e5 training timesteps in 40 minutes"
    assert any(note.startswith(done) and "(100 a second)" in note for note in six.notes)
    assert six.rows[-1][0] == seven.rows[-1][0] == "ours, V2, 4 of 4 seeds"
    assert tables.table6([], "Humanoid-v1", seeds).rows[-1] == ["ours, V2", "–", "–", "–", "–"]
    assert len(tables.table7([], "Humanoid-v1", seeds).rows[-1]) == len(seven.columns)
    under_way = [curves[0], *(curve([0.0], task="Humanoid-v1", variant="V2", seed=s, every=2400) for s in SEEDS[1:])]
    assert tables.table6(under_way, "Humanoid-v1", SEEDS).rows[-1][-2:] == ["> 40 min", "≤ 0.7 h so far"]
    assert tables.table7(under_way, "Humanoid-v1", SEEDS).rows[-1][-4:] == ["10", "10", "> 40", "> 40"]


def test_figure_3_in_numbers() -> None:
    curves = [curve([3120], seed=s) for s in range(6)] + [curve([1560], seed=s) for s in (6, 7)]
    open_run, begun = curve([], seed=8), curve([], seed=0)  # the second again, by more rollouts: not instead
    curves[0] = curve([3120], seed=0, eval_episodes=10)
    table = tables.many_seeds([*curves, open_run, begun], ["Hopper-v1"], range(10), {"Hopper-v1": 160})
    assert cell(table, "Hopper-v1", "seeds") == "8 of 10, 1 under way"
    assert cell(table, "Hopper-v1", "success") == "75% [41%, 93%]"
    assert cell(table, "Hopper-v1", "the paper's") == "70%"
    assert cell(table, "Hopper-v1", "episodes, 75th") == "160"
    assert cell(table, "Hopper-v1", "IQM").startswith("1.00 [")


def test_improvement_and_sensitivity() -> None:
    curves = [*hopper([9], [8], [7]), *hopper([1], [2], [8], variant="BRS")]
    caps = {"Hopper-v1": 160}
    table = tables.improvement(curves, ["Hopper-v1"], SEEDS, caps)
    assert cell(table, "Hopper-v1", "V2-t > BRS") == "0.83 (3·3)"
    table = tables.improvement(curves, ["Hopper-v1"], SEEDS, {"Hopper-v1": 320})  # they are under way
    assert cell(table, "Hopper-v1", "V2-t > BRS") == "–"
    table = tables.sensitivity({"Hopper-v1": [curve([3200]), curve([1], alpha=0.5)]}, {"Hopper-v1": 10}, caps)
    assert list(table.rows[0]) == ["Hopper-v1", "2", "2 of 10", "1 of 2 (50%)"]


def test_the_plane_of_alpha_and_nu() -> None:
    curves = [*hopper([3200], [0, 3200], [0]), curve([3200], alpha=0.02), curve([9], N=16)]
    rows = tables.plane({"Hopper-v1": curves, "Ant-v1": []}, SEEDS, {"Hopper-v1": 160, "Ant-v1": 9}).rows
    assert list(map(list, rows)) == [
        ["Hopper-v1", "0.01", "0.025", "8", "4", "2 of 3: 160, 320"],
        ["Hopper-v1", "0.02", "0.025", "8", "4", "160 (1 seed)"],
    ]


def test_markdown_and_csv_hold_the_same_cells() -> None:
    table = tables.Table("T", ["a", "b"], [["x", "1"], ["y", "2"]], ["note"])
    assert table.markdown() == "# T\n\n| a | b |\n|---|--:|\n| x | 1 |\n| y | 2 |\n\nnote\n"
    assert table.csv() == "a,b\nx,1\ny,2\n"


def test_a_second_curve_of_the_same_run_is_not_a_second_run() -> None:
    full = hopper([0, 3500], [0, 3500], [0, 3500])
    short = hopper([3200], [3200], [3200], eval_episodes=10)  # figure 4's runs of the same points end at the threshold
    for curves in ([*full, *short], [*short, *full]):
        assert cell(tables.table1(curves, ["Hopper-v1"], SEEDS, CAPS), "Hopper-v1", "V2-t") == "320 / 1973"
        assert cell(tables.table4(curves, ["Hopper-v1"], SEEDS, main_variant, CAPS), "Hopper-v1", "ours") == "3.20e4"


def test_r_max_compares_the_same_iterations() -> None:
    whole, gap = curve([1, 2, 30], every=5000, steps=100), curve([1, 30], seed=759, every=5000, steps=100)
    gap.evaluations["iteration"][:] = [10, 30]  # no rollout of its second evaluation was finite
    table = tables.table2([whole, gap], ["Hopper-v1"], (237, 759), main_variant)
    assert cell(table, "Hopper-v1", "ours") == "30"


def test_humanoid_v2_t_is_v2() -> None:
    assert tables.same_as("Humanoid-v1", "V2-t") == "V2"
    assert tables.same_as("Hopper-v1", "V2-t") == "V2-t"
