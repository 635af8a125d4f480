# Every target sets up what it needs: on a fresh machine `make demo` and `make test` are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SWEEP ?= 200
SOAK_SECONDS ?= 600
SOURCES := pyproject.toml setup.py $(shell find src -name '*.pyx' -o -name '*.h')

.PHONY: help setup demo serve test test-long soak lint format bench clean system-packages

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(VENV)/.installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

setup: $(VENV)/.installed ## the virtual environment, with the compiled kernels and the development tools

system-packages:
	tools/install_debian_packages.sh

demo: setup ## a node, 100,000 order events in and out, and a table of what happened
	$(BIN)/python -m demo

serve: setup ## a node on 127.0.0.1:9092, data in ./streamhouse-data
	$(BIN)/streamhouse serve

lint: setup ## formatting, style, types, layering, generated code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/generate_kafka_messages.py --check
	$(BIN)/python tools/generate_grpc.py --check
	$(BIN)/python tools/write_kafka_compatibility.py --check
	$(BIN)/python tools/write_configuration.py --check

format: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup system-packages lint ## everything that must hold
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-long: setup system-packages ## the long sweeps and soaks
	SWEEP=$(SWEEP) $(BIN)/python -m pytest -n 2 --dist loadfile --timeout 3600 tests/faults

soak: setup system-packages ## random faults on a cluster for SOAK_SECONDS (default 600), from SWEEP_SEED
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest --timeout 0 -s tests/faults/cluster/test_random.py

bench: setup system-packages ## figures, each beside a limit measured in the same run
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build bench/out
	find src -name '*.so' -delete
