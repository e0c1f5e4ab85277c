# The names of the targets are the contributor's guide. Every target sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba
export NUMBA_CACHE_DIR

.PHONY: help demo test check format docs bench clean
help:
	@echo "make demo    train, compare and report on embedded data"
	@echo "make test    all tests and doctests"
	@echo "make check   format, lint, types, stairs, docs"
	@echo "make format  rewrite the files as 'check' wants them"
	@echo "make docs    rebuild the generated pages"
	@echo "make bench   speed against peers, as ratios"

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(READY)
	@$(BIN)/equipoise demo

test: $(READY)
	$(BIN)/python -m pytest -n 2

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/check.py

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/losses.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
