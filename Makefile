# The names of the targets are the contributor's guide. Every target sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba
export NUMBA_CACHE_DIR

.PHONY: help demo test test-deep test-hosts portable hostile check format docs bench clean
help:
	@echo "make demo    train, compare and report on embedded data"
	@echo "make test    tests and doctests of every day"
	@echo "make test-deep  cross-products and trainings that repeat what a smaller case proves"
	@echo "make test-hosts  adapters against heavy libraries, which are installed first"
	@echo "make portable   all tests as other processors would run them, one configuration after another"
	@echo "make hostile    half an hour of damaged files, absurd arrays, kills and full disks"
	@echo "make check   format, lint, types, stairs, docs"
	@echo "make format  rewrite the files as 'check' wants them"
	@echo "make docs    rebuild generated pages, build the site"
	@echo "make bench   speed against peers, as ratios"

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(READY)
	@$(BIN)/equipoise demo

# One thread per process: two processes are as many as small machines have cores.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-deep: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m deep

test-hosts: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[hosts]"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m hosts tests/integrations
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/house/test_docs.py -k hosts/

portable: $(READY)
	$(BIN)/python .ci/portable.py

hostile: $(READY)
	$(BIN)/python benchmarks/hostile.py

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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/check.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/losses.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
