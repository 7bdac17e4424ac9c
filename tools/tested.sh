#!/usr/bin/env bash
# Tells whether the sources of a test have changed since it last passed. usage: tools/tested.sh check|write TEST
#
# test/tested/TEST lists the sources as git's path specifications, and on its last line their checksum. Each target in the Makefile writes
# it when its tests have passed, so commit it. A comment gives the reason for what is deliberately left out.
set -euo pipefail
cd "$(dirname "$0")/.."
list=test/tested/$2
mapfile -t sources < <(grep -Ehv '^(#|$|passed )' test/tested/core "$list" | sort -u)
[ "$2" != release ] || mapfile -t sources < <(grep -Ev '^(#|$|passed )' "$list")
sum=$(git ls-files -z --cached --others --exclude-standard -- "${sources[@]}" | LC_ALL=C sort -zu | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || sha256sum "$file"; done' sh | sha256sum | cut -c1-32)
case $1 in
  check) grep -qx "passed $sum" "$list" && echo "$2: has passed with these sources" ;;
  write) sed -i.old '/^passed /d' "$list" && echo "passed $sum" >>"$list" && rm "$list.old" ;;
esac
