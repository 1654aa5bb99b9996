# millrace_test(NAME SOURCES file… ROOMS room… [LIBRARIES target…] [RANKS n] [LABELS label…] [TIMEOUT s])
# Declares one test program and how it runs. With RANKS it runs under mpirun with that many processes, always
# oversubscribed: a machine with fewer cores drops none.
find_package(GTest REQUIRED)

set(MILLRACE_MPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp "OMPI_MCA_mtl=^ofi,psm,psm2"
  OMPI_MCA_btl_vader_single_copy_mechanism=none)
set(MILLRACE_SANITIZER_ENVIRONMENT
  ASAN_OPTIONS=fast_unwind_on_malloc=0 UBSAN_OPTIONS=print_stacktrace=1
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0)

function(millrace_test name)
  cmake_parse_arguments(TEST "" "RANKS;TIMEOUT" "SOURCES;ROOMS;LIBRARIES;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  list(TRANSFORM TEST_ROOMS PREPEND millrace::)
  target_link_libraries(${name} PRIVATE ${TEST_ROOMS} ${TEST_LIBRARIES} GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE MILLRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" MILLRACE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(TEST_RANKS)
    target_link_libraries(${name} PRIVATE millrace_mpi_main)
    add_test(NAME ${name}
      COMMAND mpirun --bind-to none -n ${TEST_RANKS} --timeout ${TEST_TIMEOUT} $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${TEST_RANKS})
  else()
    target_link_libraries(${name} PRIVATE millrace_test_main)
    add_test(NAME ${name} COMMAND ${name})
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}"
    ENVIRONMENT "${MILLRACE_MPI_ENVIRONMENT};${MILLRACE_SANITIZER_ENVIRONMENT};OMP_NUM_THREADS=1")
endfunction()
