# Every target does its own set-up on a fresh machine. `make demo` and `make test` are the two to start with.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-flair lint docs dist bench clean
.DELETE_ON_ERROR:

# torch first and pinned: any other way of asking for it may bring gigabytes of GPU libraries.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: .venv/ready
	$(BIN)/python examples/demo.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2

# The site: build/docs/index.html. Warnings are errors; the examples of the pages run as tests.
.venv/docs-ready: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

docs: .venv/docs-ready
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky docs build/docs
	$(BIN)/pytest tests/test_docs.py

# Wheel and sdist, and a smoke test of the wheel in an empty environment outside the repository.
dist: .venv/ready
	rm -rf dist
	$(BIN)/pip install --quiet --constraint constraints.txt build hatchling
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tests/smoke.py dist

# flair asks for an older transformers than the rest of the tests: it has an environment of its own.
test-flair:
	$(PYTHON) -m venv .venv-peers/flair
	.venv-peers/flair/bin/pip install --quiet torch==2.13.0
	.venv-peers/flair/bin/pip install --quiet torch==2.13.0 --editable '.[flair]' pytest hypothesis
	.venv-peers/flair/bin/pytest tests/integrations/test_flair.py

bench: .venv/ready
	$(BIN)/python benchmarks/parity.py
	$(BIN)/python benchmarks/parity_allennlp_api.py
	$(BIN)/python benchmarks/parity_many_langs.py
	$(BIN)/python benchmarks/parity_tf_checkpoint.py
	$(BIN)/python benchmarks/parity_simple_elmo.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/tokenizer.py
	$(BIN)/python benchmarks/prepare.py
	$(BIN)/python benchmarks/prepare.py --synthetic --megabytes 250
	$(BIN)/python benchmarks/embed.py
	$(BIN)/python benchmarks/integrations.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
