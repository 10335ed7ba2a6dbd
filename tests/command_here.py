"""The command line in this process: `ars` as a process of its own takes up to two seconds to start."""

import pytest

from ars.cli import main


def ars_here(*arguments: str) -> int:
    """The exit code; what it says is for the fixtures capsys and capfd."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)
