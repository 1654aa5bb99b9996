# Finds the CUDA toolkit where there is one: never required with AUTO, an error with ON when it is missing.
# MILLRACE_CUDA_TOOLKIT is its version or "none"; what links millrace_cuda has it as a macro. Neither links a CUDA
# library: a program that links the driver would not start on a machine without one.
set(MILLRACE_CUDA AUTO CACHE STRING "AUTO, ON or OFF: build for CUDA devices")
set_property(CACHE MILLRACE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT MILLRACE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "MILLRACE_CUDA is '${MILLRACE_CUDA}'; allowed: AUTO, ON, OFF")
endif()

set(MILLRACE_CUDA_TOOLKIT none)
if(NOT MILLRACE_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND)
    set(MILLRACE_CUDA_TOOLKIT ${CUDAToolkit_VERSION})
    message(STATUS "CUDA toolkit ${MILLRACE_CUDA_TOOLKIT} in ${CUDAToolkit_BIN_DIR}")
  elseif(MILLRACE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MILLRACE_CUDA=ON, but no CUDA toolkit of version 12 or newer was found; "
      "put nvcc on the PATH or pass -DCUDAToolkit_ROOT=FOLDER, or build with MILLRACE_CUDA=AUTO")
  else()
    message(STATUS "no CUDA toolkit of version 12 or newer: building for CPUs only")
  endif()
endif()

add_library(millrace_cuda INTERFACE)
target_compile_definitions(millrace_cuda INTERFACE MILLRACE_CUDA_TOOLKIT="${MILLRACE_CUDA_TOOLKIT}")
