"""The versions that determine results and the machine that determines times; both are saved with every run."""

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("ars-rl", "numpy", "mujoco", "gymnasium", "numba")


@cache
def versions() -> dict[str, str]:
    """Package → version, including Python."""
    result = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:  # running from a source tree that is not installed
            result[package] = "unknown"
    return result


@cache
def machine() -> str:
    """The processor and how many cores this process may use."""
    model = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open() as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    except OSError:
        pass
    return f"{model}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
