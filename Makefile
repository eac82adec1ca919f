# Everything a newcomer or a reviewer runs. Each target sets up what it needs in .venv.

PYTHON ?= python3
BIN := .venv/bin
export KAFKA_MSGS_REQUIRE_ORACLE
N ?= 1000

.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | expand -t 12

.venv/demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[generator,cli]'
	@touch $@

.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@ .venv/demo

demo: .venv/demo ## decode real Kafka traffic before your eyes
	@$(BIN)/python docs/demo/demo.py

test: .venv/dev ## run the tests
	$(BIN)/pytest

lint: .venv/dev ## format, lint, types, layers, freshness of generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/kafka-msgs-generator generate --check
	$(BIN)/python docs/tools/tables.py --check

check: lint test ## everything that a reviewer would run

generate: .venv/dev ## generate the message classes and the tables of docs/ from message_defs
	$(BIN)/kafka-msgs-generator generate
	$(BIN)/python docs/tools/tables.py

oracle: .venv/dev ## the full campaign against Kafka's own classes: make oracle N=1000
	$(BIN)/python -m tests.oracle.campaign --examples $(N)

capture: .venv/dev ## record the captures anew from a real broker and real clients
	$(BIN)/python -m tests.captures.capture
	$(BIN)/python -m tests.captures.internal_topics
	$(BIN)/python -m tests.captures.log_directory

bench: .venv/dev ## the figures, as ratios against named peers
	$(BIN)/python -m benchmarks

clean: ## remove what the targets made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/oracle/target

.PHONY: help demo test lint check generate oracle capture bench clean
