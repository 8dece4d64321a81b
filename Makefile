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
# Everything is vetted by `unit`, and to leave debug information out of 150 programs saves minutes.
TEST := $(GO) test -vet=off -ldflags '-s -w'
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.2
CRANE := github.com/google/go-containerregistry/cmd/crane@v0.20.6
KUSTOMIZE := sigs.k8s.io/kustomize/kustomize/v5@v5.8.1
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.6.2

.PHONY: build test unit e2e e2e-long agreement causes hostile noisy fuzz replay chaos old-servers other-operators controllers kinds upstream upstream-perf lint generate docs completions transcript demo bench bench-scheduler bench-large release-check pin-base base-pinned release-manifest vulncheck clean

build: ## both programs, in bin/
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/gangctl ./cmd/gangctl-sandbox

test: build unit e2e ## everything that CI runs

unit: ## tests that need no cluster, and vet
	$(GO) vet ./...
	$(TEST) $$($(GO) list ./... | grep -v '/e2e$$')

# They wait more than they compute, so three tests share two cores. Those that measure run first, and one at a time; the other two packages measure nothing.
# What a failed test printed is long: the last lines name the tests.
e2e: build ## tests on the sandbox: a real API server, operator and scheduler
	export GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox; \
		{ $(TEST) -count=1 -parallel 3 -timeout 60m ./test/e2e; failed=$$?; \
		$(TEST) -count=1 -p 2 -parallel 2 -timeout 30m ./sandbox/e2e ./test/howto/e2e && exit $$failed; } 2>&1 | tee bin/e2e.log; \
		code=$${PIPESTATUS[0]}; grep -E '^ *--- FAIL|^panic|^(ok|FAIL)\s' bin/e2e.log; exit $$code

e2e-long: build ## those that take a minute each, or want a machine to themselves: faults, chaos, cost, every scenario in every dialect, fuzzing
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_LONG=1 \
		$(TEST) -count=1 -parallel 1 -timeout 60m -v -run 'TestFaults$$|TestBindings$$|TestSchedulerPlaces$$|TestDialects$$|TestAging$$|TestPreemption$$|TestExplanations$$|TestWaitingGangsCostNothing$$|TestChaos$$|TestMinimums$$|TestNoisyTenant$$|TestPartialGangs$$|TestTopology$$|TestPeers$$|TestResizeEverywhere$$' ./test/e2e
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_LONG=1 \
		$(TEST) -count=1 -timeout 30m -v -run 'TestCostBesideStock$$|TestWaitingGangsAreExplained$$' ./test/bench/scheduler
	$(MAKE) causes fuzz

agreement: build ## what gangctl says of 350 random gangs, against what the scheduler does
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_AGREEMENT=$${GANGCTL_AGREEMENT:-350} \
		$(TEST) -count=1 -timeout 20m -run 'TestAgreement$$' -v ./test/e2e

causes: ## known causes planted in 5,000 small clusters, against what gangctl names, and its advice against brute force; takes a minute
	GANGCTL_LONG=1 $(TEST) -count=1 -timeout 20m -v -run 'TestCauses$$' ./test/causes

hostile: build ## what a tenant with the role edit in one namespace may write, and the others' gangs go on
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox \
		$(TEST) -count=1 -timeout 20m -run 'TestHostile$$' -v ./test/e2e

noisy: build ## how fast gangs start next to a tenant who writes absurd objects, 10 times for two minutes and a half
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_NOISY_SEEDS=$${GANGCTL_NOISY_SEEDS:-10} GANGCTL_NOISY_TIME=$${GANGCTL_NOISY_TIME:-60s} GANGCTL_LONG=1 \
		$(TEST) -count=1 -timeout 60m -run 'TestNoisyTenant$$' -v ./test/e2e

FUZZTIME := 60s
# How far an input gets is counted in our packages only: Kubernetes' own would take a quarter of an hour to compile for that.
COUNTED := -gcflags=github.com/gangctl/gangctl/...=-d=libfuzzer

fuzz: ## absurd objects of each dialect and kind of job against all that reads them, FUZZTIME each; what is found goes to testdata
	$(TEST) $(COUNTED) -c -o bin/hostile.test ./test/hostile
	cd test/hostile && for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' fuzz_test.go); do \
		GANGCTL_CRASHES=$(CURDIR)/bin/crashes ../../bin/hostile.test -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x -test.parallel 2 \
			-test.fuzzcachedir $(CURDIR)/bin/fuzzcache || exit 1; \
	done

replay: ## four traces through the scheduler's order, search and reservations, on a virtual clock; takes minutes
	GANGCTL_LONG=1 $(TEST) -count=1 -timeout 60m -v -run 'TestTraces$$' ./test/replay

chaos: build ## random things happen to a cluster, 20 times for a minute; takes half an hour
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_CHAOS_SEEDS=$${GANGCTL_CHAOS_SEEDS:-20} GANGCTL_CHAOS_TIME=60s GANGCTL_LONG=1 \
		$(TEST) -count=1 -timeout 60m -run 'TestChaos$$' -v ./test/e2e

