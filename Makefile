# make help lists the targets. Nothing but Go is needed; tools are built from
# source, at the versions below, into .bin.

GO            ?= go
BIN           := $(CURDIR)/.bin
GOLANGCI_LINT := $(BIN)/golangci-lint-v2.15.0
GOVULNCHECK   := $(BIN)/govulncheck-v1.9.0
GO_LICENSES   := $(BIN)/go-licenses-v1.6.0
CYCLONEDX     := $(BIN)/cyclonedx-gomod-v1.10.0
HELM          := $(BIN)/helm-v4.3.1
ACTIONLINT    := $(BIN)/actionlint-v1.7.12
COMPOSE       := $(BIN)/compose-spec-v2.16.2
KEDA          := $(BIN)/keda-v2.21.0

# The Lambda functions are built as AWS wants them: one static file named bootstrap
# in a folder of its own, for each of its two architectures.
FUNCTIONS     := $(patsubst cmd/reprise/functions/%/main.go,%,$(wildcard cmd/reprise/functions/*/main.go))
FUNCTIONS_DIR ?= bin/functions

# Folders with a go.mod: some commands do not look into nested modules.
MODULES := $(patsubst %/,%,$(dir $(wildcard go.mod */go.mod */*/go.mod)))

# Modules that test, lint and bench leave out.
LEFT_OUT  ?=

# What is fuzzed: packages, or work for all of them.
FUZZ      ?= work
FUZZTIME  ?= 20s
BENCHTIME ?= 1s
N         ?= 100
MINUTES   ?= 30
DURATION  ?= 30m
MESSAGES  ?= 1000000
NIGHT     ?= 6h
SEEDS     ?= 1000
MACHINES  ?= $(SEEDS)00
MUTANTS   ?= all
# What mutation mutates: the packages without goroutines, clocks and input or output.
PACKAGES ?= ./retry ./plan ./internal/alarms ./internal/awsjson ./internal/bodycache ./internal/breaker ./internal/budget ./internal/calls ./internal/carry ./internal/clocks ./internal/consumer ./internal/digest ./internal/engine ./internal/gate ./internal/giveups ./internal/groups ./internal/history ./internal/lease ./internal/memory ./internal/plural ./internal/sending ./internal/sigv4 ./internal/turns ./internal/world

# What make test runs without the race detector: the packages in which nothing runs at once, neither in them nor in
# what they use of the project. A test of the root package finds out which these are.
ALONE = ./cmd/reprise/internal/choice ./cmd/reprise/internal/diskfault ./cmd/reprise/internal/eventstream \
	./cmd/reprise/internal/lambda/template ./cmd/reprise/internal/latency ./cmd/reprise/internal/playground \
	./cmd/reprise/internal/plural ./cmd/reprise/internal/review ./cmd/reprise/internal/simreport \
	./cmd/reprise/internal/yamltext ./examples ./internal/alarms ./internal/awsjson \
	./internal/bodycache ./internal/breaker ./internal/budget ./internal/calls ./internal/carry ./internal/clocks \
	./internal/consumer ./internal/digest ./internal/engine ./internal/gate ./internal/giveups ./internal/groups \
	./internal/history ./internal/lease ./internal/memory ./internal/plural ./internal/sending ./internal/shortkey \
	./internal/turns ./plan ./retry

# What it runs without, too, since the tests only start processes or ask a server: cmd/reprise, whose raced lists the
# tests whose processes have it, and adapters in whose code nothing is shared. make night runs these with it.
DRIVEN = ./cmd/reprise ./adapters/redisstore ./adapters/sqldrivers

# The program for the tests that start it as a process, built once.
TEST_PROGRAM := $(BIN)/reprise-of-the-tests

# The version of a release, the systems that get a program, and the directory of the result.
VERSION ?=
TARGETS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
DIST    ?= dist

.DEFAULT_GOAL := help
.PHONY: help demo first-minute build functions test alone race short vet lint arrows fleet promises full mutants mutation fuzz fuzz-seeds strangers attack night vulncheck crash outages poison soak crowd flow backlog bench tidy tidy-check release release-tools manifests clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## show the main job at work: a flaky service, real messages, a report; DEMO has flags
	@echo "Compiling the demo. The first time that takes half a minute on two idle processors:"
	@echo "it is Go's own packages mostly, and downloads of 4 modules of the AWS SDK."
	@$(GO) run ./cmd/reprise/demo $(DEMO)

first-minute: ## measure make demo with empty module and build caches, downloads included
	@./.ci/first-minute

build: ## build the program into bin/
	$(GO) build -o bin/reprise ./cmd/reprise

functions: ## build the Lambda functions for arm64 and x86_64 into bin/functions
	@for architecture in arm64 x86_64; do for f in $(FUNCTIONS); do \
		out=$(FUNCTIONS_DIR)/$$architecture/$$f/bootstrap; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$(echo $$architecture | sed s/x86_64/amd64/) \
			$(GO) build -tags lambda.norpc -trimpath -ldflags '-s -w' -o $$out ./cmd/reprise/functions/$$f || exit 1; \
		echo "$$(wc -c <$$out) bytes $$out"; \
	done; done

test: ## run every test of every module, with the race detector where anything runs at once
	@$(MAKE) --no-print-directory -j2 driven tested

# The tests of the program wait most of their time. The others use the processors meanwhile, one make after the other.
.PHONY: driven tested
tested:
	@$(MAKE) --no-print-directory alone race

driven: ## run the tests that start the program and servers: the processes of raced have the race detector, the tests with DETECTOR=-race
	$(GO) build -buildvcs=false -o $(TEST_PROGRAM) ./cmd/reprise
	REPRISE_TEST_BIN=$(TEST_PROGRAM) REPRISE_TEST_RACE=1 $(GO) test $(DETECTOR) -vet=off -timeout 40m $(DRIVEN)

alone: ## run the tests of the packages in which nothing runs at once, without the race detector
	$(GO) test -vet=off -timeout 10m $(ALONE)

# make lint makes go vet's checks; here they would read once more all that the packages depend on.
race: ## run the tests of all other packages, with the race detector
	$(GO) test -race -vet=off -timeout 40m $$($(GO) list work | grep -vxF "$$($(GO) list $(ALONE) $(DRIVEN) $(LEFT_OUT:%=./%/...))")

short: ## run every test without the race detector
	$(GO) test work

vet: ## run go vet over every module
	$(GO) vet work

.PHONY: modules
modules: # the folders of the modules, a line each
	@printf '%s\n' $(MODULES)

lint: $(GOLANGCI_LINT) ## run the linters over every module, go vet's checks among them
	@for m in $(filter-out $(LEFT_OUT),$(MODULES)); do echo "lint $$m"; (cd $$m && $(GOLANGCI_LINT) run ./...) || exit 1; done

$(GOLANGCI_LINT):
	GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/golangci-lint $@

arrows: ## check which package may import which
	$(GO) test -run 'TestArrows|TestRequirements|TestAdaptersAreModules|TestNoForbiddenNames|TestLoopbackIsDecidedOnce|TestLambdaStandsApart' -count=1 ./internal/repotest ./cmd/reprise

fleet: ## run SEEDS fleets of consumers (1000) through faults, crashes and restarts, and MACHINES (a hundred times as many) as machines
	GOGC=800 $(GO) test -timeout 0 -run '^TestFleet$$' ./internal/fleet -fleet.seeds=$(SEEDS)
	GOGC=800 $(GO) test -timeout 0 -run '^TestMachines$$' ./internal/machines -machines.seeds=$(MACHINES)
	$(GO) test -timeout 0 -run '^TestPlainFleets$$' ./internal/world -world.seeds=$(MACHINES)

promises: ## run SEEDS scenarios (1000) from the whole range of the public API, and hold them against the documentation's sentences
	GOGC=800 $(GO) test -timeout 0 -run '^TestStranger$$' ./internal/stranger -stranger.seeds=$(SEEDS)

# The packages whose tests make fewer runs with the race detector: see internal/race. Those of ALONE never have it.
# Each target is a run of its own, so that make -j2 uses the second processor while tests wait.
FULL = full-shell full-program full-journal full-fleet full-stranger full-machines full-world full-simulate full-server
.PHONY: $(FULL)
full: $(FULL) ## run in full, without the race detector, what does less with it, 1,000 simulations of random scenarios among it; SEEDS and MACHINES as in fleet
full-shell:
	$(GO) test -timeout 0 . ./internal/shelltest/...
full-program:
	$(GO) test -timeout 0 -run '^TestOperatorsBesideConsumers$$' ./cmd/reprise
full-journal:
	$(GO) test -timeout 0 ./cmd/reprise/internal/journal ./cmd/reprise/internal/operate ./cmd/reprise/internal/redrive
full-fleet:
	GOGC=800 $(GO) test -timeout 0 ./internal/fleet -fleet.seeds=$(SEEDS)
full-stranger:
	GOGC=800 $(GO) test -timeout 0 ./internal/stranger -stranger.seeds=$(SEEDS)
full-machines:
	GOGC=800 $(GO) test -timeout 0 ./internal/machines -machines.seeds=$(MACHINES)
full-world:
	$(GO) test -timeout 0 ./internal/world -world.seeds=$(MACHINES)
full-simulate:
	$(GO) test -timeout 0 ./simulate ./internal/simulation -agree.seeds=1000
full-server:
	$(GO) test -timeout 0 -run '^TestDoors$$' ./sqsserver

mutants: ## make each of MUTANTS's mistakes (all), in one build, and show which test or invariant fails
	$(GO) test -timeout 0 -run '^TestMutants$$' -count=1 ./internal/repotest -mutants=$(MUTANTS)

mutation: ## make small mistakes by rule in PACKAGES, and show which no test notices
	$(GO) run ./internal/mutation $(PACKAGES)

fuzz-seeds: ## run every fuzz target over its seeds: inputs made up, and those that fuzzing found
	$(GO) test -run '^Fuzz' work

fuzz: ## fuzz every fuzz target of FUZZ (work: all packages) for FUZZTIME each: a time (20s) or a count of inputs (4000x)
	@tests=$$(mktemp) && trap 'rm -f "$$tests"' EXIT && found=$$($(GO) env GOCACHE)/fuzz && \
	$(GO) list -f '{{.Dir}} {{.ImportPath}}' $(FUZZ) | while read -r dir package; do \
		targets=$$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go 2>/dev/null | sed 's/^func //'); \
		[ -z "$$targets" ] || $(GO) test -vet=off -c -fuzz . -o "$$tests" $$package || exit 1; \
		for target in $$targets; do \
			echo "fuzz $$package $$target"; \
			(cd $$dir && "$$tests" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x \
				-test.fuzzcachedir "$$found/$$package" -test.paniconexit0) || exit 1; \
		done; \
	done

# The packages that read what somebody else may have written to do harm: requests
# and their signatures, histories and stories, envelopes, pointers, templates; and
# those that draw settings with extreme numbers.
READS_STRANGERS = . ./internal/shelltest/attacks ./internal/shelltest/operating ./internal/shelltest/sending ./sqsserver ./internal/awsjson ./internal/replies ./repriselambda ./envelope ./middleware \
	./idempotency ./adapters/s3payload ./adapters/repriseotel \
	./cmd/reprise/internal/lambda/template ./cmd/reprise/internal/lambda/mapping ./cmd/reprise/internal/terminal

attack: ## attack the program as docs/security.md says, and fuzz what reads strangers' input for FUZZTIME each
	$(GO) test -count=1 -timeout 15m -run '^TestAttack' work
	@$(MAKE) --no-print-directory strangers FUZZTIME=$(FUZZTIME)

strangers: ## fuzz what reads the input of strangers for FUZZTIME each
	@$(MAKE) --no-print-directory fuzz FUZZ='$(READS_STRANGERS)' FUZZTIME=$(FUZZTIME)

night: $(GOLANGCI_LINT) $(GOVULNCHECK) release-tools ## search for mistakes for NIGHT (6h) from random seeds, then check what .ci/run leaves out; a release requires its night.json
	$(GO) build -buildvcs=false -o $(TEST_PROGRAM) ./cmd/reprise
	REPRISE_TEST_BIN=$(TEST_PROGRAM) $(GO) run ./internal/night -for $(NIGHT) -strangers '$(READS_STRANGERS)' -mutated '$(PACKAGES)'

vulncheck: $(GOVULNCHECK) ## look for known vulnerabilities in what the modules call; needs the network
	@for m in $(MODULES); do echo "vulncheck $$m"; (cd $$m && $(GOVULNCHECK) ./...) || exit 1; done

$(GOVULNCHECK):
	GOBIN=$(BIN) GOFLAGS= $(GO) install golang.org/x/vuln/cmd/govulncheck@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/govulncheck $@

crash: ## kill the program under load N times (100), and audit what is left
	REPRISE_KILLS=$(N) $(GO) test -run '^TestKilled$$' -count=1 -v -timeout 0 ./cmd/reprise

outages: ## measure how long consumers take after an outage, in virtual time, and print the tables of docs/outages.md
	$(GO) test -run '^(TestRecovery|TestWeakDependencyRecovers)$$' -count=1 -v ./internal/shelltest/outages -recovery.table | grep -E '^ +\||recovery_test|^(---|ok|FAIL)'

poison: ## measure what one harmful message a minute costs the others, in virtual time, and print the table of docs/tuning.md
	$(GO) test -run '^TestAttackPoisonCostsItsShare$$' -count=1 -v ./internal/shelltest/attacks -poison.time=6h | grep -E '^ +\||poison_test|^(---|ok|FAIL)'

soak: ## run serve, two run and a flaky target for DURATION (30m), kill each at random, and audit what became of the messages
	REPRISE_SOAK=$(DURATION) $(GO) test -run '^TestSoak$$' -count=1 -v -timeout 0 ./cmd/reprise

crowd: ## have ten clients of five languages use a server that is killed, stopped, without room and set to other times, for DURATION (30m), and audit their logs
	REPRISE_CROWD=$(DURATION) $(GO) test -run '^TestCrowd$$' -count=1 -v -timeout 0 ./cmd/reprise

flow: ## let messages flow through a server for MINUTES (30), and print disk, memory and latency
	REPRISE_FLOW_MINUTES=$(MINUTES) $(GO) test -run '^TestFlow$$' -count=1 -v -timeout 0 ./cmd/reprise

backlog: ## restart the program with MESSAGES (1000000) waiting, and print time and memory
	REPRISE_BACKLOG=$(MESSAGES) $(GO) test -run '^TestBacklog$$' -count=1 -v -timeout 0 ./cmd/reprise

bench: ## run every benchmark for BENCHTIME (1s), and the comparisons of bench/
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -benchmem $$(grep -rlE --include='*_test.go' --exclude-dir=testdata --exclude-dir=node_modules $(LEFT_OUT:%=--exclude-dir=%) '^func Benchmark' . | xargs -n 1 dirname | sort -u)

tidy: ## tidy every module and go.work.sum; the workspace's own modules are not published, so each is told where they are
	@./.ci/tidy

tidy-check: ## fail if tidy would change anything
	@./.ci/tidy && git diff --exit-code -- '*go.mod' '*go.sum' go.work.sum

release: $(GO_LICENSES) $(CYCLONEDX) ## make release VERSION=v… of the commit in DIST (dist), for TARGETS, and publish nothing: docs/release.md
	$(GO) run ./internal/night -check
	$(GO) run ./cmd/reprise/internal/release -version '$(VERSION)' -targets '$(TARGETS)' -out '$(DIST)' -tools $(BIN)

$(GO_LICENSES):
	GOBIN=$(BIN) GOFLAGS= $(GO) install -trimpath github.com/google/go-licenses@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/go-licenses $@

$(CYCLONEDX):
	GOBIN=$(BIN) GOFLAGS= $(GO) install -trimpath github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/cyclonedx-gomod $@

release-tools: $(HELM) $(ACTIONLINT) $(COMPOSE) $(KEDA) ## build what the tests of deploy/ and .github need

manifests: $(HELM) ## make deploy/kubernetes/reprise.yaml of the Helm chart
	$(HELM) template orders deploy/helm/reprise --namespace shop --values deploy/kubernetes/values.yaml >deploy/kubernetes/reprise.yaml

$(HELM):
	GOBIN=$(BIN) GOFLAGS= $(GO) install helm.sh/helm/v4/cmd/helm@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/helm $@

# Not a program: the definition of a ScaledObject.
$(KEDA):
	mkdir -p $(BIN)
	cp "$$(GOFLAGS= $(GO) mod download -json github.com/kedacore/keda/v2@$(lastword $(subst -, ,$(notdir $@))) | awk -F'"' '$$2 == "Dir" { print $$4 }')/config/crd/bases/keda.sh_scaledobjects.yaml" $@
	chmod u+w $@

$(ACTIONLINT):
	GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/actionlint $@

$(COMPOSE):
	GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/compose-spec/compose-go/v2/cmd@$(lastword $(subst -, ,$(notdir $@)))
	mv $(BIN)/cmd $@

clean: ## remove what was built
	rm -rf bin .bin dist
