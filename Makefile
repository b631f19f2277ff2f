# Every target sets up what it needs: Python >= 3.11, pip and make are all a machine has to have.
# `.venv/.stamp` is as new as the locks, so a re-run installs nothing.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp

.DEFAULT_GOAL := help
.PHONY: help setup test lint types unit prove model model-deep conform fault-matrix mutants load-faults bench endurance format lock docs clean

help: ## say what the targets are
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: $(STAMP) ## make the virtual environment (the other targets do it by themselves)

$(STAMP): requirements.lock requirements-bootstrap.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-bootstrap.lock
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

test: lint types unit prove ## everything CI runs

lint: $(STAMP) ## ruff: format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP) ## the strict type checker
	$(BIN)/mypy

unit: $(STAMP) ## the tests, on all cores
	$(BIN)/pytest -n auto --dist worksteal

prove: $(STAMP) ## confirm the lemmas for all integers, and that each finds a defect
	$(BIN)/counterfoil prove
	$(BIN)/counterfoil prove --defects

model: $(STAMP) ## search every ledger, and every interleaving of the protocol
	$(BIN)/counterfoil model

model-deep: $(STAMP) ## the same for scopes up to 3, and every count a second time
	$(BIN)/counterfoil model --deep
	$(BIN)/python tests/spec/second_encoding.py

conform: $(STAMP) ## start our own server and judge it, clause by clause
	$(BIN)/counterfoil conform

fault-matrix: $(STAMP) ## run the kit on every stranger and every seeded fault (an hour)
	$(BIN)/python tools/fault_matrix.py --jobs 3
	$(BIN)/python tools/fault_matrix.py --jobs 3 --missed --profile full

mutants: $(STAMP) ## show every seeded fault of the ledger to every layer; writes docs/kill-matrix.md
	$(BIN)/counterfoil mutants --resume .kill-matrix.json --page docs/kill-matrix.md
	rm .kill-matrix.json

load-faults: $(STAMP) ## run the stress profile against ten seeded faults (minutes)
	COUNTERFOIL_LOAD_FAULTS=all $(BIN)/pytest tests/load/test_load_faults.py

bench: $(STAMP) ## measure the server and its limit in one run; writes docs/performance.md (minutes, alone)
	$(BIN)/python -m benchmarks

endurance: $(STAMP) ## 100 000 hostile requests, 100 000 jobs, hanging models; writes docs/endurance.md (many minutes)
	$(BIN)/python -m benchmarks.endurance

format: $(STAMP) ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(STAMP) ## compile the hash-locked requirements anew
	$(BIN)/python tools/lock.py

docs: $(STAMP) ## write the generated pages anew
	$(BIN)/python tools/generate_docs.py

clean: ## remove the virtual environment and every cache
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache
