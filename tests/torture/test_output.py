"""Standard output that is full, closed or not read: one sentence and exit code 2, and the run is saved."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torture_runs import ARS, DRIFT, SETTINGS, TESTS, flags, size

# Commands run in forks of one process, because starting Python for each would take a minute.
FORKS = """
import json, os, sys
sys.path.insert(0, sys.argv[2])
import ars.sessions, small_envs, rich.console  # once for all
from ars.cli import main
def fork(words, where):
    here, there = os.pipe()
    if (pid := os.fork()) == 0:
        os.dup2(there, 2)
        if where == "closed":
            sys.stdout = sys.__stdout__ = None  # as Python has it from the start
            os.close(1)
        else:
            os.dup2(os.open(where, os.O_WRONLY), 1)
        main(words)
    os.close(there)
    with open(here) as file:
        said = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said
print(json.dumps([fork(*case) for case in json.loads(sys.argv[1])]))
"""

TRAIN = ["train", DRIFT, *flags(SETTINGS), "--iterations", "4", "--workers", "1"]


def in_forks(cases: list[Any], cwd: Path) -> list[Any]:
    words = [sys.executable, "-c", FORKS, json.dumps(cases), TESTS]
    result = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return list(json.loads(result.stdout))


def test_every_command_that_prints(finished: Path, tmp_path: Path) -> None:
    run, own, arm = str(finished), ("--task", DRIFT), ("--task", "arm", "--n", "3", "--p", "2", "--N", "2", "--H", "5")
    cases = [
        ["train", "--help"], ["--version"], [*TRAIN, "--out", "lines"], [*TRAIN, "--out", "json", "--json"],
        ["evaluate", run, *own, "--episodes", "2", "--workers", "1"],
        ["export", f"{run}/policy.npz", "--to", "json"], ["ask", "arm", *arm], ["ask", "arms", *arm, "--json"],
    ]  # fmt: skip
    more = [
        ["tasks"], ["tasks", "--json"], ["report", run, "--seconds", "0"], ["reproduce", "table1", "--dry-run"],
        ["sweep", DRIFT, "--seeds", "1", "--episodes", "400", "--threshold", "9", "--out", "sweep", "--jobs", "1"],
        ["lqr", "--trials", "1", "--budget", "2000", "--out", "lqr", "--workers", "1", "--quiet"],
    ]  # fmt: skip
    cases += more[: size(0, len(more))]  # they load much
    answers = in_forks([*([words, "/dev/full"] for words in cases), [["--version"], "closed"]], tmp_path)
    for words, (code, said) in zip([*cases, ["closed"]], answers, strict=True):
        last = said.splitlines()[-1]
        assert last.startswith("ars: Cannot write to standard output: "), (words, said)
        assert code == 2, (words, said)
        assert "Traceback" not in said
        assert "Exception ignored" not in said
        assert ("The run is saved: continue with ars resume" in last) == ("--out" in words and "train" in words)
    again = [["resume", name, *own, "--quiet", "--workers", "1"] for name in ("lines", "json")]
    assert in_forks([[words, "/dev/null"] for words in again], tmp_path) == [[0, ""], [0, ""]]
    assert (tmp_path / "lines" / "policy.npz").read_bytes() == (tmp_path / "json" / "policy.npz").read_bytes()


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("{ars} --version >&-", 2, "ars: Cannot write to standard output: Bad file descriptor.\n"),
        ("{ars} evaluate nothing 2>/dev/full", 2, ""),
        ("{ars} evaluate nothing <&- >&- 2>&-", 2, ""),
        ("{ars} ask run --task arm --n 3 --p 2 --N 2 --H 5 --json >/dev/null <&-", 0, ""),
        ("(trap '' PIPE; {ars} --help; echo $? >&2) | true", 0, "141\n"),
    ],
)
def test_closed_and_unread(command: str, code: int, said: str, tmp_path: Path) -> None:
    shell = ["bash", "-c", command.format(ars=ARS)]
    result = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", said)
