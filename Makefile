# make help lists what there is. VENV=folder and PYTHON=interpreter choose another environment.
VENV ?= .venv
PYTHON ?=
CHECK ?=
FORCE ?=
# Both ends of the range of Triton that labkit supports.
TRITON ?= 3.6.0 3.9.0

READY := $(VENV)/.labkit-ready
BIN := $(VENV)/bin/python
# In a container one is often root, and Jupyter then wants to be told that this is meant.
AS_ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)
LINTED := labkit tests tools lessons

.DEFAULT_GOAL := help
.PHONY: help setup run test releases test-browser lab notebooks lint format doctor clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## make the environment in .venv, or bring it up to date

$(READY): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" tools/setup.sh "$(VENV)"

run: $(READY) ## execute every notebook into build/run/ and report
	$(BIN) -m labkit run

test: $(READY) ## run the tests
	$(BIN) -m pytest

releases: $(READY) ## run the emulator's tests on the oldest and the newest Triton; TRITON=3.8.0: on that one
	set -e; for release in $(TRITON); do tools/test_triton.sh $(VENV) $$release; done

test-browser: $(READY) ## drive JupyterLab in headless Chromium; screenshots go to build/browser/
	@tools/setup_browser.sh "$(VENV)"
	$(BIN) -m pytest tests/browser

lab: $(READY) ## open JupyterLab on notebooks/
	$(BIN) -m jupyterlab --notebook-dir=notebooks $(AS_ROOT)

notebooks: $(READY) ## regenerate notebooks/ from lessons/; CHECK=1 only compares, FORCE=1 executes all again
	$(BIN) tools/notebooks.py $(if $(CHECK),--check) $(if $(FORCE),--force)

lint: $(READY) ## check style, notebooks included
	$(BIN) -m ruff check $(LINTED) notebooks
	$(BIN) -m ruff format --check $(LINTED)

format: $(READY) ## mend what lint can mend
	$(BIN) -m ruff check --fix $(LINTED)
	$(BIN) -m ruff format $(LINTED)

doctor: $(READY) ## say whether this machine can run the notebooks, and what to repair
	$(BIN) -m labkit doctor

clean: ## remove what make run and the tools leave behind, but not .venv
	rm -rf build .pytest_cache .ruff_cache .hypothesis
