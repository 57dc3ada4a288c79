#!/usr/bin/env bash
# busybox.sh makes busybox:1 from Debian's busybox-static: a shell and its tools. FORCE=1 makes it again.
# Its wget crashes with -T, as Debian 12's does everywhere: say `timeout 2 wget` instead.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

start
hash=$(source_hash "$0")
settled busybox:1 "$hash" && exit
debs "$work/tree" busybox-static
skeleton "$work/root"
busybox "$work/root" "$work/tree"
import "$work/root" busybox:1 "$hash" 0 'CMD ["sh"]'
