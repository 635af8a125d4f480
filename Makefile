# Every target sets up what it needs: on a fresh machine `make demo` and `make test` are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SWEEP ?= 200
SOAK_SECONDS ?= 600
SOURCES := pyproject.toml setup.py $(shell find src -name '*.pyx' -o -name '*.h')

# Compiled modules are kept: tests start hundreds of nodes, and each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo serve test test-peers test-long soak lint format bench bench-spark bench-console screenshots clean
.PHONY: system-packages java

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(VENV)/.installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "installing; the first time takes some minutes, most of them for Spark (450 MB)"
	DIST_EXTRA_CONFIG=$(CURDIR)/tools/stored_wheels.cfg \
		$(BIN)/python -m pip install --quiet --editable '.[spark,lake]' --group dev
	touch $@

setup: $(VENV)/.installed ## the virtual environment, with the compiled kernels and the development tools

system-packages:
	tools/install_debian_packages.sh

java:
	tools/install_debian_packages.sh java

demo: setup ## three agents, 100,000 orders, revenue on Spark; one agent is killed, nothing is lost; DEMO="--once" to end
	@tools/install_debian_packages.sh demo || echo "going on without: the demo says what it leaves out"
	$(BIN)/python -m demo $(DEMO)

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
	$(BIN)/python -m pytest -n 4
	@echo "not run: make test-peers (Apache Kafka's tools, by Maven), make test-long, make soak, make bench"

test-peers: setup ## Apache Kafka's own tools, Connect, MirrorMaker and Streams against a node; needs Maven
	$(BIN)/python -m pytest -n 1 --timeout 900 tests/apache_kafka

test-long: setup system-packages ## the long sweeps and soaks
	SWEEP=$(SWEEP) $(BIN)/python -m pytest -n 2 --timeout 3600 tests/faults tests/spark \
		tests/console tests/long

soak: setup system-packages ## random faults on a cluster for SOAK_SECONDS (default 600), from SWEEP_SEED
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest --timeout 0 -s tests/faults/cluster/test_random.py

bench: setup system-packages ## figures, each beside a limit measured in the same run
	$(BIN)/python -m bench

bench-spark: setup java ## Spark's source, sink and jobs, each beside a limit measured in the same run
	$(BIN)/python -m bench.spark

bench-console: setup system-packages ## the console in a browser: first paint with 1,000 topics, a live tail of 5,000 records/s
	$(BIN)/python -m bench.console

screenshots: setup system-packages ## the pictures of the console in docs/screenshots, taken anew
	SCREENSHOTS=docs/screenshots $(BIN)/python -m pytest -n 0 tests/long/test_screenshots.py

clean:
	rm -rf $(VENV) build bench/out
	find src -name '*.so' -delete
