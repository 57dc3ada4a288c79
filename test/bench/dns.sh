#!/usr/bin/env bash
# dns.sh compares stsd's DNS with CoreDNS and with a bare UDP echo, in one run. It needs dnsperf (installed where it may),
# and builds CoreDNS once into a temporary folder, outside of this module. Nothing is asserted.
set -euo pipefail
cd "$(dirname "$0")"

readonly version=v1.14.7
readonly folder=${TMPDIR:-/tmp}/stsd-coredns-$version

if ! command -v dnsperf >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "needs dnsperf: apt-get install dnsperf" >&2
    exit 1
  fi
  apt-get install -y -q dnsperf >/dev/null
fi
if [ ! -x "$folder/coredns" ]; then
  echo "building CoreDNS $version into $folder; this takes some minutes"
  mkdir -p "$folder"
  (cd "$folder" && GOBIN=$folder GOFLAGS=-mod=mod go install "github.com/coredns/coredns@$version")
fi
STSD_BENCH_DNS=1 STSD_BENCH_COREDNS=$folder/coredns go test -count=1 -timeout 10m -run '^TestDNS$' -v . | grep -v '^=== '
