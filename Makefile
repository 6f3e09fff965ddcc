# Two commands do everything on a machine with python3, make and a C compiler:
#   make demo    set up, then the main job            make test    set up, then the tests
# The set-up happens once; both commands then work without a network.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean
demo: .venv/installed
	$(BIN)/composcope demo

test: .venv/installed
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m bench

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv report results
