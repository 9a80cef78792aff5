# envfactory: the commands a person needs. `make demo` and `make test` install what they need, without root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KIND := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo cpu)
LOCK := requirements/$(KIND).lock
READY := $(VENV)/ready-$(KIND)
SHELL := bash
.SHELLFLAGS := -o pipefail -c
PIP := $(BIN)/python -m pip install --progress-bar off --no-deps
# Of what pip says, a line for each large file and one when they are unpacked.
LINES := sed -un -e 's/^ *\(Downloading\|Using cached\) \([^ ]*\) \(([0-9.]* [MG]B)\)$$/setup: \2 \3/p' -e 's/^Installing collected.*/setup: unpacking/p'
# pip takes a build for CPUs where one is offered whose hash is known, else the index's own.
ifeq ($(KIND),cpu)
TORCH = $(PIP) --require-hashes -r requirements/torch-cpu.lock 2>/dev/null | $(LINES) \
	|| echo "setup: no known CPU build of torch is offered: the index's own brings CUDA's libraries, about 4 GB of disk more"
else
TORCH = true
endif
SHORT ?=
DATA ?= data/demo$(if $(SHORT),-short)
CONFIG := $(if $(SHORT),configs/demo-short.toml,configs/demo.toml)

.PHONY: help setup demo smollm2 test test-fast test-long bench-sandboxes bench-repository lint format clean

help: ## what there is
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## install into .venv: the locked packages, hashes checked (GPU builds where there is a GPU)

$(READY): $(LOCK) pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11, 4) else "envfactory needs Python 3.11.4 or newer: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setup: $$(grep -c == $(LOCK)) packages into $(VENV), hashes checked, $(if $(filter gpu,$(KIND)),with the builds for the GPU,for the CPU); some minutes"
	@$(TORCH)
	@$(PIP) --require-hashes -r $(LOCK) | $(LINES)
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(PIP) --require-hashes -r requirements/cuda.lock | $(LINES)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@
	@echo "setup: done, $$(du -sh $(VENV) | cut -f1) in $(VENV)"

demo: setup ## the main job, end to end: from real source code to a measurably better policy (SHORT=1: a small one)
	$(BIN)/factory nightly --config $(CONFIG) --data $(DATA)
	$(BIN)/factory train --config $(CONFIG) --data $(DATA)
	$(BIN)/factory report --config $(CONFIG) --data $(DATA)
	@echo "(factory is $(BIN)/factory; README.md, \"Ask the registry\", has more to ask)"

smollm2: setup ## the same with a pretrained policy, SmolLM2-135M, on repository tasks
	$(BIN)/factory nightly --config configs/smollm2.toml
	$(BIN)/factory report --config configs/smollm2.toml

test: setup ## every test but the long ones
	$(BIN)/python -m pytest -m 'not long' -n 2 --dist loadfile --no-loadscope-reorder

test-fast: setup ## seconds, for every change
	$(BIN)/python -m pytest -m 'not long and not slow and not docker and not vllm' -n 2 --dist loadfile

test-long: setup ## kills, soaks and matrices
	$(BIN)/python -m pytest -m long

bench-sandboxes: setup ## our sandboxes against plain containers (ARGS="--repeats 5 --live 1,16": a quick one)
	$(BIN)/python -m tests.benchmarks.sandboxes $(ARGS)

bench-repository: setup ## our validation against swesmith's, which gets an environment of its own in data/ (ARGS="--limit 10": a quick one)
	$(BIN)/python -m tests.benchmarks.repository $(ARGS)

lint: setup ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## rewrite to the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what the demo and the tools left
	rm -rf data/demo data/demo-short .mypy_cache .ruff_cache .import_linter_cache build dist
