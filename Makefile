# Two commands matter: `make demo` and `make test`. Both set up .venv by themselves (tools/environment.sh).
# Paths are relative throughout, so that the folder's own path may hold spaces.
PYTEST_WORKERS ?= auto
DEMO_OUTPUT ?= demo-output
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# The tests of a file, which share kernels and fixtures, run in one worker.
PARALLEL := -n $(PYTEST_WORKERS) --dist loadfile
# `make test-all` sets EVERY. Without it, tests marked `slow` are left out, and those of CUDA kernels of
# which nothing has changed since they passed.
FAST := $(if $(EVERY),, and not slow)
KERNELS := --kernels=$(if $(EVERY),all,changed)
# Hundreds of processes start in the tests: each would compile all sources of all packages to bytecode again.
unexport PYTHONDONTWRITEBYTECODE
SPHINX := $(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees
CUDA_BUILDS := tests/architecture/test_cuda_builds.py

# Gates report one after the other, with pytest's closing line last, whatever -j says.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test test-all cuda-passed setup lint format types imports docs man doctests interpreted cuda unit bench fuzz faults wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## Study 12 human donors' repertoires; writes a report into demo-output/
	@sh tools/environment.sh demo
	@$(BIN)/plait demo --force -o "$(DEMO_OUTPUT)"

# Pages after the tests: what their examples call is compiled by then, by processes that share its bodies.
test: lint types imports interpreted unit docs doctests cuda ## Every gate

test-all: ## Every gate with every test and more random cases: nightly, or by hand
	HYPOTHESIS_PROFILE=full $(MAKE) test EVERY=yes

setup:
	@sh tools/environment.sh demo test docs

lint: setup ## ruff: rules and layout; the budget of lines
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/code_lines.py

format: setup ## Lay the sources out and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: setup ## mypy --strict
	$(BIN)/mypy

imports: setup ## Import contracts
	$(BIN)/lint-imports

# One after the other, because the second need not read the pages again.
docs: setup ## Build docs/_build/html, any warning being an error, and run the examples in the pages
	$(SPHINX) -b html docs docs/_build/html; pages=$$?; \
	$(SPHINX) -b doctest docs docs/_build/doctest; exit $$((pages + $$?))

man: setup ## Build the manual page, docs/_build/man/plait.1
	$(SPHINX) -b man docs docs/_build/man

# A second process would take longer to import all modules than to run half of them.
doctests: setup ## Examples in the docstrings
	$(PYTEST) -q -n 0 --doctest-modules src/plait

interpreted: setup ## Recurrences and schedules as plain Python, without the compiler
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q $(PARALLEL) -m "interpreted$(FAST)"

cuda: setup ## CUDA kernels without a GPU: in the simulator, and compiled for three generations
	NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -q $(PARALLEL) -m "cuda_simulator$(FAST)" $(KERNELS)
	$(PYTEST) -q -n 0 $(CUDA_BUILDS) $(KERNELS)

cuda-passed: setup ## Run all tests of CUDA kernels, and keep with what sources they pass
	NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -q $(PARALLEL) -m cuda_simulator --kernels=record
	$(PYTEST) -q -n 0 $(CUDA_BUILDS) --kernels=record

unit: setup ## All other tests
	$(PYTEST) $(PARALLEL) --without-interpreted --ignore=$(CUDA_BUILDS) $(if $(EVERY),,-m "not slow" --few-specialisations)

bench: setup ## Speed of path counting beside the published figures
	$(BIN)/python benchmarks/vdj_count.py

fuzz: setup ## Millions of mutated files for every parser (an hour or more)
	$(BIN)/python -m tests.fuzz --output benchmarks/results/fuzz.txt

faults: setup ## Kills, full disks, changed inputs, ... at every file operation of every command that writes
	$(BIN)/python -m tests.faults --output benchmarks/results/faults.txt

wheel: setup ## A wheel with machine code for this kind of machine, in dist/: its commands compile nothing
	$(BIN)/python tools/build_wheel.py

clean: ## Remove what the targets above made, .venv included
	rm -rf .venv build dist demo-output docs/_build docs/reference/api .mypy_cache .pytest_cache .ruff_cache
	rm -rf .hypothesis .import_linter_cache ci-artifacts
