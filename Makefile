# All set-up goes through requirements/install.py, which does only what has not been done yet.

.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin

# Any Python from 3.11 on; another one: make PYTHON=/path/to/python3.12 ...
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; exit; fi; \
	done; echo python3)

# For one test: make test TESTS=tests/core/test_acquire.py
TESTS ?=

.PHONY: help demo test check venv demo-venv lint types layers format bench bench-redelivery crash soak conformance docs docs-serve lock clean clean-venv

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1~/p' $(MAKEFILE_LIST) | awk -F'~' '{printf "%-14s %s\n", $$1, $$2}'

demo: demo-venv  ## install what is needed, then show the main job: publish, take, crash, sign off, nothing lost
	$(BIN)/acklog demo

test: venv lint types layers  ## format, lint, types, layers, all tests; warnings are errors
	$(BIN)/python -m pytest $(TESTS)

check: venv lint types layers  ## the quick part of `make test`: without tests that start real processes
	$(BIN)/python -m pytest -q -m 'not system' --ignore=tests/system $(TESTS)

venv: python  ## .venv with the package and all that developing it needs
	@$(PYTHON) requirements/install.py dev

demo-venv: python
	@$(PYTHON) requirements/install.py demo

.PHONY: python
python:
	@command -v $(PYTHON) >/dev/null || { \
		echo 'acklog: no Python found.' >&2; \
		echo 'Cure: install Python 3.11 or newer with its venv module (Debian: apt install python3 python3-venv;' >&2; \
		echo 'macOS: brew install python; Windows: python.org), or name it: make PYTHON=/path/to/python ...' >&2; exit 1; }

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: venv
	$(BIN)/mypy

layers: venv
	@$(BIN)/lint-imports > .venv/layers.log 2>&1 && tail -n 1 .venv/layers.log || { cat .venv/layers.log; exit 1; }

format: venv  ## format the code and mend what can be mended
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

bench: venv  ## compare with Apache Kafka on this machine; a look: make bench BENCH=--quick
	$(BIN)/python bench/run.py $(BENCH)

bench-redelivery: venv  ## redelivery, waiting, holding, redrive, the own client: minutes; a look: BENCH=--quick
	$(BIN)/python bench/redelivery.py $(BENCH)

crash: venv  ## kill -9 of a server under load, again and again: make crash ROUNDS=50
	$(BIN)/python -m acklog.testing.crash --rounds $(or $(ROUNDS),50)

soak: venv  ## everything at once, with kill -9 of server and subscribers: make soak SECONDS=600
	$(BIN)/python -m acklog.testing.soak --seconds $(or $(SECONDS),600)

conformance: venv  ## outside clients' suites: make conformance SUITES=folder [BOOTSTRAP=host:port] [NAMES=...]
	@test -n '$(SUITES)' || { \
		echo 'usage: make conformance SUITES=folder [BOOTSTRAP=host:port] [NAMES="confluent-share kafka-python"]' >&2; exit 2; }
	$(BIN)/python -m acklog.testing.conformance --suites '$(SUITES)' --allowed conformance/allowed.txt \
		$(if $(BOOTSTRAP),--bootstrap '$(BOOTSTRAP)') $(NAMES)

docs: venv  ## build the documentation into site/, strictly
	$(BIN)/zensical build --clean --strict

docs-serve: venv  ## show the documentation while writing it
	$(BIN)/zensical serve

lock: venv  ## write the lock files anew; UPGRADE=1 takes newer versions
	cd requirements && for name in demo dev; do \
		../$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
			--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) $$name.in --output-file $$name.txt || exit 1; \
	done

clean:  ## remove what was built, not .venv and no data
	rm -rf site dist build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

clean-venv:
	rm -rf .venv
