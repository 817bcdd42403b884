# Every target does its own set-up on a fresh machine. `make demo` and `make test` are the two to start with.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all test-server test-flair test-cluster test-minimum fuzz sanitize lint docs course dist bench \
  clean
.DELETE_ON_ERROR:

# torch first and pinned: any other way of asking for it may bring gigabytes of GPU libraries.
# Installing compiles the native kernel, if there is a compiler: do it again when its sources change.
.venv/ready: pyproject.toml constraints.txt hatch_build.py $(wildcard src/elmokit/kernels/native/*.cpp src/elmokit/kernels/native/*.h)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: .venv/ready
	$(BIN)/python examples/demo.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/elmokit/kernels/native/*.h src/elmokit/kernels/native/*.cpp
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2

# Everything that takes too long for every change: run it before a release.
test-all: test docs course dist sanitize test-flair test-cluster test-minimum fuzz test-server

# The site: build/docs/index.html. Warnings are errors; the examples of the pages run as tests.
.venv/docs-ready: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

docs: .venv/docs-ready
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky docs build/docs
	$(BIN)/pytest tests/test_docs.py

# The course: every chapter runs and prints what its pages show; the pictures go to build/course.
course: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python docs/course/run.py

# Wheels with and without the native kernel, sdist, and a smoke test of the wheels in an empty environment outside the
# repository.
dist: .venv/ready
	rm -rf dist
	$(BIN)/pip install --quiet --constraint constraints.txt build hatchling
	$(BIN)/python -m build --no-isolation
	ELMOKIT_NO_NATIVE=1 $(BIN)/python -m build --no-isolation --wheel
	$(BIN)/python tests/smoke.py dist

# The tests of the native kernel with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: .venv/ready
	$(BIN)/python hatch_build.py --sanitize build/sanitize/libelmokit_native.so
	ELMOKIT_NATIVE_LIBRARY=build/sanitize/libelmokit_native.so ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so.6)" \
	$(BIN)/pytest tests/kernels/test_native_lstm.py tests/kernels/test_native_product.py \
	tests/kernels/test_native_training.py

# Faults for MINUTES: errors and kills at every system call that writes, hostile files, and random sentences in random
# company (see docs/reliability.md).
MINUTES ?= 10
fuzz: .venv/ready
	$(BIN)/python -m tests.faults.crashes --minutes $(MINUTES)
	$(BIN)/python -m tests.faults.fuzz --minutes $(MINUTES)
	ELMOKIT_CASES=2000 $(BIN)/pytest tests/faults/test_same_vectors.py

# The server: requests made from its schema, and ten thousand with disconnects, large bodies and slow clients.
test-server: .venv/ready
	$(BIN)/python -m tests.serving.schema_fuzz --examples 100
	$(BIN)/python -m tests.serving.soak --requests 10000

# The lowest versions of everything that pyproject.toml allows. TORCH_INDEX names the place of torch's CPU build, if pip's
# own index has another one.
test-minimum:
	$(PYTHON) -m venv .venv-peers/minimum
	.venv-peers/minimum/bin/pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) --constraint constraints-minimum.txt torch
	.venv-peers/minimum/bin/pip install --quiet --constraint constraints-minimum.txt --editable '.[test]'
	.venv-peers/minimum/bin/pytest -n 2

# flair asks for an older transformers than the rest of the tests: it has an environment of its own.
test-flair:
	$(PYTHON) -m venv .venv-peers/flair
	.venv-peers/flair/bin/pip install --quiet torch==2.13.0
	.venv-peers/flair/bin/pip install --quiet torch==2.13.0 --editable '.[flair]' pytest hypothesis
	.venv-peers/flair/bin/pytest tests/integrations/test_flair.py

# Ray, Dask and Spark (which needs Java), and pretraining on two addresses (which needs root), in an environment of
# their own: their libraries are large.
test-cluster:
	$(PYTHON) -m venv .venv-peers/cluster
	.venv-peers/cluster/bin/pip install --quiet torch==2.13.0
	.venv-peers/cluster/bin/pip install --quiet --constraint constraints.txt --editable '.[ray,dask,spark]' pytest hypothesis psutil
	ELMOKIT_CLUSTER=1 .venv-peers/cluster/bin/pytest tests/integrations/test_ray.py tests/integrations/test_dask.py \
	tests/integrations/test_spark.py tests/pretraining/test_two_machines.py

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
	$(BIN)/python benchmarks/latency.py
	$(BIN)/python benchmarks/embed_files.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/roofline.py
	$(BIN)/python benchmarks/integrations.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
