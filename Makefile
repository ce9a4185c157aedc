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

.PHONY: help install demo test lint format type bench evidence clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: $(STAMP)  ## create the virtual environment and install the package with its development tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: $(STAMP)  ## learn bands on a skewed synthetic case, print the certificate, write a picture
	$(BIN)/python examples/demo.py

test: $(STAMP)  ## the whole test suite
	$(BIN)/python -m pytest

lint: $(STAMP)  ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)  ## apply the formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(STAMP)  ## static types, strict
	$(BIN)/mypy

bench: $(STAMP)  ## the solvers against the paper's recipe, paths, large n (half an hour; QUICK=1 under a minute)
	$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick)

evidence: $(STAMP)  ## long statistical and numerical runs; each continues where it stopped
	$(BIN)/python benchmarks/evidence.py --study all --jobs 2
	$(BIN)/python benchmarks/random_problems.py --count 500 --jobs 2

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
