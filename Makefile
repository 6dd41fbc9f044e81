# make demo: install the core, grade the embedded chatbot, and rank its variants. make test: install everything and run every check's tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
UV := $(or $(shell command -v uv),$(BIN)/uv)
# Bytecode is made at once: where Python may not write it, each start would compile anew. Of the packages that every command and
# every page loads; the shell looks for them, not make, which would look before they are installed.
LOADED := click jinja2 markupsafe msgspec numpy re2 rich starlette uvicorn yaml
COMPILE := $(BIN)/python -m compileall -q -j 0 -x '/(tests|f2py|typing)/' src $$(for name in $(LOADED); do ls -d $(VENV)/lib/python3.*/site-packages/$$name 2>/dev/null; done) >/dev/null

.PHONY: setup demo test crash lint lock bench interop docs release-check clean

setup: $(STAMP)

# What answerkey needs at run time and nothing else, in the versions and with the hashes of requirements.lock. Where there is no uv,
# which installs in parallel, pip brings it; where there is no pip, Python brings that.
$(CORE): pyproject.toml requirements.lock
	$(PYTHON) -m venv --without-pip $(VENV)
	@test -x $(UV) || $(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check "uv>=0.5" || \
		{ $(BIN)/python -m ensurepip && $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"; }
	$(UV) pip install --quiet --python $(BIN)/python --constraints requirements.lock -e .
	@$(COMPILE)
	@touch $@

# The extras, and what development needs.
$(STAMP): $(CORE)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(COMPILE)
	@touch $@

demo: $(CORE)
	@$(BIN)/answerkey run --name demo -o demo-report.html
	@echo; echo "Its weaker and its faulty version beside it:"
	@for variant in basic flaky; do \
		$(BIN)/answerkey run --target demo:$$variant --name demo-$$variant --json > /dev/null || exit $$?; \
	done
	@$(BIN)/answerkey compare demo demo-basic demo-flaky
	@echo "The report is demo-report.html: open it in a browser. Every run in the browser: make setup, then $(BIN)/answerkey serve"

test: setup
	$(BIN)/python -m pytest -n auto

# Kill a hundred runs on each database, and stop PostgreSQL under a run for 30 seconds; a few minutes.
crash: setup
	ANSWERKEY_KILLS=100 ANSWERKEY_OUTAGE=30 $(BIN)/python -m pytest tests/store/test_crash.py

# Other tools' own objects, loaders and writers, each in an environment of its own; what they write is kept for the
# tests. Some of them: make interop ONLY="traces ollama".
interop: setup
	$(BIN)/python interop/run_all.py --uv $(UV) --place $(VENV)/interop $(ONLY)

# Built and installed as a user would, every page of the documentation is run with the core alone.
release-check: setup
	rm -rf $(VENV)/release
	$(UV) build --quiet --out-dir $(VENV)/release
	$(UV) venv --quiet --python $(BIN)/python $(VENV)/release/core
	$(UV) pip install --quiet --python $(VENV)/release/core/bin/python --constraints requirements.lock $(VENV)/release/*.whl
	ANSWERKEY_RELEASE=$(CURDIR)/$(VENV)/release/core/bin $(BIN)/python -m pytest tests/test_release.py

# The tables of docs/performance.md made anew, the peers' too; an hour on two cores. Some of them: make bench ONLY="peers store".
bench: setup
	$(BIN)/python benchmarks/performance_page.py $(ONLY)

# The documentation as a site, with search and the Python reference, in site/.
docs: setup
	$(BIN)/mkdocs build --strict

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_words.py

lock:
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) demo-report.html
