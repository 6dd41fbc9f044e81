# make demo: set up, grade the embedded chatbot, and rank its variants. make test: set up and run every check's tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What every command and every page loads.
LOADED := aiohttp aiohappyeyeballs aiosignal attr attrs click frozenlist idna jinja2 markupsafe msgspec multidict numpy propcache re2 rich starlette uvicorn yaml yarl

.PHONY: setup demo test crash lint lock bench interop clean

setup: $(STAMP)

# uv installs in parallel and checks the hashes of requirements.lock; it comes from pip itself, so nothing is pre-installed.
$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
# Compiled now: where Python may not write bytecode, each start would compile it anew. The shell looks for the
# folders, not make, which would look before they are installed.
	@$(BIN)/python -m compileall -q -j 0 src $$(for name in $(LOADED); do ls -d $(VENV)/lib/python3.*/site-packages/$$name 2>/dev/null; done) >/dev/null
	@touch $@

demo: setup
	@$(BIN)/answerkey run --name demo -o demo-report.html
	@echo; echo "Its weaker and its faulty version beside it:"
	@for variant in basic flaky; do \
		$(BIN)/answerkey run --target demo:$$variant --name demo-$$variant --json > /dev/null || exit $$?; \
	done
	@$(BIN)/answerkey compare demo demo-basic demo-flaky
	@echo "The report is demo-report.html: open it in a browser. Every run: $(BIN)/answerkey serve"

test: setup
	$(BIN)/python -m pytest -n auto

# Kill a hundred runs on each database; a few minutes.
crash: setup
	ANSWERKEY_KILLS=100 $(BIN)/python -m pytest tests/store/test_crash.py

# Other tools' own objects, loaders and writers, each in an environment of its own; what they write is kept for the tests.
interop: setup
	@failed=0; for script in interop/bots/*.py interop/datasets/*.py interop/traces/*.py interop/proxies/*.py; do \
		timeout 300 $(BIN)/uv run --quiet --no-project --with-editable . --script $$script || failed=1; \
	done; \
	npm install --silent --no-audit --no-fund --prefix $(VENV)/interop ai@6.0.326 || failed=1; \
	PYTHONPATH=interop $(BIN)/python interop/ai_sdk.py $(VENV)/interop || failed=1; \
	exit $$failed

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) demo-report.html
