#!/usr/bin/env bash
# demo.sh makes stsd-demo:1, stsd-demo:2 (the server in demo/, two versions) and stsd-demo:broken (exits 1 at once).
# Needs Go and a Docker engine. FORCE=1 makes them again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

make_demo() {
  local version=$1 root=$work/$1
  settled "stsd-demo:$version" "$hash" && return
  need go "see https://go.dev/dl"
  skeleton "$root"
  (cd "$images" && CGO_ENABLED=0 GOOS=linux GOARCH=$(docker version -f '{{.Server.Arch}}') \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$root/demo" ./demo)
  ln -s ../demo "$root/bin/demo"
  import "$root" "stsd-demo:$version" "$hash" 0 'ENTRYPOINT ["/demo"]' 'CMD ["serve"]'
}

start
hash=$(source_hash "$0" "$images"/demo/*.go)
for version in 1 2 broken; do make_demo "$version"; done
