# Every target makes its own environment in .venv when there is none. Nothing else has to be set up.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow check bench format clean clean-cache

demo: $(VENV)/.app
	$(BIN)/transduce demo

test: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m slow tests

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.label_step

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: clean-cache
	rm -rf $(VENV)

clean-cache:
	find src -name '*.nb[ci]' -delete

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "transduce needs Python 3.11 or newer, and none was found. Install it, or run: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app $(VENV)/.test $(VENV)/.dev $(VENV)/.bench: $(VENV)/.%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@
