"""Speed, apart from the tests: see README.md. `python -m benchmarks.bench` from the repository's root."""
