#!/usr/bin/env bash
# dns.sh compares stsd's DNS with CoreDNS and with a bare UDP echo, in one run. It needs dnsperf (installed where it may),
# and builds CoreDNS, with the plugins that are compared, once into a temporary folder, outside of this module. Server and
# clients have cores of their own; with STSD_BENCH_UNPINNED=1 they share them. Nothing is asserted.
set -euo pipefail
cd "$(dirname "$0")"

readonly version=v1.14.7
readonly folder=${TMPDIR:-/tmp}/stsd-coredns-$version

program() {
  cat <<'GO'
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/file"
	_ "github.com/coredns/coredns/plugin/hosts"
)

func main() {
	dnsserver.Directives = []string{"bind", "hosts", "file"}
	coremain.Run()
}
GO
}

if ! command -v dnsperf >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "needs dnsperf: apt-get install dnsperf" >&2
    exit 1
  fi
  apt-get install -y -q dnsperf >/dev/null
fi
if [ ! -x "$folder/coredns" ]; then
  echo "building CoreDNS $version into $folder; this takes a minute or two"
  mkdir -p "$folder/source"
  printf 'module coredns\n\ngo 1.25\n\nrequire github.com/coredns/coredns %s\n' "$version" >"$folder/source/go.mod"
  program >"$folder/source/main.go"
  (cd "$folder/source" && GOFLAGS=-mod=mod go build -o ../coredns .)
fi
STSD_BENCH_DNS=1 STSD_BENCH_COREDNS=$folder/coredns go test -count=1 -timeout 10m -run '^TestDNS$' -v . | grep -v '^=== '
