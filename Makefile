# Two commands matter: `make demo` (base install, a real plan end to end) and `make test` (all that CI runs).
# Everything is installed into .venv at the versions of constraints*.txt; stamps make repeated runs cheap.

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
# Extra arguments for installing PyTorch, such as an index of CPU-only builds (smaller on machines without GPUs).
TORCH_PIP_ARGS ?=
# Releases of PyTorch, TorchRec and its kernels that belong together.
TORCHREC_PINS ?= constraints-torchrec.txt
PYTEST_ARGS ?=
# Test processes, two more than CI has cores, as many tests wait; the tests of one file stay in one, because they may share
# a service. The longest files start first (tests/support/longest.py).
TEST_PROCESSES ?= 4
PYTEST = $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)
# Public data and the peers' figures that suites of `make bench` take in.
SHARED ?= ../shared
# Suites of benchmarks/optimizer.py to run, how many instances of each, and any other argument of it.
SUITE ?= smoke
LIMIT ?=
BENCH_ARGS ?=

# Modules are kept compiled, even where the environment says not to: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test thorough generators torchrec-newest test-torchrec serve check lint bench reality format generated chromium postgres clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      plan MLPerf DLRM-DCNv2 on 8 and on 2x8 ranks, publish the plan, fetch it back"
	@echo "make serve     the service on http://127.0.0.1:8080 (console under /docs)"
	@echo "make check     format, lint, types, import contracts, tests: what guards a change"
	@echo "make test      install what the tests need; run one test of each kind that guards a promise (about 5 minutes)"
	@echo "make thorough  every test: all failpoints, statements, routes, sizes, browsers and clusters (about 30 minutes)"
	@echo "make generators install the generators of clients that the thorough tests run"
	@echo "make generated write the OpenAPI document and the client's types again"
	@echo "make torchrec-newest  the tests that train real TorchRec, with its newest release (installs 5 GB)"
	@echo "make format    repair what the formatter and the linter can"
	@echo "make reality   predicted next to measured for public series, and docs/reality.md from that (SHARED=)"
	@echo "make bench     every partitioner and the peers on one table (SUITE=, LIMIT=; see benchmarks/README.md)"

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; run make PYTHON=/path/to/python3.11 ..."; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.stamp-base: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing shardplan into $(VENV) ..."
	$(PIP) install --constraint constraints.txt --editable .
	@echo "Compiling the search for this machine (once, about half a minute) ..."
	$(BIN)/python -m planner.solver.partitioners.kernels.warm_up
	@touch $@

# torchrec's metadata asks for the CUDA build of fbgemm-gpu, whose files overwrite the CPU build's:
# hence PyTorch first, then torchrec and the CPU kernels without their dependencies, then the rest.
$(VENV)/.stamp-dev: $(VENV)/.stamp-base constraints-dev.txt $(TORCHREC_PINS)
	@echo "Installing the checkers, and TorchRec for CPU, into $(VENV) ..."
	$(PIP) install $(TORCH_PIP_ARGS) --constraint constraints-dev.txt --constraint $(TORCHREC_PINS) torch
	$(PIP) install --no-deps --constraint $(TORCHREC_PINS) torchrec fbgemm-gpu-cpu
	$(PIP) install --constraint constraints-dev.txt --constraint $(TORCHREC_PINS) tensordict torchmetrics tqdm pyre-extensions
	$(PIP) install --constraint constraints-dev.txt --constraint $(TORCHREC_PINS) --editable '.[dev]'
	@touch $@

# The launcher's wheel is a copy of api/client: installed again whenever the source changes.
CLIENT_SOURCES = $(wildcard api/client/*.py api/client/*/*.py api/client/py.typed api/client/README.md \
	api/client/pyproject.toml)

$(VENV)/.stamp-client: $(VENV)/.stamp-base $(CLIENT_SOURCES)
	$(PIP) install --constraint constraints.txt --force-reinstall --no-deps ./api/client
	@touch $@

demo: $(VENV)/.stamp-base
	$(BIN)/python examples/demo.py

serve: $(VENV)/.stamp-base
	$(BIN)/shardplan serve

chromium:
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| echo "No Chromium and no way to install it here: the browser tests are skipped."

# PostgreSQL's programs; tests start a server of their own, so the one that Debian would start is not wanted.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } \
		|| echo "No PostgreSQL and no way to install it here: the tests of shared databases are skipped."

# Chromium is wanted only while there are tests that need one.
test: $(VENV)/.stamp-dev $(VENV)/.stamp-client postgres $(if $(shell grep -rls "mark\.browser" tests),chromium)
	$(PYTEST)

# TESTS_THOROUGH is read by tests/support/thorough.py.
thorough: export TESTS_THOROUGH = 1
thorough: generators test

# Generators of clients, for tests/generated_clients: one for Python, one for TypeScript.
GENERATORS = .venv-generators
TYPESCRIPT = tests/generated_clients/typescript

generators: $(GENERATORS)/.stamp
	@command -v npm >/dev/null || echo "No npm: the test of the client in TypeScript is skipped."
	@! command -v npm >/dev/null || { cmp -s $(TYPESCRIPT)/package-lock.json $(TYPESCRIPT)/node_modules/.stamp \
		|| { npm --prefix $(TYPESCRIPT) ci --omit=optional && cp $(TYPESCRIPT)/package-lock.json $(TYPESCRIPT)/node_modules/.stamp; }; }

$(GENERATORS)/.stamp: constraints-generators.txt | $(BIN)/python
	$(BIN)/python -m venv $(GENERATORS)
	$(GENERATORS)/bin/python -m pip --disable-pip-version-check --quiet --quiet install \
		--constraint constraints-generators.txt openapi-python-client
	@touch $@

# Tests that train real TorchRec or ask it, with its newest release, in an environment of its own.
torchrec-newest:
	$(MAKE) VENV=.venv-torchrec-newest TORCHREC_PINS=constraints-torchrec-newest.txt test-torchrec

test-torchrec: $(VENV)/.stamp-dev
	$(PYTEST) -m torchrec

# What guards a change: the quick checks first, then the tests.
check: lint
	$(MAKE) test

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.stamp-base
	$(BIN)/python benchmarks/optimizer.py --suite $(SUITE) --shared $(SHARED) $(if $(LIMIT),--limit $(LIMIT)) $(BENCH_ARGS)

reality: $(VENV)/.stamp-base
	$(BIN)/python benchmarks/reality.py --data $(SHARED)/measured_gpu --results benchmarks/measured/reality.json --plans
	$(BIN)/python benchmarks/prices/reality/page.py

# Files that tests compare with what they are generated from.
generated: $(VENV)/.stamp-base
	$(BIN)/python -m api.http.openapi.write_file docs/openapi.json api/client/plan_types.py api/client/compact_form.py api/client/reshard_bands.py

format: $(VENV)/.stamp-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
