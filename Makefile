# The commands of the project. `make check` is what a change must pass.
#
#   make test   all tests, on SQLite and on a PostgreSQL that is started for them
#   make gen    the generated files: SQL code for both engines, the OpenAPI document
#   make soak   kills the program for half an hour, or FOR=5m, or from SEED=1
#   make fmt    the formatting
#   make lint   formatting, linters, floors and sizes
#   make check  all of these; fails if gen or fmt change a file
#   make run    a server for this directory
#   make bench  the figures

GO    ?= go
BIN   := $(CURDIR)/bin
TOOLS := $(BIN)/golangci-lint $(BIN)/sqlc

# Modules with tests, each below its own go.mod; tools has none.
MODULES := . $(patsubst %/go.mod,%,$(wildcard sdk/*/go.mod))

.PHONY: gen fmt lint test soak check run bench

gen: $(BIN)/sqlc
	$(GO) run ./internal/gen -sqlc $(BIN)/sqlc
	@mkdir -p $(BIN)
	$(GO) run ./cmd/switchyard openapi > $(BIN)/openapi.yaml
	@cmp -s $(BIN)/openapi.yaml openapi.yaml || { cp $(BIN)/openapi.yaml openapi.yaml; echo "gen: wrote openapi.yaml"; }

fmt: $(BIN)/golangci-lint
	$(BIN)/golangci-lint fmt ./...

lint: $(BIN)/golangci-lint
	$(BIN)/golangci-lint run ./...
	$(GO) test -v -run TestRepository ./internal/floors

# `make test ARGS=-short`, `make test PACKAGES=./store/...`
PACKAGES ?= ./...
test:
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/testservices ./internal/testservices
	$(BIN)/testservices -postgres -json -- sh -c 'status=0; for module in $(MODULES); do \
		$(GO) -C $$module test -json -timeout 15m $(ARGS) $(PACKAGES) || status=1; done; exit $$status'

FOR  ?= 30m
SEED ?= 0
soak:
	$(GO) test -v -timeout 0 -run TestNothingIsLostInAnyKill ./internal/crashtest -crash.for=$(FOR) -crash.seed=$(SEED) -crash.keep=$(BIN)/soak

check:
	@before=$$(git status --porcelain; git diff | git hash-object --stdin); \
	$(MAKE) gen fmt && \
	after=$$(git status --porcelain; git diff | git hash-object --stdin); \
	if [ "$$before" != "$$after" ]; then echo "make gen fmt changed files:"; git status --short; exit 1; fi
	$(MAKE) lint test

run:
	$(GO) run ./cmd/switchyard serve

# Compares searching with ripgrep, which is not needed otherwise.
bench:
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/testservices ./internal/testservices
	$(BIN)/testservices -postgres -install ripgrep -- $(GO) run ./bench

# The tools come from their own module, so that they never touch the product's
# dependencies. cgo off: sqlc would compile PostgreSQL's parser in C.
$(BIN)/golangci-lint: TOOL = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/sqlc: TOOL = github.com/sqlc-dev/sqlc/cmd/sqlc
$(TOOLS): tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) -C tools build -o $@ $(TOOL)
	@touch $@
