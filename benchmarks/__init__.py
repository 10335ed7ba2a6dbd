"""Benchmarks of speed, separate from the tests: see README.md."""
