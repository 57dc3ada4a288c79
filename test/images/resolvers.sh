#!/usr/bin/env bash
# resolvers.sh makes stsd-resolvers:1: the same look-up by three resolvers. /lookup-glibc and /lookup-musl are one C
# program with Debian's glibc and musl, /demo lookup is Go's own. Needs gcc and Go. FORCE=1 makes it again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

start
hash=$(source_hash "$0" "$images"/resolvers/lookup.c "$images"/demo/*.go)
settled stsd-resolvers:1 "$hash" && exit
command -v gcc >/dev/null || { say "stsd-resolvers:1: not made, the tests that need it are skipped: apt-get install gcc libc6-dev"; exit 0; }
need go "see https://go.dev/dl"
debs "$work/tree" busybox-static libc6 musl musl-dev
skeleton "$work/root"
busybox "$work/root" "$work/tree"

musl=$(dirname "$(find "$work/tree" -name crt1.o -path '*musl*')")
gcc -static -nostdinc -nostdlib -isystem "${musl/usr\/lib/usr\/include}" -o "$work/root/lookup-musl" \
  "$musl/crt1.o" "$musl/crti.o" "$images/resolvers/lookup.c" -L"$musl" -lc -lgcc "$musl/crtn.o"

# glibc loads its resolver at run time, so this one is not static.
gcc -o "$work/tree/lookup-glibc" "$images/resolvers/lookup.c"
program "$work/root" "$work/tree" /lookup-glibc
for lib in libnss_dns.so.2 libnss_files.so.2 libresolv.so.2; do
  install -D -m 755 "$(find "$work/tree" -name "$lib" | head -n 1)" "$work/root/usr/lib/$lib"
done

(cd "$images" && CGO_ENABLED=0 GOOS=linux GOARCH=$(docker version -f '{{.Server.Arch}}') \
  go build -trimpath -buildvcs=false -o "$work/root/demo" ./demo)
import "$work/root" stsd-resolvers:1 "$hash" 0 'ENTRYPOINT ["/demo"]' 'CMD ["serve"]'
