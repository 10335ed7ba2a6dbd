# Two commands: `make train` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: train test lint format venv bench clean

train: $(VENV)/.base
	$(BIN)/ars train HalfCheetah-v5 --until 3430 --minutes 10

test: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

venv: $(VENV)/.base

# The competitors need torch, which is large: they live in an environment of their own. TORCH can name a CPU build.
BENCH := .venv-bench
TORCH ?= torch

bench: $(BENCH)/.done
	$(BENCH)/bin/python -m benchmarks.bench $(ARGS)

$(BENCH)/.done: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet $(TORCH)
	$(BENCH)/bin/python -m pip install --quiet --editable '.[bench]'
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ARS needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis
