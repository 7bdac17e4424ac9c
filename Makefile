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
# The extension that `make query` and the tests load.
CHECKED := $(OUT)/checked/extension/$(NAME)/$(NAME).duckdb_extension
CARGO := cargo
CARGO_RUN := $(CARGO) --locked
MANIFEST := --manifest-path rust/Cargo.toml
# Cargo's output folder, which CARGO_TARGET_DIR or a configuration of Cargo may name. Cargo is asked once, and only by targets that need it.
TARGET = $(eval TARGET := $(or $(shell $(CARGO) metadata --no-deps --format-version 1 --offline $(MANIFEST) | \
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p' | sed 's|\\\\|/|g'),$(error Cargo does not name its output folder)))$(TARGET)
.PHONY: print-target
print-target:
	@echo $(TARGET)
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
.PHONY: test test-all test-rust test-rust-slow test-oracle test-sql test-python test-portable test-spark test-long generate soak campaign stories fuzz compare-rsigma
.PHONY: sanitize sanitize-logs sanitize-sql sanitize-python
.PHONY: bench bench-logs bench-phases bench-python bench-scale bench-sigma bench-web format lint clean distclean check-tools
.DELETE_ON_ERROR:

## Build

# A copy of a folder has the builds of the other one, which CMake would build again there.
$(shell for cache in $(OUT)/*/CMakeCache.txt; do \
  [ "$$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' $$cache 2>/dev/null)" -ef "$$(dirname $$cache)" ] || rm -f $$cache; done)

# `release` is published. `make query` and the tests load `checked`, and `sanitized` also compiles the C++ with sanitizers.
release: $(OUT)/release/CMakeCache.txt
checked: $(OUT)/checked/CMakeCache.txt
sanitized: $(OUT)/sanitized/CMakeCache.txt
release checked sanitized:
	@cmake --build $(<D) --target $(NAME)_loadable_extension --parallel

# Every build for tests names the package evtx-features, or Cargo would compile the libraries once more for the tests.
RUST_CHECKED := -DEVTX_CHECKED=ON -DEVTX_CARGO_ARGS="-p evtx-features"
BUILD_CHECKED := $(CARGO_RUN) build --quiet $(MANIFEST) -p evtx-features
# Makes targets, which mostly download, while a command compiles.
beside = $(MAKE) $1 & $2 && wait $$!
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
$(VENV_PYTHON) -m uv pip install --quiet --system-certs --python $1 $2 || $1/bin/python -m pip install --quiet --disable-pip-version-check $2
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
	@$(call finish_portable,"$(TARGET)/release",$(PORTABLE),$(PLATFORM))

# The same for the tests.
portable_checked: $(DUCKDB_SOURCE)/.pin
	@$(BUILD_CHECKED) -p evtx-duckdb-stable
	@$(call finish_portable,"$(TARGET)/debug",$(PORTABLE_CHECKED),$(PLATFORM))

# The package evtx-sql for this machine, in build/evtx-sql.
.PHONY: sql-wheel
sql-wheel: release portable $(VENV)/.test
	@rm -rf $(BUILD)/evtx-sql
	@for file in $(EXTENSION) $(PORTABLE); do $(VENV_PYTHON) tools/make_repository.py $$file $(BUILD)/evtx-sql >/dev/null || exit 1; done
	@$(VENV_PYTHON) tools/make_wheel.py sql $(BUILD)/evtx-sql $(PLATFORM)

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
package:
	@$(BUILD_CHECKED) -p evtx-python
	@mkdir -p $(PACKAGE) && cp -R python/evtx_arrow $(PACKAGE)
	@cp "$(TARGET)"/debug/*_native.$(SHARED) $(PACKAGE)/evtx_arrow/_native.$(MODULE)

## Use

query:
	@$(call beside,$(OUT)/checked/CMakeCache.txt $(CLIENT_CREATED),$(BUILD_CHECKED) -p evtx-duckdb)
	@$(MAKE) checked
	@$(CLIENT) tools/query.py $(CHECKED) samples/story.sql

# DuckDB's command line with the extension loaded, and a view over the samples. The package's own `duckdb` is a Python script, which Ctrl-C ends.
shell: portable $(OLD)/.created
	@(echo "LOAD '$(PORTABLE)';" && cat tools/shell.sql) >$(BUILD)/portable/shell.sql
	@exec $$($(OLD)/bin/python -c 'import duckdb_cli; print(*duckdb_cli.__path__)')/duckdb -unsigned -init $(BUILD)/portable/shell.sql

samples:
	@$(CARGO_RUN) run --quiet --release $(MANIFEST) -p evtx-samples -- samples

# Writes the generated documentation: the reference of columns, the tables of the cookbook, the outputs of the notebook.
docs: checked package $(VENV)/.test
	@EVTX_DOCS=write $(CARGO_TEST) -p evtx-ffi reference
	@EVTX_DOCS=write $(PYTEST) test/python/test_cookbook.py test/python/test_python_page.py

# A folder from which DuckDB installs the extension.
REPOSITORY ?= $(BUILD)/repository
repository: release | $(VENV)/.created
	@$(VENV_PYTHON) tools/make_repository.py $(EXTENSION) "$(REPOSITORY)"

include make/test.mk make/platforms.mk make/search.mk make/bench.mk make/lint.mk make/web.mk

clean:
	rm -rf $(BUILD)/release $(BUILD)/checked $(BUILD)/sanitized $(BUILD)/v* $(BUILD)/package $(BUILD)/set_duckdb_version $(BUILD)/configure.log
	$(CARGO) clean --quiet $(MANIFEST)

distclean: clean
	rm -rf $(BUILD) duckdb/source

endif