OLD_SERVERS := v1.30 v1.32 v1.34 v1.36

bin/old/kube-apiserver-%: test/oldserver/%/go.mod
	cd $(<D) && $(GO) build -o $(CURDIR)/$@ \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)" k8s.io/kubernetes/cmd/kube-apiserver

old-servers: build $(OLD_SERVERS:%=bin/old/kube-apiserver-%) ## the scheduler against kube-apiservers of older versions; takes an hour to build the first time
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_OLD_SERVERS=$(CURDIR)/bin/old \
		$(TEST) -count=1 -parallel 1 -timeout 30m -v -run 'TestOldServers$$|TestServerUpgrade$$' ./test/e2e

other-operators: build ## jobs of the MPI Operator and queues of Kueue, as these ship them; takes minutes to build the first time
	cd test/mpioperator && $(GO) build -o $(CURDIR)/bin/mpi-operator github.com/kubeflow/mpi-operator/cmd/mpi-operator
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_MPI_OPERATOR=$(CURDIR)/bin/mpi-operator \
		GANGCTL_MPI_OPERATOR_MODULE=$$(cd test/mpioperator && $(GO) list -m -f '{{.Dir}}' github.com/kubeflow/mpi-operator) \
		GANGCTL_KUEUE_MODULE=$$(cd test/kinds/kueue && $(GO) mod download -json sigs.k8s.io/kueue | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') \
		$(TEST) -count=1 -v -run 'TestOtherOperators$$' ./test/e2e

# controller builds NAME of a MODULE and a command in it, and writes what the project installs it with, a folder of the module.
define controller
	cd test/kinds/$(1) && $(GO) build -ldflags '-s -w' -o $(CURDIR)/bin/kinds/$(1) $(2)$(3)
	cd $$(cd test/kinds/$(1) && $(GO) list -m -f '{{.Dir}}' $(2))/$(4) && $(GO) run $(KUSTOMIZE) build . -o $(CURDIR)/bin/kinds/$(1).yaml
endef

controllers: ## the controllers of other projects for `gangctl-sandbox up --with`, in bin/kinds; takes minutes to build the first time
	mkdir -p bin/kinds
	$(call controller,jobset,sigs.k8s.io/jobset,,config/default)
	$(call controller,lws,sigs.k8s.io/lws,/cmd,config/default)
	$(call controller,ray,github.com/ray-project/kuberay/ray-operator,,config/default)
	$(call controller,kueue,sigs.k8s.io/kueue,/cmd/kueue,config/default)
	cd test/kinds/trainer && $(GO) build -ldflags '-s -w' -o $(CURDIR)/bin/kinds/trainer github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager
	rm -rf bin/trainer-manifests && mkdir -p bin/trainer-manifests && cp -R test/kinds/trainer/kustomization.yaml test/kinds/trainer/controller bin/trainer-manifests
	cp -R $$(cd test/kinds/trainer && $(GO) list -m -f '{{.Dir}}' github.com/kubeflow/trainer/v2)/manifests bin/trainer-manifests && chmod -R u+w bin/trainer-manifests
	cp bin/trainer-manifests/manifests/overlays/manager/namespace.yaml bin/trainer-manifests/controller # no file of another folder is read
	cd bin/trainer-manifests && $(GO) run $(KUSTOMIZE) build . -o $(CURDIR)/bin/kinds/trainer.yaml

# SERVER=v1.32 is one of OLD_SERVERS: all of it on a kube-apiserver of that version. JOBSET is a checkout of JobSet's repository: its module lacks the
# samples of its site.
kinds: build controllers $(SERVER:%=bin/old/kube-apiserver-%) ## kinds of job of others, made by the controllers that these ship, on sandboxes
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox GANGCTL_API_SERVER=$(SERVER:%=$(CURDIR)/bin/old/kube-apiserver-%) GANGCTL_KINDS=$(CURDIR)/bin/kinds \
		GANGCTL_JOBSET_REPOSITORY=$(JOBSET) \
		GANGCTL_JOBSET_MODULE=$$(cd test/kinds/jobset && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/jobset) \
		GANGCTL_TRAINER_MODULE=$$(cd test/kinds/trainer && $(GO) list -m -f '{{.Dir}}' github.com/kubeflow/trainer/v2) \
		GANGCTL_LWS_MODULE=$$(cd test/kinds/lws && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/lws) \
		GANGCTL_RAY_MODULE=$$(cd test/kinds/ray && $(GO) list -m -f '{{.Dir}}' github.com/ray-project/kuberay/ray-operator) \
		$(TEST) -count=1 -timeout 30m -v -run 'TestControllers$$|TestJobSet$$|TestTrainJob$$|TestLeaderWorkerSet$$|TestRay$$|TestKueue$$' ./test/e2e

upstream: ## Kubernetes' own integration tests of gangs against our scheduler, and the table of docs/conformance.md; takes half an hour
	cd test/upstream && $(GO) run . -dir $(CURDIR)/bin/upstream $(or $(UPSTREAM),-document $(CURDIR)/docs/conformance.md)

upstream-perf: ## Kubernetes' own benchmarks of gangs, kube-scheduler and ours in turn, and their table in docs/benchmarks.md; takes hours
	cd test/upstream && $(GO) run ./perf -dir $(CURDIR)/bin/upstream $(or $(PERF),-document $(CURDIR)/docs/benchmarks.md)

demo: build ## two gangs on four GPUs: the default scheduler, then ours
	bin/gangctl-sandbox demo

lint: ## style and correctness; builds golangci-lint the first time
	$(GO) run $(GOLANGCI_LINT) run ./...

generate: docs completions ## everything in the tree that is made from code
	$(GO) generate ./...

docs: build ## the command reference, from the command tree
	rm -rf docs/reference
	bin/gangctl docs --format markdown --dir docs/reference

completions: build ## shell completions, from the command tree
	bin/gangctl completion bash > completions/gangctl.bash
	bin/gangctl completion zsh > completions/_gangctl
	bin/gangctl completion fish > completions/gangctl.fish
	bin/gangctl completion powershell > completions/gangctl.ps1

transcript: build ## the sessions and pictures of README.md and docs, typed again on sandboxes
	$(GO) run ./test/transcript/generate -bin bin README.md docs/tutorial.md $(filter-out %/README.md,$(wildcard docs/transcript/*.md))

bench: build ## the figures of docs/benchmarks.md
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox $(GO) test -run '^$$' -bench . -benchtime 40x ./test/bench

bench-scheduler: build ## our scheduler alongside the stock one, five times each, at 5,000 nodes; takes hours, see test/bench/scheduler for less
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox \
		$(TEST) -run '^$$' -bench Schedulers -benchtime 1x -timeout 12h ./test/bench/scheduler

bench-large: build ## why-pending in a cluster of 5,000 nodes and 50,000 pods; takes ten minutes
	GANGCTL_BIN=$(CURDIR)/bin/gangctl GANGCTL_SANDBOX_BIN=$(CURDIR)/bin/gangctl-sandbox \
		$(GO) test -run '^$$' -bench Large -benchtime 3x -timeout 40m ./test/bench

# Opt-in: goreleaser is a large program, and -trimpath compiles all of Kubernetes again.
release-check: ## what a release would publish, built and not published; takes long the first time
	$(GO) run $(GORELEASER) check
	$(GO) run $(GORELEASER) release --snapshot --clean --skip=publish,ko,sbom,sign

# What the image is built on, in every file that names it. A tag is moved by others, a digest is not.
BASE := gcr.io/distroless/static-debian12:nonroot
BASE_FILES := Dockerfile .ko.yaml .goreleaser.yaml

pin-base: ## the digest that the base image's tag has now, written to all files; needs its registry, or DIGEST=sha256:…
	digest=$${DIGEST:-$$($(GO) run $(CRANE) digest $(BASE))}; \
		[[ $$digest =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "error: $$digest is no digest" >&2; exit 1; }; \
		sed -i -E "s|$(BASE)(@sha256:[0-9a-f]+)?|$(BASE)@$$digest|" $(BASE_FILES)

base-pinned: ## fails unless the base image is named by its digest; releases require it
	@for file in $(BASE_FILES); do \
		grep -qE '$(BASE)@sha256:[0-9a-f]{64}' $$file || { echo "error: $$file names the base image by its tag: make pin-base" >&2; exit 1; }; \
	done

# goreleaser writes what it made to dist/artifacts.json, with the digests of the images that it pushed, and of which tag to dist/metadata.json.
DIST ?= dist
IMAGE := ghcr.io/gangctl/gangctl

release-manifest: ## the manifests of a release that was just published, with its image by digest, in dist/gang-scheduler.yaml
	@tag=$$(jq -er .tag $(DIST)/metadata.json) && \
		digest=$$(jq -r '[.[] | select(.name | startswith("$(IMAGE)@") or startswith("$(IMAGE):")) | .extra.Digest | values] | unique | join(" ")' $(DIST)/artifacts.json) && \
		{ [[ $$digest =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "error: $(DIST)/artifacts.json has no digest of $(IMAGE), or several: $$digest" >&2; exit 1; }; } && \
		$${GANGCTL:-$(DIST)/gangctl_linux_amd64_v1/gangctl} install scheduler --export --image $(IMAGE):$$tag@$$digest > $(DIST)/gang-scheduler.yaml

# Opt-in: its database is on the Internet.
vulncheck: ## known vulnerabilities in code that the two programs reach; VULNDB=file:///DIR reads a copy of the database
	$(GO) run $(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./cmd/gangctl ./cmd/gangctl-sandbox

clean:
	rm -rf bin dist dist-man
