# make run    fetch what is missing, build, and start Refrain
# make test   everything that must hold before a change lands
# make bench  micro-benchmarks; make load  requests per second beside a bare echo

CACHE := $(or $(REFRAIN_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/refrain)
VENV := $(CACHE)/venv-client-tests

# A build server clones anew each time; what it built stays outside of the clone.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(CACHE)/target
endif

.PHONY: run test lint unit client node dashboard models bench load

run: models
	cargo run --release --locked -- serve $(ARGS)

test: lint unit client node dashboard

lint: models
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	@# --examples makes cargo take the same dependencies as for the tests, built once.
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items --lib --examples

unit: models
	cargo test --locked
	python3 tests/models/run.py

client: models $(VENV)/installed
	cargo test --locked --no-run --quiet
	$(VENV)/bin/python -m pytest -q tests/client

node: models
	cargo test --locked --no-run --quiet
	tests/node/run

dashboard: models
	cargo test --locked --no-run --quiet
	tests/dashboard/run

$(VENV)/installed: tests/client/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -r tests/client/requirements.txt
	touch $@

models:
	models/fetch

bench: models
	cargo bench --locked

load: models
	cargo bench --locked --bench load -- $(ARGS)
