#!/usr/bin/env bash
# java.sh makes stsd-java:1: the look-up of resolvers.sh by Java. It needs some 50 MB of Debian packages, so it is made on
# request only: test/images/build.sh java. FORCE=1 makes it again.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

start
image=stsd-java:1 root=$work/root
hash=$(source_hash "$0" "$images"/resolvers/Lookup.java)
settled "$image" "$hash" && exit
need apt-get "this image is made from Debian packages"
fresh_lists default-jre-headless
jre=$(apt-cache depends default-jre-headless | awk '$1 == "Depends:" && $2 ~ /^openjdk-/ {print $2}')
debs "$root" "$jre" libc6 libgcc-s1 libstdc++6 zlib1g
rm -rf "$work/debs"
debs "$work/tree" busybox-static libeclipse-jdt-core-java
skeleton "$root"
busybox "$root" "$work/tree"
home=$(readlink -f "$(find "$root/usr/lib/jvm" -mindepth 1 -maxdepth 1 -type d)")
while read -r link; do # into /etc, of the image rather than of this host
  ln -sfr "$root$(readlink "$link")" "$link"
done < <(find "$home" -type l -lname '/etc/*')
printf '#!/bin/sh\nexec %s/bin/java -cp / Lookup "$@"\n' "${home#"$root"}" >"$root/lookup-java"
chmod 755 "$root/lookup-java"

# The compiler is a Java program itself.
"$home/bin/java" -cp "$work/tree/usr/share/java/eclipse-jdt-core.jar" org.eclipse.jdt.internal.compiler.batch.Main \
  -proc:none -17 -d "$root" "$images/resolvers/Lookup.java"
import "$root" "$image" "$hash" 0 'CMD ["sleep", "1000000"]'
