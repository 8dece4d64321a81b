# Every target that builds uses the same flags, or the build cache is lost:
# the Kubernetes control plane takes minutes to compile and seconds to reuse.
SHELL := /bin/bash
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE ?= $(shell git log -1 --format=%cI 2>/dev/null)
STAMP := github.com/gangctl/gangctl/pkg/cli/version
# What the API server of the sandbox and the scheduler's metrics call their release: Kubernetes stamps it in its own builds.
KUBERNETES := $(shell $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)
LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X $(STAMP).version=$(VERSION) -X $(STAMP).commit=$(COMMIT) -X $(STAMP).date=$(DATE)
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.2
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.6.2

.PHONY: build test unit e2e e2e-long agreement chaos old-servers other-operators lint generate docs completions transcript demo bench bench-large release-check clean

build: ## both programs, in bin/
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/gangctl ./cmd/gangctl-sandbox

test: build unit e2e ## everything that CI runs

# Everything was vetted by then, and to leave debug information out of 150 programs saves minutes.
unit: ## tests that need no cluster, and vet
	$(GO) vet ./...
	$(GO) test -vet=off -ldflags '-s -w' $$($(GO) list ./... | grep -v '/e2e$$')

# They wait more than they compute, so three tests share two cores. Those that measure run first, and one at a time.
e2e: build ## tests on the sandbox: a real API server, operator and scheduler
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox \
		$(GO) test -vet=off -ldflags '-s -w' -count=1 -p 1 -parallel 3 -timeout 60m ./sandbox/e2e ./test/e2e ./test/howto/e2e

e2e-long: build ## those that take a minute each, or want a machine to themselves: faults, chaos, cost, every scenario in every dialect
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_LONG=1 \
		$(GO) test -count=1 -parallel 1 -timeout 60m -v -run 'TestFaults$$|TestBindings$$|TestSchedulerPlaces$$|TestDialects$$|TestAging$$|TestPreemption$$|TestExplanations$$|TestWaitingGangsCostNothing$$|TestChaos$$|TestMinimums$$' ./test/e2e

agreement: build ## what gangctl says of 350 random gangs, against what the scheduler does
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_AGREEMENT=$${GANGCTL_AGREEMENT:-350} \
		$(GO) test -count=1 -timeout 20m -run 'TestAgreement$$' -v ./test/e2e

chaos: build ## random things happen to a cluster, 20 times for a minute; takes half an hour
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_CHAOS_SEEDS=$${GANGCTL_CHAOS_SEEDS:-20} GANGCTL_CHAOS_TIME=60s GANGCTL_LONG=1 \
		$(GO) test -count=1 -timeout 60m -run 'TestChaos$$' -v ./test/e2e

OLD_SERVERS := v1.30 v1.32 v1.34 v1.36

old-servers: build ## the scheduler against kube-apiservers of older versions; takes an hour to build the first time
	for v in $(OLD_SERVERS); do \
		(cd test/oldserver/$$v && $(GO) build -o $(CURDIR)/bin/old/kube-apiserver-$$v \
			-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)" k8s.io/kubernetes/cmd/kube-apiserver) || exit 1; \
	done
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_OLD_SERVERS=$(CURDIR)/bin/old \
		$(GO) test -count=1 -parallel 1 -timeout 30m -v -run 'TestOldServers$$|TestServerUpgrade$$' ./test/e2e

KUEUE := sigs.k8s.io/kueue@v0.19.0

other-operators: build ## jobs of the MPI Operator and queues of Kueue, as these ship them; takes minutes to build the first time
	cd test/mpioperator && $(GO) build -o $(CURDIR)/bin/mpi-operator github.com/kubeflow/mpi-operator/cmd/mpi-operator
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_MPI_OPERATOR=$(CURDIR)/bin/mpi-operator \
		GANGCTL_MPI_OPERATOR_MODULE=$$(cd test/mpioperator && $(GO) list -m -f '{{.Dir}}' github.com/kubeflow/mpi-operator) \
		GANGCTL_KUEUE_MODULE=$$($(GO) mod download -json $(KUEUE) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') \
		$(GO) test -count=1 -v -run 'TestOtherOperators$$' ./test/e2e

demo: build ## two gangs on four GPUs: the default scheduler, then ours
	bin/gangctl-sandbox demo

lint: ## style and correctness; builds golangci-lint the first time
	$(GO) run $(GOLANGCI_LINT) run ./...

generate: docs completions ## everything in the tree that is made from code
	$(GO) generate ./sandbox/... ./pkg/diagnose/answer

docs: build ## the command reference, from the command tree
	rm -rf docs/reference
	bin/gangctl docs --format markdown --dir docs/reference

completions: build ## shell completions, from the command tree
	bin/gangctl completion bash > completions/gangctl.bash
	bin/gangctl completion zsh > completions/_gangctl
	bin/gangctl completion fish > completions/gangctl.fish
	bin/gangctl completion powershell > completions/gangctl.ps1

transcript: build ## the sessions and pictures of README.md and docs, typed anew on sandboxes
	$(GO) run ./test/transcript/generate -bin bin README.md docs/tutorial.md $(filter-out %/README.md,$(wildcard docs/transcript/*.md))

bench: build ## the figures of docs/benchmarks.md
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox $(GO) test -run '^$$' -bench . -benchtime 40x ./test/bench

bench-large: build ## why-pending in a cluster of 5,000 nodes and 50,000 pods; takes ten minutes
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox \
		$(GO) test -run '^$$' -bench Large -benchtime 3x -timeout 40m ./test/bench

# Opt-in: goreleaser is a large program, and -trimpath compiles all of Kubernetes anew.
release-check: ## what a release would publish, built and not published; takes long the first time
	$(GO) run $(GORELEASER) check
	$(GO) run $(GORELEASER) release --snapshot --clean --skip=publish,ko,sbom,sign

clean:
	rm -rf bin dist dist-man
