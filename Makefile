# make demo: install the core, grade the embedded chatbot and rank its variants. make test: install everything and run the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
UV := $(or $(shell command -v uv),$(BIN)/uv)
# Precompile the packages that every command loads, so that read-only installs start fast. The shell looks for them, since make would
# look before they are installed.
LOADED := click jinja2 markupsafe msgspec numpy re2 rich starlette typing_extensions.py uvicorn
COMPILE := $(BIN)/python -m compileall -q -j 0 -x '/(tests|f2py|typing)/' src $$(for name in $(LOADED); do ls -d $(VENV)/lib/python3.*/site-packages/$$name 2>/dev/null; done) >/dev/null

.PHONY: setup demo test crash lint lock bench interop docs screenshots release-check clean

setup: $(STAMP)

# The run-time dependencies only, in the versions and with the hashes of requirements.lock. uv installs in parallel; pip installs uv if
# it is missing, and ensurepip installs pip.
$(CORE): pyproject.toml requirements.lock
	$(PYTHON) -m venv --without-pip $(VENV)
	@test -x $(UV) || $(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check "uv>=0.5" || \
		{ $(BIN)/python -m ensurepip && $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"; }
	$(UV) pip install --quiet --python $(BIN)/python --constraints requirements.lock -e .
	@$(COMPILE)
	@touch $@

# All extras and the development tools.
$(STAMP): $(CORE) requirements-dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock
	@$(COMPILE)
	@touch $@

demo: $(CORE)
	@$(BIN)/answerkey run demo --name demo -o demo-report.html
	@echo; echo "The same questions to a weaker and to a faulty version:"
	@for variant in basic flaky; do \
		$(BIN)/answerkey run demo --target demo:$$variant --name demo-$$variant --json > /dev/null || exit $$?; \
	done
	@$(BIN)/answerkey compare demo demo-basic demo-flaky
	@echo "Open demo-report.html in a browser. For the dashboard: make setup, then $(BIN)/answerkey serve"

test: setup
	$(BIN)/python -m pytest -n auto --durations=25 --durations-min=5

# Kill a hundred runs on each database, and stop PostgreSQL for 30 seconds during a run; takes a few minutes.
crash: setup
	ANSWERKEY_KILLS=100 ANSWERKEY_OUTAGE=30 $(BIN)/python -m pytest tests/store/test_crash.py

# Check against other tools' own objects, loaders and writers, each in its own environment, and record their output for the tests.
# A selection: make interop ONLY="traces ollama".
interop: setup
	$(BIN)/python interop/run_all.py --uv $(UV) --place $(VENV)/interop $(ONLY)

# Build and install the wheel as a user would, then run the documentation's commands with the core alone.
release-check: setup
	rm -rf $(VENV)/release
	$(UV) build --quiet --out-dir $(VENV)/release
	$(UV) venv --quiet --python $(BIN)/python $(VENV)/release/core
	$(UV) pip install --quiet --python $(VENV)/release/core/bin/python --constraints requirements.lock $(VENV)/release/*.whl
	ANSWERKEY_RELEASE=$(CURDIR)/$(VENV)/release/core/bin $(BIN)/python -m pytest tests/test_release.py

# Measure again, and update the tables of docs/measurements; takes an hour on two cores. A selection: make bench ONLY="peers store".
bench: setup
	$(BIN)/python benchmarks/performance_page.py $(ONLY)

# Build the documentation as a site, with search and the Python reference, in site/.
docs: setup
	$(BIN)/mkdocs build --strict

# Update the screenshots of README and docs; needs chromium.
screenshots: setup
	$(BIN)/python docs/make_screenshots.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_words.py

# requirements.lock: users (core and extras). requirements-dev.lock: the same and the development tools.
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml
lock:
	$(LOCK) --extra all --extra local-judge --extra ray -o requirements.lock
	$(LOCK) --all-extras -c requirements.lock -o requirements-dev.lock

clean:
	rm -rf $(VENV) demo-report.html
