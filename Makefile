# Everything a newcomer or a reviewer runs. Each target sets up what it needs in .venv.

PYTHON ?= python3
BIN := .venv/bin
export KAFKA_MSGS_REQUIRE_ORACLE
N ?= 1000

CORE := $(wildcard kafka_msgs/codec/*.c kafka_msgs/codec/*.h)
BUILD := pyproject.toml setup.py $(CORE)
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror

.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | expand -t 12

.venv/demo: $(BUILD)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[generator,cli]'
	@touch $@

.venv/dev: $(BUILD)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@ .venv/demo

demo: .venv/demo ## decode real Kafka traffic before your eyes
	@$(BIN)/python docs/demo/demo.py

test: .venv/dev ## run the tests
	$(BIN)/pytest

lint: .venv/dev warnings ## format, lint, types, layers, freshness of generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(CORE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/kafka-msgs-generator generate --check
	$(BIN)/python docs/tools/tables.py --check
	$(BIN)/python -m benchmarks.figures --check

warnings: .venv/dev ## compile the C core, every warning an error; where there is no compiler, say so
	@if command -v $(CC) > /dev/null; then set -ex; \
	include=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'); \
	for file in $(filter %.c,$(CORE)); do \
	$(CC) -std=c11 -O2 $(WARNINGS) -isystem "$$include" -S -o /dev/null $$file; done; \
	else echo "NOT RUN: no C compiler ($(CC)), so no warnings of the C core"; fi

check: lint test ## everything that a reviewer would run

generate: .venv/dev ## generate the message classes and the tables of docs/ from message_defs
	$(BIN)/kafka-msgs-generator generate
	$(BIN)/python docs/tools/tables.py

oracle: .venv/dev ## the full campaign against Kafka's own classes: make oracle N=1000
	$(BIN)/python -m tests.oracle.campaign --examples $(N)

capture: .venv/dev ## record the captures anew from a real broker and real clients
	$(BIN)/python -m tests.captures.capture

bench: .venv/dev ## the figures, as ratios against named peers
	$(BIN)/python -m benchmarks

clean: ## remove what the targets made
	rm -rf .venv build dist *.egg-info kafka_msgs/codec/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/oracle/target

.PHONY: help demo test lint warnings check generate oracle capture bench clean
