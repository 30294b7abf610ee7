# attnbench_add_plugin(NAME SOURCE…): the target NAME, built as libNAME.so: a plugin for --plugin. It
# shows its entry points and nothing else, and names at once what it lacks.
#
# CUDA sources (.cu) are compiled where a CUDA toolkit is found, for CMAKE_CUDA_ARCHITECTURES or else
# for Ampere and Hopper, and left out elsewhere. C++ sources see ATTNBENCH_PLUGIN_CUDA where they are in.
# To be called from a CMakeLists.txt itself, not from a function.
set(attnbench_package_folder ${CMAKE_CURRENT_LIST_DIR})

macro(attnbench_add_plugin name)
  if("${ARGN}" MATCHES "\\.cu(;|$)" AND NOT CMAKE_CUDA_COMPILER_LOADED)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
    include(${attnbench_package_folder}/cuda_language.cmake)
  endif()
  attnbench_make_plugin(${name} ${ARGN})
endmacro()

function(attnbench_make_plugin name)
  set(sources ${ARGN})
  set(cuda_sources ${ARGN})
  list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
  if(cuda_sources AND NOT CMAKE_CUDA_COMPILER_LOADED)
    message(STATUS "No CUDA toolkit found: ${name} is built without ${cuda_sources}")
    list(REMOVE_ITEM sources ${cuda_sources})
    set(cuda_sources "")
  endif()
  add_library(${name} MODULE ${sources})
  target_link_libraries(${name} PRIVATE attnbench::attention)
  set_target_properties(${name} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  if(cuda_sources)
    set_target_properties(${name} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON
                                             CUDA_VISIBILITY_PRESET hidden)
    target_compile_definitions(${name} PRIVATE ATTNBENCH_PLUGIN_CUDA)
  endif()
  target_link_options(${name} PRIVATE
                      LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE LINKER:-z,defs)
  endif()
endfunction()
