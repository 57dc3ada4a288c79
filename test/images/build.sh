#!/usr/bin/env bash
# build.sh [NAME…] makes the images that demo and tests use; without names, all that every run needs. NAME.sh makes
# one, says what it did and does nothing when there is nothing to do.
set -euo pipefail
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- demo busybox redis etcd machine resolvers

for name; do
  [ -x "$name.sh" ] || { echo "build.sh: no image $name here" >&2; exit 1; }
  "./$name.sh"
done
