# `cmake --install`, and the CMake package `attnbench`: of an installation, and of this build folder
# in ${PROJECT_BINARY_DIR}/package, so that a plugin can be built against either.
include(CMakePackageConfigHelpers)

# Beside the programs, wherever the whole is moved; LibTorch where it was found.
set_target_properties(attnbench-worker PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(attnbench_attention PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS attnbench attnbench-worker RUNTIME DESTINATION bin)
install(TARGETS attnbench_attention LIBRARY DESTINATION lib)
foreach(header IN LISTS ATTNBENCH_INTERFACE_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/attnbench/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/attention/version.hpp
        DESTINATION include/attnbench/attention)
install(DIRECTORY suites/ DESTINATION share/attnbench/suites)
install(FILES reports/render.py DESTINATION share/attnbench)
install(FILES python/src/attnbench/result.schema.json DESTINATION share/attnbench/schema)
install(FILES LICENSE DESTINATION share/attnbench)

# attnbench_write_package(FOLDER INCLUDE LIBRARY PROGRAM): the package with those places in it.
function(attnbench_write_package folder)
  cmake_parse_arguments(PARSE_ARGV 1 package "" "LIBRARY;PROGRAM" "INCLUDE")
  set(package_library ${package_LIBRARY})
  set(package_program ${package_PROGRAM})
  set(package_include ${package_INCLUDE})
  configure_file(cmake/attnbenchConfig.cmake.in ${folder}/attnbenchConfig.cmake @ONLY)
  # Of one version only: plugins are bound to it.
  write_basic_package_version_file(${folder}/attnbenchConfigVersion.cmake
                                   COMPATIBILITY ExactVersion)
  configure_file(cmake/torch.cmake ${folder}/torch.cmake COPYONLY)
  configure_file(cmake/plugin.cmake ${folder}/plugin.cmake COPYONLY)
  configure_file(cmake/cuda_language.cmake ${folder}/cuda_language.cmake COPYONLY)
  configure_file(cmake/plugin.map ${folder}/plugin.map COPYONLY)
endfunction()

attnbench_write_package(${PROJECT_BINARY_DIR}/package
  INCLUDE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated
  LIBRARY ${PROJECT_BINARY_DIR}/lib/libattnbench_attention.so
  PROGRAM ${PROJECT_BINARY_DIR}/bin/attnbench)
set(up "\${CMAKE_CURRENT_LIST_DIR}/../../..")
attnbench_write_package(${PROJECT_BINARY_DIR}/package-to-install
  INCLUDE ${up}/include/attnbench
  LIBRARY ${up}/lib/libattnbench_attention.so
  PROGRAM ${up}/bin/attnbench)
install(DIRECTORY ${PROJECT_BINARY_DIR}/package-to-install/
        DESTINATION lib/cmake/attnbench)
