# Every target works on a fresh machine with Python 3.11 or newer and make: it creates the
# virtual environment first. The steps of .ci/run are targets of this file.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Environments of a release, apart from that of the development.
TOOLS  := build/tools
UV     := $(TOOLS)/bin/uv
TOOLED := $(TOOLS)/.installed
# Versions, or paths of interpreters where uv finds none of that version.
LOWEST_PYTHON ?= 3.11
NEWEST_PYTHON ?= 3.13
# One BLAS thread per process: on few shared cores more threads are many times slower.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MPLBACKEND = Agg

.PHONY: help install demo test test-all test-core test-lowest test-newest dist docs lint format type bench bench-fit attack evidence reproduce clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: $(STAMP)  ## create the virtual environment and install the package with its development tools

# Python compiles what it imports, a small part of what is installed, and compiling everything takes longer than that.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]" --group studies
	@touch $@

demo: $(STAMP)  ## automatic intervals for late deliveries, with a comparison: words, a picture and an interactive page
	$(BIN)/python -m sosbands demo -o demo_output

# WITH="studies attack" adds these groups of tests, or one of them.
LEFT = $(patsubst %,tests/%,$(filter-out $(WITH),studies attack))
test: $(STAMP)  ## tests of the package on two processes: no studies, no attack, one configuration of each estimator, no long browser cases
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not every_configuration and not slow_browser" $(LEFT:%=--ignore=%)
	@echo "Not run: $(LEFT) every_configuration slow_browser; make test-all runs everything."

test-all: $(STAMP)  ## the whole test suite: also studies, attack, every configuration of each estimator, long browser cases
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-core: $(STAMP)  ## kernels, problems, solvers, bands and calibration only: about a minute
	$(BIN)/python -m pytest -n 2 tests/kernels tests/problems tests/solvers tests/bands tests/conformal

# Beside the lowest direct dependencies stand the newest indirect ones, and old packages use what these deprecate: such
# warnings are errors of the newest set only. TESTS chooses among the tests.
LET_PASS := -W default::DeprecationWarning -W default::PendingDeprecationWarning
test-lowest: $(TOOLED)  ## the whole test suite with the lowest version of every dependency, on LOWEST_PYTHON (3.11)
	$(UV) venv --quiet --clear --python $(LOWEST_PYTHON) build/lowest
	$(UV) pip install --quiet --python build/lowest --resolution lowest-direct --editable ".[test]" --group studies
	build/lowest/bin/python -m pytest -n 2 --dist loadfile $(LET_PASS) $(TESTS)

test-newest: $(TOOLED)  ## the whole test suite with the newest version of every dependency, on NEWEST_PYTHON (3.13)
	$(UV) venv --quiet --clear --python $(NEWEST_PYTHON) build/newest
	$(UV) pip install --quiet --python build/newest --upgrade --editable ".[dev]" --group studies
	build/newest/bin/python -m pytest -n 2 --dist loadfile $(TESTS)

# Prints the size of the archives and the processor time of an import.
dist: $(TOOLED)  ## wheel and source archive in dist/, checked: contents, description, and run in clean environments
	rm -rf dist
	$(TOOLS)/bin/python -m build --quiet
	$(TOOLS)/bin/twine check --strict dist/*
	$(TOOLS)/bin/python -m release.check dist

$(TOOLED): pyproject.toml
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --upgrade pip
	$(TOOLS)/bin/python -m pip install --quiet --group release
	@touch $@

# From scratch: the gallery would not run its examples again when the library changes.
docs: $(STAMP)  ## the documentation with its gallery, built strictly, in build/docs
	rm -rf build/docs docs/auto_examples docs/generated
	$(BIN)/sphinx-build -W --keep-going -n -q docs build/docs

lint: $(STAMP)  ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)  ## apply the formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(STAMP)  ## static types, strict
	$(BIN)/mypy

bench: $(STAMP)  ## the solvers against the paper's recipe, paths, large n (half an hour; QUICK=1 under a minute)
	$(BIN)/python -m benchmarks.bench $(if $(QUICK),--quick)

bench-fit: $(STAMP)  ## what a default fit costs, stage by stage, beside LightGBM and CatBoost (QUICK=1: 300 rows; needs SOSBANDS_DATA)
	$(BIN)/python -m pip install --quiet --group rivals
	$(BIN)/python -m benchmarks.fit_cost $(if $(QUICK),--sizes 300)

attack: $(STAMP)  ## tries to break the package, under 30 minutes; goes on where it stopped (QUICK=1 a minute, AGAIN=1 breaches once more)
	$(BIN)/python -m attack --jobs 2 $(if $(QUICK),--quick) $(if $(AGAIN),--again)

evidence: $(STAMP)  ## long statistical and numerical runs; each continues where it stopped
	$(BIN)/python -m benchmarks.evidence --study all --jobs 2
	$(BIN)/python -m benchmarks.random_problems --count 2000 --jobs 2
	$(BIN)/python -m benchmarks.against_sdp
	$(BIN)/python -m benchmarks.drift --study all --jobs 2
	$(BIN)/python -m benchmarks.distributions --study all --jobs 2
	$(BIN)/python -m benchmarks.serving --count 1000 --jobs 2
	$(BIN)/python -m attack --part solver_fuzz --jobs 2

reproduce: $(STAMP)  ## every figure and table of the paper, small (PRESET=paper: its sizes, many hours; needs SOSBANDS_DATA)
	$(BIN)/python -m studies reproduce all --preset $(or $(PRESET),quick) --jobs 2

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
