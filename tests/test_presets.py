"""The paper's appendix A.2, table 1 and figure 3, typed again from the paper."""

from pathlib import Path
from typing import Any

import pytest

from ars import presets
from ars.config import Config
from ars.errors import SettingError
from ars.presets import (
    DEFAULT_PRESET,
    DEFAULT_VARIANT,
    GRIDS,
    Preset,
    default_variant,
    grid,
    make_config,
    preset,
    threshold,
)
from ars.searches.ars import ARS, VARIANTS
from ars.searches.csa import CSA
from ars.sessions import new_session
from ars.stopping import Stop
from tools import preset_trials

ROBOTS = ("Swimmer", "Hopper", "HalfCheetah", "Walker2d", "Ant", "Humanoid")

# alpha, nu, N
V2_TABLE = """
Swimmer 0.02 0.01 1
Hopper 0.02 0.02 4
HalfCheetah 0.02 0.03 8
Walker2d 0.025 0.01 60
Ant 0.01 0.025 40
Humanoid 0.02 0.0075 230
"""

# alpha, nu, N, b
V2_T_TABLE = """
Swimmer 0.02 0.01 1 1
Hopper 0.01 0.025 8 4
HalfCheetah 0.02 0.03 32 4
Walker2d 0.03 0.025 40 30
Ant 0.015 0.025 60 20
Humanoid 0.02 0.0075 230 230
"""

GRID_TABLE = """
Swimmer | 0.01, 0.02, 0.025 | 0.03, 0.02, 0.01 | 1 | 1
Hopper | 0.01, 0.02, 0.025 | 0.03, 0.025, 0.02, 0.01 | 8, 16, 32 | 4, 8, 32
HalfCheetah | 0.01, 0.02, 0.025 | 0.025, 0.02, 0.01 | 4, 8, 16, 32 | 2, 4, 8, 32
Walker2d | 0.01, 0.02, 0.025, 0.03 | 0.025, 0.02, 0.01, 0.0075 | 40, 60, 80, 100 | 15, 30, 100
Ant | 0.01, 0.015, 0.02, 0.025 | 0.025, 0.02, 0.01 | 20, 40, 60, 80 | 15, 20, 40, 80
Humanoid | 0.01, 0.02, 0.025 | 0.01, 0.0075 | 90, 230, 270, 310, 350 | 100, 200, 360
"""


def point_of(config: Config) -> Preset:
    return Preset(**{name: getattr(config.search, name) for name in Preset._fields})


@pytest.mark.parametrize("version", ["v1", "v5"])
@pytest.mark.parametrize("row", V2_TABLE.split("\n")[1:-1])
def test_v2_presets(row: str, version: str) -> None:
    robot, alpha, nu, N = row.split()
    assert preset(f"{robot}-{version}", "V2") == (float(alpha), float(nu), int(N), int(N))


@pytest.mark.parametrize("version", ["v1", "v5"])
@pytest.mark.parametrize("row", V2_T_TABLE.split("\n")[1:-1])
def test_v2_t_presets(row: str, version: str) -> None:
    robot, alpha, nu, N, b = row.split()
    assert preset(f"{robot}-{version}", "V2-t") == (float(alpha), float(nu), int(N), int(b))


@pytest.mark.parametrize("row", GRID_TABLE.split("\n")[1:-1])
def test_grids(row: str) -> None:
    robot, *columns = (part.strip() for part in row.split("|"))
    expected = tuple(tuple(float(value) for value in column.split(",")) for column in columns)
    assert GRIDS[robot] == expected


@pytest.mark.parametrize(
    ("robot", "points"),
    [
        ("Swimmer", 3 * 3 * 1),  # (N, b): (1, 1)
        ("Hopper", 3 * 4 * (2 + 3 + 3)),  # N = 8: b = 4, 8; N = 16: 4, 8, 16; N = 32: 4, 8, 32
        ("HalfCheetah", 3 * 3 * (2 + 3 + 4 + 4)),  # 4: 2, 4; 8: 2, 4, 8; 16: 2, 4, 8, 16; 32: 2, 4, 8, 32
        ("Walker2d", 4 * 4 * (3 + 3 + 3 + 3)),  # each N: 15, 30, N
        ("Ant", 4 * 3 * (2 + 3 + 4 + 4)),  # 20: 15, 20; 40: 15, 20, 40; 60: 15, 20, 40, 60; 80: 15, 20, 40, 80
        ("Humanoid", 3 * 2 * (1 + 3 + 3 + 3 + 3)),  # 90: 90; the others: 100, 200, N
    ],
)
def test_grid_points(robot: str, points: int) -> None:
    """b > N reads as b = N, and duplicates count once."""
    found = grid(robot)
    assert len(found) == len(set(found)) == points
    assert all(1 <= point.b <= point.N for point in found)
    alphas, nus, Ns, bs = GRIDS[robot]
    for point in found:
        assert point.alpha in alphas
        assert point.nu in nus
        assert point.N in Ns
        assert point.b in bs or point.b == point.N


def test_humanoid_s_smallest_N_has_one_b() -> None:
    """All of 100, 200, 360 read as 90."""
    assert {point.b for point in grid("Humanoid") if point.N == 90} == {90}


@pytest.mark.parametrize(
    ("robot", "value"),
    [("Swimmer", 325), ("Hopper", 3120), ("HalfCheetah", 3430), ("Walker2d", 4390), ("Ant", 3580), ("Humanoid", 6000)],
)
def test_thresholds_of_table_1(robot: str, value: float) -> None:
    assert threshold(f"{robot}-v1") == threshold(f"{robot}-v5") == value


@pytest.mark.parametrize(
    ("robot", "variant"),
    [("Swimmer", "V1"), ("Hopper", "V2-t"), ("HalfCheetah", "V2"),
     ("Walker2d", "V2-t"), ("Ant", "V2-t"), ("Humanoid", "V2")],
)  # fmt: skip
def test_default_variants_of_figure_3(robot: str, variant: str) -> None:
    for version in ("v1", "v5"):
        assert default_variant(f"{robot}-{version}") == variant
        assert make_config(f"{robot}-{version}", H=1000, shift=0.0).label == variant


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_every_preset_makes_a_config(robot: str, variant: str) -> None:
    """All of five variants × six robots; b = N where the variant has no top directions."""
    config = make_config(f"{robot}-v5", variant=variant, H=1000, shift=1.0)
    values = preset(f"{robot}-v5", variant)
    assert point_of(config) == values
    scaled, normalise, _ = VARIANTS[variant]
    assert (config.search.scaled, config.normalise) == (scaled, normalise)
    if variant in ("BRS", "V1", "V2"):
        assert values.b == values.N


@pytest.mark.parametrize("variant", ["V1", "V1-t"])
@pytest.mark.parametrize("robot", ROBOTS)
def test_presets_the_paper_does_not_print_come_from_its_grids(robot: str, variant: str) -> None:
    """As the issue of presets asks: chosen from the grids (BRS may need a step-size of its own)."""
    assert Preset(*preset(f"{robot}-v1", variant)) in grid(robot)


@pytest.mark.parametrize("task", ["CartPole-v1", "Hopper-v4", "Hopper", "hopper-v5", "mine:Hopper-v5", "-v5", ""])
def test_other_tasks_get_the_defaults(task: str) -> None:
    """Only -v1 and -v5 of the six are the paper's."""
    config = make_config(task, H=500, shift=0.0)
    assert config.label == DEFAULT_VARIANT
    assert point_of(config) == DEFAULT_PRESET
    assert threshold(task) is None


def test_overrides_by_the_papers_symbols() -> None:
    given: dict[str, Any] = {"alpha": 0.5, "nu": 0.25, "N": 6, "b": 3, "seed": 9, "eval_every": 2, "eval_episodes": 5}
    config = make_config("Hopper-v5", H=200, shift=0.5, variant="V2-t", **given)
    search = config.search
    assert {name: getattr(search if hasattr(search, name) else config, name) for name in given} == given
    assert (config.H, config.shift, config.label) == (200, 0.5, "V2-t")


def test_none_means_not_given() -> None:
    """As the command line passes what the user left out."""
    assert make_config("Hopper-v5", H=1000, shift=1.0, alpha=None, N=None) == make_config(
        "Hopper-v5", H=1000, shift=1.0
    )


def test_N_alone_brings_its_b_without_t() -> None:
    """V2 has b = N by definition: the user who sets N must not be told off for b."""
    config = make_config("Hopper-v5", variant="V2", H=1000, shift=1.0, N=20)
    assert point_of(config)[2:] == (20, 20)


def test_N_alone_keeps_the_presets_b_with_t() -> None:
    """Hopper's b = 4 stays for N = 20, and follows N below it."""
    assert make_config("Hopper-v5", variant="V2-t", H=1000, shift=1.0, N=20).search.b == 4
    assert make_config("Hopper-v5", variant="V2-t", H=1000, shift=1.0, N=3).search.b == 3


def test_a_b_that_is_given_is_never_changed() -> None:
    for variant in ("V2", "V2-t"):
        with pytest.raises(SettingError, match="b = 50"):
            make_config("Hopper-v5", variant=variant, H=1000, shift=1.0, b=50)
    with pytest.raises(SettingError, match="b = 2"):
        make_config("Hopper-v5", variant="V2", H=1000, shift=1.0, N=20, b=2)


@pytest.mark.parametrize("variant", ["V2", "V2-t"])
@pytest.mark.parametrize("value", ["8", 8.0, [8], -1, 0, True, float("nan")])
def test_bad_N_is_a_sentence_for_every_variant(variant: str, value: Any) -> None:
    with pytest.raises(SettingError, match="N = "):
        make_config("Hopper-v5", variant=variant, H=1000, shift=1.0, N=value)


@pytest.mark.parametrize("variant", ["V9", ["V2"], 2])
def test_bad_variant_is_a_sentence(variant: Any) -> None:
    with pytest.raises(SettingError, match="variant = "):
        make_config("Hopper-v5", variant=variant, H=1000, shift=1.0)


