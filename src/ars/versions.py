"""The versions that a result depends on, written into every run and policy."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("ars-rl", "numpy", "mujoco", "gymnasium", "numba")


@cache
def versions() -> dict[str, str]:
    """Package → version, with Python's own."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # running from a source tree that is not installed
            found[package] = "unknown"
    return found
