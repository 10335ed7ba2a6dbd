"""What /proc knows of processes: who started whom, and who listens where."""

import contextlib
from pathlib import Path

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def listening(pids: list[int]) -> set[str]:
    """Addresses, as the kernel writes them, on which any of these processes listens."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            sockets |= {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [
        line.split()
        for file in ("/proc/net/tcp", "/proc/net/tcp6")
        if Path(file).exists()
        for line in Path(file).read_text().splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def descendants(pid: int) -> list[int]:
    """All processes that this one started, and those that they started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        found += (new := children.get(todo.pop(), []))
        todo += new
    return found


def alive(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
