"""The figures are drawn, hold what they should, and are the same for the same curves."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from ars.curves import Curve
from ars.paper import figure1, figure2, figure3
from ars.plotting import render
from curve_maker import curve

HOPPERS = [curve([0, 500 * k, 3200], seed=k) for k in range(8)]
VARIANTS = {"Hopper-v1": "V2-t", "Ant-v1": "V2-t"}


def percentiles(groups: dict[str, list[Curve]], wanted: dict[str, int], caps: dict[str, int], what: str) -> Figure:
    return figure3.plot(groups, wanted, caps, VARIANTS, what)


FIGURES: dict[str, Callable[[], Figure]] = {
    "sigma_R": lambda: figure1.plot(HOPPERS[:1]),
    "three seeds": lambda: figure2.plot({"Hopper-v1": {"V2-t": HOPPERS, "V1": []}}),
    "percentiles": lambda: percentiles({"Hopper-v1": HOPPERS}, {"Hopper-v1": 100}, {"Hopper-v1": 8000}, "seeds"),
    "profiles": lambda: figure3.plot_profiles({"Hopper-v1": HOPPERS}, {"Hopper-v1": 8000}),
    "nothing": lambda: figure2.plot({"Hopper-v1": {}}),
    "few": lambda: percentiles(
        {"Hopper-v1": HOPPERS[:3], "Ant-v1": []}, {"Hopper-v1": 3}, {"Hopper-v1": 8000, "Ant-v1": 9}, "runs"
    ),
    "no finished runs": lambda: percentiles({"Ant-v1": []}, {}, {"Ant-v1": 9}, "seeds"),
}


def text_of(make: Callable[[], Figure]) -> str:
    return render(make, "svg").decode()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_twice(name: str) -> None:
    assert render(FIGURES[name], "svg") == render(FIGURES[name], "svg")
    assert render(FIGURES[name], "png").startswith(b"\x89PNG")


def test_a_figure_says_what_it_shows() -> None:
    text = text_of(FIGURES["percentiles"])
    assert "Hopper-v1 (V2-t)" in text
    assert "8 of 100 seeds, 100% reach 3120" in text
    assert "25–75%" in text
    assert "V2-t, 8 seeds" in text_of(FIGURES["three seeds"])
    assert "no runs yet" in text_of(FIGURES["nothing"])
    few = text_of(FIGURES["few"])  # percentiles of three runs would be these runs
    assert "each run" in few
    assert "3 runs, 3 reach 3120" in few
    assert "25–75%" not in few
    assert "No finished runs yet: Ant-v1" in few
    assert "no finished runs yet" in text_of(FIGURES["no finished runs"])


def test_a_run_that_diverged_leaves_the_others_room() -> None:
    wild = curve([0, -1e30, -1e35], variant="BRS", status="diverged: …")
    text = text_of(lambda: figure2.plot({"Hopper-v1": {"V2-t": HOPPERS, "BRS": [wild]}}))
    assert "BRS: 1 seed diverged" in text
    assert ">1000<" in text.replace(" ", "")  # a tick of the axis
    text = text_of(lambda: figure2.plot({"Hopper-v1": {"BRS": [wild, curve([0, 1], variant="BRS", seed=1)]}}))
    assert "BRS, 1 seed (1 more diverged)" in text


def test_a_run_under_way_does_not_cut_the_mean_of_the_others_short() -> None:
    begun = curve([0, 1], seed=9, status="unfinished")
    text = text_of(lambda: figure2.plot({"Hopper-v1": {"V2-t": [*HOPPERS, begun]}}))
    assert "V2-t, 8 seeds (1 more under way)" in text
    assert ">400<" in text.replace(" ", "")  # the axis goes on to 480 episodes
    assert "V2-t, 1 seed (under way)" in text_of(lambda: figure2.plot({"Hopper-v1": {"V2-t": [begun]}}))


def test_a_run_that_ended_at_the_threshold_and_one_that_went_on_look_alike() -> None:
    ended, went_on = curve([0, 3200]), curve([0, 3200, 100, 4000])
    at = np.array([160.0, 320.0, 480.0, 640.0])
    for run in (ended, went_on):
        np.testing.assert_array_equal(figure3.up_to_threshold(run, 3120.0, at), [0, 3120, 3120, 3120])
