#!/usr/bin/env bash
# Downloads the pinned DuckDB source to duckdb/source, once. usage: duckdb/fetch.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")"
python=$1

stamp=source/.pin
if cmp -s pin.txt "$stamp"; then
  exit 0
fi
echo "fetching the DuckDB source that duckdb/pin.txt names"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --no-binary duckdb \
  -r pin.txt -d "$work"
# In the archive, DuckDB's source is in external/duckdb.
rm -rf source
mkdir source
tar -xzf "$work"/duckdb-*.tar.gz -C source --strip-components=3 --wildcards '*/external/duckdb/*'
cp pin.txt "$stamp"
