# Everything happens inside the clone: the environment in .venv, downloads and caches in .cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed.stamp
PEERS := $(VENV)/baselines.stamp
FUZZER := $(VENV)/fuzz.stamp
SPARK := $(VENV)/spark.stamp
# PySpark is large and needs Java: its tests run where Java is, and skip, saying so, elsewhere.
JAVA := $(shell command -v java 2> /dev/null)
BOOSTER := $(VENV)/demo.stamp
SECONDS ?= 60
SOURCES := $(wildcard cpp/*) CMakeLists.txt pyproject.toml requirements.lock

export PIP_CACHE_DIR := $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export MPLBACKEND := Agg
export UV_CACHE_DIR := $(CURDIR)/.cache/uv

.PHONY: help setup system-packages demo test lint types unit sanitize fuzz format bench-engine \
  bench-categories \
  bench-table1 bench-accuracy bench-worlds bench-ihdp bench-cadr bench-colangelo-lee bench-scaling bench-joint \
  bench-large-fit \
  bench-splits bench-known bench-policy bench-service bench-ab bench-qini bench-marketplace bench-real \
  bench-coverage bench-spark bench-spark-paper examples readme wheel lock clean

help:
	@echo "make demo            set up, then simulate, train, select, plan, test, and write a report"
	@echo "make test            set up, then lint, types and tests"
	@echo "make sanitize        the core's tests with every access to memory checked, a few minutes"
	@echo "make fuzz            damaged and forged files against the loader, for SECONDS=60"
	@echo "make setup           the environment alone, from nothing"
	@echo "make system-packages  PostgreSQL and Chromium for the service's tests, on Debian, as root"
	@echo "make bench-engine    speed of growth beside scikit-learn and LightGBM"
	@echo "make bench-categories  native categories beside one-hot columns and target encodings"
	@echo "make bench-table1    Table 1 of the GCF paper with every baseline, several hours"
	@echo "make bench-accuracy  errors on designs with a known truth, beside the baselines and EconML"
	@echo "make bench-worlds    errors on designs that are not ours, beside what a user would reach for; hours"
	@echo "make bench-ihdp      published splits of IHDP with a dose, beside GIKS; DOSEFOREST_DATA names their folder"
	@echo "make bench-cadr      three sets with published curves, beside nine methods; DOSEFOREST_DATA likewise"
	@echo "make bench-colangelo-lee  bias and error of the average curve over 300 draws"
	@echo "make bench-scaling   how fast errors fall with the number of rows"
	@echo "make bench-joint     errors for two doses at once, point masses and arms"
	@echo "make bench-large-fit  time and memory of a fit with 100,000 rows"
	@echo "make bench-splits    slopes against effects, and a linear causal forest beside EconML"
	@echo "make bench-known     known propensities of experiments beside estimated ones"
	@echo "make bench-policy    speed of deciding on doses, beside a sort of their values"
	@echo "make bench-ab        false alarms and coverage of A/B tests in the simulated marketplace"
	@echo "make bench-qini      Table 2 of the GCF paper, and what Qini scores are worth"
	@echo "make bench-marketplace  orders that policies bring at the same budget, beside the oracle; hours"
	@echo "make bench-coverage  whether intervals cover: units, averages, shifts, shapes; takes hours"
	@echo "make bench-service   latency, throughput and CPU of the decision service, on loopback"
	@echo "make bench-real      real data beside published numbers; DOSEFOREST_DATA names their folder"
	@echo "make bench-spark     growth on two executors beside the local engine and Spark ML's forest"
	@echo "make bench-spark-paper  10.7 million rows from Parquet to a saved model, hours"
	@echo "make examples        the worked examples with all their rows; their pictures go to docs"
	@echo "make readme          tables of the README and docs/paper.md, from the results of studies"
	@echo "make wheel           wheel and sdist, each installed and imported in a fresh environment"
	@echo "make format          let ruff and clang-format rewrite the sources"
	@echo "make lock            pin the dependencies anew"

setup: $(STAMP)

$(STAMP): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "doseforest needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null \
	  || { echo "Python lacks its venv module. On Debian: apt-get install python3-venv python3-dev"; exit 1; }
	@$(PYTHON) -c 'import os, sysconfig; open(os.path.join(sysconfig.get_paths()["include"], "Python.h"))' \
	  2> /dev/null || { echo "Python lacks its headers. On Debian: apt-get install python3-dev"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# XGBoost, one of the models of the demo, comes on top of the environment.
$(BOOSTER): $(STAMP) requirements-demo.lock
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-demo.lock
	touch $@

demo: $(BOOSTER)
	$(BIN)/doseforest demo --out out/demo

# Without them the tests that need them say so and are skipped.
system-packages:
	@tools/install_system_packages.sh

test: lint types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/check_reference.py
	$(BIN)/clang-format --dry-run --Werror cpp/*.cpp cpp/*.hpp

types: setup
	$(BIN)/mypy

# A process for each core, with one thread for what spins while it waits (OpenMP, BLAS).
unit: setup $(if $(JAVA),$(SPARK))
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	  $(BIN)/python -m pytest --numprocesses auto --dist loadfile --durations 15

# In build/sanitize, with an environment of its own: .venv keeps the ordinary extension.
sanitize: setup
	$(BIN)/python tools/sanitize.py

# Atheris comes on top of the environment, as the peers do.
$(FUZZER): $(STAMP) requirements-fuzz.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-fuzz.lock
	touch $@

fuzz: $(FUZZER)
	$(BIN)/python tools/fuzz_forest_file.py run $(SECONDS)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i cpp/*.cpp cpp/*.hpp

bench-engine: setup
	$(BIN)/python -m bench.speed.growth_speed --publish

bench-categories: setup
	$(BIN)/python -m bench.speed.category_speed --publish

# EconML and what it needs come on top of the environment, at versions that leave the rest alone.
$(PEERS): $(STAMP) requirements-baselines.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-baselines.lock
	touch $@

bench-table1 bench-accuracy bench-worlds bench-ihdp bench-cadr bench-scaling bench-qini bench-coverage \
  bench-marketplace: $(PEERS)
	$(BIN)/doseforest bench $(@:bench-%=%) --publish

bench-colangelo-lee bench-joint bench-large-fit bench-ab bench-real: setup
	$(BIN)/doseforest bench $(@:bench-%=%) --publish

bench-splits: $(PEERS)
	$(BIN)/python -m bench.speed.split_statistic_errors --publish

bench-known: setup
	$(BIN)/python -m bench.speed.known_propensities --publish

$(SPARK): $(STAMP) requirements-spark.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-spark.lock
	touch $@

bench-spark: $(SPARK)
	$(BIN)/python -m bench.speed.spark_growth --publish

bench-spark-paper: $(SPARK)
	$(BIN)/python -m bench.speed.spark_paper_size --publish

bench-policy: setup
	$(BIN)/python -m bench.speed.policy_speed --publish

bench-service: setup
	$(BIN)/python -m bench.speed.service_speed --publish

examples: setup
	$(BIN)/python examples/discount_curves.py
	$(BIN)/python examples/loans.py
	$(BIN)/python examples/orange_juice.py
	mkdir -p docs/pictures
	cp out/discount_curves.png out/loans.png out/orange_juice.png docs/pictures

readme: setup
	$(BIN)/python -m bench.studies.readme

wheel: setup
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/check_dist.py dist

lock:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "uv>=0.5"
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --extra plot \
	  --extra service --extra postgres \
	  --group dev --generate-hashes --no-header --no-annotate --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --extra baselines \
	  --constraint requirements.lock --generate-hashes --no-header --no-annotate \
	  --output-file requirements-baselines.lock
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --extra spark \
	  --constraint requirements.lock --generate-hashes --no-header --no-annotate \
	  --output-file requirements-spark.lock
	$(BIN)/uv pip compile --group demo --no-deps --constraint requirements-baselines.lock --universal \
	  --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --output-file requirements-demo.lock
	$(BIN)/uv pip compile --group fuzz --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --output-file requirements-fuzz.lock

clean:
	rm -rf .venv .cache build dist out
