# attnbench_settings: the include root, the warnings and the sanitizers of every target of ours.
add_library(attnbench_settings INTERFACE)
target_include_directories(attnbench_settings INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(attnbench_settings INTERFACE
                       $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>)
if(NOT ATTNBENCH_SANITIZE)  # instrumented code brings GCC's own false alarms
  target_compile_options(attnbench_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms where strings are joined or compared (GCC's PR 105329 and 105651), which come and
  # go with the length of a path.
  target_compile_options(attnbench_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
endif()
if(ATTNBENCH_SANITIZE)
  target_compile_options(attnbench_settings INTERFACE -fsanitize=${ATTNBENCH_SANITIZE}
                                                      -fno-omit-frame-pointer)
  target_link_options(attnbench_settings INTERFACE -fsanitize=${ATTNBENCH_SANITIZE})
  # A check of every reference doubles the time that code full of templates takes to build, and a
  # null one ends in a fault that the address sanitizer reports anyway.
  target_compile_options(attnbench_settings INTERFACE -fno-sanitize=null,alignment,vptr,object-size)
endif()

# ccache reads a precompiled header's content only when told that this is safe.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# The compiler's ABI as the plugin stamp names it.
set(ATTNBENCH_COMPILER_ABI "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} C++20")

# attnbench_reuse_header(TARGET FROM): TARGET is compiled with the precompiled header of the library
# FROM. A program is compiled as position-independent as a library, or it would not fit.
function(attnbench_reuse_header target from)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
