# The page in the browser: a folder of static files.

WEB := $(BUILD)/web
# `web` is published; `web-checked` has all checks, and is built sooner.
WEB_PROFILE ?= web
WEB_CORE = $(TARGET)/wasm32-unknown-unknown/$(WEB_PROFILE)/evtx_web.wasm
.PHONY: web web-core test-web
web: web-core web/node_modules/.created
	@cd web && node build.mjs "$(WEB_CORE)" ../$(WEB)
	@echo "The page is $(WEB)/index.html."
web-core:
	@tools/check_tools.sh $(VENV_PYTHON) web
	@tools/for_web.sh build --profile $(WEB_PROFILE) --locked $(MANIFEST) -p evtx-web
web/node_modules/.created: web/package-lock.json
	@cd web && npm ci --silent --no-audit --no-fund
	@touch $@

# In Chromium. They are skipped where there is none. Run them with the published page before a release: `.ci/run` has all checks in it.
test-web: web package $(VENV)/.test
	EVTX_WEB=$(abspath $(WEB)) $(PYTEST) test/web
	@tools/tested.sh write web
