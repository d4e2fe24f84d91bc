# Every verb of this project. CI runs the same ones (.ci/run).
#
# The first use makes .venv from nothing but Python 3.11+ and PyPI; two stamp files in it remember
# what is installed, so that later uses start at once. A changed pyproject.toml installs again.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)
VENV := .venv
NEWEST := .venv-newest
BIN := $(VENV)/bin
ARGS ?=
BENCH ?= steps
# As many as there are processors. CI takes two more, for much of a test is waiting.
PROCESSES ?= auto

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test newest fuzz control-plane test-kubernetes check lint mypy pyright format docs bench which-python clean distclean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.dev  ## Make .venv with everything that development needs

demo: $(VENV)/$(if $(findstring --package,$(ARGS)),.dev,.run)  ## Deploy hello-world on an embedded Temporal server; ARGS=--package: a package, ARGS=--fleet: a fleet
	$(BIN)/temporal-plan demo $(ARGS)

# A process that crashes ends the run: with one in its place, the rest of its file is never given out.
test: $(VENV)/.dev  ## All tests; make test ARGS="tests/unit -k canary" for some
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) --maxprocesses 4 --max-worker-restart 0 \
	  --dist loadfile --no-loadscope-reorder $(ARGS)

# pip says that the package wants an older temporalio: that is what this is for.
newest:  ## The tests with the newest temporalio, in .venv-newest; names those that break
	@$(MAKE) --no-print-directory VENV=$(NEWEST) venv
	$(NEWEST)/bin/python -m pip install --quiet --upgrade temporalio
	@$(NEWEST)/bin/python -m pip freeze | grep '^temporalio=='
	@$(MAKE) --no-print-directory VENV=$(NEWEST) test \
		ARGS="--quiet --tb=no tests/unit tests/replay tests/workflows $(ARGS)"

fuzz: $(VENV)/.dev  ## Malformed files, messages and starts by the thousand; make fuzz ARGS="--fuzz-seed 7"
	@$(MAKE) --no-print-directory test \
		ARGS="--hypothesis-profile thorough --fuzz-inputs 10000 tests/fuzz tests/workflows/test_fuzzed_doors.py $(ARGS)"

control-plane: $(VENV)/.dev  ## Build a Kubernetes control plane from the Go module proxy, once, into a cache
	@$(BIN)/python -m tools.control_plane

test-kubernetes: $(VENV)/.dev  ## The tests against that control plane; builds it first where there is Go
	@$(BIN)/python -m tools.control_plane --if-go
	$(BIN)/python -m pytest -rs $(or $(ARGS),tests/kubernetes)

check: lint mypy pyright  ## Lint, formatting, types, import contracts; make -j3 check is faster

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

mypy: $(VENV)/.dev
	$(BIN)/mypy

pyright: $(VENV)/.dev
	$(BIN)/pyright

format: $(VENV)/.dev  ## Repair what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## Make the references of files (docs/*-file.md) and docs/schemas
	$(BIN)/python -m tools.reference

bench: $(VENV)/.dev  ## Steps a second beside bare Temporal, or BENCH=fleets; ARGS="--rounds 3"
	$(BIN)/python -m bench $(BENCH) $(ARGS)

which-python:
	@echo "$(PYTHON)"

clean:  ## Remove what building and testing leave behind
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean  ## The same, and the venvs
	rm -rf $(VENV) $(NEWEST)

$(BIN)/python:
	@test -n "$(PYTHON)" || \
		{ echo "make: no Python 3.11 or newer on the PATH; say make PYTHON=/path/to/python3" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# What a user needs: the package and the embedded server. `make demo` asks for no more.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[local]'
	@touch $@

# pip knows dependency groups since 25.1, and the pip that comes with Python is older than that.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[local,kubernetes,contents,demo]' --group dev
	@touch $(VENV)/.run $@
