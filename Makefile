# Two commands do everything on a machine with python3, make and a C compiler:
#   make demo    set up, then the main job            make test    set up, then the tests
# The set-up happens once; both commands then work without a network.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint bench notebooks pages docs clean
demo: .venv/installed
	$(BIN)/composcope demo

# Three processes, a file of tests each: on two cores one of them often waits for a child of its own.
# tests/conftest.py has the order of the files; left to itself, xdist would begin with those of the
# most tests.
test: .venv/installed
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m bench

# The notebooks of docs/ with new results, as after a change of the models that ship.
notebooks: .venv/installed
	$(BIN)/jupyter execute --inplace docs/*.ipynb

# The pages of docs/ that are made of what ships, as after a change of the models that ship.
pages: .venv/installed
	$(BIN)/python -m docs.pages

# The site, into site/index.html; it needs no network once its tools are installed.
docs: .venv/installed
	$(BIN)/python -c "import mkdocstrings" 2>/dev/null || $(INSTALL) --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html; its search works where it is served: python -m http.server -d site"

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv report results site
