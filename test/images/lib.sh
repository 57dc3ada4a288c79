# shellcheck shell=bash
# lib.sh: shared parts of the scripts that make test images without a registry. Source it; it runs nothing but checks.
#
# An image is ours when it has the label stsd.test.image=true. Ours is made again when the script that made it has
# changed (label stsd.test.source), or with FORCE=1. A foreign image under the same name is used as it is.

images=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly images
readonly path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

say() { printf '%s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# need COMMAND HINT: stops with the hint when a command is missing.
need() { command -v "$1" >/dev/null || die "$(basename "$0"): $1 is missing: $2"; }

# label IMAGE NAME prints a label's value, nothing when image or label is missing.
label() { docker image inspect -f "{{with .Config.Labels}}{{index . \"$2\"}}{{end}}" "$1" 2>/dev/null || true; }

# source_hash FILE… names the state of the files an image is made from, lib.sh among them.
source_hash() { cat "$images/lib.sh" "$@" | sha256sum | cut -c1-16; }

# settled IMAGE HASH: true when nothing has to be made, and says why.
settled() {
  docker image inspect "$1" >/dev/null 2>&1 || return 1
  [ "$(label "$1" stsd.test.image)" = true ] || { say "$1: not made here, used as it is"; return 0; }
  [ "${FORCE:-0}" != 1 ] && [ "$(label "$1" stsd.test.source)" = "$2" ] || return 1
  say "$1: up to date"
}

# start locks out a second maker, checks the engine, and makes the folder $work that goes away at exit.
start() {
  need docker "run test/scripts/docker.sh"
  docker version >/dev/null 2>&1 || die "$(basename "$0"): no Docker engine answers: run test/scripts/docker.sh"
  exec 9>"${TMPDIR:-/tmp}/stsd-images-$(id -u).lock"
  need flock "apt-get install util-linux"
  flock 9
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
}

# debs DIR PACKAGE… downloads Debian packages and unpacks them into DIR; nothing is installed on this host.
debs() {
  local dir=$1 all=$work/debs
  shift
  need apt-get "this image is made from Debian packages: run it on Debian or Ubuntu, or get the image from elsewhere"
  need dpkg-deb "apt-get install dpkg"
  same_architecture
  fresh_lists "$1"
  mkdir -p "$dir" "$all"
  chmod 755 "$work" "$all" # apt drops to user _apt for the download
  ! [ "$(id -u)" = 0 ] || chown _apt "$all" 2>/dev/null || true
  download "$all" "$@" || { stale_lists && download "$all" "$@"; } ||
    { cat "$work/apt.log" >&2; die "$(basename "$0"): apt-get download failed, see above"; }
  local deb
  for deb in "$all"/*.deb; do dpkg-deb -x "$deb" "$dir"; done
}

download() (cd "$1" && shift && exec apt-get -q download "$@") >"$work/apt.log" 2>&1

# stale_lists: lists that name versions the mirror no longer has make downloads fail; root may renew them.
stale_lists() { [ "$(id -u)" = 0 ] && apt-get -qq update >&2; }

# dependencies PACKAGE… prints the packages and all they need on an empty system, without what only installers use.
dependencies() {
  fresh_lists "$1"
  : >"$work/nothing-installed"
  apt-get -s --no-install-recommends -o "Dir::State::status=$work/nothing-installed" install "$@" |
    awk '/^Inst /{print $2}' | grep -vE '^(debconf|perl-base|adduser|passwd|gcc-.*-base|.*-common|libpam-.*)$'
}

# fresh_lists PACKAGE updates the package lists when they do not know it.
fresh_lists() {
  ! apt-cache -q policy "$1" 2>/dev/null | grep -E 'Candidate: [^(]' >/dev/null || return 0
  [ "$(id -u)" = 0 ] || die "$(basename "$0"): apt knows no package $1: run apt-get update as root"
  apt-get -qq update >&2 || die "$(basename "$0"): apt-get update failed"
}

same_architecture() {
  local here there
  here=$(dpkg --print-architecture) there=$(docker version -f '{{.Server.Arch}}')
  case $there in arm) there=armhf ;; 386) there=i386 ;; esac
  [ "$here" = "$there" ] || die "$(basename "$0"): the engine runs $there, this host's packages are $here"
}

# skeleton ROOT makes the folders and files that programs expect of any system. A volume mounted at /data or /tmp can be
# written by any user.
skeleton() {
  mkdir -p "$1"/{bin,dev,etc,proc,root,run,sys,tmp,data,usr/bin,usr/local/bin,var/lib}
  chmod 1777 "$1/tmp" "$1/data"
  printf '%s\n' root:x:0:0:root:/root:/bin/sh redis:x:999:999::/data:/bin/sh demo:x:1000:1000::/data:/bin/sh \
    nobody:x:65534:65534::/:/bin/false >"$1/etc/passwd"
  printf '%s\n' root:x:0: redis:x:999: demo:x:1000: nogroup:x:65534: >"$1/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$1/etc/nsswitch.conf"
}

# busybox ROOT TREE puts the shell and its tools from an unpacked busybox-static into ROOT/bin.
busybox() {
  local applet
  install -m 755 "$(find "$2" -path '*bin/busybox' -type f | head -n 1)" "$1/bin/busybox"
  for applet in $("$1/bin/busybox" --list); do
    [ -e "$1/bin/$applet" ] || ln -s busybox "$1/bin/$applet"
  done
}

# program ROOT TREE FILE [NAME] copies one program and its libraries from an unpacked tree, never from this host.
program() {
  local root=$1 tree=$2 file=$3 loader lib dirs
  loader=$(find "$tree" -name 'ld-linux*.so*' | head -n 1)
  dirs=$(find "$tree" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:)
  install -D -m 755 "$(readlink -f "$tree$file")" "$root${4:-$file}"
  "$loader" --library-path "$dirs" --list "$(readlink -f "$tree$file")" >"$work/libs" ||
    die "$(basename "$0"): $file: libraries are missing: $(grep 'not found' "$work/libs")"
  while read -r lib; do
    [ -e "$root/usr/lib/${lib##*/}" ] || install -D -m 755 "$lib" "$root/usr/lib/${lib##*/}"
  done < <(grep -oE "$tree/[^ ]+" "$work/libs" | grep -F .so)
  install_loader "$root" "$loader"
}

# install_loader puts the dynamic loader where programs of this architecture look for it.
install_loader() {
  local home=lib
  case $(uname -m) in x86_64) home=lib64 ;; esac
  install -D -m 755 "$(readlink -f "$2")" "$1/$home/${2##*/}"
}

# import ROOT IMAGE HASH OWNER CHANGE… makes the image; everything is root's but /data, which is OWNER's (a number).
import() {
  local root=$1 image=$2 hash=$3 owner=$4 change old
  shift 4
  local changes=(-c "ENV PATH=$path" -c "LABEL stsd.test.image=true stsd.test.source=$hash")
  for change; do changes+=(-c "$change"); done
  old=$(docker image inspect -f '{{.Id}}' "$image" 2>/dev/null || true)
  tar -C "$root" --sort=name --numeric-owner --owner=0 --group=0 --exclude=./data -cf "$work/image.tar" .
  tar -C "$root" --sort=name --numeric-owner --owner="$owner" --group="$owner" -rf "$work/image.tar" ./data
  docker import "${changes[@]}" "$work/image.tar" "$image" >/dev/null
  [ -z "$old" ] || docker rmi "$old" >/dev/null 2>&1 || true # in use by a container: stays
  say "$image: made ($(docker image inspect -f '{{.Size}}' "$image" | awk '{printf "%.1f MB", $1/1e6}'))"
}
