# Two commands: `make train` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: train test torture lint format venv bench clean

# Ctrl-C ends the training, which saves; the page is made all the same, and its failure is not the training's.
train: $(VENV)/.base
	@trap : INT; run=runs/HalfCheetah-v5-$$(date +%Y%m%d-%H%M%S); \
	  $(BIN)/ars train HalfCheetah-v5 --until 3430 --minutes 10 --out $$run; code=$$?; \
	  if [ -f $$run/records.jsonl ]; then \
	    $(BIN)/ars report $$run --out $$run.html || echo "The training is saved; only its page could not be made."; \
	  fi; exit $$code

test: $(VENV)/.dev $(VENV)/.system
	$(BIN)/pytest -n auto --dist worksteal

# The long form of tests/torture: kills, damage, a soak; its figures go into docs/reliability.md.
TORTURE := $(VENV)/torture

torture: $(VENV)/.dev
	rm -rf $(TORTURE)
	ARS_TORTURE=$(abspath $(TORTURE)) $(BIN)/pytest -n 2 --dist worksteal tests/torture
	$(BIN)/python tests/torture/torture_report.py $(TORTURE)

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

# What the tests that look at films and pages need from the system: installed once, quietly, where we may. Elsewhere
# these tests are skipped and say so.
SYSTEM := chromium libegl1 libgl1-mesa-dri

$(VENV)/.system: | $(VENV)/bin/python
	@become=; there=$$(dpkg-query -W -f '$${db:Status-Status}\n' $(SYSTEM) 2>/dev/null | grep -cx installed); \
	  if [ "$$there" = $(words $(SYSTEM)) ]; then :; \
	  elif [ "$$(id -u)" = 0 ]; then become=env; \
	  elif sudo -n true 2>/dev/null; then become="sudo -n env"; \
	  fi; \
	  if [ -n "$$become" ] && command -v apt-get >/dev/null; then \
	    echo "Installing $(SYSTEM), for the tests that look at films and pages"; \
	    { $$become apt-get -qq update && \
	      $$become DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(SYSTEM); } \
	      </dev/null >/dev/null 2>&1 || echo "They could not be installed: some tests will be skipped."; \
	  fi; touch $@

clean:
	rm -rf $(VENV) $(BENCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis
