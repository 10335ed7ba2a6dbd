"""The table of the quadruped's seeds."""

from tools.quadruped import table, walks

GOOD = {"seed": 0, "timesteps": 10, "seconds": 1.0, "lasting": 9, "speed": 0.7, "sideways": 0.02,
        "saturated": 0.01}  # fmt: skip


def test_what_counts_as_a_walk() -> None:
    assert walks(GOOD)
    for name, value in {"lasting": 8, "speed": 0.49, "sideways": 0.11, "saturated": 0.06}.items():
        assert not walks({**GOOD, name: value})
    assert not walks({**GOOD, "speed": 1.01})


def test_the_table() -> None:
    worlds = {name: {"survived": i, "conditions": 506} for i, name in enumerate(("plain", "rough"), 200)}
    text = "\n".join(table("Quadruped-v1", [GOOD, {**GOOD, "seed": 1, "speed": 0.2}], {**GOOD, "robustness": worlds}))
    assert "1 of 2 seeds walk" in text
    assert "| 1 | 10 | 1 | 9 of 10 | 0.20 | 2.0% | 1.0% | no |" in text
    assert "201 of 506 worlds of `ars robustness`, before 200" in text
