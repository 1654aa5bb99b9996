# What `cmake --install` puts in place: the program, the headers that partitioners and schedules from outside the tree
# are built against, and the package file of find_package(millrace).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Plug-ins find every function of these rooms in the program itself, whether it calls them or not.
set(extension_rooms base config graph cluster cost plan program partitioners schedules planner)
list(TRANSFORM extension_rooms PREPEND millrace:: OUTPUT_VARIABLE extension_targets)
list(JOIN extension_targets "," extension_list)
set_target_properties(millrace PROPERTIES ENABLE_EXPORTS ON LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${extension_list}")
target_link_libraries(millrace PRIVATE ${extension_targets})

install(TARGETS millrace RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
list(APPEND extension_rooms sim) # a header of the planner reads it
foreach(room ${extension_rooms})
  set(folder ${PROJECT_SOURCE_DIR}/src/${room})
  if(NOT IS_DIRECTORY ${folder})
    set(folder ${PROJECT_SOURCE_DIR}/${room})
  endif()
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/millrace FILES_MATCHING PATTERN "*.yaml")
install(FILES data/measured_steps.csv DESTINATION ${CMAKE_INSTALL_DATADIR}/millrace/data)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
configure_package_config_file(cmake/millraceConfig.cmake.in ${PROJECT_BINARY_DIR}/millraceConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/millraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/millraceConfig.cmake ${PROJECT_BINARY_DIR}/millraceConfigVersion.cmake
  DESTINATION ${package_folder})
