# Every target sets itself up: a fresh machine needs python3 (3.11+), make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-clients test-frameworks test-bench test-browser test-postgres lint format bench bench-quick soak soak-fleet fleet-demo docs docs-site package pictures record clean

help:
	@echo "make demo    scripted agents meet the gates"
	@echo "make test    lint, types, layers, tests with coverage, rules (about five minutes on two cores)"
	@echo "make test-clients  every proven host as the real program, with a scripted model; fetches them once (about 3.8 GB unpacked for all), HOSTS=goose,droid selects, FULL=1 runs all tests"
	@echo "make test-frameworks  the adapters with the real frameworks and scripted models, each in an environment of its own; FRAMEWORKS=strands,langchain selects, NEWEST=1 tries the newest versions"
	@echo "make test-bench    the benchmark works (a minute); how fast notyet is, make bench says"
	@echo "make test-browser  the page in a real Chromium, where there is one"
	@echo "make test-postgres the ledger, supervisors and the page on a PostgreSQL server of their own, where it is installed"
	@echo "make lint    ruff, mypy and import-linter only"
	@echo "make bench   speed, as ratios to a floor measured in the same run; renders docs/performance.md (about five minutes)"
	@echo "make bench-quick  the same with small sizes, printed only (a minute)"
	@echo "make soak    the ledger, supervised agents and gates over SSH under load and kill -9 (minutes)"
	@echo "make soak-fleet  a fleet on PostgreSQL: 500 kills of workers, 10 crashes of the database, clocks, networks, limits, 100,000 queued tasks (about 15 minutes)"
	@echo "make fleet-demo  PostgreSQL, two workers and twenty scripted agents; a worker is killed, the database crashes"
	@echo "make docs    rewrite the generated parts of docs/, and the plugins"
	@echo "make docs-site  build the site of the documentation in build/site, and check its links"
	@echo "make package  build the wheel and the sdist twice, check both, and try the action, the hooks and the schema with their tools"
	@echo "make pictures  draw docs/screens and the outputs of README.md anew, from real runs"
	@echo "make record  the same, take docs/pictures and record the sessions in docs/how-to anew, with the real programs"
	@echo "make format  let ruff format and fix the code"

demo: $(VENV)/installed
	@$(BIN)/notyet demo

test: $(VENV)/ready
	@$(BIN)/python tools/checks.py all

test-clients: $(VENV)/ready
	@$(BIN)/python tools/checks.py clients

test-frameworks: $(VENV)/ready
	@$(BIN)/python tools/frameworks.py

# Each area of the benchmark, with tiny sizes.
test-bench: $(VENV)/ready
	@$(BIN)/python tools/checks.py bench

test-browser: $(VENV)/browser
	@$(BIN)/python tools/checks.py browser

test-postgres: $(VENV)/ready
	@$(BIN)/python tools/checks.py postgres

lint: $(VENV)/ready
	@$(BIN)/python tools/checks.py lint

format: $(VENV)/ready
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

bench: $(VENV)/ready
	@$(BIN)/python -m bench

bench-quick: $(VENV)/ready
	@$(BIN)/python -m bench --quick

soak: $(VENV)/ready
	@$(BIN)/python -m bench.soak

soak-fleet: $(VENV)/ready
	@PYTHONPATH=tests $(BIN)/python -m fleet_soak

fleet-demo: $(VENV)/ready
	@$(BIN)/python tools/fleet_demo.py

docs: $(VENV)/ready
	@$(BIN)/python tools/host_index.py --write
	@$(BIN)/python tools/api_reference.py --write
	@$(BIN)/python tools/config_reference.py --write
	@$(BIN)/python tools/error_reference.py --write
	@$(BIN)/python tools/wire_reference.py --write
	@$(BIN)/python tools/cli_reference.py --write
	@$(BIN)/python tools/host_table.py --write
	@$(BIN)/python tools/framework_table.py --write
	@$(BIN)/python tools/plugins.py --write
	@$(BIN)/python -m bench --render

docs-site: build/site-venv/ready
	@build/site-venv/bin/python tools/docs_site.py

package: $(VENV)/ready build/package-venv/ready
	@$(BIN)/python tools/package.py
	@$(BIN)/pytest -q -n 2 --timeout 600 tests/package

pictures: $(VENV)/ready
	@$(BIN)/python tools/picture.py

record: $(VENV)/browser pictures
	@PICTURES=write $(BIN)/pytest -q tests/browser/test_pictures.py
	@$(BIN)/python tools/record_sessions.py

clean:
	rm -rf $(VENV) build .frameworks .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis

.PHONY: supported-python
supported-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "notyet needs Python 3.11 or newer; $(PYTHON) is older: try make PYTHON=python3.12"; exit 1; }

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# notyet with its dependencies; renewed when the requirements change.
$(VENV)/installed: pyproject.toml requirements/dev.txt | supported-python
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --constraint requirements/dev.txt --editable '.[page,postgres]'
	@touch $@

# The same with the tools that test it.
$(VENV)/ready: $(VENV)/installed
	@$(PIP) --requirement requirements/dev.txt
	@touch $@

# The same with what drives a browser.
$(VENV)/browser: $(VENV)/ready requirements/browser.txt
	@$(PIP) --requirement requirements/browser.txt
	@touch $@

build/package-venv/ready: requirements/package.txt | supported-python
	@$(PYTHON) -m venv build/package-venv
	@build/package-venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/package.txt
	@touch $@

build/site-venv/ready: requirements/site.txt | supported-python
	@$(PYTHON) -m venv build/site-venv
	@build/site-venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements/site.txt
	@touch $@
