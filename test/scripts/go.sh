#!/usr/bin/env bash
# go.sh checks that there is a Go that can fetch the version which go.mod names: 1.21 or newer.
set -euo pipefail

die() { printf 'go.sh: %s\n' "$*" >&2; exit 1; }

command -v go >/dev/null || die "Go is missing: see https://go.dev/dl (it is looked for in PATH and /usr/local/go/bin)"
version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || true
[[ $version =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -lt 21 ] &&
  die "Go is too old: ${version#go}; 1.21 or newer fetches the version of go.mod by itself: https://go.dev/dl"
exit 0
