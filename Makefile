# The project's commands; `make` alone lists them. All paths are relative, so a checkout may lie anywhere.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup test test-system unit unit-setup unit-python pythons minio browser lint format demo docs bench-startup bench-extract bench-normalize bench-calls bench-agreement bench-runtime bench-graph bench-crash bench-run bench-ask bench-explorer bench-incremental bench-aging bench-keys bench-writers bench-activities bench-timeline callgraph lock

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check --no-input
LOCKS := requirements/build.lock requirements/dev.lock
SOURCES := src tests $(wildcard bench examples)
say = @printf '==> %s\n'

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.ready ## prepare .venv, the jars and the class archive; afterwards .venv/bin/codeanatomy is the command
	$(say) 'ready: $(BIN)/codeanatomy'

# Two processes take about as long as each other: tests with the Spark session, and what is done beside them.
# The other Pythons use the processor while these wait.
BESIDE_SPARK := tests/unit/maintain tests/unit/lake
# Processes that tests start import compiled modules, also where the environment says not to write them.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -q -rfEs -m 'not system' --durations=15

test: lint ## set up, lint, check types and imports, run the tests (10 minutes)
	$(say) 'tests: those that share a Spark session and, beside them, the others'
	@mkdir -p build; $(MAKE) pythons AT_ONCE=1 >build/pythons.log 2>&1 & pythons=$$!; \
	$(PYTEST) -p no:cacheprovider $(addprefix --ignore=,tests/spark $(BESIDE_SPARK)) >build/without.log 2>&1 & others=$$!; \
	{ $(PYTEST) tests/spark $(BESIDE_SPARK) 2>&1; echo $$? >build/with.code; } | tee build/with.log; \
	wait $$others; others=$$?; cat build/without.log; printf '==> %s\n' 'both parts'; \
	grep -hE '^(FAILED|ERROR) |^[0-9]+ (passed|failed|error).* in |^Timeout' build/with.log build/without.log; \
	code=$$(($$(cat build/with.code) + others)); wait $$pythons || code=1; cat build/pythons.log; exit $$code

# Two parts again.
UNIT_FIRST := tests/unit/extract tests/unit/normalize
# The files that are left out import PySpark, or packages that only they need.
UNIT_SECOND := tests/unit/graph tests/unit/relate tests/unit/sources $(filter-out %/test_views.py %/test_costs.py \
	%/test_sql_functions.py %/test_tracing.py,$(wildcard tests/unit/catalog/test_*.py tests/unit/test_*.py))
