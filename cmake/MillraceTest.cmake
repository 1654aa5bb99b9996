# How a test is declared: millrace_test makes a program and its test, millrace_launch another test of a program.
find_package(GTest REQUIRED)

# One place says how Open MPI runs on one machine: the file that quickstart.sh sources.
set(mpi_environment_file ${PROJECT_SOURCE_DIR}/scripts/mpi_environment.sh)
file(STRINGS ${mpi_environment_file} MILLRACE_TEST_ENVIRONMENT REGEX "^export ")
list(TRANSFORM MILLRACE_TEST_ENVIRONMENT REPLACE "^export " "")
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mpi_environment_file})
list(APPEND MILLRACE_TEST_ENVIRONMENT
  OMP_NUM_THREADS=1 # results that do not depend on the machine; and ThreadSanitizer does not know libgomp's barriers
  UBSAN_OPTIONS=print_stacktrace=1
  TSAN_OPTIONS=second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0)

# What MPI and its plugins leak is suppressed by name, and they have no frame pointers: where there are ranks, the stack of
# every allocation is unwound the slow way. Elsewhere that would be most of the time of a test.
set(MILLRACE_RANKS_ENVIRONMENT ASAN_OPTIONS=fast_unwind_on_malloc=0:malloc_context_size=16)

# Instrumented programs are slower; their tests carry the sanitizer's name, since test.sh runs all builds in one ctest.
set(MILLRACE_TEST_SUFFIX "")
set(MILLRACE_TEST_SLOWDOWN 1)
if(MILLRACE_SANITIZER STREQUAL "address")
  set(MILLRACE_TEST_SUFFIX @address)
  set(MILLRACE_TEST_SLOWDOWN 4)
elseif(MILLRACE_SANITIZER STREQUAL "thread")
  set(MILLRACE_TEST_SUFFIX @thread)
  set(MILLRACE_TEST_SLOWDOWN 10)
  # Open MPI's TCP plugin takes its own locks in two orders; the ranks of a test share a host and do not need it.
  list(TRANSFORM MILLRACE_TEST_ENVIRONMENT REPLACE "^(OMPI_MCA_btl=.*),tcp$" "\\1")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(MILLRACE_TEST_SUFFIX @clang)
endif()

# millrace_launch(TEST PROGRAM target [ARGUMENTS word…] [RANKS n] [LABELS label…] [TIMEOUT s]
#                 [PASS_REGULAR_EXPRESSION text])
# Declares one test that runs a program. With RANKS it runs under mpirun with that many processes, always
# oversubscribed: a machine with fewer cores drops none. Labels with a meaning of their own: `full` runs only under
# test.sh --full; `slow` runs in sanitizer builds only under --full; `gpu` skips itself (exit code 77) without a GPU.
function(millrace_launch test)
  cmake_parse_arguments(TEST "" "PROGRAM;RANKS;TIMEOUT;PASS_REGULAR_EXPRESSION" "ARGUMENTS;LABELS" ${ARGN})
  if(TEST_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "test ${test}: unknown arguments ${TEST_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  math(EXPR timeout "${TEST_TIMEOUT} * ${MILLRACE_TEST_SLOWDOWN}")
  if(MILLRACE_SANITIZER AND "slow" IN_LIST TEST_LABELS)
    list(APPEND TEST_LABELS full)
  endif()
  set(name ${test}${MILLRACE_TEST_SUFFIX})
  if(TEST_RANKS)
    list(APPEND TEST_LABELS mpi)
    # mpirun's own limit ends all ranks; ctest's, a little later, only mpirun itself.
    add_test(NAME ${name} COMMAND mpirun --bind-to none -n ${TEST_RANKS} --timeout ${timeout}
      $<TARGET_FILE:${TEST_PROGRAM}> ${TEST_ARGUMENTS})
    set_tests_properties(${name} PROPERTIES PROCESSORS ${TEST_RANKS})
  else()
    add_test(NAME ${name} COMMAND ${TEST_PROGRAM} ${TEST_ARGUMENTS})
  endif()
  math(EXPR timeout "${timeout} + 30")
  set(environment ${MILLRACE_TEST_ENVIRONMENT})
  if("mpi" IN_LIST TEST_LABELS OR "cli" IN_LIST TEST_LABELS)
    list(APPEND environment ${MILLRACE_RANKS_ENVIRONMENT})
  endif()
  list(REMOVE_DUPLICATES TEST_LABELS)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${TEST_LABELS}" SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment}")
  if(TEST_PASS_REGULAR_EXPRESSION)
    set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${TEST_PASS_REGULAR_EXPRESSION}")
  endif()
endfunction()

# Compiling tests is most of what a run of test.sh costs: GoogleTest is parsed once, and tests are optimised little.
set(MILLRACE_TEST_OPTIONS -O1)
add_library(millrace_test_headers OBJECT ${PROJECT_SOURCE_DIR}/tests/support/headers.cpp)
target_link_libraries(millrace_test_headers PRIVATE GTest::gmock millrace_settings)
target_compile_options(millrace_test_headers PRIVATE ${MILLRACE_TEST_OPTIONS})
target_precompile_headers(millrace_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)

# millrace_test(NAME SOURCES file… ROOMS room… [LIBRARIES target…] [RANKS n] [and what millrace_launch takes])
# Declares one test program of the same name and how it runs.
function(millrace_test name)
  cmake_parse_arguments(TEST "" "RANKS" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  list(TRANSFORM TEST_ROOMS PREPEND millrace::)
  target_link_libraries(${name} PRIVATE ${TEST_ROOMS} ${TEST_LIBRARIES} GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    MILLRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" MILLRACE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_compile_options(${name} PRIVATE ${MILLRACE_TEST_OPTIONS})
  if(NOT "OpenMP::OpenMP_CXX" IN_LIST TEST_LIBRARIES) # its flag defines a macro that the precompiled header lacks
    target_precompile_headers(${name} REUSE_FROM millrace_test_headers)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set(ranks "")
  if(TEST_RANKS)
    target_link_libraries(${name} PRIVATE millrace_mpi_main)
    set(ranks RANKS ${TEST_RANKS})
  else()
    target_link_libraries(${name} PRIVATE millrace_test_main)
  endif()
  millrace_launch(${name} PROGRAM ${name} ${ranks} ${TEST_UNPARSED_ARGUMENTS})
endfunction()
