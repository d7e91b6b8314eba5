# Everything starts here; `make help` lists it. Needs Python 3.11+, make and pip, and nothing else.
# Settings are read from the environment: BACKEND_PORT=9000 make run

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
# the first that runs and is new enough; the tests' PostgreSQL has wheels for 3.11 to 3.13
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$candidate -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null \
	&& echo $$candidate && break; done)
PYTEST := $(BIN)/python -m pytest
# compiled tests are kept: compiling takes half of what collecting them does
unexport PYTHONDONTWRITEBYTECODE
# Each worker collects all tests and has servers of its own, which takes half a minute of processor time: two are enough
# for `make test`, while four keep two cores busy with what waits for processes. Tests are handed out by stealing: of the
# ways that keep files together it is the one that goes on when a worker has crashed
WORKERS = 4
PYTEST_SHARED = $(PYTEST) --numprocesses $(or $(TEST_WORKERS),$(WORKERS)) --dist worksteal --inline-snapshot=disable \
	--ignore tests/console --ignore tests/guides
PROTO_FILES := $(wildcard protos/execution/v1/*.proto)
PROTOC := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I.
PROTOC_OUT = --python_out=$(1) --grpc_python_out=$(1) --mypy_out=quiet:$(1) --mypy_grpc_out=quiet:$(1)
LOCK := uv pip compile --quiet --generate-hashes --no-emit-index-url --universal --python-version 3.11 \
	--exclude-newer 2026-11-14 --exclude-newer-package openai=2026-11-18
# a week before the day on which the clients were locked
CLIENTS_BEFORE ?= 2026-11-16

# what the page is bundled with, installed once for each content of its lock
CONSOLE_PACKAGES = cd backend/console && { cmp -s package-lock.json node_modules/.installed-lock || \
	{ npm ci --silent --no-audit --no-fund && cp package-lock.json node_modules/.installed-lock; }; } && cd ../..

.PHONY: help run test test-all test-console test-guides test-failed test-thorough check verify bench bench-compare bench-search bench-cache test-cache-judges profile eval-retrieval eval-documents presence-test leak-test test-milvus test-upgrade rehearsal images test-clients lock-clients chaos docs release-check setup setup-run setup-ocr protos fmt lock lint types layers house \
	protos-check manifests console console-check console-budgets screenshots

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: setup-run ## start backend, chat_shell and, with no model configured, the demo model; Ctrl-C stops them
	@exec $(BIN)/python -m deploy.demo.run

test: WORKERS = 2
test: export TESTS_BRIEF = 1
test: setup ## try each behaviour once; needs nothing but Python, and starts servers of its own
	@$(PYTEST_SHARED) -m "not combination and not whole"

test-all: setup ## run every test that needs nothing but Python: also each form of a behaviour, and all that is long
	@$(PYTEST_SHARED)

test-console: setup ## drive the page in Chromium, which it needs
	@$(PYTEST) --inline-snapshot=disable tests/console

test-guides: setup ## run every command of README and docs; needs bash, curl and jq
	@$(PYTEST) --inline-snapshot=disable tests/guides

test-thorough: setup ## run every test, and try each property on many more examples, as a nightly run should
	@TESTS_THOROUGH=1 $(MAKE) --no-print-directory test-all

test-upgrade: setup ## run the last release beside this one through an upgrade and a rollback under load; needs the history
	@$(PYTEST) tests/upgrade/epochs.py tests/upgrade/rolling.py -o timeout=900

rehearsal: setup ## roll both services and exchange their certificates under live streams, behind proxies that learn late
	@$(PYTEST) tests/rehearsal/rolling.py -s -o timeout=900

images: setup ## build both images, look into them and let them answer; needs root, and docker or IMAGE_BUILDER
	@$(PYTEST) tests/images/built.py -o timeout=3600

test-clients: setup ## try foreign clients, each in its own environment, on the real pair; writes docs/clients/table.md
	@$(BIN)/python -m tests.clients

test-failed: setup ## run the tests that failed last time once more, one after another
	@$(PYTEST) --last-failed --last-failed-no-failures none --inline-snapshot=disable

check: verify ## what `verify` does, then `make test`, the page's tests and the guides'
	@$(MAKE) --no-print-directory test test-console test-guides

verify: setup lint types layers protos-check manifests console-check ## lint, types, layers and generated code, without the tests

bench: setup ## measure the pair on both stores; prints tables, writes var/bench/*.json
	@$(BIN)/python -m tests.bench

bench-compare: setup ## weigh this state against the release before, on both stores; SHORT=1 takes three minutes
	@$(BIN)/python -m tests.bench.compare $(if $(SHORT),--short)

profile: setup ## show where the CPU of LOAD="a short turn" goes, on both stores; writes flame graphs to var/profile
	@$(BIN)/python -m tests.bench.profile $(if $(LOAD),--load "$(LOAD)")

bench-cache: setup ## measure how much of each prompt a provider's cache would serve; writes var/bench/cache.*
	@$(BIN)/python -m tests.bench.cache

test-cache-judges: setup ## have foreign judges of prefix caches, in an environment of their own, read an export of the real pair
	@$(PYTHON) requirements/install.py cache-judges
	@$(PYTEST) tests/e2e/cache_judges.py -s

test-milvus: setup ## try the search engine beside the database on Milvus Lite, in an environment of its own
	@$(PYTHON) requirements/install.py milvus
	@$(PYTHON) requirements/install.py milvus-lite
	@TESTS_MILVUS=1 $(PYTEST) -q tests/engines/milvus.py tests/contract/test_search_index.py

bench-search: setup ## measure search among 235,000 chunks of real-size documents, on both stores; CHUNKS=1000000 takes half an hour
	@$(BIN)/python -m tests.bench.large_base $(if $(CHUNKS),--chunks $(CHUNKS))

eval-retrieval: setup ## measure retrieval quality on SQLite and on PostgreSQL
	@$(BIN)/python -m tests.bench.eval_retrieval

eval-documents: setup ## measure how many words of documents are found, beside other readers; DOCUMENTS="folder …" for your own, CASES=folder for files with what must be found in them
	@$(if $(CASES),$(BIN)/python -m tests.bench.eval_cases $(CASES))
	@$(BIN)/python -m tests.bench.eval_documents $(DOCUMENTS)
	@$(BIN)/python -m tests.bench.eval_documents --encodings
	@$(BIN)/python -m tests.bench.eval_documents --scans

presence-test: setup ## ask two bases that differ in names, rare words and figures 396 questions in each way; writes nothing
	@$(BIN)/python -m tests.leaks.presence

leak-test: setup ## let hostile models try to get restricted text out; prints tables, writes var/leaks/*.json
	@$(BIN)/python -m tests.leaks.gate
	@$(BIN)/python -m tests.leaks --embedder local
	@$(BIN)/python -m tests.leaks --embedder fake --grade strict
	@$(BIN)/python -m tests.leaks.context
	@$(BIN)/python -m tests.leaks.outside

chaos: setup ## break processes, connections and stores under load for ten minutes; writes var/chaos/*.json
	@$(BIN)/python -m tests.chaos

setup: ## create .venv and install what the tests need
	@$(if $(PYTHON),,echo "Python 3.11 or later is needed; name one with PYTHON=…"; exit 1;) $(PYTHON) requirements/install.py dev

setup-run:
	@$(if $(PYTHON),,echo "Python 3.11 or later is needed; name one with PYTHON=…"; exit 1;) $(PYTHON) requirements/install.py run

setup-ocr: setup-run ## add an engine that reads scanned pages and pictures on this machine (BACKEND_OCR=local)
	@$(PYTHON) requirements/install.py local-ocr

protos: setup ## generate the protobuf code beside its sources
	@$(PROTOC) $(call PROTOC_OUT,.) $(PROTO_FILES)

console: ## bundle the page of backend/console anew after a change of its sources (needs node and npm)
	@$(CONSOLE_PACKAGES) && cd backend/console && npx tsc && node build.mjs

console-check:
	@echo "== page"
	@if command -v npm >/dev/null 2>&1; \
	then $(CONSOLE_PACKAGES) && cd backend/console && npx tsc && node build.mjs --check; \
	else echo "node and npm are not installed: whether the page's bundle is up to date is not looked at"; fi

console-budgets: setup ## print the bytes of the page and the time to its first paint; needs Chromium
	@$(BIN)/python -m tests.console.budgets

screenshots: setup ## draw the pictures of the page in docs/images anew; needs Chromium
	@TESTS_SCREENSHOTS=docs/images $(PYTEST) -q tests/console

release-check: setup-run ## build the wheel twice, compare both, and try it in an empty environment; writes var/release
	@$(PYTHON) requirements/install.py release
	@$(BIN)/python -m deploy.release.check

docs: setup-run ## build the documentation as a site in var/site, without a network once its generator is installed
	@$(PYTHON) requirements/install.py docs
	@$(BIN)/python -m deploy.site.build

fmt: setup ## format, and mend what can be mended
	@$(BIN)/ruff check --fix --quiet; $(BIN)/ruff format

lock: ## resolve the dependencies anew (needs uv)
	@$(LOCK) --group dev -o requirements/dev.txt
	@$(LOCK) --constraint requirements/dev.txt --group run -o requirements/run.txt
	@$(LOCK) --constraint requirements/dev.txt --group backend -o requirements/backend.txt
	@$(LOCK) --constraint requirements/dev.txt --group chat-shell -o requirements/chat-shell.txt
	@$(LOCK) --constraint requirements/dev.txt --no-deps requirements/local-embeddings.in -o requirements/local-embeddings.txt
	@$(LOCK) --constraint requirements/dev.txt requirements/local-ocr.in -o requirements/local-ocr.txt
	@$(LOCK) --constraint requirements/dev.txt requirements/milvus.in -o requirements/milvus.txt
	@$(LOCK) --constraint requirements/dev.txt requirements/milvus-lite.in -o requirements/milvus-lite.txt
	@$(LOCK) requirements/sbom.in -o requirements/sbom.txt
	@$(LOCK) --constraint requirements/sbom.txt requirements/release.in -o requirements/release.txt
	@$(LOCK) requirements/docs.in -o requirements/docs.txt
	@$(LOCK) requirements/cache-judges.in -o requirements/cache-judges.txt

lock-clients: ## resolve the newest versions of the foreign clients (needs uv and npm)
	@for folder in $(dir $(wildcard tests/clients/*/requirements.in)); do \
		(cd $$folder && uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --exclude-newer $(CLIENTS_BEFORE) $$(test ! -f excludes.txt || echo --excludes excludes.txt) \
		requirements.in -o requirements.txt) || exit 1; done
	@for folder in $(dir $(wildcard tests/clients/*/package.json)); do \
		(cd $$folder && npm install --package-lock-only --before $(CLIENTS_BEFORE)) || exit 1; done

lint: setup
	@echo "== lint"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: setup
	@echo "== types"
	@$(BIN)/pyright

layers: setup
	@echo "== layers"
	@$(BIN)/lint-imports --no-cache --no-logo

house: setup
	@echo "== sizes, names, locks"
	@$(PYTEST) -q tests/house

protos-check: setup
	@echo "== protobuf"
	@$(BIN)/buf lint --config protos/buf.yaml --path protos
	@rm -rf var/protos-check && mkdir -p var/protos-check
	@$(PROTOC) $(call PROTOC_OUT,var/protos-check) $(PROTO_FILES)
	@diff -r -x '*.proto' -x '*.md' -x '*.yaml' -x '__init__.py' -x '__pycache__' protos var/protos-check/protos \
	|| { echo "generated code is stale: run make protos"; exit 1; }

manifests:
	@echo "== manifests"
	@if command -v kubectl >/dev/null 2>&1; \
	then for overlay in deploy/kustomize/overlays/*; do kubectl kustomize "$$overlay" >/dev/null || exit 1; done; \
	else echo "kubectl is not installed: overlays are not rendered, and the tests look at the base alone"; fi