UNIT_VERSION = $(if $(PYTHON),$(shell '$(PYTHON)' -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
UNIT_VENV = $(if $(PYTHON),.venv-$(UNIT_VERSION),$(VENV))
UNIT_TEST = env -u PYTHONDONTWRITEBYTECODE PATH="$$PWD/$(UNIT_VENV)/bin:$$PATH" PYTHONPATH=src $(UNIT_VENV)/bin/python \
	-m pytest -q -rfEs -p no:cacheprovider

unit: unit-setup ## unit tests that need no JVM (PYTHON=python3.13: on that interpreter, in its own environment)
	$(say) "unit tests on $$($(UNIT_VENV)/bin/python --version)"
	@mkdir -p build; $(UNIT_TEST) $(UNIT_SECOND) >build/unit.log 2>&1 & second=$$!; \
	$(UNIT_TEST) $(UNIT_FIRST); code=$$?; wait $$second || code=1; cat build/unit.log; exit $$code

unit-setup: $(UNIT_VENV)/.installed

# What depends on the interpreter; tools that are processes of their own do not.
PER_PYTHON := tests/unit/extract tests/unit/normalize tests/unit/graph \
	$(addprefix --ignore=tests/unit/extract/test_,pyrefly.py scip_python.py tool_tasks.py)

# So many of them at once.
AT_ONCE := 2

pythons: $(VENV)/.installed ## tests of extract, normalize and graph on every other Python here (3.11 or newer, PATH and pyenv)
	@others=$$($(find_others)); [ -n "$$others" ] || { echo '==> no other Python from 3.11 on was found'; exit 0; }; \
	mkdir -p build; printf '%s\n' $$others | xargs -P $(AT_ONCE) -I % $(MAKE) unit-python PYTHON=%

unit-python:
	@log=build/python-$(UNIT_VERSION).log; $(MAKE) unit-setup >$$log 2>&1 || { \
	printf '==> %s is skipped, its environment cannot be made: %s\n' '$(PYTHON)' "$$(grep -m1 ERROR $$log)"; exit 0; }; \
	$(UNIT_TEST) $(PER_PYTHON) >$$log 2>&1; code=$$?; \
	printf '==> unit tests on Python %s\n' '$(UNIT_VERSION)'; cat $$log; exit $$code

test-system: lint ## kills, clusters, whole packages, long random runs (hours)
	$(say) 'system tests'
	@HYPOTHESIS_PROFILE=system $(PY) -m pytest -q -rfEs -m 'system or hypothesis'

minio: $(VENV)/.ready ## build the S3 server of the tests with Go (minutes); without it they are skipped
	@PYTHONPATH=tests $(PY) -c 'from support.minio import installed; print(installed())'

browser: ## install Debian's chromium for the tests of the explorer; without it they are skipped
	@command -v chromium >/dev/null || apt-get install --yes --no-install-recommends chromium

lint: $(VENV)/.ready ## ruff, mypy and the import contracts
	$(say) 'lint, types, imports'
	@$(PY) -m ruff check --quiet $(SOURCES)
	@$(PY) -m ruff format --quiet --check $(SOURCES) || { echo 'not formatted: run `make format`'; exit 1; }
	@$(PY) -m mypy --no-error-summary
	@out=$$($(BIN)/lint-imports --no-logo 2>&1) || { printf '%s\n' "$$out"; exit 1; }

format: $(VENV)/.ready ## format the code and apply the safe fixes
	@$(PY) -m ruff check --quiet --fix-only $(SOURCES)
	@$(PY) -m ruff format --quiet $(SOURCES)

# Without the type checker, which not every machine has: the output is that in README.md.
demo: $(VENV)/.ready ## build the graph of a small shop on Spark, and ask what may break if a method changes
	@rm -rf .demo && $(BIN)/codeanatomy build shop=tests/cases/ask/shop --types off --lake .demo/lake
	$(say) 'codeanatomy impact shop.cart.Cart.total --lake .demo/lake'
	@$(BIN)/codeanatomy impact shop.cart.Cart.total --lake .demo/lake --format table
	$(say) 'the tables are plain Delta: examples/demo.py reads them with deltalake and PyArrow'
	@$(PY) examples/demo.py

docs: $(VENV)/.ready ## regenerate the generated pages of docs/
	@$(BIN)/codeanatomy docs

bench-startup: $(VENV)/.ready ## time from process start to the first committed row, against a plain session
	@$(PY) bench/startup.py

bench-extract: $(VENV)/.ready ## the extract stage over the standard library, against a plain process pool
	@PYTHONPATH=tests $(PY) bench/extract.py

bench-normalize: $(VENV)/.ready ## what normalize adds to extract over the standard library
	@PYTHONPATH=tests $(PY) bench/normalize.py

bench-calls: $(VENV)/.ready ## call sites with one, several and no targets, and what the analysis costs
	@PYTHONPATH=tests $(PY) bench/calls.py

bench-agreement: $(VENV)/.ready ## agreement with scip-python and pyrefly, disagreements by cause
	@PYTHONPATH=tests $(PY) bench/agreement.py

bench-runtime: $(VENV)/.ready ## calls that happen in the test suites of real packages, and the share we have
	@PYTHONPATH=tests $(PY) bench/runtime.py

bench-graph: $(VENV)/.ready ## whole builds of requests to the standard library, beside Joern and a bare PySpark + Delta process
	@PYTHONPATH=tests $(PY) bench/graph.py

bench-run: $(VENV)/.ready ## a whole small build and its parts, against a bare PySpark + Delta process
	@PYTHONPATH=tests $(PY) bench/run.py

bench-timeline: $(VENV)/.ready ## a build of django's source distribution beside Joern, with a time line of both cores
	@PYTHONPATH=tests $(PY) bench/timeline.py

bench-crash: $(VENV)/.ready ## builds killed at random moments: what readers see, and what the next build makes
	@PYTHONPATH=tests $(PY) bench/crash.py

bench-ask: $(VENV)/.ready ## latency of each verb on the lake of django with its tests: cold process, warm, in a Spark session
	@PYTHONPATH=tests $(PY) bench/ask.py --sdist

bench-explorer: $(VENV)/.ready ## latency of the explorer's pages on the lake of django, first paint, memory
	@PYTHONPATH=tests $(PY) bench/explorer.py

bench-incremental: $(VENV)/.ready ## refreshes of django after edits, on local processes and on Spark, against a full build of it
	@PYTHONPATH=tests $(PY) bench/incremental.py

bench-aging: $(VENV)/.ready ## a django lake after 50 refreshes, before and after maintenance; nothing is lost
	@PYTHONPATH=tests $(PY) bench/aging.py

bench-keys: $(VENV)/.ready ## 50 million definition keys: seconds, and collisions against those that chance predicts
	@$(PY) bench/keys.py $(COUNT)

bench-writers: $(VENV)/.ready ## Spark's sort and writer beside Arrow files, on the rows of LAKE
	@PYTHONPATH=tests $(PY) bench/writers.py --lake $(LAKE)

bench-activities: $(VENV)/.ready ## processor seconds of a build of django's source distribution by activity
	@PYTHONPATH=tests $(PY) bench/activities.py

callgraph: $(VENV)/.ready ## precision and recall of the labelled call graphs, per construct
	@PYTHONPATH=tests $(PY) -m support.callgraph_table

lock: ## resolve requirements/*.lock anew (UPGRADE=--upgrade for newer versions)
	$(say) 'resolving requirements/*.lock'
	@$(find_python); "$$python" -m venv --clear build/lock
	@build/lock/bin/python -m pip --quiet --disable-pip-version-check install uv
	@$(compile) requirements/build.in --output-file requirements/build.lock
	@$(compile) pyproject.toml --extra dev --constraint requirements/build.lock --output-file requirements/dev.lock
	@rm -rf build/lock

compile = build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command 'make lock' $(UPGRADE)

# Sets $python to the first interpreter that is new enough and can make a virtual environment.
find_python = python=; for name in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	"$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { python=$$name; break; }; done; \
	[ -n "$$python" ] || { echo 'Python 3.11 or newer with the venv module is needed: install it (Debian, Ubuntu:' \
	'apt-get install python3 python3-venv; macOS: brew install python@3.13) or name one: make PYTHON=/path/to/python3'; exit 4; }

# Prints one interpreter of each further minor version.
find_others = own=$$($(PY) -c 'import sys; print(sys.version_info[1])'); for minor in 11 12 13 14 15; do \
	[ $$minor = $$own ] || for python in python3.$$minor "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$minor.*/bin/python; do \
	"$$python" -c "import ensurepip, sys, venv; sys.exit(sys.version_info[1] != $$minor)" 2>/dev/null \
	&& { echo "$$python"; break; }; done; done

# What the unit tests import, and what that needs.
UNIT_PACKAGES := click deprecated duckdb hypothesis iniconfig libcst markdown-it-py mdurl msgspec numpy packaging \
	pluggy protobuf pyarrow pygments pyrefly pytest pyyaml pyyaml-ft rich ruff sortedcontainers sqlglot tree-sitter \
	tree-sitter-python typing-extensions

# A wheel that an interpreter lacks is no reason to compile for minutes.
.venv-%/.installed: requirements/dev.lock
	$(say) 'environment of the unit tests: $(@D)'
	@'$(PYTHON)' -m venv --clear $(@D)
	@awk -v names=' $(UNIT_PACKAGES) ' '/^[a-z]/ {split($$1, name, "=="); on = index(names, " " name[1] " ")} on' \
	requirements/dev.lock >$(@D)/unit.lock
	@$(@D)/bin/python -m pip --quiet --disable-pip-version-check --no-input install --no-deps --no-compile --only-binary :all: \
	--require-hashes --requirement $(@D)/unit.lock
	@touch $@

$(VENV)/.installed: pyproject.toml $(LOCKS)
	@$(find_python); $(PY) -m pip --version >/dev/null 2>&1 \
	|| { echo "==> $(VENV) with $$("$$python" --version)"; "$$python" -m venv --clear $(VENV); }
	$(say) 'packages by requirements/*.lock (the first time about 700 MB: minutes)'
	@$(PIP) install --require-hashes --requirement requirements/build.lock
	@$(PIP) install --require-hashes --no-build-isolation --requirement requirements/dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready: $(VENV)/.installed $(wildcard src/codeanatomy/spark/ja*.py src/codeanatomy/spark/class_archive.py)
	$(say) 'jars and class archive'
	@$(BIN)/codeanatomy setup
	@touch $@
