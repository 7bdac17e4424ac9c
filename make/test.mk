# The tests in Rust, SQL, Python and the clients of DuckDB.

CARGO_TEST := $(CARGO_RUN) test --quiet $(MANIFEST)
PYTEST := PYTHONHASHSEED=1 EVTX_EXTENSION=$(abspath $(CHECKED)) PYTHONPATH=$(abspath $(PACKAGE)) $(VENV_PYTHON) -m pytest -q

# What a newcomer needs to trust a change. One call of Cargo builds the tests in Rust and the library for Python: of two, each would end with
# one busy processor.
test:
	@$(call beside,$(VENV)/.test,$(CARGO_RUN) build --quiet $(MANIFEST) --lib --tests)
	@$(MAKE) test-rust test-sql
	@$(MAKE) test-python PYTHON_TESTS="-m 'not slow'"
# Also stories, campaigns, whole machines, and the comparison with another parser.
test-all: test-rust-slow test-oracle test-sql test-python

# Tests print what they compared. Those over real logs print whether they were skipped.
test-rust:
	$(CARGO_TEST) -- --show-output
# Also those that take more than a second or two.
test-rust-slow:
	$(CARGO_TEST) -- --show-output --include-ignored
# The comparison with the crate `evtx`, and the core of the page.
test-oracle:
	$(CARGO_TEST) -p evtx-features -p evtx-oracle -p evtx-web -- --show-output

SQL_TEST := EVTX_CLIENT="$(abspath $(CLIENT)) test/sql/client.py" $(CARGO_TEST) -p evtx-features -p evtx-sqltest --test sql -- $(SQL_TESTS)

# Each file in test/sql is a test; SQL_TESTS=columns runs those with "columns" in their names.
test-sql: checked $(CLIENT_CREATED)
	EVTX_EXTENSION=$(abspath $(CHECKED)) $(SQL_TEST)

# The SQL tests in every DuckDB that the extension is built for.
.PHONY: test-versions $(DUCKDBS:%=test-sql-%)
test-versions: $(DUCKDBS:%=test-sql-%)
$(DUCKDBS:%=test-sql-%): test-sql-%:
	@$(MAKE) DUCKDB=$* test-sql

# Adds the newest DuckDB to duckdb/pin.txt and runs the SQL tests with it.
.PHONY: newest
newest: | $(VENV)/.created
	@$(VENV_PYTHON) duckdb/fetch.py --newest
	@$(MAKE) test-sql || { echo "The newest DuckDB needs more than a line in duckdb/pin.txt."; exit 1; }
	@echo "The SQL tests pass. If the line is new, run the other tests, and commit it: make test-python test-portable"

test-python: checked package $(VENV)/.test
	$(PYTEST) -n auto test/python --ignore=test/python/test_spark.py $(PYTHON_TESTS)

# Starts Spark, which needs Java.
test-spark: checked package $(VENV)/.test $(VENV)/.spark
	$(PYTEST) -rs test/python/test_spark.py
	@tools/tested.sh write spark

# DuckDB's distribution workflow calls these targets. The build fetches the DuckDB that `set_duckdb_version` names, such as v2.0.0.
.PHONY: configure_ci set_duckdb_version test_release
configure_ci:
set_duckdb_version:
	@$(MAKE) DUCKDB=$(DUCKDB_GIT_VERSION:v%=%) configure_ci
	@mkdir -p $(BUILD) && echo $(DUCKDB_GIT_VERSION:v%=%) >$(BUILD)/set_duckdb_version
# Runs the SQL tests on the release build.
test_release: release $(CLIENT_CREATED)
	EVTX_EXTENSION=$(abspath $(EXTENSION)) $(SQL_TEST)
	@tools/tested.sh write release

# The portable extension in the oldest DuckDB and the newest one: the SQL tests in the command line, Node and Python, and what only such
# clients do.
ON_PORTABLE = EVTX_LABELS=portable EVTX_EXTENSION=$(abspath $(PORTABLE_CHECKED)) EVTX_NODE=$(abspath $(OLD))
SQL_TESTS_IN = $(ON_PORTABLE) EVTX_CLIENT="$1" $(CARGO_TEST) -p evtx-features -p evtx-sqltest --test sql
test-portable: test-sql-oldest $(VENV)/.test $(OLD)/.node
	$(call SQL_TESTS_IN,$(abspath $(VENV_PYTHON)) test/sql/client.py)
	$(call SQL_TESTS_IN,$(abspath $(VENV_PYTHON)) test/sql/cli.py $(OLD)/bin/duckdb)
	$(call SQL_TESTS_IN,node test/sql/client.mjs)
	EVTX_PORTABLE=$(abspath $(PORTABLE_CHECKED)) EVTX_OLD=$(abspath $(OLD))/bin $(PYTEST) -n auto test/portable
	@tools/tested.sh write portable
.PHONY: test-sql-oldest
test-sql-oldest: portable_checked $(OLD)/.created
	$(call SQL_TESTS_IN,$(OLD)/bin/python test/sql/client.py)

# The clients that docs/install.md lists, with the code that it shows, and the portable extension: those for Python with the newest DuckDB
# that all of them work with and with the newest of all, the command line, Java, and Go.
CLIENTS := $(BUILD)/clients
CLIENTS_JDBC := 1.5.6.0 2.0.0.1
$(CLIENTS)/.created: test/clients/requirements.txt duckdb/pin.txt | $(VENV)/.uv
	@$(PYTHON) -m venv --clear $(CLIENTS)
	@$(call uv_install,$(CLIENTS),-r $<)
	@$(call uv_install,$(CLIENTS),--target $(CLIENTS)/newest duckdb==$(MAIN_DUCKDB))
	@$(call uv_install,$(CLIENTS),--target $(CLIENTS)/too-old duckdb==1.4.5)
	@for version in $(CLIENTS_JDBC); do \
	  mvn --quiet dependency:copy -Dartifact=org.duckdb:duckdb_jdbc:$$version -DoutputDirectory=$(CLIENTS) || exit 1; \
	done
	@touch $@
.PHONY: test-clients
test-clients: portable_checked $(CLIENTS)/.created
	EVTX_PORTABLE=$(abspath $(PORTABLE_CHECKED)) EVTX_CLIENTS=$(abspath $(CLIENTS)) $(CLIENTS)/bin/python -m pytest -q -n auto test/clients
