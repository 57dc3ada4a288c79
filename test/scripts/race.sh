#!/usr/bin/env bash
# race.sh PACKAGE… runs the short tests under the race detector. It needs a C compiler: as root on Debian it installs
# one; elsewhere it says so and lets the rest of `make test` go on.
set -euo pipefail
cd "$(dirname "$0")/../.."

compiler() { command -v "$(go env CC)" >/dev/null; }

if ! compiler && [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then
  echo "race.sh: apt-get install gcc libc6-dev" >&2
  get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install gcc libc6-dev >/dev/null; }
  get || { apt-get -qq update && get; }
fi
if ! compiler; then
  echo "race.sh: SKIPPED: the race detector needs a C compiler: install gcc and the headers of the C library" >&2
  exit 0
fi
CGO_ENABLED=1 exec go test -race -short "$@"
