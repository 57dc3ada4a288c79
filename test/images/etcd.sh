#!/usr/bin/env bash
# etcd.sh makes etcd:3 from Debian packages: etcd and etcdctl, with busybox as its shell. FORCE=1 makes it again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

start
hash=$(source_hash "$0")
settled etcd:3 "$hash" && exit
need apt-get "etcd:3 is made from Debian packages; where a registry is reachable, tag an image of etcd 3 that has a shell as etcd:3"

debs "$work/tree" etcd-server etcd-client busybox-static libc6
tree=$work/tree root=$work/root
skeleton "$root"
for file in /usr/bin/etcd /usr/bin/etcdctl; do program "$root" "$tree" "$file"; done
busybox "$root" "$tree"

version=$(dpkg-deb -f "$work"/debs/etcd-server_*.deb Version)
[[ $version =~ ^([0-9]+:)?3\. ]] || say "etcd:3: this Debian has etcd $version, not 3; tagged all the same"
import "$root" etcd:3 "$hash" 0 'CMD ["etcd"]' 'WORKDIR /data' 'EXPOSE 2379 2380'
