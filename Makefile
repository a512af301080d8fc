# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake and the tools. `make help` lists the targets.

ENVS := torch-2.11.0 torch-2.6.0 torch-2.15.0 torch-2.11.0-slim prog-notebooks prog-servers
PROGRAM_ENVS = $(filter prog-%,$(shell tools/envs --list))
PYTHON = $(shell tools/envs --path torch-2.11.0)
SITE = build/site
DOCS_PYTHON = $(shell tools/envs --path docs)
BENCH_PYTHON = python3
VALIDATE_PYTHON = python3
VALIDATE_JSON = bench/results/validate.json

.PHONY: help build demo test long bench site validate-gpu deps envs clean
.DEFAULT_GOAL := build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

deps: ## install, or name, the system packages that are missing
	@tools/deps test

build: ## build/bin/tonnage, which runs from the checkout
	@tools/deps build
	@mkdir -p build && tools/fetch_headers build/headers >/dev/null
	@cmake --preset release >build/configure.log || { cat build/configure.log; exit 1; }
	@cmake --build --preset release
	@ln -sfn release/bin build/bin

demo: build ## a fine-tuning run that does not fit a 12 GB card, explained
	@examples/demo

envs: ## the Python environments that the tests run programs in
	@tools/envs $(ENVS)

test: build ## what everybody runs (some 10 minutes on 2 cores)
	@tools/deps test
	@tools/envs $(ENVS)
	@$(PYTHON) tools/run_tests.py

long: build ## what takes hours
	@tools/deps long
	@tools/envs $(ENVS) $(PROGRAM_ENVS) docs
	@$(PYTHON) tools/run_tests.py --long

bench: build ## accuracy against measured runs, host cost, cost of a call
	@tools/envs torch-2.11.0 torch-2.6.0
	$(BENCH_PYTHON) bench/call_cost.py
	$(BENCH_PYTHON) bench/host_cost.py
	$(BENCH_PYTHON) bench/accuracy/run.py

# Not --quiet: a warning that is not printed does not count for --strict.
site: ## the documentation, into build/site or SITE=DIR
	@tools/envs docs
	@NO_MKDOCS_2_WARNING=1 $(DOCS_PYTHON) -m mkdocs build --strict --config-file doc/site/mkdocs.yml --site-dir $(abspath $(SITE))
	@echo "$(SITE)/index.html"

validate-gpu: build ## this machine's GPU beside its virtual copy; go on with it by calling it again
	build/bin/tonnage validate --json $(VALIDATE_JSON) $(VALIDATE_PYTHON)

clean: ## remove what was built; environments stay
	rm -rf build
