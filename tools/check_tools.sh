#!/usr/bin/env bash
# Reports missing tools and how to get them. usage: tools/check_tools.sh PYTHON [dist|emulators|web]
#
# With `dist`, also the tools to build for other platforms, with `emulators` those to test them, and with `web` those to build the page in
# the browser.
set -u
python=$1
purpose=${2:-build}
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
need "Rust 1.89 or newer" 'cargo --version | grep -qE "cargo (1\.(89|9[0-9]|[1-9][0-9]{2})|[2-9])"' \
  "rustup (https://rustup.rs), then rustup update stable"
need "Python 3.11 or newer" '"$python" -c "import sys; sys.exit(sys.version_info < (3, 11))"' \
  "apt-get install python3, brew install python, or name another with make PYTHON=..."
need "Python's venv module" '"$python" -c "import venv, ensurepip"' "apt-get install python3-venv"

need_target() { # NAME
  need "Rust's standard library for $1" \
    "[ -d \$(rustc --print sysroot)/lib/rustlib/$1/lib ] || [ -d \$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std ]" \
    "rustup target add $1, or apt-get install rustc-web cargo-web rust-web-src (Debian)"
}
if [ "$purpose" = web ] || [ "$purpose" = dist ]; then
  need_target wasm32-unknown-unknown
  need "Node.js 20 or newer, with npm" 'npm --version && node -e "process.exit(+(parseInt(process.versions.node) < 20))"' "https://nodejs.org"
fi
if [ "$purpose" = dist ]; then
  for platform in linux_amd64 linux_arm64 windows_amd64 windows_arm64 osx_arm64 osx_amd64; do
    need_target "$(tools/for_platform.sh "$platform")"
  done
  need "MinGW" 'command -v x86_64-w64-mingw32-g++-posix' "apt-get install g++-mingw-w64-x86-64-posix (Debian, Ubuntu)"
fi
if [ "$purpose" = emulators ]; then
  need "MinGW" 'command -v x86_64-w64-mingw32-g++-posix' "apt-get install g++-mingw-w64-x86-64-posix (Debian, Ubuntu)"
  need "Wine" 'command -v wine' "apt-get install wine64 wine (Debian, Ubuntu)"
  need "QEMU's user mode" 'command -v qemu-aarch64-static' "apt-get install qemu-user-static (Debian, Ubuntu)"
  need "the C library for ARM" '[ -e /usr/aarch64-linux-gnu/lib/libstdc++.so.6 ]' "apt-get install g++-aarch64-linux-gnu (Debian, Ubuntu)"
  need "a Java compiler, 17 or newer" 'javac --version' "apt-get install default-jdk-headless (Debian, Ubuntu)"
  need "Maven" 'command -v mvn' "apt-get install maven (Debian, Ubuntu)"
fi
exit $missing
