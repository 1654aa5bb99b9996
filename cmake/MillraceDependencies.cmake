# The libraries that millrace stands on, each a Debian package (ARCHITECTURE in docs/, scripts/dependencies.sh).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenMP REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
# Without its old C++ classes, which mpi.h would pull in and which need a library of their own.
target_compile_definitions(MPI::MPI_C INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
find_package(dnnl REQUIRED)
set(HDF5_PREFER_PARALLEL OFF)
# HDF5 for its archive, where there is one: the shared library brings forty others (curl, LDAP, Kerberos) into every
# process for files in S3, which nobody here reads.
set(HDF5_USE_STATIC_LIBRARIES ON)
find_package(HDF5 QUIET COMPONENTS C)
if(NOT HDF5_FOUND)
  set(HDF5_USE_STATIC_LIBRARIES OFF)
  find_package(HDF5 REQUIRED COMPONENTS C)
endif()
add_link_options(LINKER:--as-needed)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# METIS and Scotch come without CMake files.
find_path(METIS_INCLUDE_DIR metis.h REQUIRED)
find_library(METIS_LIBRARY metis REQUIRED)
add_library(metis::metis UNKNOWN IMPORTED)
set_target_properties(metis::metis PROPERTIES
  IMPORTED_LOCATION ${METIS_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${METIS_INCLUDE_DIR})
find_path(SCOTCH_INCLUDE_DIR scotch.h PATH_SUFFIXES scotch scotch-int32 REQUIRED)
find_library(SCOTCH_LIBRARY scotch REQUIRED)
find_library(SCOTCH_ERROR_LIBRARY scotcherr REQUIRED) # prints; the other variant ends the process
add_library(scotch::scotch UNKNOWN IMPORTED)
set_target_properties(scotch::scotch PROPERTIES
  IMPORTED_LOCATION ${SCOTCH_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${SCOTCH_INCLUDE_DIR}
  INTERFACE_LINK_LIBRARIES ${SCOTCH_ERROR_LIBRARY})
include(MillraceCuda)
