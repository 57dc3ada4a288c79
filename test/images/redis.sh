#!/usr/bin/env bash
# redis.sh makes redis:7 from Debian packages, to stand in for the official image: same entrypoint, user, folder and
# defaults, with busybox as its shell. FORCE=1 makes it again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# docker-entrypoint.sh is the official image's: options alone mean redis-server, root gives way to user redis.
entrypoint() {
  cat <<'SH'
#!/bin/sh
set -e
if [ "${1#-}" != "$1" ] || [ "${1%.conf}" != "$1" ]; then
  set -- redis-server "$@"
fi
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find . ! -user redis -exec chown redis '{}' +
  exec /usr/bin/setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
[ "$(umask)" != 0022 ] || umask 0077
exec "$@"
SH
}

# The official build has protected mode off, since a container's network is its guard; Debian's has it on. This
# wrapper, first in PATH, turns it off unless the arguments or the configuration file speak of it.
server() {
  cat <<'SH'
#!/bin/sh
real=/usr/bin/${0##*/}
case $1 in -v | --version | -h | --help | --test-memory | --check-system) exec "$real" "$@" ;; esac
case "$*" in *protected-mode*) exec "$real" "$@" ;; esac
[ -f "$1" ] && grep -qi '^[[:space:]]*protected-mode' "$1" && exec "$real" "$@"
exec "$real" "$@" --protected-mode no
SH
}

start
hash=$(source_hash "$0")
settled redis:7 "$hash" && exit
need apt-get "redis:7 is made from Debian packages; where a registry is reachable, docker pull redis:7 will do"

mapfile -t packages < <(dependencies redis-tools util-linux libc-bin)
debs "$work/tree" redis-server busybox-static "${packages[@]}"
tree=$work/tree root=$work/root
skeleton "$root"
for file in /usr/bin/redis-server /usr/bin/redis-cli /usr/bin/redis-benchmark /usr/bin/setpriv /usr/bin/getent; do
  program "$root" "$tree" "$file"
done
ln -s redis-server "$root/usr/bin/redis-sentinel"
busybox "$root" "$tree"
rm "$root/bin/setpriv" # busybox's cannot change users (and its shell prefers its own: name setpriv by path)
entrypoint >"$root/usr/local/bin/docker-entrypoint.sh"
server >"$root/usr/local/bin/redis-server"
ln -s redis-server "$root/usr/local/bin/redis-sentinel"
chmod 755 "$root"/usr/local/bin/*

chmod 755 "$root/data" # user redis's alone, as in the official image

version=$(dpkg-deb -f "$work"/debs/redis-server_*.deb Version)
[[ $version =~ ^([0-9]+:)?7\. ]] || say "redis:7: this Debian has Redis $version, not 7; tagged all the same"
import "$root" redis:7 "$hash" 999 \
  'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]' 'WORKDIR /data' 'EXPOSE 6379'
