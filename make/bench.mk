# Measures the extension, and other builds and tools beside it.

# The program that `make bench` compares with.
$(BUILD)/tools/bin/evtx_dump:
	$(CARGO) install --quiet --locked evtx --version 0.15.1 --root $(BUILD)/tools

bench-logs:
	@$(CARGO_RUN) build --quiet --release $(MANIFEST) -p evtx-samples
	@$(PYTHON) bench/logs.py $(BUILD)/bench/logs "$(TARGET)/release/make_samples"

# Alternates with evtx_dump, prints the table, and writes a report. BENCH passes options, such as BENCH="--log security --query all".
# BENCH="--against OTHER.duckdb_extension" compares with another build instead: use it to judge a change.
bench: release $(VENV)/.test $(BUILD)/tools/bin/evtx_dump bench-logs
	@$(VENV_PYTHON) bench/run.py $(EXTENSION) $(BUILD)/tools/bin/evtx_dump $(BUILD)/bench/logs $(BUILD)/bench/report.json $(BENCH)

# What has a limit of time, such as the end of a query after an interrupt: the longest time of some rounds, and the limit. It needs a quiet
# machine, as no test does. The page is measured if it was built. BENCH passes options, such as BENCH="--rounds 1 --tell".
.PHONY: bench-promises
bench-promises: release wheel portable checked $(VENV)/.test $(OLD)/.created
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(BUILD)/bench/package $(WHEELS)/*.whl
	@PYTHONHASHSEED=1 EVTX_EXTENSION=$(abspath $(EXTENSION)) PYTHONPATH=$(abspath $(BUILD))/bench/package \
	  EVTX_PORTABLE=$(abspath $(PORTABLE)) EVTX_OLD=$(abspath $(OLD))/bin EVTX_CARGO_TEST="$(CARGO_TEST)" \
	  $(if $(wildcard $(WEB)/index.html),EVTX_WEB=$(abspath $(WEB))) $(VENV_PYTHON) bench/promises.py $(BENCH)

# Sigma rules over large and small logs. EVTX_SIGMA names the folder of rules, EVTX_CORPUS a folder of small logs. BENCH passes options,
# such as BENCH="--hayabusa hayabusa".
bench-sigma: release $(VENV)/.test bench-logs
	@$(VENV_PYTHON) bench/sigma.py $(EXTENSION) $(or $(EVTX_SIGMA),samples/rules) $(BUILD)/bench/logs $(or $(EVTX_CORPUS),samples) $(BENCH)

# The Python package compared with DuckDB and pyevtx-rs, and in Spark. BENCH passes options, such as BENCH="--rounds 3".
bench-python: release wheel $(VENV)/.spark $(VENV)/.bench bench-logs
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(WHEELS)/*.whl
	@$(VENV_PYTHON) bench/python.py $(EXTENSION) $(BUILD)/bench/logs --spark $(BENCH)

# The time of each phase of reading, without DuckDB.
bench-phases: bench-logs
	EVTX_BENCH_LOG=$(abspath $(BUILD))/bench/logs/security.evtx $(CARGO_RUN) bench --quiet $(MANIFEST) -p evtx-bench --bench phases

# Reads 10 GiB in many files and 4 GiB in one, which it first writes to disk. Adds to the last report.
bench-scale: release $(VENV)/.test bench-logs
	@$(VENV_PYTHON) bench/scale.py $(EXTENSION) $(BUILD)/bench/logs $(BUILD)/bench/report.json

# The page in Chromium, over the folder LOGS.
bench-web: release web $(VENV)/.test
	@$(VENV_PYTHON) bench/web.py $(EXTENSION) $(WEB) $(LOGS) $(BENCH)
