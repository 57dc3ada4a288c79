#!/usr/bin/env bash
# fuzz.sh [DURATION] runs every fuzz target of this module for that long, one after the other (default 30s).
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly duration=${1:-30s}
# targets prints package and target, one pair a line. Go itself fuzzes one target at a time only.
targets() {
  { grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . || true; } |
    sed -E 's#^(.*)/[^/]+:func (.*)$#\1 \2#' | sort
}

targets |
  while read -r package target; do
    echo "== $package $target"
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" </dev/null
  done
