# What the platforms that Zig compiles for have in common. The toolchain file sets EVTX_PLATFORM and ZIG_TARGET.
set(DUCKDB_EXPLICIT_PLATFORM "${EVTX_PLATFORM}")

get_filename_component(ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
# The name of Zig in its Python package.
find_program(ZIG NAMES python-zig HINTS "${ROOT}/build/venv/bin" REQUIRED)
set(CMAKE_C_COMPILER "${ZIG}" cc -target "${ZIG_TARGET}")
set(CMAKE_CXX_COMPILER "${ZIG}" c++ -target "${ZIG_TARGET}")
# Zig's own archiver knows every platform's objects.
foreach(LANGUAGE C CXX)
  set(CMAKE_${LANGUAGE}_ARCHIVE_CREATE "\"${ZIG}\" ar rcsD <TARGET> <OBJECTS>")
  set(CMAKE_${LANGUAGE}_ARCHIVE_APPEND "\"${ZIG}\" ar rsD <TARGET> <OBJECTS>")
  set(CMAKE_${LANGUAGE}_ARCHIVE_FINISH "")
  # Paths must not depend on the machine.
  set(CMAKE_${LANGUAGE}_FLAGS_INIT "-ffile-prefix-map=${ROOT}=/evtx")
endforeach()
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s")
