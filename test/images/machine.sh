#!/usr/bin/env bash
# machine.sh makes stsd-test-machine:1 from Debian packages: systemd-resolved, dnsmasq and NetworkManager as a user's
# machine has them, for the tests of `stsd dns install`. FORCE=1 makes it again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# systemctl stands in for systemd, which does not run in a container, for the one call that is made of it.
systemctl() {
  cat <<'SH'
#!/bin/bash
# systemctl restart UNIT, for the two units there are.
[ "$1" = restart ] || { echo "only restart is known here"; exit 1; }
case $2 in
systemd-resolved.service) command=(/lib/systemd/systemd-resolved) ;;
dnsmasq.service) command=(/usr/sbin/dnsmasq -k -7 /etc/dnsmasq.d,.dpkg-dist,.dpkg-old,.dpkg-new --local-service) ;;
*) echo "Unit $2 not found."; exit 5 ;;
esac
pid=/run/${2%.service}.test-pid
if [ -e "$pid" ]; then
  old=/proc/$(cat "$pid")/status
  kill "$(cat "$pid")" 2>/dev/null
  while [ -e "$old" ] && ! grep -q '^State:.Z' "$old"; do sleep 0.02; done # its sockets are closed only then
fi
setsid "${command[@]}" >>"/var/log/${2%.service}.log" 2>&1 </dev/null &
echo $! >"$pid"
SH
}

start
image=stsd-test-machine:1 root=$work/root
hash=$(source_hash "$0")
settled "$image" "$hash" && exit
need apt-get "this image is made from Debian packages"
mapfile -t packages < <(dependencies systemd-resolved dnsmasq network-manager dbus bash coreutils libc-bin procps busybox-static)
# What dependencies leaves out, since images of single programs do without.
debs "$root" "${packages[@]}" dbus-session-bus-common dbus-system-bus-common base-files
skeleton "$root"
mkdir -p "$root"/{var/log,etc/dnsmasq.d,usr/sbin,usr/local/sbin}
rm -rf "$root/var/run" "$root/etc/systemd/resolved.conf.d"
ln -s /run "$root/var/run"
printf '%s\n' systemd-resolve:x:101:101::/:/bin/false messagebus:x:102:102::/:/bin/false dnsmasq:x:103:65534::/:/bin/false >>"$root/etc/passwd"
printf '%s\n' systemd-resolve:x:101: messagebus:x:102: netdev:x:103: >>"$root/etc/group"
for applet in grep sed ip setsid pidof; do
  [ -e "$root/bin/$applet" ] || [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done
systemctl >"$root/usr/local/sbin/systemctl"
chmod 755 "$root/usr/local/sbin/systemctl"
import "$root" "$image" "$hash" 0 'CMD ["bash", "-c", "trap exit TERM; while :; do sleep 3600 & wait; done"]'
