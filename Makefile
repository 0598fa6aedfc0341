# One command sets everything up and then does the work. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/.package
STAMP := $(VENV)/.installed
# One more than there are cores: a third of the time of a test is waiting for somebody.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(1 + len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)))')
CLIENTS := $(VENV)/.clients
SMALL := $(patsubst %,tests/%/npm/node_modules/.installed,agents inspector workflows)
ALONE := .venv-litellm/.installed .venv-aider/.installed
NPM := $(patsubst %/package.json,%/node_modules/.installed,$(wildcard tests/*/*/package.json examples/*/package.json))
PYTEST_ARGS ?=
# Whatever the environment says: the hundreds of programs that tests start find everything compiled.
export PYTHONDONTWRITEBYTECODE :=

say = @printf '\033[1m==>\033[0m %s\n'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run test check lint format docs pictures clients cluster bench clean

help: ## list the targets
	@echo "Thoughtline: make <target>"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "PYTHON=... picks the interpreter (3.11 or newer); PYTEST_ARGS=... goes to pytest, JOBS=... is how many at once."

setup: $(STAMP) ## create .venv and install everything into it

# What it takes to run, and nothing that only tests need.
$(PACKAGE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Thoughtline needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "Name another one, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@set -e; \
	if command -v uv >/dev/null 2>&1; then \
	  printf '\033[1m==>\033[0m %s\n' "setting up $(VENV) with uv"; \
	  test -x $(BIN)/python || uv venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV); \
	  uv pip install --quiet --python $(BIN)/python --editable .; \
	else \
	  printf '\033[1m==>\033[0m %s\n' "setting up $(VENV) with pip"; \
	  $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .; \
	fi
	@touch $@

$(STAMP): $(PACKAGE) pyproject.toml
	$(say) "installing what tests and checks need"
	@set -e; \
	if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --group dev; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev; \
	fi
	@touch $@

run: $(PACKAGE) ## set up, play the demo, then run the gateway until Ctrl-C
	$(say) "thoughtline demo"
	@$(BIN)/thoughtline demo
	$(say) "thoughtline serve"
	@exec $(BIN)/thoughtline serve

test: lint $(CLIENTS) $(SMALL) $(VENV)/.browser $(VENV)/.servers ## set up, then every check and every test
	$(say) "pytest"
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

# In process, with few examples: what a mistake breaks first.
QUICK := checks log replay providers verify dialects engine
check: lint ## style, types and what starts no process, in a minute: for while you work
	$(say) "pytest, the quick part"
	@HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not slow" $(QUICK:%=tests/%) $(PYTEST_ARGS)

lint: $(STAMP) ## style, types, import direction, names and size
	$(say) "ruff check"
	@$(BIN)/ruff check .
	$(say) "ruff format --check"
	@$(BIN)/ruff format --check .
	$(say) "mypy --strict"
	@$(BIN)/mypy --strict
	$(say) "lint-imports"
	@$(BIN)/lint-imports
	$(say) "names"
	@$(BIN)/python -m pytest -q -n 0 tests/checks
	$(say) "how much there is of it"
	@$(BIN)/python -m benchmarks.footprint

format: $(STAMP) ## format the code
	$(say) "ruff"
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: $(STAMP) ## bring the reference up to date with the code
	$(say) "docs/reference"
	@$(BIN)/python docs/generate.py docs

pictures: $(STAMP) $(VENV)/.browser ## take the documentation's pictures of the inspector again
	$(say) "docs/img"
	@PYTHONPATH=tests $(BIN)/python -m inspector.pictures docs/img

clients: $(CLIENTS) $(ALONE) $(NPM) $(VENV)/.browser $(VENV)/.servers ## install all real clients, then let each of them talk in every way
	$(say) "pytest with every client"
	@E2E=all $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/e2e tests/agents/ui tests/examples tests/workflows $(PYTEST_ARGS)

$(CLIENTS): $(STAMP)
	$(say) "installing the SDKs that tests drive (another minute)"
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --group clients; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --group clients; \
	fi
	@touch $@

# For the tests of pages. Where it cannot be had, they are skipped and say so.
$(VENV)/.browser: $(STAMP)
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then touch $@; \
	elif command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	  printf '\033[1m==>\033[0m %s\n' "installing Chromium"; \
	  { apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; }; } >/dev/null 2>&1 \
	    && touch $@ || echo "Chromium could not be installed, so the tests of pages are left out."; \
	else \
	  echo "There is no Chromium here, so the tests of pages are left out."; \
	  echo "Install it (Debian: sudo apt-get install chromium fonts-dejavu-core) and run this again."; \
	fi 2>/dev/null

# For the tests of several machines and of a shell. Where they cannot be had, those tests are skipped
# and say so. The packages' own services are not started (RUNLEVEL).
$(VENV)/.servers: $(STAMP)
	@PATH=$$PATH:/usr/sbin; missing=; for program in nginx pgbouncer fish; do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
	if test -z "$$missing"; then touch $@; \
	elif command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	  printf '\033[1m==>\033[0m %s\n' "installing$$missing"; export RUNLEVEL=1; \
	  { apt-get install -y -qq --no-install-recommends $$missing || { apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; }; } >/dev/null 2>&1 \
	    && touch $@ || echo "$$missing could not be installed, so some tests are left out."; \
	else \
	  echo "Without$$missing some tests are left out."; \
	  echo "Install them (Debian: sudo apt-get install$$missing) and run this again."; \
	fi

# These cannot live beside the others: each wants older versions of some of them.
$(ALONE): .venv-%/.installed: $(STAMP)
	$(say) "installing $* into $(@D) (another minute)"
	@set -e; if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(@D); \
	  uv pip install --quiet --python $(@D)/bin/python --group $*; \
	else \
	  $(PYTHON) -m venv $(@D); \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'; \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --group $*; \
	fi
	@touch $@

%/node_modules/.installed: %/package-lock.json
	@if command -v npm >/dev/null 2>&1; then \
	  printf '\033[1m==>\033[0m %s\n' "npm ci in $*"; \
	  npm ci --prefix $* --no-audit --no-fund --loglevel=error && touch $@; \
	else \
	  echo "There is no npm here, so the clients in $* are left out."; \
	fi

cluster: $(STAMP) $(VENV)/.servers ## PostgreSQL, two gateways and nginx on this machine, until Ctrl-C
	$(say) "two gateways behind nginx, over one PostgreSQL"
	@PYTHONPATH=tests exec $(BIN)/python deploy/cluster.py

bench: $(STAMP) ## set up, then measure
	$(say) "benchmarks"
	@$(BIN)/python -m benchmarks

clean: ## remove .venv, caches and builds
	@rm -rf $(VENV) $(dir $(ALONE)) tests/*/*/node_modules examples/*/node_modules examples/*/dist build dist htmlcov .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
