# Every target makes its own environment in .venv when there is none. Nothing else has to be set up.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow check docs figures package package-lowest bench format clean clean-cache

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

# The site is in build/docs. Warnings are errors; the second command checks the links between its pages.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --quiet --jobs 2 --fresh-env --write-all --fail-on-warning --keep-going docs build/docs
	$(BIN)/python docs/tools/links.py build/docs

figures: $(VENV)/.docs
	$(BIN)/python docs/tools/figures.py docs/figures

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.label_step

# Wheel and sdist, installed into clean environments of every Python that is found; see tools/check_install.py.
package: $(BIN)/python
	$(BIN)/python tools/check_install.py

package-lowest: $(BIN)/python
	$(BIN)/python tools/check_install.py --python $(BIN)/python --versions lowest

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: clean-cache
	rm -rf $(VENV) build docs/reference/generated

clean-cache:
	find src -name '*.nb[ci]' -delete

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "transduce needs Python 3.11 or newer, and none was found. Install it, or run: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app $(VENV)/.test $(VENV)/.dev $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@
