#!/usr/bin/env bash
# Builds Rust code on Linux for one of DuckDB's platforms. usage:
#   tools/for_platform.sh PLATFORM                             prints Rust's name of the platform
#   tools/for_platform.sh PLATFORM cargo COMMAND [OPTIONS...]  runs cargo, such as cargo build
#
# If rustup has the platform's standard library, cargo uses it. Otherwise Debian's compiler builds the library from its
# sources. MinGW links for Windows on Intel, Zig for every other platform.
set -euo pipefail
platform=$1
root=$(cd "$(dirname "$0")/.." && pwd)

# The oldest glibc is that of DuckDB's own extensions.
glibc=2.28
case $platform in
  linux_amd64) target=x86_64-unknown-linux-gnu ;;
  linux_arm64) target=aarch64-unknown-linux-gnu ;;
  osx_amd64) target=x86_64-apple-darwin ;;
  osx_arm64) target=aarch64-apple-darwin ;;
  windows_amd64) target=x86_64-pc-windows-gnu ;;
  windows_arm64) target=aarch64-pc-windows-gnullvm ;;
  *) echo "unknown platform: $platform" >&2 && exit 2 ;;
esac
if [ $# = 1 ]; then
  echo "$target"
  exit
fi

# Zig and cargo-zigbuild, from tools/dist-requirements.txt.
export PATH=$root/build/venv/bin:$PATH
# Paths in the binaries must not depend on the machine.
flags="--remap-path-prefix=$root=/evtx --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
export CARGO=cargo RUSTC=rustc
sysroot=$(rustc --print sysroot)
if ! [ -d "$sysroot/lib/rustlib/$target/lib" ]; then
  export CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_unwind
  sysroot=$($RUSTC --print sysroot)
fi
flags+=" --remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rust"

if [ "$platform" = windows_amd64 ]; then
  export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc-posix
  # No DLLs of MinGW, and no time.
  flags+=" -Ctarget-feature=+crt-static -Clink-arg=-static -Clink-arg=-Wl,--no-insert-timestamp"
fi
if [ "$platform" = windows_arm64 ]; then
  # No time.
  flags+=" -Clink-arg=-Wl,/Brepro"
fi
if [[ $platform = osx_* ]]; then
  # Rust's libraries link frameworks of macOS, which Zig does not come with.
  flags+=" -Clink-arg=-F$root/cmake/frameworks"
fi
variable=${target//-/_}
export "CARGO_TARGET_${variable^^}_RUSTFLAGS=$flags"

case $platform in
  windows_amd64) exec "$CARGO" "$3" --target "$target" "${@:4}" ;;
  linux_*) exec cargo-zigbuild "${3/#build/zigbuild}" --target "$target.$glibc" "${@:4}" ;;
  *) exec cargo-zigbuild "${3/#build/zigbuild}" --target "$target" "${@:4}" ;;
esac
