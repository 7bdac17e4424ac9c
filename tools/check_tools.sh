#!/usr/bin/env bash
# Reports missing build tools and how to get them. usage: tools/check_tools.sh PYTHON
set -u
python=$1
missing=0

need() { # NAME COMMAND-THAT-PROVES-IT HOW-TO-GET-IT
  if ! eval "$2" >/dev/null 2>&1; then
    echo "missing: $1. Get it with: $3" >&2
    missing=1
  fi
}

need "a C++17 compiler" 'command -v c++ || command -v g++ || command -v clang++' \
  "apt-get install g++ (Debian, Ubuntu), xcode-select --install (macOS)"
need "CMake 3.21 or newer" 'cmake --version | grep -qE "version (3\.(2[1-9]|[3-9][0-9])|[4-9])"' \
  "apt-get install cmake, brew install cmake, or pip install cmake"
need "Rust 1.88 or newer" 'cargo --version | grep -qE "cargo (1\.(8[89]|9[0-9]|[1-9][0-9]{2})|[2-9])"' \
  "rustup (https://rustup.rs), then rustup update stable"
need "Python 3.11 or newer" '"$python" -c "import sys; sys.exit(sys.version_info < (3, 11))"' \
  "apt-get install python3, brew install python, or name another with make PYTHON=..."
need "Python's venv module" '"$python" -c "import venv, ensurepip"' "apt-get install python3-venv"
exit $missing
