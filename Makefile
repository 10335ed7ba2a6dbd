# Two commands: `make train` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: train test check-results torture lint format venv bench clean

# Ctrl-C ends the training, which saves; the page is made all the same, and its failure is not the training's.
train: $(VENV)/.base
	@trap : INT; run=runs/HalfCheetah-v5-$$(date +%Y%m%d-%H%M%S); \
	  $(BIN)/ars train HalfCheetah-v5 --search csa --ramp 3000 --stride 1 --until 3430 --minutes 10 --out $$run; code=$$?; \
	  if [ -f $$run/records.jsonl ]; then \
	    $(BIN)/ars report $$run --out $$run.html || echo "The training is saved; only its page could not be made."; \
	  fi; exit $$code

# With files of bytecode, the hundreds of processes that the tests start take a quarter less to do so.
test: $(VENV)/.dev $(VENV)/.system
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n auto --dist worksteal -m "not results"

# Whether the tables in the pages and the shipped policies are those of results/: new results may fail it, never `test`.
check-results: $(VENV)/.dev
	$(BIN)/pytest -m results

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

$(VENV)/.dev: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.base

# What the tests of films, pages and C for ARM need from the system: installed once, by root or where sudo asks for no
# password.
# ARS_NO_SYSTEM_PACKAGES=1 prevents it; without the packages these tests are skipped.
SYSTEM := chromium libegl1 libgl1-mesa-dri gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user

$(VENV)/.system: | $(VENV)/bin/python
	@there=$$(dpkg-query -W -f '$${db:Status-Status}\n' $(SYSTEM) 2>/dev/null | grep -cx installed); become=; \
	  if [ "$$there" = $(words $(SYSTEM)) ]; then touch $@; exit; fi; \
	  if [ -n "$$ARS_NO_SYSTEM_PACKAGES" ]; then \
	    echo "Not installed, by ARS_NO_SYSTEM_PACKAGES: $(SYSTEM). Tests of films, pages and C for ARM may be skipped."; exit; fi; \
	  if ! command -v apt-get >/dev/null; then :; \
	  elif [ "$$(id -u)" = 0 ]; then become=env; \
	  elif sudo -n true 2>/dev/null; then become="sudo -n env"; \
	  fi; \
	  if [ -z "$$become" ]; then \
	    echo "Tests of films, pages and C for ARM may be skipped: they need the system packages $(SYSTEM)."; touch $@; exit; fi; \
	  echo "The tests of films, pages and C for ARM need system packages. About to run, once:"; \
	  echo "  $$become apt-get install --no-install-recommends $(SYSTEM)"; \
	  echo "To prevent this: make test ARS_NO_SYSTEM_PACKAGES=1"; \
	  if [ -t 1 ]; then echo "It starts in 5 seconds; Ctrl-C stops it."; sleep 5; fi; \
	  { $$become apt-get -qq update && \
	    $$become DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(SYSTEM); } \
	    </dev/null >/dev/null 2>&1 || echo "They could not be installed: some tests will be skipped."; \
	  touch $@

clean:
	rm -rf $(VENV) $(BENCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis
