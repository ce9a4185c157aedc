# Every target works on a fresh machine with Python 3.11 or newer and make: it creates the
# virtual environment first. The steps of .ci/run are targets of this file.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# One BLAS thread per process: on few shared cores more threads are many times slower.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MPLBACKEND = Agg

.PHONY: help install demo test test-core docs lint format type bench evidence reproduce clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: $(STAMP)  ## create the virtual environment and install the package with its development tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: $(STAMP)  ## automatic intervals for late deliveries, with a comparison: words, a picture and an interactive page
	$(BIN)/python -m sosbands demo -o demo_output

test: $(STAMP)  ## the whole test suite, on two processes
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-core: $(STAMP)  ## kernels, problems, solvers, bands and calibration only: about a minute
	$(BIN)/python -m pytest -n 2 tests/kernels tests/problems tests/solvers tests/bands tests/conformal

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

evidence: $(STAMP)  ## long statistical and numerical runs; each continues where it stopped
	$(BIN)/python -m benchmarks.evidence --study all --jobs 2
	$(BIN)/python -m benchmarks.random_problems --count 2000 --jobs 2
	$(BIN)/python -m benchmarks.against_sdp
	$(BIN)/python -m benchmarks.fuzz --count 3000

reproduce: $(STAMP)  ## every figure and table of the paper, small (PRESET=paper: its sizes, many hours; needs SOSBANDS_DATA)
	$(BIN)/python -m studies reproduce all --preset $(or $(PRESET),quick) --jobs 2

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
