#!/usr/bin/env bash
# demo.sh is `make demo`: from a checkout to three members with stable names, volumes and DNS, and a rolling update.
# It leaves the daemon and the set running. Every step is one that changes nothing where there is nothing to change, so
# a second run restarts no member.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly spec=jobspecs/examples/web.hcl set=web
readonly stsd=bin/stsd
readonly patience=30 # seconds for the daemon to answer
readonly unreachable=7 # stsd's exit code when no daemon answers

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
else
  bold='' dim='' plain=''
fi

if [ "$(id -u)" = 0 ]; then
  log=/var/log/stsd.log pidfile=/run/stsd-demo.pid
else
  state=${XDG_STATE_HOME:-$HOME/.local/state}/stsd
  mkdir -p "$state"
  log=$state/stsd.log pidfile=$state/stsd-demo.pid
fi
readonly log pidfile

title() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '%s%s%s\n' "$dim" "$*" "$plain"; }
hint() { printf '  %-42s %s\n' "$1" "$2"; }
die() { printf 'demo.sh: %s\n' "$*" >&2; exit 1; }

# show COMMAND… says what it runs, then runs it.
show() {
  printf '%s$ %s%s\n' "$bold" "$*" "$plain"
  "$@" && return
  local code=$?
  printf 'demo.sh: exit code %d from: %s\n' "$code" "$*" >&2
  [ "$1" != "$stsd" ] || printf 'demo.sh: look into %s, %s events, %s explain %s-0\n' "$log" "$stsd" "$stsd" "$set" >&2
  exit "$code"
}

# reach prints nothing; its code is stsd's: 0 when a daemon answers.
reach() { "$stsd" ls >/dev/null 2>&1; }

# daemon_pid prints the process that this script once started, where it still runs (a zombie has no exe).
daemon_pid() {
  local pid
  pid=$(cat "$pidfile" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = stsd ] && [ -e "/proc/$pid/exe" ] && echo "$pid"
}

# outdated: our own daemon runs another binary than the one just built.
outdated() { [ -r "/proc/$1/exe" ] && ! cmp -s "/proc/$1/exe" "$stsd"; }

stop_outdated_daemon() {
  local pid i
  pid=$(daemon_pid) && outdated "$pid" || return 0
  note "the daemon (pid $pid) runs an older build: it makes way, members run on"
  kill "$pid"
  for ((i = 0; i < patience * 10; i++)); do
    daemon_pid >/dev/null || return 0
    sleep 0.1
  done
  die "the daemon (pid $pid) does not end: kill -9 $pid, then run this again"
}

start_daemon() {
  local code=0
  reach || code=$?
  case $code in
    0) note "a daemon is running"; return ;;
    "$unreachable") ;;
    *) show "$stsd" ls ;; # shows the error and ends here
  esac
  daemon_pid >/dev/null || spawn_daemon
  await_daemon
}

spawn_daemon() {
  printf '%s$ %s daemon >>%s 2>&1 &%s\n' "$bold" "$stsd" "$log" "$plain"
  setsid nohup "$stsd" daemon >>"$log" 2>&1 </dev/null &
  echo $! >"$pidfile"
}

await_daemon() {
  local i
  for ((i = 0; i < patience * 10; i++)); do
    reach && return
    sleep 0.1
    [ "$i" -lt 10 ] || daemon_pid >/dev/null || break
  done
  tail -n 15 "$log" >&2
  die "the daemon does not answer, see $log"
}

title "Go, Docker, the binary, the images"
show test/scripts/go.sh
show test/scripts/docker.sh
show "${MAKE:-make}" --no-print-directory build
show test/images/build.sh demo

title "The daemon"
stop_outdated_daemon
start_daemon

title "Three members, one after the other, each with a volume of its own"
show "$stsd" apply "$spec"
show "$stsd" ps

title "Names: one for each member, one for all"
show "$stsd" exec "$set-0" -- /demo hostname -f
show "$stsd" exec "$set-0" -- /demo lookup "$set-1.$set"
show "$stsd" exec "$set-0" -- /demo lookup "$set"

title "A rolling update, from the top down"
show "$stsd" set image "$set" stsd-demo:2
show "$stsd" rollout history "$set"
show "$stsd" ps

title "What web-1's volume has seen: one line for each start"
show "$stsd" exec "$set-1" -- /demo cat /data/log

title "It keeps running"
if pid=$(daemon_pid); then
  hint "daemon" "pid $pid, log $log"
  hint "kill $pid" "stops the daemon; members run on, make demo starts it again"
else
  hint "daemon" "started by someone else, not by this script"
fi
hint "$stsd delete $set --volumes=delete --yes" "removes the members and their volumes"

title "Next"
hint "$stsd status $set" "counts, revisions, volumes, names"
hint "$stsd explain $set-1" "why a member is in its state"
hint "$stsd scale $set 5" "two more members"
hint "docker rm -f $set-1" "it comes back with its name, address and volume"
hint "$stsd rollout undo $set" "back to stsd-demo:1"
hint "$stsd plan $spec" "what an apply would do"
hint "$stsd --help" "everything else"
