# Language, warnings, sanitizers and output folders for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG") # -O3 is for kernels: elsewhere it only takes longer to compile

# Most files are small and most of the time to compile them is their headers: eight are compiled as one. Names without
# linkage are then unique in a room; the clang build compiles each file alone and shows which one forgot to include.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "compile several files as one")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  # ccache takes files with a precompiled header only when told that the header's own check is enough.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

set(MILLRACE_SANITIZER "" CACHE STRING "empty, address (with undefined) or thread")
option(MILLRACE_COVERAGE "instrument for gcov" OFF)

# One interface target carries the warnings, so that every room has the same.
add_library(millrace_settings INTERFACE)
target_compile_options(millrace_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Werror
  $<$<CXX_COMPILER_ID:GNU>:-Wno-error=restrict -Wno-error=stringop-overflow>) # false alarms of g++ 12 at -O3
if(MILLRACE_SANITIZER STREQUAL "address")
  # Without the checks whose faults AddressSanitizer meets as well: they are a third of the time to compile.
  set(sanitizer -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-sanitize=null,object-size,vptr,return,alignment
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>) # its analysis takes the checks for uses
elseif(MILLRACE_SANITIZER STREQUAL "thread")
  set(sanitizer -fsanitize=thread
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
elseif(MILLRACE_SANITIZER)
  message(FATAL_ERROR "MILLRACE_SANITIZER is '${MILLRACE_SANITIZER}'; allowed: empty, address, thread")
endif()
if(MILLRACE_SANITIZER)
  target_compile_options(millrace_settings INTERFACE ${sanitizer} -fno-omit-frame-pointer)
  target_link_options(millrace_settings INTERFACE ${sanitizer} -rdynamic)
  # In every program, so that the frames of MPI's plugins still have names when leaks are reported at the end.
  add_library(millrace_no_dlclose OBJECT ${PROJECT_SOURCE_DIR}/tests/support/no_dlclose.cpp)
  target_link_libraries(millrace_settings INTERFACE $<TARGET_OBJECTS:millrace_no_dlclose>)
endif()
if(MILLRACE_COVERAGE)
  target_compile_options(millrace_settings INTERFACE --coverage -O0 -g)
  target_link_options(millrace_settings INTERFACE --coverage)
endif()
