# The commands of the project. `make check` is what a change must pass.
GO    ?= go
BIN   := $(CURDIR)/bin
TOOLS := $(BIN)/golangci-lint $(BIN)/gofumpt

.PHONY: gen fmt lint test check run bench

# Generated files: SQL code for both engines, the OpenAPI document.
gen:
	$(GO) run ./internal/gen
	$(GO) run ./cmd/switchyard openapi > openapi.yaml.new && mv openapi.yaml.new openapi.yaml

fmt: $(BIN)/gofumpt
	$(BIN)/gofumpt -w $$(git ls-files '*.go' | grep -v -e '^store/db/' -e '^store/pgdb/' -e '^store/litedb/')

lint: $(TOOLS)
	@out=$$($(BIN)/gofumpt -l $$(git ls-files '*.go' | grep -v -e '^store/db/' -e '^store/pgdb/' -e '^store/litedb/')); \
	if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi
	$(BIN)/golangci-lint run ./...
	$(GO) test ./internal/floors

# All tests, on SQLite and on a PostgreSQL that is started for them.
test:
	$(GO) run ./internal/testservices -postgres -json -- $(GO) test -json -timeout 20m ./...

check:
	@before=$$(git status --porcelain); $(MAKE) gen fmt; after=$$(git status --porcelain); \
	if [ "$$before" != "$$after" ]; then echo "make gen fmt changed files:"; git status --short; exit 1; fi
	$(MAKE) lint test

run:
	$(GO) run ./cmd/switchyard serve

bench:
	$(GO) run ./bench

$(BIN)/%: tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	GOBIN=$(BIN) $(GO) -C tools install tool
