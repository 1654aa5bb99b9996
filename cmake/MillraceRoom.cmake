# The standard headers are a quarter of the time to compile a file: they are parsed once for all rooms.
# CMAKE_DISABLE_PRECOMPILE_HEADERS shows which file forgot to include one.
add_library(millrace_standard_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/standard_headers.cpp)
target_link_libraries(millrace_standard_headers PRIVATE millrace_settings fmt::fmt)
target_precompile_headers(millrace_standard_headers PRIVATE ${PROJECT_SOURCE_DIR}/cmake/standard_headers.h)

# millrace_room(NAME SOURCES file… HEADERS file… ROOMS room… LIBRARIES target…)
# One room of the house is one static library, millrace_NAME, whose links are the rooms that it may include.
# HEADERS are its public headers, relative to the room's folder; each must compile alone.
function(millrace_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;HEADERS;ROOMS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  set(target millrace_${name})
  if(ROOM_SOURCES)
    add_library(${target} STATIC ${ROOM_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${ROOM_PRIVATE_LIBRARIES})
    if(NOT "OpenMP::OpenMP_CXX" IN_LIST ROOM_PRIVATE_LIBRARIES) # its flag defines a macro that those headers look at
      target_precompile_headers(${target} REUSE_FROM millrace_standard_headers)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(millrace::${name} ALIAS ${target})
  # Rooms under src/ are included as "graph/graph.h", the others with their folder: "partitioners/registry.h".
  set(base ${PROJECT_SOURCE_DIR})
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/src/")
    set(base ${PROJECT_SOURCE_DIR}/src)
  endif()
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${base} FILES ${ROOM_HEADERS})
  target_compile_features(${target} ${scope} cxx_std_20)
  list(TRANSFORM ROOM_ROOMS PREPEND millrace::)
  target_link_libraries(${target} ${scope} millrace_settings ${ROOM_ROOMS} ${ROOM_LIBRARIES})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()
