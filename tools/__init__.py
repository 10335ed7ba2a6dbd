"""Maintainers' scripts, which are not part of the package."""
