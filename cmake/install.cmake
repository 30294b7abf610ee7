# `cmake --install`, and the CMake package `attnbench`: of an installation, and of this build folder
# in ${PROJECT_BINARY_DIR}/package, so that a plugin can be built against either.
include(CMakePackageConfigHelpers)

install(TARGETS attnbench RUNTIME DESTINATION bin)
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/attnbench.commit DESTINATION bin OPTIONAL)
install(DIRECTORY suites/ DESTINATION share/attnbench/suites)
install(FILES reports/render.py DESTINATION share/attnbench)
install(FILES python/src/attnbench/result.schema.json DESTINATION share/attnbench/schema)
install(FILES LICENSE DESTINATION share/attnbench)

if(NOT ATTNBENCH_WORKER)
  return()
endif()

# Beside the programs, wherever the whole is moved; LibTorch where it was found, or, in a wheel, in the
# package torch of the same Python.
set(libraries attnbench_attention attnbench_operators)
if(ATTNBENCH_WHEEL)
  set(torch_place "$ORIGIN/../../../torch/lib")  # from attnbench/native/lib
  list(APPEND libraries attnbench-worker attnbench_python)
  set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN;${torch_place}"
                                                INSTALL_RPATH_USE_LINK_PATH OFF)
  install(PROGRAMS harness/worker/hosted/attnbench-worker DESTINATION bin)
  install(FILES harness/worker/hosted/worker.py DESTINATION share/attnbench)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/libattnbench-operators.torch CONTENT "${Torch_VERSION}\n")
  install(FILES ${PROJECT_BINARY_DIR}/libattnbench-operators.torch DESTINATION lib)
else()
  install(TARGETS attnbench-worker RUNTIME DESTINATION bin)
  set_target_properties(attnbench-worker PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  set_target_properties(attnbench_operators PROPERTIES INSTALL_RPATH "$ORIGIN")
  set_target_properties(attnbench-worker ${libraries} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
install(TARGETS ${libraries} LIBRARY DESTINATION lib)
foreach(header IN LISTS ATTNBENCH_INTERFACE_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/attnbench/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/attention/version.hpp
        DESTINATION include/attnbench/attention)

# attnbench_write_package(FOLDER INCLUDE LIBRARY PROGRAM TORCH): the package with those places in it.
function(attnbench_write_package folder)
  cmake_parse_arguments(PARSE_ARGV 1 package "" "LIBRARY;PROGRAM;TORCH" "INCLUDE")
  set(package_library ${package_LIBRARY})
  set(package_program ${package_PROGRAM})
  set(package_include ${package_INCLUDE})
  set(package_torch ${package_TORCH})
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
  PROGRAM ${PROJECT_BINARY_DIR}/bin/attnbench
  TORCH ${ATTNBENCH_TORCH})
set(up "\${CMAKE_CURRENT_LIST_DIR}/../../..")
set(torch_of_install "${ATTNBENCH_TORCH}")
if(ATTNBENCH_WHEEL)
  set(torch_of_install "${up}/../../torch")
endif()
attnbench_write_package(${PROJECT_BINARY_DIR}/package-to-install
  INCLUDE ${up}/include/attnbench
  LIBRARY ${up}/lib/libattnbench_attention.so
  PROGRAM ${up}/bin/attnbench
  TORCH ${torch_of_install})
install(DIRECTORY ${PROJECT_BINARY_DIR}/package-to-install/
        DESTINATION lib/cmake/attnbench)
