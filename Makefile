# Everything a fresh machine needs is made by `setup`, which every other target calls.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test torture bench lint format docs clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable . --group dev
	touch $@

demo: setup
	@PATH="$(CURDIR)/$(BIN):$$PATH" demo/story.sh

test: setup
	$(BIN)/python -m compileall -q src  # many processes start, and some may not write it down
	$(BIN)/python -m pytest -n 2 -m 'not torture'

torture: setup
	$(BIN)/python -m pytest -m 'torture or hypothesis' --hypothesis-profile=new

bench: setup
	$(BIN)/python -m bench

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) .bench .quire .hypothesis .mypy_cache .ruff_cache
