# Every target sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
NUMBA_CACHE_DIR ?= $(CURDIR)/$(VENV)/numba
export NUMBA_CACHE_DIR

.PHONY: help demo test test-slow test-simulations test-rehearsals test-integrations test-torch-free portable stress check format docs bench release lowest hooks clean
help:
	@echo "make demo               train, compare and report on embedded data"
	@echo "make test               daily tests and doctests"
	@echo "make test-slow          larger cross-products and trainings of what a smaller test covers"
	@echo "make test-simulations   simulations of levels, power and coverage, about half an hour"
	@echo "make test-rehearsals    every comparison of the papers on small stand-in data, about ten minutes of one core"
	@echo "make test-integrations  adapters against heavy libraries, which are installed first"
	@echo "make test-torch-free    the tests of packages that need no torch, in an environment without it"
	@echo "make portable           all tests as other processors would run them, one configuration after another"
	@echo "make stress             half an hour of damaged files, forged states, odd environments and kills; MINUTES=60"
	@echo "make check              format, lint, types, layers, spelling, docs"
	@echo "make format             rewrite files as 'make check' expects them"
	@echo "make docs               rebuild generated pages, build the site"
	@echo "make bench              speed compared with other packages, as ratios"
	@echo "make lowest             tests with the lowest supported versions of dependencies"
	@echo "make hooks              let git run the quick checks before every commit"
	@echo "make release            rehearse a release; VERSION=1.2.3 makes it, TAG=1 tags it"

# One environment with two levels of packages: for the demo, and for development, which includes the demo's.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) ".[train,data]"
	touch $@

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) ".[dev]"
	touch $(DEMO) $@

demo: $(DEMO)
	@$(BIN)/equipoise demo

# One thread per process: two processes are as many as small machines have cores. Tests of one group, such as those that
# start a Ray cluster, run in the same process.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

test-simulations: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m simulation

test-rehearsals: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "rehearsal or not slow" tests/experiments/test_rehearsal.py

test-integrations: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[integrations]"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m integrations tests/integrations tests/core/test_frames.py tests/reference/test_decisions.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/project/test_docs.py -k integrations/

# In an environment of its own.
test-torch-free: $(READY)
	$(BIN)/python .ci/torch_free.py

portable: $(READY)
	$(BIN)/python .ci/portable.py

MINUTES ?= 30
stress: $(READY)
	$(BIN)/python tests/stress --minutes $(MINUTES)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell --quiet-level 3 $$(git ls-files '*.py' '*.md' '*.toml' '*.html' '*.js' '*.css' '*.yml' '*.jinja')
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/docs/check.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/python tools/docs/generate.py
	$(BIN)/python tools/docs/check.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

bench: $(READY)
	$(INSTALL) ".[bench]"
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/losses.py

# make release rehearses; make release VERSION=0.2.0 makes one; TAG=1 commits and tags it. Nothing is uploaded.
release: $(READY)
	$(INSTALL) ".[release]"
	$(BIN)/python .ci/release.py $(if $(VERSION),--version $(VERSION)) $(if $(TAG),--tag)

lowest: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python .ci/lowest.py

hooks: $(READY)
	$(BIN)/pre-commit install

clean:
	rm -rf $(VENV) .venv-lowest .venv-torch-free build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
