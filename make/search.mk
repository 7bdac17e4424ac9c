# Long searches with new seeds, fuzzing, sanitizers, and comparisons with other parsers and engines.

# The seconds that each search of `make test-long` runs, and its first seed.
LONG_SECONDS ?= 600
SEED := $(or $(SEED),$(shell date +%s))

# Every search reads the logs that EVTX_CORPUS, EVTX_VARIED and EVTX_COLLECTIONS name, or the samples.
test-long: generate soak campaign stories crowds

# The tests that generate tokens, events, rules and conditions, with another seed than `make test`. 300,000 cases find what one in 10,000 has.
generate:
	@echo "seed $(SEED)"
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$(shell expr 500 \* $(LONG_SECONDS)) $(CARGO_TEST) -- --include-ignored \
	  outlines_agree agrees_with random_ damaged_elements alike damaged_rules damaged_tables a_hint_is_true matches_as_a_regular
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$(shell expr 8 \* $(LONG_SECONDS)) $(CARGO_TEST) --test multiplied -- --ignored drawn_

# Compares statements over read_evtx and over tables.
soak: checked $(VENV)/.test
	$(VENV_PYTHON) tools/soak.py $(CHECKED) $(LONG_SECONDS) --seed $(SEED)

# Damages logs and checks invariants of reading them. Logs with findings are kept in build/campaign.
campaign: checked $(VENV)/.test
	$(VENV_PYTHON) tools/campaign.py $(CHECKED) $(LONG_SECONDS) --seed $(SEED)

# Other stories than `make test`, and more of them, 10,200 in `make test-long`: see test/python/stories.
STORIES ?= $(shell expr 17 \* $(LONG_SECONDS))
stories: checked package $(VENV)/.test
	@echo "seed $(SEED)"
	EVTX_STORIES=$(STORIES) EVTX_STORIES_SEED=$(SEED) $(PYTEST) test/python/test_stories.py

# Other logs than `make test` in which every record has something new, and larger ones: each takes about six seconds.
.PHONY: crowds
CROWDS ?= $(shell expr $(LONG_SECONDS) / 6)
crowds: checked package $(VENV)/.test
	@echo "seed $(SEED)"
	EVTX_CROWDS=$(CROWDS) EVTX_CROWDS_SEED=$(SEED) EVTX_CROWDS_RECORDS=40000 $(PYTEST) test/python/test_crowds.py

# The seconds that `make fuzz` runs each target, and the targets.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= record redact chunk file mta archive rules messages_binary messages_hive messages_catalog messages_text

$(BUILD)/tools/bin/cargo-fuzz:
	$(CARGO) install --quiet --locked cargo-fuzz --version 0.13.2 --root $(BUILD)/tools

# Well-formed files of each kind: those of the samples and tests, those that EVTX_HIVES and EVTX_BINARIES name, and
# the multiplied ones.
$(BUILD)/fuzz/.seeds: tools/fuzz_seeds.py $(wildcard samples/*.evtx samples/rules/*.yml rust/extras/evtx-archive/tests/multiplied/*.rs) | $(VENV)/.created
	$(VENV_PYTHON) $< $(BUILD)/fuzz/seeds samples/*.evtx
	EVTX_SEEDS=$(abspath $(BUILD))/fuzz/seeds $(CARGO_TEST) -- multiplied_files_are_seeds
	@touch $@

# Crashes are kept in rust/tools/fuzz/artifacts, interesting inputs for the next run in build/fuzz/corpus.
fuzz: $(BUILD)/tools/bin/cargo-fuzz $(BUILD)/fuzz/.seeds
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p $(abspath $(BUILD))/fuzz/corpus/$$target $(abspath $(BUILD))/fuzz/seeds/$$target && (\
	  cd rust && RUSTC_BOOTSTRAP=1 $(abspath $<) run --fuzz-dir tools/fuzz --target-dir $(abspath $(BUILD))/fuzz/target $$target \
	    $(abspath $(BUILD))/fuzz/corpus/$$target $(abspath $(BUILD))/fuzz/seeds/$$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=140000 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1) || exit 1; \
	done

# The folders of rules for `make compare-rsigma`.
RULES ?= $(or $(EVTX_SIGMA),samples/rules)

compare-rsigma:
	@$(CARGO) run --quiet --release --locked --ignore-rust-version --manifest-path rust/tools/rsigma/Cargo.toml \
	  --target-dir $(BUILD)/rsigma -- $(RULES)

# The folder of logs for `make compare-parsers`, and the parsers.
LOGS ?= $(or $(EVTX_CORPUS),samples)
PARSERS ?= libevtx python-evtx dissect velocidex

$(VENV)/.parsers: tools/parsers/requirements.txt | $(VENV)/.uv $(VENV)/.duckdb-$(MAIN_DUCKDB)
	@$(call uv_install,$(VENV),-r $<)
	@touch $@
# The parser in Go.
$(BUILD)/parsers/velocidex: $(wildcard tools/parsers/*.go tools/parsers/go.*)
	@cd tools/parsers && go build -o $(abspath $@) .

# Compares every value with those that other parsers read. PARSERS names some of them: python-evtx takes most of the time.
.PHONY: compare-parsers
compare-parsers: checked $(VENV)/.parsers $(if $(filter velocidex,$(PARSERS)),$(BUILD)/parsers/velocidex)
	@$(VENV_PYTHON) tools/compare_parsers.py $(CHECKED) "$(LOGS)" --parsers $(PARSERS)

# The checked build with its C++ side under AddressSanitizer and UBSan. Leaks of the Python process are ignored.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g
SANITIZED := $(OUT)/sanitized/extension/$(NAME)/$(NAME).duckdb_extension
UNDER_SANITIZERS = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 UBSAN_OPTIONS=print_stacktrace=1
sanitize: sanitize-logs sanitize-sql sanitize-python
# Also reads the logs that EVTX_HOSTILE names.
sanitize-logs: sanitized $(VENV)/.test
	$(UNDER_SANITIZERS) $(VENV_PYTHON) tools/sanitize_logs.py $(SANITIZED) samples/*.evtx
sanitize-sql: sanitized $(VENV)/.test
	$(UNDER_SANITIZERS) $(VENV_PYTHON) tools/sanitize_sql.py $(SANITIZED) test/sql/*.test
sanitize-python: sanitized package $(VENV)/.test
	$(UNDER_SANITIZERS) PYTHONPATH=$(abspath $(PACKAGE)) EVTX_EXTENSION=$(abspath $(SANITIZED)) $(VENV_PYTHON) -m pytest -q -n auto test/python --ignore-glob='*/test_evtx_arrow*' \
	  --ignore=test/python/test_spark.py
