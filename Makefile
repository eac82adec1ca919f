# Everything a newcomer or a reviewer runs. Each target sets up what it needs in .venv.

PYTHON ?= python3
BIN := .venv/bin
export KAFKA_MSGS_REQUIRE_ORACLE
# Tests start many processes; those keep the bytecode of what they import.
unexport PYTHONDONTWRITEBYTECODE
# Material for MkDocs prints an advertisement of its successor.
export NO_MKDOCS_2_WARNING := 1
N ?= 1000
MINUTES ?= 5
PYTHONS ?= $(BIN)/python
ROUNDS ?= 10000
# Tests wait for the processes that they start: one more than there are cores.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
GCC ?= gcc
CLANG ?= clang

# The sources of the C core; setup.py has the same.
CORE := $(wildcard kafka_msgs/_core/*.c kafka_msgs/_core/*.h)
BUILD := pyproject.toml setup.py $(CORE)
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror
CHECKED := build/checked
, := ,
# The core with instruments in it, which tests/support/instrumented.py loads: $(call instrumented,COMPILER AND FLAGS,LIBRARY,PYTHON)
define instrumented
	@mkdir -p $(dir $(2))
	$(1) -shared -fPIC -g -O1 -fno-omit-frame-pointer -fvisibility=hidden \
	-I$$($(or $(3),$(BIN)/python) -c 'import sysconfig; print(sysconfig.get_path("include"))') $(filter %.c,$(CORE)) -o $(2)
endef
# Arrow's memory from malloc, too: instruments see where that ends.
RUN_CHECKED := KAFKA_MSGS_BACKEND=c PYTHONMALLOC=malloc ARROW_DEFAULT_MEMORY_POOL=system ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096
# The C core under instruments: the other executors gain nothing from them, and references are counted by `make test`.
SELECTION := -p tests.support.instrumented -p no:cacheprovider -k "not python and not reference and not counts_as_they_were"

# Tests that match a mark expression: $(call run_tests,EXPRESSION). On a loaded machine a test that waits for another process
# may be late. With AGAIN=1, as in CI, failed tests run a second time, alone; the log keeps their first failure.
define run_tests
	$(BIN)/pytest -n $(WORKERS) $(IN_PARALLEL) -m $(1) $(if $(AGAIN),|| { test $$? = 1 && \
	echo "FAILED TESTS RUN AGAIN$(,) ALONE:" && $(BIN)/pytest --last-failed --last-failed-no-failures none --maxfail 5 -v -m $(1); })
endef

# A file of tests stays in one process, so that what its tests share is made once; tests/conftest.py has the order of files.
IN_PARALLEL := --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | expand -t 12

# uv needs a third of the time; it knows none of pip's settings, so pip follows where it cannot install. Groups need pip 25.1:
# $(call install,WHAT)
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
define install
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) uv && $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || { $(PIP) 'pip>=25.1' && $(PIP) $(1); }
endef

# Installations that a newcomer waits for: the text before them gives the size, and uv shows its progress.
define install_visibly
	@echo "$(1)"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) uv && $(BIN)/uv pip install --python $(BIN)/python $(2) || $(BIN)/pip install --disable-pip-version-check $(2)
endef

.venv/demo: $(BUILD)
	$(call install_visibly,Installing kafka-msgs$(,) pyarrow and other packages into .venv: about 70 MB.,-e '.[local$(,)broker]' pytest)
	@touch $@

.venv/demo-all: $(BUILD)
	$(call install_visibly,Installing PySpark$(,) pandas and pyarrow into .venv: about 500 MB.,-e '.[generator$(,)pipeline]')
	@touch $@

.venv/dev: $(BUILD)
	$(call install,-e . --group dev)
	@touch $@ .venv/demo .venv/demo-all

.venv/release: pyproject.toml
	$(call install,--group release)
	@touch $@

demo: .venv/demo ## explained bytes, a test against the embedded broker, lag from files: two screens
	@$(BIN)/python docs/demo/demo.py

demo-all: .venv/demo-all ## recorded Kafka traffic, decoded and explained, and jobs on Spark (downloads 500 MB)
	@$(BIN)/python docs/demo/demo.py --all

test: .venv/dev ## run the tests: about 8 minutes on two cores; make test WORKERS=1 for one process
	@echo "Running 22,000 tests: about 8 minutes on two cores. 'make check' adds Spark, real clusters and linters."
	$(call run_tests,"not slow and not system")

test-system: .venv/dev ## run the tests that start a real cluster, Spark or whole programs, or search long: about 12 minutes on two cores
	@echo "Running 9,000 tests with real clusters, Spark, other programs and long searches: about 12 minutes on two cores."
	$(call run_tests,"system and not slow")

test-slow: .venv/dev ## run the slow tests: Spark over many options, other clients, whole applications, killed processes
	$(call run_tests,slow --timeout 0)

lint: .venv/dev warnings ## format, lint, types, layers, freshness of generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(CORE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/kafka-msgs-generator generate --check
	$(BIN)/python docs/tools/tables.py --check
	$(BIN)/python docs/tools/diagrams.py --check
	$(BIN)/python docs/tools/facades.py --check
	$(BIN)/python docs/tools/public_api.py --check
	$(BIN)/python docs/tools/screens.py --check
	$(BIN)/python docs/tools/english.py
	$(BIN)/mkdocs build --quiet --strict
	$(BIN)/python -m benchmarks.render_docs --check

warnings: .venv/dev ## compile the C core, every warning an error; where there is no compiler, say so
	@if command -v $(CC) > /dev/null; then set -ex; \
	include=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'); \
	for file in $(filter %.c,$(CORE)); do \
	$(CC) -std=c11 -O2 $(WARNINGS) -isystem "$$include" -S -o /dev/null $$file; done; \
	else echo "NOT RUN: no C compiler ($(CC)), so no warnings of the C core"; fi

sanitize: .venv/dev $(CORE) ## run the tests of the C core under ASan and UBSan; needs gcc and its sanitizers
	$(call instrumented,$(GCC) -fsanitize=address$(,)undefined -fno-sanitize-recover=all,$(CHECKED)/sanitized.so)
	$(RUN_CHECKED) KAFKA_MSGS_TEST_CORE=$(CHECKED)/sanitized.so LD_PRELOAD=$$($(GCC) -print-file-name=libasan.so) \
	$(BIN)/python -m pytest -n auto $(IN_PARALLEL) $(SELECTION) tests/codec tests/records tests/columns tests/log/test_batch_counts.py \
	tests/vectors tests/recorders tests/campaigns/test_fuzz.py tests/core

valgrind: .venv/dev $(CORE) ## run the core of the tests under valgrind's memcheck; needs gcc and valgrind
	$(call instrumented,$(GCC),$(CHECKED)/plain.so)
	$(RUN_CHECKED) KAFKA_MSGS_TEST_CORE=$(CHECKED)/plain.so \
	valgrind --quiet --error-exitcode=99 --num-callers=20 --suppressions=tests/valgrind.supp \
	$(BIN)/python -m pytest $(SELECTION) tests/records/test_batch.py tests/log/test_batch_counts.py \
	$(addprefix tests/codec/test_,encodings.py rules.py refusals.py foreign_values.py liars.py every_part.py) \
	tests/columns/test_native_encode.py

# A CPython without the GIL, and the packages that tests need there: $(call without_gil,plain) or tsan. Packages come as wheels,
# because pip would compile Arrow for an hour.
FREE := build/free_threading
ONLY_WHEELS := --only-binary :all: attrs crc32c pytest pytest-timeout pytest-xdist 'hypothesis<6.150' jinja2 rich javaproperties \
	click pyarrow setuptools
define without_gil
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(FREE)/$(1)/bin/python || $$(tests/free_threading/build_python.sh $(1)) -m venv --without-pip $(FREE)/$(1)
	$(PIP) uv 'pip>=24.1' && { $(BIN)/uv pip install --quiet --python $(FREE)/$(1)/bin/python $(ONLY_WHEELS) || \
	$(BIN)/pip --python $(FREE)/$(1)/bin/python install --quiet $(ONLY_WHEELS); }
endef
IN_THREADS := tests/free_threading tests/core tests/instances tests/codec/test_native_sharing.py tests/records/test_batch.py \
	tests/records/test_record.py tests/records/test_rows.py tests/columns/test_native.py

free-threading: $(CORE) ## run tests in threads without the GIL, on a CPython that is built from Debian's source, and measure
	$(call without_gil,plain)
	$(FREE)/plain/bin/python setup.py --quiet build_ext --inplace
	PYTHONPATH=.:generator KAFKA_MSGS_THREAD_ROUNDS=30 $(FREE)/plain/bin/python -X gil=0 -m pytest $(IN_THREADS)
	PYTHONPATH=.:generator $(FREE)/plain/bin/python -X gil=0 -m benchmarks threads

# Addresses that are not at random: ThreadSanitizer knows only some layouts of memory.
thread-sanitizer: $(CORE) ## run tests in threads under ThreadSanitizer, on a CPython that is built with it, too
	$(call without_gil,tsan)
	$(call instrumented,$(GCC) -fsanitize=thread,$(CHECKED)/threads.so,$(FREE)/tsan/bin/python)
	PYTHONPATH=.:generator KAFKA_MSGS_BACKEND=c KAFKA_MSGS_TEST_CORE=$(CHECKED)/threads.so \
	TSAN_OPTIONS="halt_on_error=1 suppressions=$(CURDIR)/tests/free_threading/tsan.supp" setarch --addr-no-randomize \
	$(FREE)/tsan/bin/python -X gil=0 -m pytest --capture=sys $(SELECTION) tests/free_threading

.venv/fuzz: .venv/dev
	$(PIP) atheris==3.0.0
	@touch $@

# The targets of the fuzzer, one after the other: messages, parts of them, records, columns, headers of batches.
fuzz: .venv/fuzz $(CORE) ## fuzz the C core, guided by its coverage: make fuzz MINUTES=5; needs clang (or CLANG=clang-14)
	$(call instrumented,$(CLANG) -fsanitize=address$(,)undefined$(,)fuzzer-no-link -fno-sanitize-recover=all,build/fuzz/core.so)
	set -e; for target in messages parts records columns headers; do \
	$(RUN_CHECKED):quarantine_size_mb=16 KAFKA_MSGS_TEST_CORE=build/fuzz/core.so \
	LD_PRELOAD=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/asan_with_fuzzer.so \
	$(BIN)/python -m tests.campaigns.fuzz $$target build/fuzz/$$target -max_total_time=$$(($(MINUTES) * 12)) -timeout=20 \
	-rss_limit_mb=0 -detect_leaks=0 -print_final_stats=1; done

damage: .venv/dev ## damage the files of logs at random and read them: make damage MINUTES=5
	$(BIN)/python -m tests.campaigns.damaged_logs --minutes $(MINUTES)

dry-run: .venv/release ## build a release twice, check it, and install it from an index on loopback: make dry-run PYTHONS="3.11 3.13"
	$(BIN)/python -m tests.packaging.dry_run $(addprefix --python ,$(PYTHONS)) --dist build/release

check: test-system lint sanitize ## everything that CI runs besides `make test`

docs: .venv/dev ## build the site, with the API reference, into build/site; a warning is an error
	$(BIN)/mkdocs build --quiet --strict

generate: .venv/dev ## generate the message classes and the tables of docs/ from message_defs
	$(BIN)/kafka-msgs-generator generate
	$(BIN)/python docs/tools/tables.py
	$(BIN)/python docs/tools/diagrams.py

faults: .venv/dev ## let brokers fail, and count what the client leaves behind: make faults ROUNDS=10000
	ROUNDS=$(ROUNDS) $(BIN)/pytest -q --timeout 0 tests/client/test_faults.py -k leave_no

soak: .venv/dev ## let clients of four languages suffer faults, embedded and on real Kafka, and compare: make soak MINUTES=20
	$(BIN)/python -m tests.campaigns.soak --minutes $(MINUTES)

oracle: .venv/dev ## the full campaign against Kafka's own classes: make oracle N=1000
	$(BIN)/python -m tests.campaigns.oracle --examples $(N)

capture: .venv/dev ## record the captures anew from a real broker and real clients
	$(BIN)/python -m tests.recorders.client_traffic
	$(BIN)/python -m tests.recorders.internal_topics
	$(BIN)/python -m tests.recorders.log_directory
	$(BIN)/python -m tests.recorders.tiered_log
	$(BIN)/python -m tests.recorders.active_log
	$(BIN)/python -m tests.recorders.group_logs
	$(BIN)/python -m tests.recorders.pack_sample
	$(BIN)/python -m tests.recorders.packets

bench: .venv/dev ## the figures, as ratios against named peers
	$(BIN)/python -m benchmarks

clean: ## remove what the targets made
	rm -rf .venv build dist *.egg-info kafka_msgs/*/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis $(wildcard tests/*/oracle/target tests/*/*/oracle/target tests/oracle/target)

.PHONY: help demo demo-all docs test test-system test-slow lint warnings sanitize valgrind free-threading thread-sanitizer fuzz damage dry-run check generate soak oracle capture bench clean
