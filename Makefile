# Everything runs in .venv, which the first target that needs it makes. Python 3.11 or newer, pip and make are enough:
#     make demo    installs pullback and runs the examples
#     make test    installs the test tools and runs every check
# With another interpreter: make test PYTHON=path/to/python

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-others test-checker test-uncovered test-operations adopters peers peers-programs peers-others programs bench versions release-check docs docs-test lite stubs stress stress-check stress-others lint types format clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed-examples
	$(BIN)/python examples/two_layer_net.py
	$(BIN)/python examples/two_layer_net_nn.py
	$(BIN)/python examples/digits.py

test: lint
	rm -f .coverage*
	$(MAKE) --no-print-directory -j2 test-others test-checker test-uncovered test-operations types
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

# The parts of `make test`, two at a time. All but the first print when they
# have ended, so that lines do not mix. What coverage would slow down and gain nothing from runs
# without it: sweeps over the registry, the checker's own tests, long graphs, whole programs.
GRADIENTS := tests/ops/test_gradients.py tests/ops/test_further_gradients.py
UNCOVERED := tests/transforms/test_tangents.py tests/transforms/test_vmap_operations.py \
  tests/transforms/test_random_programs.py tests/transforms/test_random_vmaps.py \
  tests/transforms/test_vmap_closures.py tests/transforms/test_lifetimes.py \
  tests/transforms/test_hessian.py tests/transforms/test_checkpoint_orders.py \
  tests/core/function/test_wrapping_library.py \
  $(filter-out %_reach.py,$(wildcard tests/interop/test_scipy_*.py)) \
  tests/implicit tests/optimize tests/docs tests/examples tests/programs tests/scipy_support \
  tests/core/tensor/test_subclass.py tests/core/graph/test_scale.py \
  tests/core/graph/test_leaks_training.py tests/core/graph/test_collected_objects.py \
  $(wildcard tests/test_*.py)
COVERED := $(BIN)/python -m coverage run --parallel-mode -m pytest
WHEN_ENDED = >$(VENV)/$@.log 2>&1; code=$$?; cat $(VENV)/$@.log; exit $$code

test-others: $(VENV)/.installed-test
	$(COVERED) --ignore=tests/ops --ignore=tests/check $(UNCOVERED:%=--ignore=%)

test-checker: $(VENV)/.installed-test
	@$(PYTEST) tests/check $(GRADIENTS) $(WHEN_ENDED)

test-uncovered: $(VENV)/.installed-test
	@$(PYTEST) $(UNCOVERED) $(WHEN_ENDED)

test-operations: $(VENV)/.installed-test
	@$(COVERED) tests/ops $(GRADIENTS:%=--ignore=%) $(WHEN_ENDED)

# The side-by-side tests: PyTorch (CPU), JAX, autograd, MyGrad, Dask. In two halves.
PROGRAMS_OF_PEERS := tests/peers/test_example_programs.py tests/peers/test_transforms.py tests/check

peers: $(VENV)/.installed-test $(VENV)/.installed-peers
	$(MAKE) --no-print-directory -j2 peers-programs peers-others

peers-programs:
	@$(PYTEST) -m peers $(PROGRAMS_OF_PEERS) $(WHEN_ENDED)

peers-others:
	$(PYTEST) -m peers $(PROGRAMS_OF_PEERS:%=--ignore=%)

# 20,000 programs drawn at random, here and in PyTorch; PROGRAMS_FIRST is the seed of the first.
programs: $(VENV)/.installed-test $(VENV)/.installed-peers
	PROGRAMS=20000 $(PYTEST) -m peers tests/peers/test_random_programs.py

# Packages that use HIPS autograd, with other imports alone; downloads them, takes minutes.
adopters: $(VENV)/.installed-test $(VENV)/.installed-peers
	$(BIN)/python -m tests.adopters.run

# Prints the figures, and writes the ratios into docs/recorded/bench, which docs/benchmarks.md shows.
# ops.py, of every operation at three sizes, takes most of an hour: it has no record.
BENCHMARKS := overhead mix objects programs models transforms constants check
bench: $(VENV)/.installed-examples $(VENV)/.installed-peers
	for name in $(BENCHMARKS); do $(BIN)/python bench/$$name.py --record || exit 1; done
	$(BIN)/python bench/ops.py

# A quick part of the tests on each Python to be had, with the oldest and the newest NumPy.
versions:
	$(PYTHON) .ci/versions

# The site in build/site, anew. docs/conf.py writes the pages that follow from declarations.
GENERATED := $(addprefix docs/,operations project example-sources examples figures)
docs: $(VENV)/.installed-docs
	rm -rf build/site build/doctrees $(GENERATED)
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -d build/doctrees docs build/site

# The site in a browser: Debian's Chromium, or the one that CHROMIUM names.
docs-test: docs $(VENV)/.installed-docs-test
	$(PYTEST) -m browser tests/browser

# A JupyterLite site in build/lite/site, with the wheel and notebooks of the pages of Start. Any web
# server of files serves it. Its Python kernel is fetched from the network by the browser.
lite: $(VENV)/.installed-lite
	rm -rf build/lite
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/lite/wheels . array-api-compat
	$(BIN)/python docs/lite.py build/lite/notebooks
	cd build/lite && $(CURDIR)/$(BIN)/jupyter lite build --contents notebooks \
	  --piplite-wheels wheels --output-dir site

# What follows from declarations: exports, and stubs of what type checkers cannot see.
stubs: $(VENV)/.installed-test
	$(BIN)/python docs/stubs.py

# Whether wheel and sdist are the same when built twice, and the sdist's own tests pass.
release-check:
	PYTHON=$(PYTHON) .ci/release-check

# The long and large tests, no part of `.ci/run`: for whoever touches what they cover (CONTRIBUTING).
stress: $(VENV)/.installed-test
	$(MAKE) --no-print-directory -j2 stress-check stress-others

stress-check: $(VENV)/.installed-test
	@$(PYTEST) -m stress tests/check tests/ops $(WHEN_ENDED)

stress-others: $(VENV)/.installed-test
	$(PYTEST) -m stress --ignore=tests/check --ignore=tests/ops

lint: $(VENV)/.installed-test
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m ruff check

types: $(VENV)/.installed-test
	$(BIN)/python -m mypy

format: $(VENV)/.installed-test
	$(BIN)/python -m ruff format
	$(BIN)/python -m ruff check --fix

# Leaves .venv: remove that by hand to begin anew.
clean:
	rm -rf build dist $(GENERATED) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra, remade when pyproject.toml changes.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

# Some systems ship venv without its own copy of pip: then the system's pip puts one in.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'pullback needs Python 3.11 or newer: make PYTHON=path/to/python ...' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
