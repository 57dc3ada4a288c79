# make demo and make test are all one needs; `make help` lists the rest.

# Where Go's own installer puts it, for a root shell that does not know.
export PATH := $(PATH):/usr/local/go/bin

# The packages whose tests need no Docker: they run under the race detector as well.
RACE = ./daemon/... ./runtime/pods/... ./runtime/sim/... ./dns/... ./jobspecs/... ./volumes/...

# A checkout that git will not read (another owner, no git) is built without its revision.
VCS := $(shell git status --porcelain >/dev/null 2>&1 && echo auto || echo false)

.DEFAULT_GOAL := help
.PHONY: help demo test build images bench bench-dns fuzz sim restarts long mutate clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## get Docker if need be, start the daemon, run three members and a rolling update; leaves them running
	@test/scripts/demo.sh

# How many histories `make test` tells: half of its time on two cores. make test TOLD=1000 is for the impatient.
TOLD ?= 20000
test: ## everything that proves the project, Docker included
	test/scripts/go.sh
	test/scripts/docker.sh
	test/images/build.sh
	go vet ./...
	test/scripts/race.sh $(RACE)
	test/scripts/race.sh ./test -run TestHistories
	STSD_TEST_DOCKER=1 go test -count=1 -timeout 25m ./...
	@$(MAKE) --no-print-directory sim HISTORIES=$(TOLD)

build: ## bin/stsd, one static binary
	CGO_ENABLED=0 go build -trimpath -buildvcs=$(VCS) -o bin/stsd ./cmd/stsd

images: ## the images of demo and tests, made without a registry
	test/scripts/docker.sh
	test/images/build.sh

bench: ## figures side by side with raw Docker
	test/scripts/docker.sh
	test/images/build.sh
	STSD_TEST_DOCKER=1 go test ./test/e2e -run '^$$' -bench . -benchtime 1x -timeout 25m

bench-dns: ## DNS side by side with CoreDNS and a UDP echo (dnsperf)
	test/bench/dns.sh

FUZZTIME ?= 30s
fuzz: ## every fuzz target for FUZZTIME (30s)
	test/scripts/fuzz.sh $(FUZZTIME)

HISTORIES ?= 1000000
sim: ## random histories with faults on the simulator, for hours (HISTORIES=1000000); tells how far it is
	cd test && STSD_SIM_TELL=1 STSD_SIM_HISTORIES=$(HISTORIES) go test -run '^TestHistories$$' -count=1 -timeout 0

RESTARTS ?= 1000
long: ## RabbitMQ on Docker: every node is killed and comes back
	test/scripts/docker.sh
	test/images/build.sh demo rabbitmq
	STSD_TEST_DOCKER=1 STSD_TEST_LONG=1 go test ./test/e2e -run '^TestRabbit' -v -count=1 -timeout 25m

restarts: ## restart members on Docker (RESTARTS=1000) while they look each other up, and see no look-up fail
	test/scripts/docker.sh
	test/images/build.sh
	STSD_TEST_DOCKER=1 STSD_TEST_RESTARTS=$(RESTARTS) go test ./test/e2e -run '^TestRestartsFailNoLookUp$$' -v -count=1 -timeout 0

mutate: ## break each rule on purpose and see a test fail; writes docs/mutations.md
	test/scripts/mutate.sh

clean: ## remove what build and tests left here; no container, image or volume
	rm -rf bin *.test *.out *.prof
