#!/usr/bin/env bash
# rabbitmq.sh makes rabbitmq:3 from Debian packages, to stand in for the official image: same user, folders, variables
# and command, all plugins there to be enabled, with busybox as its shell. FORCE=1 makes it again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# docker-entrypoint.sh does what the official image's does first: root gives way to user rabbitmq.
entrypoint() {
  cat <<'SH'
#!/bin/sh
set -e
if [ "${1#rabbitmq}" != "$1" ] && [ "$(id -u)" = 0 ]; then
  find /var/lib/rabbitmq ! -user rabbitmq -exec chown rabbitmq:rabbitmq '{}' +
  exec /usr/bin/setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups "$0" "$@"
fi
exec "$@"
SH
}

# programs prints the files below DIR that run or are loaded by a node: Erlang's machine, what it starts, and drivers.
programs() {
  (cd "$1" && find usr/lib/erlang -type f \( -path '*/erts-*/bin/*' -a \( -name 'beam.smp' -o -name 'e*exec' -o -name epmd \
    -o -name erl_child_setup -o -name escript -o -name inet_gethost \) -o -path '*/priv/bin/*' ! -name '*.sh' -o -name '*.so' \) -printf '/%p\n')
}

start
hash=$(source_hash "$0")
settled rabbitmq:3 "$hash" && exit
need apt-get "rabbitmq:3 is made from Debian packages; where a registry is reachable, docker pull rabbitmq:3-management will do (tag it rabbitmq:3)"

# The server and what it needs of Erlang; the rest of what its package asks for is for a machine that it manages.
mapfile -t erlang < <(apt-cache depends rabbitmq-server | awk '$1 == "Depends:" && $2 ~ /^erlang-/ {print $2}')
mapfile -t packages < <(dependencies "${erlang[@]}" util-linux | grep -E '^(erlang-|lib|zlib1g|util-linux$)' | grep -v perl)
debs "$work/tree" rabbitmq-server busybox-static "${packages[@]}"
tree=$work/tree root=$work/root
skeleton "$root"
mkdir -p "$root"/{usr/lib,etc/rabbitmq,var/lib/rabbitmq,var/log/rabbitmq}
cp -a "$tree"/usr/lib/{erlang,rabbitmq} "$root/usr/lib/"
rm -rf "$root"/usr/lib/erlang/lib/*/{src,examples}
mapfile -t files < <(programs "$tree")
for file in "${files[@]}" /usr/bin/setpriv; do program "$root" "$tree" "$file"; done
for script in erl epmd escript; do ln -s "../lib/erlang/bin/$script" "$root/usr/bin/$script"; done
busybox "$root" "$tree"
rm "$root/bin/setpriv" # busybox's cannot change users
sed -i 's!^redis:\(.*\):/data:!rabbitmq:\1:/var/lib/rabbitmq:!; s!^redis:!rabbitmq:!' "$root"/etc/{passwd,group}
chmod 1777 "$root"/var/{lib,log}/rabbitmq # the image's files are root's
entrypoint >"$root/usr/local/bin/docker-entrypoint.sh"
chmod 755 "$root/usr/local/bin/docker-entrypoint.sh"

version=$(dpkg-deb -f "$work"/debs/rabbitmq-server_*.deb Version)
[[ $version =~ ^([0-9]+:)?3\. ]] || say "rabbitmq:3: this Debian has RabbitMQ $version, not 3; tagged all the same"
import "$root" rabbitmq:3 "$hash" 0 "ENV PATH=/usr/lib/rabbitmq/bin:$path" \
  'ENV HOME=/var/lib/rabbitmq LANG=C.UTF-8 RABBITMQ_LOGS=-' \
  'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["rabbitmq-server"]' 'EXPOSE 4369 5672 15672 25672'
