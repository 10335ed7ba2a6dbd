"""The tools that compare with what the authors published, on files made by hand."""

from pathlib import Path

import numpy as np
import pytest

from curve_maker import curve
from tools import authors_policies, humanoid_logs


def test_a_folder_of_policies_becomes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authors_policies, "EPISODES", 2)
    monkeypatch.setattr(authors_policies, "PAIRS", 2)
    for name, gain in (("Swimmer-v1", 0.0), ("Swimmer-v1-other", 0.1), ("Hopper-v1", 0.0)):
        M = np.full((3, 11) if name.startswith("Hopper") else (2, 8), gain)
        parts = np.empty(3, dtype=object)
        parts[:] = [M, np.zeros(M.shape[1]), np.ones(M.shape[1])]
        np.savez(tmp_path / f"{name}.npz", parts)
    (tmp_path / "results" / "tables").mkdir(parents=True)
    authors_policies.main(tmp_path, tmp_path / "results")
    text = (tmp_path / "results" / "tables" / "authors.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "-v1" in line[:14]]
    assert {row[0] for row in rows[:2]} == {"Swimmer-v1", "Swimmer-v1-other"}
    assert float(rows[0][1]) >= float(rows[1][1])
    assert [row[5] for row in rows[:3]] == ["365", "–", "3909"]  # beside the best of a robot
    assert "over 2 pairs of episodes from the same states" in text


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"Hopper-v1\.npz"):
        authors_policies.main(tmp_path, tmp_path)


LOGS = {  # evaluations 10 iterations apart; 1000 timesteps an iteration in the first log, 2000 in the others
    "gallop": (1000, [100, 6000, 7000]),
    "spin": (2000, [200, 300, 400]),
    "hop": (2000, [150, 250, 6500]),
}


def write_logs(path: Path) -> None:
    lines = ["run,iteration,reward_mean,reward_std,timesteps,seconds"]
    for name, (steps, rewards) in LOGS.items():
        lines += [f"{name},{10 * i},{r},1.0,{10 * i * steps},{60 * i}" for i, r in enumerate(rewards, 1)]
    path.write_text("\n".join(lines) + "\n")


def test_ranks_among_the_logs_by_hand(tmp_path: Path) -> None:
    write_logs(tmp_path / "humanoid_logs.csv")
    logs = humanoid_logs.read_logs(tmp_path / "humanoid_logs.csv")
    assert [log.reach(6000, "iteration") for log in logs] == [20, np.inf, 30]
    arrived = curve([0, 0, 6100], task="Humanoid-v1", variant="V2", every=4600, steps=1)
    assert humanoid_logs.rank(arrived, logs, "iteration") == 2  # gallop arrived after 20, hop after 30 as well
    assert humanoid_logs.rank(arrived, logs, "timesteps") == 1  # 13 800 timesteps
    under_way = curve([0, 260], task="Humanoid-v1", variant="V2", every=4600, steps=4)
    assert humanoid_logs.rank(under_way, logs, "iteration") == 3  # at 20: 6000, 300 and 250
    assert humanoid_logs.rank(under_way, logs, "timesteps") == 2  # at 36 800: 7000, 200 and 150
    assert humanoid_logs.nearest(arrived, logs) is logs[0]
    text = humanoid_logs.table([arrived, under_way], logs).markdown()
    assert "2 of the 3 logs reach 6000, 2 of them within 1000 iterations" in text
    assert "| arrived | 30 | 1.38e4 | 2 of 4 | 1 of 4 |" in text
    assert "best 260 so far" in text


def test_the_figure_has_the_logs_as_pixels(tmp_path: Path) -> None:
    """They are not ours to pass on."""
    write_logs(tmp_path / "humanoid_logs.csv")
    for folder in ("runs", "tables", "figures"):
        (tmp_path / folder).mkdir()
    curve([0, 260], task="Humanoid-v1", variant="V2", every=4600).save(tmp_path / "runs" / "1.json")
    humanoid_logs.main(tmp_path, tmp_path)
    svg = (tmp_path / "figures" / "humanoid_logs.svg").read_text()
    assert "<image" in svg
    assert "ours, seed 237 (under way)" in svg
