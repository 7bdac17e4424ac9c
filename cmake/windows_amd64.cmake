set(EVTX_PLATFORM windows_amd64)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(DUCKDB_EXPLICIT_PLATFORM "${EVTX_PLATFORM}")

# The glue calls DuckDB by its C ABI only, so a DLL by MinGW loads in the DuckDB that MSVC built.
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
# Paths and the time must not depend on the machine.
get_filename_component(ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
foreach(LANGUAGE C CXX)
  set(CMAKE_${LANGUAGE}_FLAGS_INIT "-ffile-prefix-map=${ROOT}=/evtx")
endforeach()
# Without DLLs of MinGW.
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s -static -Wl,--no-insert-timestamp")