def test_unknown_settings_are_named() -> None:
    with pytest.raises(SettingError, match="'step_size'"):
        make_config("Hopper-v5", H=1000, shift=1.0, step_size=0.1)


def test_presets_without_a_table_are_the_winners_of_their_trials() -> None:
    """D6: the paper prints no V1, V1-t and BRS; docs/presets.md says how ours were chosen, and the file shows it."""
    trials = Path(__file__).parents[1] / "results" / "presets" / "trials.csv"
    chosen = preset_trials.choose(preset_trials.read(trials))
    cells = {(variant, robot) for variant in ("V1", "V1-t", "BRS") for robot in presets.PRESETS[variant]}
    assert cells - chosen.keys() == {("V1-t", "Swimmer")}  # which is V1
    for variant, robot in cells & chosen.keys():
        assert chosen[variant, robot][0] == presets.PRESETS[variant][robot], (variant, robot)


def test_the_papers_means_limit_the_directions_of_trials() -> None:
    """20 N divides the sum of three seeds: 3 · 166 133 is 498 399, and 498 400 = 623 · 20 · 40."""
    limits = {
        ("Walker2d", "V1-t"): [40], ("Hopper", "V1"): [8, 16], ("Ant", "V1"): [20, 40], ("Ant", "V1-t"): [20, 40, 80],
        ("HalfCheetah", "V1"): [4, 8, 16, 32], ("Humanoid", "V1"): [90, 230, 270, 310, 350],
    }  # fmt: skip
    assert {cell: preset_trials.allowed(*cell) for cell in limits} == limits
    for (robot, variant), N in limits.items():
        assert {point.N for point in preset_trials.candidates(robot, variant)} <= set(N)
    for variant in ("V1", "V1-t", "V2", "V2-t"):  # the presets agree
        for robot, point in presets.PRESETS[variant].items():
            assert point.N in preset_trials.allowed(robot, variant) or point.N not in presets.GRIDS[robot][2]


def test_trials_to_the_threshold_are_ranked_by_episodes() -> None:
    scores = {0.01: (400.0, 900.0), 0.02: (300.0, 100.0), 0.025: (300.0, 200.0)}
    done = {
        preset_trials.Trial("Swimmer", "V1", alpha, 0.03, 1, 1, seed): preset_trials.Score(best, episodes + seed)
        for alpha, (best, episodes) in scores.items()
        for seed in (1, 2)
    }
    assert preset_trials.choose(done)["V1", "Swimmer"] == (presets.Preset(0.02, 0.03, 1, 1), (300.0, 101.5))
    never = {trial: preset_trials.Score(score.best) for trial, score in done.items()}
    assert preset_trials.choose(never)["V1", "Swimmer"][0].alpha == 0.01


def test_csa_evaluates_an_average_unless_the_user_says_otherwise() -> None:
    task: dict[str, Any] = {"task": "Hopper-v1", "H": 1000, "shift": 1.0}
    assert make_config(**task, search="csa").average == 10
    assert make_config(**task, search=CSA(nu=0.1)).average == 10
    assert make_config(**task, search="csa", average=0).average == 0
    assert make_config(**task, search="cma").average == make_config(**task).average == 0


def test_other_tasks_have_the_suggested_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """For their sizes, unless the user's settings belong to another; the paper's tasks never."""
    task: dict[str, Any] = {"task": "Any-v0", "H": 50, "shift": 0.0, "shape": (2, 3)}
    assert make_config(**task).search == CSA(nu=0.17, N=10, share=0.5, calm=0)  # 0.3 / sqrt(3); 2 ⌈(4 + 3 ln 6) / 2⌉
    assert make_config(**task, N=16) == make_config(
        "Any-v0", H=50, shift=0.0, search="csa", nu=0.17, N=16, share=0.5, calm=0, average=0, duel=0
    )
    assert make_config(**task, alpha=0.02, N=16).search == ARS(alpha=0.02, nu=0.03, N=16, b=16)
    settings = {"nu": 0.015, "N": 32, "share": 0.5, "calm": 0, "average": 0, "duel": 0}
    assert presets.suggested(376, 17, 1000) == ("csa", settings)

    def by_size(n: int, p: int, H: int) -> tuple[str, dict[str, Any]]:
        return "csa", {"nu": 0.1 * p, "N": n + H}

    monkeypatch.setattr(presets, "suggested", by_size)
    assert make_config(**task).search == CSA(nu=0.2, N=53)
    assert make_config(**task, nu=0.5, seed=3).search == CSA(nu=0.5, N=53)
    for given in ({"alpha": 0.01}, {"variant": "V1"}, {"search": "ars"}):
        assert isinstance(make_config(**task, **given).search, ARS)
    for name in ("lqr", "Hopper-v5"):
        assert isinstance(make_config(**{**task, "task": name}).search, ARS)
    with pytest.raises(SettingError, match="H = 0"):
        make_config(**{**task, "H": 0})
    session = new_session("CartPole-v1", {}, workers=1, stop=Stop(iterations=1))
    session.close_executor()
    assert session.config.search == CSA(nu=0.2, N=504)
