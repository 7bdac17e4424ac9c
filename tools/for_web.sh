#!/usr/bin/env bash
# Runs cargo for WebAssembly in a browser. usage: tools/for_web.sh COMMAND [OPTIONS...]
#
# If rustup has the standard library for it, cargo uses that. Otherwise Debian's compiler builds the library from its
# sources. The linker is that of rustup's compiler, or that of LLVM.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=wasm32-unknown-unknown
flags="-Ctarget-feature=+simd128,+bulk-memory"
# Paths in the module must not depend on the machine.
flags+=" --remap-path-prefix=$root=/evtx --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
CARGO=cargo
sysroot=$(rustc --print sysroot)
if ! [ -d "$sysroot/lib/rustlib/$target/lib" ]; then
  linker=$(find "$sysroot/lib/rustlib" -name rust-lld -type f | head -n 1)
  linker=${linker:-$(command -v wasm-ld)}
  export CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort
  # The linker is one for WebAssembly by its name.
  mkdir -p "$root/build/tools"
  ln -sf "$linker" "$root/build/tools/wasm-ld"
  flags+=" -Clinker=$root/build/tools/wasm-ld --remap-path-prefix=$($RUSTC --print sysroot)/lib/rustlib/src/rust=/rust"
fi
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS=$flags
exec "$CARGO" "$1" --target $target "${@:2}"
