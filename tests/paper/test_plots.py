"""The figures are drawn, hold what they should, and are the same for the same curves."""

from collections.abc import Callable

import pytest

from ars.paper import plots
from curve_maker import curve

HOPPERS = [curve([0, 500 * k, 3200], seed=k) for k in range(8)]
FIGURES: dict[str, Callable[[str], bytes]] = {
    "sigma_R": lambda kind: plots.sigma_R(HOPPERS[:1], kind),
    "three seeds": lambda kind: plots.three_seeds({"Hopper-v1": {"V2-t": HOPPERS, "V1": []}}, kind),
    "percentiles": lambda kind: plots.percentiles(
        {"Hopper-v1": HOPPERS}, {"Hopper-v1": 100}, {"Hopper-v1": 8000}, kind, what="seeds"
    ),
    "profiles": lambda kind: plots.profiles({"Hopper-v1": HOPPERS}, {"Hopper-v1": 8000}, kind),
    "nothing": lambda kind: plots.three_seeds({"Hopper-v1": {}}, kind),
    "few": lambda kind: plots.percentiles(
        {"Hopper-v1": HOPPERS[:3], "Ant-v1": []}, {"Hopper-v1": 3}, {"Hopper-v1": 8000, "Ant-v1": 9}, kind, what="runs"
    ),
    "no finished runs": lambda kind: plots.percentiles({"Ant-v1": []}, {}, {"Ant-v1": 9}, kind, what="seeds"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_twice(name: str) -> None:
    assert FIGURES[name]("svg") == FIGURES[name]("svg")
    assert FIGURES[name]("png").startswith(b"\x89PNG")


def test_a_figure_says_what_it_shows() -> None:
    text = FIGURES["percentiles"]("svg").decode()
    assert "8 of 100 seeds, 100% reach 3120" in text
    assert "25–75%" in text
    assert "V2-t, 8 seeds" in FIGURES["three seeds"]("svg").decode()
    assert "no runs yet" in FIGURES["nothing"]("svg").decode()
    few = FIGURES["few"]("svg").decode()  # percentiles of three runs would be these runs
    assert "each run" in few
    assert "3 runs, 3 reach 3120" in few
    assert "25–75%" not in few
    assert "No finished runs yet: Ant-v1" in few
    assert "no finished runs yet" in FIGURES["no finished runs"]("svg").decode()


def test_a_run_that_diverged_leaves_the_others_room() -> None:
    wild = curve([0, -1e30, -1e35], variant="BRS", status="diverged: …")
    text = plots.three_seeds({"Hopper-v1": {"V2-t": HOPPERS, "BRS": [wild]}}, "svg").decode()
    assert "BRS: 1 seed diverged" in text
    assert ">1000<" in text.replace(" ", "")  # a tick of the axis
    text = plots.three_seeds({"Hopper-v1": {"BRS": [wild, curve([0, 1], variant="BRS", seed=1)]}}, "svg").decode()
    assert "BRS, 1 seed (1 more diverged)" in text


def test_a_run_under_way_does_not_cut_the_mean_of_the_others_short() -> None:
    begun = curve([0, 1], seed=9, status="unfinished")
    text = plots.three_seeds({"Hopper-v1": {"V2-t": [*HOPPERS, begun]}}, "svg").decode()
    assert "V2-t, 8 seeds (1 more under way)" in text
    assert ">400<" in text.replace(" ", "")  # the axis goes on to 480 episodes
    assert "V2-t, 1 seed (under way)" in plots.three_seeds({"Hopper-v1": {"V2-t": [begun]}}, "svg").decode()


def test_a_run_that_ended_at_the_threshold_and_one_that_went_on_look_alike() -> None:
    ended, went_on = curve([0, 3200]), curve([0, 3200, 100, 4000])
    at = plots.np.array([160.0, 320.0, 480.0, 640.0])
    for run in (ended, went_on):
        plots.np.testing.assert_array_equal(plots._staying(run, 3120.0, at), [0, 3120, 3120, 3120])
