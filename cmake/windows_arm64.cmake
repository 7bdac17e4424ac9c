set(EVTX_PLATFORM windows_arm64)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(ZIG_TARGET aarch64-windows-gnu)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
# Zig takes this option of Microsoft's linker only. The time must not be in the file.
string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,/Brepro")
