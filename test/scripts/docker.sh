#!/usr/bin/env bash
# docker.sh makes sure that a Docker engine answers and that there is a docker command. Where both are there it does
# nothing. As root on Debian or Ubuntu it installs what is missing and starts the engine; elsewhere it says what to do.
set -euo pipefail

readonly socket=/var/run/docker.sock pid=/var/run/docker.pid log=/var/log/dockerd.log
readonly patience=60 # seconds for an engine to answer

say() { printf 'docker.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

has() { command -v "$1" >/dev/null; }
answers() { has docker && timeout 15 docker version >/dev/null 2>&1; }
running() { [ -f "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null; }
systemd() { [ -d /run/systemd/system ]; }

may_install() { [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] && has apt-get; }

# known PACKAGE: apt could install it.
known() { apt-cache -q policy "$1" 2>/dev/null | grep -E 'Candidate: [^(]' >/dev/null; }

# install PACKAGE… renews the package lists only where they lack a package or are too old to download from.
install() {
  local package
  say "apt-get install $*"
  for package; do known "$package" || { apt-get -qq update; break; }; done
  apt_install "$@" || { apt-get -qq update && apt_install "$@"; } || die "apt-get install failed, see above"
}

# apt_install shows apt's own words only when it fails.
apt_install() {
  local words
  words=$(DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@" 2>&1) || { say "$words"; return 1; }
}

# install_engine leaves out what docker.io recommends, but for what containers cannot start without on this kernel.
install_engine() {
  local packages=(docker.io iptables ca-certificates)
  [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ] || packages+=(apparmor)
  systemd || grep -q ' /sys/fs/cgroup' /proc/mounts || packages+=(cgroupfs-mount)
  install "${packages[@]}"
}

# install_command gets the docker command alone. Debian 12 has it only inside docker.io, which would bring an engine too.
install_command() {
  known docker-cli || known docker.io || apt-get -qq update
  known docker-cli && { install docker-cli; return; }
  local dir
  dir=$(mktemp -d)
  chmod 755 "$dir"
  say "taking /usr/local/bin/docker from package docker.io"
  (cd "$dir" && apt-get -qq download docker.io 2>/dev/null && dpkg-deb -x docker.io_*.deb .) || die "apt-get download docker.io failed"
  command install -m 755 "$dir/usr/bin/docker" /usr/local/bin/docker
  rm -r "$dir"
}

start_engine() {
  running && return # the package's own script has just started it
  if systemd; then
    systemctl start docker || die "systemctl start docker failed: journalctl -u docker tells why"
    return
  fi
  say "starting dockerd, log $log"
  setsid nohup dockerd --pidfile "$pid" >>"$log" 2>&1 </dev/null &
}

# await answers for as long as patience lasts; ends early when the engine has died.
await() {
  local i
  for ((i = 0; i < patience * 2; i++)); do
    answers && return
    sleep 0.5
    [ "$i" -lt 20 ] || systemd || running || break
  done
  [ ! -f "$log" ] || tail -n 15 "$log" >&2
  die "the engine does not answer: see $log, /var/log/docker.log or journalctl -u docker"
}

main() {
  answers && return
  if has docker && [ -n "${DOCKER_HOST:-}" ]; then
    docker version >/dev/null || true
    die "no engine answers at DOCKER_HOST=$DOCKER_HOST: start it, or unset DOCKER_HOST"
  fi
  if [ -S "$socket" ] && ! [ -w "$socket" ]; then
    die "no access to $socket: be root, or in its group: usermod -aG docker $(id -un), then log in again"
  fi
  if ! may_install; then
    has dockerd && die "Docker is installed but no engine answers: start it (systemctl start docker, or Docker Desktop)"
    die "no Docker engine: install one (https://docs.docker.com/engine/install); as root on Debian this script does it"
  fi

  if ! has docker && [ -S "$socket" ]; then
    install_command
    answers && return
  fi
  has dockerd || install_engine
  has docker || install_command
  start_engine
  await
  say "Docker $(docker version -f '{{.Server.Version}}') runs"
}

main
